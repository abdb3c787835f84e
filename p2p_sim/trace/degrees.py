"""Degrees: how many messages each user sends and receives, and how that is spread over users."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

QUANTILES = (0.25, 0.5, 0.75, 0.99)
_ONE = np.int32(1)


@dataclass(frozen=True)
class Spread:
    """How a number of messages is spread over users.

    ``none``: users who have none; ``quantiles``: for 0.25, 0.5, 0.75 and 0.99, the least number that at least that
    share of the users do not exceed; ``busiest``: the least id of those who have ``most``.
    """

    users: int
    none: int
    least: int
    quantiles: tuple[int, ...]
    most: int
    mean: float
    busiest: int


class Tally:
    """Counts by user; ``size``: largest id plus one, at first; it grows."""

    def __init__(self, size: int):
        self.counts = np.zeros(size, np.int32)

    def add(self, ids: Array) -> None:
        """Count one for each id."""
        self._reach(int(ids.max(initial=-1)) + 1)
        np.add.at(self.counts, ids, _ONE)  # of one type with the counts, it is ten times as fast

    def merge(self, other: Tally) -> None:
        """Add the counts of another."""
        self._reach(len(other.counts))
        self.counts[: len(other.counts)] += other.counts

    def _reach(self, size: int) -> None:
        if size > len(self.counts):
            self.counts = np.concatenate([self.counts, np.zeros(size - len(self.counts), np.int32)])

    def spread(self, ids: Array | None) -> Spread | None:
        """Return how the counts are spread over some users, ascending, None for all; None if there are no users."""
        counts = self.counts if ids is None else self.counts[ids]
        return None if not len(counts) else _spread(counts, ids)


def _spread(counts: Array, ids: Array | None) -> Spread:
    how_many = np.bincount(counts)  # users, by number of messages
    up_to = np.cumsum(how_many)
    users, most = len(counts), len(how_many) - 1
    busiest = int(counts.argmax())
    return Spread(
        users=users,
        none=int(how_many[0]),
        least=int(np.flatnonzero(how_many)[0]),
        quantiles=tuple(int(np.searchsorted(up_to, _share(q, users))) for q in QUANTILES),
        most=most,
        mean=int(how_many @ np.arange(most + 1)) / users,
        busiest=busiest if ids is None else int(ids[busiest]),
    )


def _share(quantile: float, users: int) -> int:
    """Return how many users are at least that share of all; quantiles are whole percents."""
    return -(-round(100 * quantile) * users // 100)
