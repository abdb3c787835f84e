"""Picking messages of one kind from a trace: by user, round and viewpoint, so many and no more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.message import Message
from p2p_sim.trace.reader import Source
from p2p_sim.trace.sight import Eyes, blind, cut, sees_all

Array = npt.NDArray[Any]
Columns = dict[str, Array]

_SPARE = 1 << 16  # rows that are held beside those asked for, so that they are not sorted at every batch


@dataclass(frozen=True)
class Pick:
    """What is asked for.  ``user``: that she sent or received; ``eyes``: who looks, None for all-seeing."""

    user: int | None
    round: int | None
    eyes: Eyes | None
    channels: str
    limit: int | None
    offset: int

    def of(self, source: Source, message: Message) -> tuple[Columns, int]:
        """Return messages of a kind in the order (round, recipient, sender, seq), and how many there are in all."""
        kind, round, eyes = message.kind, self.round, self.eyes
        if eyes is None:
            return source.rows(kind, round=round, user=self.user, limit=self.limit, offset=self.offset)
        if blind(eyes, message):
            nothing, _ = source.rows(kind, limit=0)
            return cut(eyes, message, nothing, self.channels), 0
        if self.user is None and sees_all(eyes, message):
            columns, total = source.rows(kind, round=round, limit=self.limit, offset=self.offset)
            return cut(eyes, message, columns, self.channels), total
        one = self._one(eyes)
        if one is None:
            return self._streamed(source, message, eyes)
        columns, _ = source.rows(kind, round=round, user=one)
        seen = cut(eyes, message, columns, self.channels)
        return _part(seen, slice(self.offset, self._end)), len(seen["round"])

    @property
    def _end(self) -> int | None:
        return None if self.limit is None else self.offset + self.limit

    def _one(self, eyes: Eyes) -> int | None:
        """Return a user who sent or received all that is asked for, of a kind that no server handles."""
        alone = self.user is None and not eyes.wire and len(eyes.users) == 1
        return next(iter(eyes.users)) if alone else self.user

    def _streamed(self, source: Source, message: Message, eyes: Eyes) -> tuple[Columns, int]:
        """Look at every message; of those that are seen keep the first, so that memory stays bounded."""
        total, held = 0, 0
        kept: list[Columns] = []
        for columns in self._cuts(source, message, eyes):
            total += len(columns["round"])
            if self._end is not None and kept and len(kept[0]["round"]) == self._end > 0:
                columns = _may_precede(columns, kept[0])
            kept.append(columns)
            held += len(columns["round"])
            if self._end is not None and held > self._end + _SPARE:
                kept = [self._first(kept)]
                held = len(kept[0]["round"])
        return _part(self._first(kept), slice(self.offset, None)), total

    def _first(self, parts: list[Columns]) -> Columns:
        """Return the rows that come first, in order."""
        joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        order = np.lexsort([joined[name] for name in ("seq", "sender", "recipient", "round")])
        return {name: column[order[: self._end]] for name, column in joined.items()}

    def _cuts(self, source: Source, message: Message, eyes: Eyes) -> Iterator[Columns]:
        nothing, _ = source.rows(message.kind, limit=0)
        yield cut(eyes, message, nothing, self.channels)
        for columns in source.batches(message.kind, self.round):
            yield cut(eyes, message, columns, self.channels)


def _may_precede(columns: Columns, kept: Columns) -> Columns:
    """Return the rows whose round and recipient do not come after those of the last row kept."""
    round, recipient = (kept[name][-1] for name in ("round", "recipient"))
    same = columns["round"] == round
    before = (columns["round"] < round) | (same & (columns["recipient"] <= recipient))
    return {name: column[before] for name, column in columns.items()}


def _part(columns: Columns, which: slice) -> Columns:
    return {name: column[which] for name, column in columns.items()}
