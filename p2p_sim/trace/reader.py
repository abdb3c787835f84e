"""Reading traces: one interface over a run in memory and one on disk.

Messages are columns round, sender, recipient, seq, the fields, nbytes.  ``rows`` gives them in the order (round,
recipient, sender, seq); ``batches`` in the order in which the trace holds them, for scans in bounded memory.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.core.ledger import Count
from p2p_sim.core.message import USER
from p2p_sim.trace import store
from p2p_sim.trace.manifest import kinds_of

Array = npt.NDArray[Any]
Columns = dict[str, Array]

BATCH = 1 << 20
"""Most rows that ``batches`` gives at once."""


class Source(Protocol):
    """What can be asked of a trace.

    ``manifest``: JSON values; ``manifest["kinds"]`` says of each kind its sender and recipient role, text, sealed_for,
    fields (dtype, length) and nbytes.  ``counts``: of the whole run, by (kind, round), whatever the trace holds.
    ``complete``: whether the trace holds all that its level keeps; ``missing``: what of the run it lacks, in words,
    None if nothing.
    """

    manifest: Mapping[str, Any]
    kinds: tuple[str, ...]
    counts: Mapping[tuple[str, int], Count]
    complete: bool
    missing: str | None

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
        offset, and a trace that keeps no messages.
        """

    def batches(self, kind: str, round: int | None = None) -> Iterator[Columns]:
        """Return all messages of a kind, at most 2^20 at a time.  Raises InputError as ``rows`` does."""


class Kept:
    """The messages that a run holds in memory.  ``protocol``: the run's, if it is not a shipped one."""

    def __init__(self, run: Any, protocol: Any = None):
        program = protocol if protocol is not None else run.source
        if program is None:
            raise InputError(f"{run.protocol} is not a shipped protocol: give it, Kept(run, protocol)")
        self.manifest: Mapping[str, Any] = {"level": run.trace, "kinds": kinds_of(program)}
        self.kinds = tuple(self.manifest["kinds"])
        self.counts: Mapping[tuple[str, int], Count] = run.counts
        self.complete = True
        self._columns: Mapping[str, Columns] = run._trace
        self.missing = missing_of(run.trace, self._kept(), run.counts)

    def _kept(self) -> int:
        return sum(len(columns["round"]) for columns in self._columns.values())

    def rows(
        self,
        kind: str,
        *,
        round: int | None = None,
        user: int | None = None,
        limit: int | None = None,
        offset: int = 0,
    ) -> tuple[Columns, int]:
        """See ``Source.rows``."""
        check_span(limit, offset)
        columns = self._of(kind)
        about = self.manifest["kinds"][kind]
        mask = np.ones(len(columns["round"]), np.bool_)
        if round is not None:
            mask &= columns["round"] == round
        if user is not None:
            ends = [columns[end] == user for end in ("sender", "recipient") if about[end] == USER]
            mask &= np.logical_or.reduce(ends) if ends else False
        places = np.flatnonzero(mask)
        chosen = places[offset : None if limit is None else offset + limit]
        return {name: column[chosen] for name, column in columns.items()}, len(places)

    def batches(self, kind: str, round: int | None = None) -> Iterator[Columns]:
        """See ``Source.batches``."""
        columns = self._of(kind)
        low, high = 0, len(columns["round"])
        if round is not None:
            low, high = (int(np.searchsorted(columns["round"], round, side)) for side in ("left", "right"))
        cuts = [*range(low, high, BATCH), high]
        return ({name: column[a:b] for name, column in columns.items()} for a, b in itertools.pairwise(cuts))

    def _of(self, kind: str) -> Columns:
        check_kind(kind, self.kinds, self.manifest["level"])
        return self._columns[kind]


def open_trace(path: str | Path) -> Source:
    """Open the trace of a run directory; raises InputError if there is none or it is damaged."""
    return Kept(SimpleNamespace(**store.load(Path(path))))


def source(run: Any) -> Source:
    """Return the trace of a run: of a ``Run``, or of a run directory by its path."""
    return open_trace(run) if isinstance(run, (str, Path)) else Kept(run)


def check_kind(kind: str, kinds: tuple[str, ...], level: str) -> None:
    """Check that messages of a kind can be asked for; raises InputError."""
    if kind not in kinds:
        raise InputError(f"no message kind {kind!r} in this run; it has {sorted(kinds)}")
    if level in ("none", "counts"):
        raise InputError(
            f"this run kept no messages (trace={level!r}): run it with trace='full' or 'sample=N'"
        )


def check_span(limit: int | None, offset: int) -> None:
    """Check which of the rows are asked for; raises InputError."""
    for name, value in (("limit", limit), ("offset", offset)):
        if value is not None and value < 0:
            raise InputError(f"{name} = {value!r}: must be at least 0")


def missing_of(level: str, kept: int, counts: Mapping[tuple[str, int], Count]) -> str | None:
    """Say what of a run's messages a whole trace of some level lacks."""
    whole = sum(count.messages for count in counts.values())
    if kept == whole:
        return None
    return f"the trace ({level}) holds {kept:,} of the {whole:,} messages of the run"
