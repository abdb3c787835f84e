"""The search for the people nearest to each user, and the label shares among them, an estimate of P(y | x).

Exactly, by a tree or by coming to all, or of many people in many columns approximately, where pynndescent is installed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.random_words import order, stream, words
from p2p_sim.leakage.attack_results import Floats
from p2p_sim.leakage.intervals import Groups
from p2p_sim.leakage.nearest_neighbours import label_shares, largest_group, scaled
from p2p_sim.progress import Asked

APPROXIMATE_FROM = 100_000
"""Rows above which neighbours are searched approximately, where pynndescent is installed (extra ``leakage``)."""

FEW_NEIGHBOURS = 60
"""So many an approximate search finds well and quickly."""

EXACTLY, APPROXIMATELY = "found exactly", "found approximately by pynndescent"
"""What is said of a search."""

_CHUNK = 20_000  # users whose neighbours are held at once
_FEW_COLUMNS = 8  # up to which a tree finds neighbours at once
_FEW_ALIKE = 1000  # of a group, up to which a tree finds others beyond it quickly


def shares_of(y: npt.NDArray[Any], labels: int) -> Floats:
    """Return the share of each of the labels 0 to ``labels`` - 1 among y (n,), n at least 1."""
    return np.bincount(np.asarray(y, np.int64), minlength=labels) / len(y)


def smoothed(found: Floats, count: int, shares: Floats) -> Floats:
    """Return ``found``, of ``count`` neighbours, with ``shares`` as of one more, so that no label is ruled out."""
    return np.asarray((found * count + shares) / (count + 1), np.float64)


Places = npt.NDArray[np.int64]

SharesAmong = Callable[[npt.NDArray[np.float32], npt.NDArray[np.int64], Groups, int, int], Floats]
"""From features, labels, groups, how many neighbours and how many labels there are: label shares among the nearest of
each one who are not of her group.
"""


def among_each_other(
    n: int, columns: int, group: int, seed: int, progress: Asked
) -> tuple[SharesAmong, str, int]:
    """Return how neighbours are found, in words too, and how many at most: by a tree where that is quick.

    ``group``: users of the largest group.
    """
    if columns <= _FEW_COLUMNS and group <= _FEW_ALIKE:
        return _by_index(seed, n, approximate=False), EXACTLY, n

    def exact(
        x: npt.NDArray[np.float32], y: npt.NDArray[np.int64], groups: Groups, count: int, labels: int
    ) -> Floats:
        return label_shares(x, y, count, groups=groups, labels=labels, progress=progress)

    if n <= APPROXIMATE_FROM or group > FEW_NEIGHBOURS // 2:
        return exact, EXACTLY, n
    if not _approximate(n, columns):
        return exact, "found exactly (with the extra leakage it would be faster, and approximate)", n
    return _by_index(seed, FEW_NEIGHBOURS, approximate=True), APPROXIMATELY, FEW_NEIGHBOURS


def _approximate(n: int, columns: int) -> bool:
    """Whether neighbours among ``n`` rows are searched approximately: of many, in many columns, if it is installed."""
    if n <= APPROXIMATE_FROM or columns <= _FEW_COLUMNS:
        return False
    try:
        import pynndescent  # noqa: F401
    except ImportError:
        return False
    return True


class AmongOthers:
    """A search for the ``people`` (m, d) nearest to each of the ``users`` (n, d), who are not among them.

    ``how``: they are found, in words; ``most``: at most so many.
    """

    def __init__(self, users: npt.NDArray[Any], people: npt.NDArray[Any], seed: int):
        table = scaled(np.vstack([users, people]))
        self._users, self._people, self._seed = table[: len(users)], table[len(users) :], seed
        self._approximate = _approximate(len(people), people.shape[1])
        self.how = APPROXIMATELY if self._approximate else EXACTLY
        self.most = FEW_NEIGHBOURS if self._approximate else len(people)

    def shares(
        self, those: npt.NDArray[np.int64], y: npt.NDArray[np.int64], labels: int, count: int
    ) -> Floats:
        """Return label shares (users, labels) among the ``count`` nearest of ``those`` people, with labels ``y``.

        The shares of all of them count as one more neighbour, so that no label is ruled out.
        """
        index = _Index(self._people[those], count, self._seed, approximate=self._approximate)
        found = np.empty((len(self._users), labels))
        for low in range(0, len(found), _CHUNK):
            places = index.near(self._users[low : low + _CHUNK])
            for label in range(labels):
                found[low : low + _CHUNK, label] = (y[places] == label).mean(axis=1)
        return smoothed(found, count, shares_of(y, labels))


class _Index:
    """Finds the rows of a table (n, d) that are nearest to a point, so ``many``: all by a tree, or approximately."""

    def __init__(self, table: npt.NDArray[np.float32], many: int, seed: int, *, approximate: bool):
        self._table, self._many = table, many
        self._graph: Any = None
        self._tree: Any = None
        if approximate:
            from pynndescent import NNDescent

            self._graph = NNDescent(table, n_neighbors=many, random_state=seed % 2**32)
            return
        from sklearn.neighbors import NearestNeighbors

        few = table.shape[1] <= _FEW_COLUMNS
        self._tree = NearestNeighbors(n_neighbors=many, algorithm="kd_tree" if few else "auto").fit(table)

    def near(self, points: npt.NDArray[np.float32]) -> Places:
        """Return the places of the nearest rows of each point, (points, many)."""
        if self._tree is None:
            return np.asarray(self._graph.query(points, k=self._many)[0], np.int64)
        return np.asarray(self._tree.kneighbors(points, return_distance=False), np.int64)

    def near_rows(self, low: int, high: int) -> Places:
        """Return the same of some rows of the table, which are perhaps among their own nearest; -1 stands for none."""
        if self._tree is None:
            return np.asarray(self._near_each[low:high], np.int64)
        return self.near(self._table[low:high])

    @cached_property
    def _near_each(self) -> Places:
        found: Places = self._graph.neighbor_graph[0]
        return found


def _by_index(seed: int, most: int, *, approximate: bool) -> SharesAmong:
    """Return label shares among neighbours that an index finds; users are shuffled, so that no order breaks ties."""

    def shares(
        x: npt.NDArray[np.float32], y: npt.NDArray[np.int64], groups: Groups, count: int, labels: int
    ) -> Floats:
        shuffled = order(words(seed, stream("attack", "ties", 0), 0, len(y)))
        # as many more as her group has, for they may be among them
        few = min(count + largest_group(groups), len(y), most + 1)
        codes, of = y[shuffled], groups[shuffled]
        index = _Index(x[shuffled], few, seed, approximate=approximate)
        found = np.empty((len(y), labels))
        step = max(1, _CHUNK * FEW_NEIGHBOURS // max(few, FEW_NEIGHBOURS))
        for low in range(0, len(y), step):
            who = np.arange(low, min(low + step, len(y)))
            places = index.near_rows(low, low + step)
            others = (of[places] != of[who][:, None]) & (places >= 0)
            kept = others & (np.cumsum(others, axis=1) <= count)
            for label in range(labels):
                found[shuffled[who], label] = ((codes[places] == label) & kept).sum(axis=1)
        alone = found.sum(axis=1) == 0  # an approximate search may find nobody
        found[alone] = shares_of(y, labels)
        return np.asarray(found / found.sum(axis=1, keepdims=True), np.float64)

    return shares
