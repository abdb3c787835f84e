"""What can be asked of a trace, in memory or on disk.

Messages are columns round, sender, recipient, seq, the fields, nbytes.  ``rows`` gives them in the order (round,
recipient, sender, seq); ``batches`` in the order in which the trace holds them, for scans in bounded memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.core.ledger import Count

Columns = dict[str, npt.NDArray[Any]]

BATCH = 1 << 20
"""Most rows that ``batches`` gives at once."""


class Source(Protocol):
    """What can be asked of a trace.

    ``manifest``: JSON values; ``manifest["kinds"]`` says of each kind its sender and recipient role, text, sealed_for,
    fields (dtype, length) and nbytes.  ``counts``: of the whole run, by (kind, round), whatever the trace holds; empty
    if they are not known.  ``complete``: whether the trace holds all that its level keeps; ``missing``: what of the run
    it lacks, in words, None if nothing; ``kept``: how many messages it holds.
    """

    manifest: Mapping[str, Any]
    kinds: tuple[str, ...]
    counts: Mapping[tuple[str, int], Count]
    complete: bool
    missing: str | None
    kept: int

    def rows(
        self,
        kind: str,
        *,
        round: int | None = None,
        user: int | None = None,
        limit: int | None = None,
        offset: int = 0,
    ) -> tuple[Columns, int]:
        """Return messages of a kind, and how many match in all.

        ``user``: only those that she sent or received.  Raises InputError for an unknown kind, a negative limit or
        offset, a trace that keeps no messages, and a file that was altered.
        """

    def batches(self, kind: str, round: int | None = None) -> Iterator[Columns]:
        """Return all messages of a kind, at most 2^20 at a time.  Raises InputError as ``rows`` does."""


def check_kind(kind: str, kinds: tuple[str, ...], level: str) -> None:
    """Check that messages of a kind can be asked for; raises InputError."""
    if kind not in kinds:
        raise InputError(f"no message kind {kind!r} in this run; it has {sorted(kinds)}")
    if level in ("none", "counts"):
        raise InputError(
            f"this run kept no messages (trace={level!r}): run it with trace='full' or 'sample=N'"
        )


def check_number(name: str, value: Any) -> None:
    """Check that a number, if there is one, is whole; raises InputError."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, (int, np.integer))):
        raise InputError(f"{name} = {value!r}: must be a whole number, or None")


def check_span(limit: int | None, offset: int) -> None:
    """Check which of the rows are asked for; raises InputError."""
    for name, value in (("limit", limit), ("offset", offset)):
        check_number(name, value)
        if value is not None and value < 0:
            raise InputError(f"{name} = {value!r}: must be at least 0")


def missing_of(level: str, kept: int, counts: Mapping[tuple[str, int], Count]) -> str | None:
    """Say what of a run's messages a whole trace of some level lacks."""
    whole = sum(count.messages for count in counts.values())
    if kept == whole:
        return None
    return f"the trace ({level}) holds {kept:,} of the {whole:,} messages of the run"
