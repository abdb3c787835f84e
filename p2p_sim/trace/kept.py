"""A trace in memory."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.core.ledger import Count
from p2p_sim.core.level import TraceLevel
from p2p_sim.core.message import USER, field_dtype, field_shape
from p2p_sim.trace import source
from p2p_sim.trace.manifest import kinds_of
from p2p_sim.trace.source import Columns, check_kind, check_span, missing_of
from p2p_sim.trace.unshipped import recomputing

Array = npt.NDArray[Any]


class Kept:
    """The messages that a run holds in memory, see ``Source``.  ``protocol``: the run's, if it is not a shipped one."""

    def __init__(self, run: Any, protocol: Any = None):
        program = protocol if protocol is not None else run.source
        if program is None:
            if run.trace in ("none", "counts"):
                raise InputError(f"this run kept no messages (trace={run.trace!r}), and {recomputing(run)}")
            raise InputError(f"{run.protocol} is not a shipped protocol: give it, Kept(run, protocol)")
        self.manifest: Mapping[str, Any] = {"level": run.trace, "kinds": kinds_of(program)}
        self.kinds = tuple(self.manifest["kinds"])
        self.counts: Mapping[tuple[str, int], Count] = run.counts
        self.complete = True
        self._columns: Mapping[str, Columns] = run._trace
        self.kept = sum(len(columns["round"]) for columns in self._columns.values())
        self.missing = missing_of(run.trace, self.kept, run.counts)

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
        cuts = [*range(low, high, source.BATCH), high]
        return ({name: column[a:b] for name, column in columns.items()} for a, b in itertools.pairwise(cuts))

    def _of(self, kind: str) -> Columns:
        check_kind(kind, self.kinds, self.manifest["level"])
        return self._columns[kind]


def sorted_trace(
    protocol: Any, trace: Mapping[str, list[dict[str, Array]]], level: TraceLevel
) -> dict[str, dict[str, Array]]:
    """Join the traced parts of each kind, in the order (round, recipient, sender, seq), and add ``nbytes``."""
    if not level.keeps:
        return {}
    sizes = protocol.vector_lengths()
    return {
        kind: _joined(message, trace.get(kind, []), sizes) for kind, message in protocol.messages().items()
    }


def _joined(message: Any, parts: list[dict[str, Array]], sizes: dict[str, int]) -> dict[str, Array]:
    if not parts:
        parts = [{name: np.zeros(0, np.int32) for name in ("round", "sender", "recipient", "seq")}]
        parts[0] |= {
            k: np.zeros((0, *field_shape(f, sizes)), field_dtype(f)) for k, f in message.fields.items()
        }
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    for name in ("sender", "recipient"):
        columns[name] = columns[name].astype(np.int64)
    order = np.lexsort((columns["seq"], columns["sender"], columns["recipient"], columns["round"]))
    columns = {name: column[order] for name, column in columns.items()}
    travels = np.ones(len(order), np.bool_)
    if message.sender == message.recipient:
        travels = columns["sender"] != columns["recipient"]
    columns["nbytes"] = np.where(travels, message.nbytes(sizes), 0)
    return columns
