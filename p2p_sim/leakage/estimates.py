"""``Estimates``: what was estimated of P(y | x), kept for attacks on several runs among the same people."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.population import Population
from p2p_sim.core.random_words import order as random_order
from p2p_sim.core.random_words import stream, words
from p2p_sim.leakage import eta as priors
from p2p_sim.leakage.eta import Eta
from p2p_sim.leakage.eta_from_others import from_others
from p2p_sim.leakage.intervals import Groups
from p2p_sim.progress import Asked

_KEPT = 4


class Estimates:
    """Makes estimates as ``eta.of_population`` and ``eta_from_others.from_others`` do, each once.

    An estimate takes longer than all the rest of an attack, and depends on the people alone: not on what they sent, nor
    on the order in which a protocol has them.
    """

    def __init__(self) -> None:
        self._kept: dict[bytes, Eta | None] = {}

    def of_population(
        self,
        kind: str,
        people: Population,
        labels: int,
        seed: int = 0,
        shares: Sequence[float] | None = None,
        progress: Asked = False,
        groups: Groups | None = None,
    ) -> Eta:
        """Return the estimate from the users themselves."""
        if kind == "true":  # that is known, not estimated
            return priors.of_population(kind, people, labels, seed, shares)
        whole, order = by_features(people)
        clusters = None if whole.clusters is None else whole.clusters.codes
        apart = None if groups is None else groups[order]
        found = self._once(
            ["users", kind, labels, seed, shares],
            [whole.x, whole.y, clusters, apart],
            lambda: priors.of_population(kind, whole, labels, seed, shares, progress, apart),
        )
        assert found is not None
        return moved(found, np.argsort(order))

    def from_others(
        self, kind: str, people: Population, others: Population, labels: int, seed: int = 0
    ) -> Eta | None:
        """Return the estimate from people who are not in the run; None if these are too few."""
        whole, order = by_features(people)
        found = self._once(
            ["others", kind, labels, seed],
            [whole.x, np.array([people.users]), others.x, others.y],
            lambda: from_others(kind, whole, others, labels, seed),
        )
        return None if found is None else moved(found, np.argsort(order))

    def _once(
        self, words: list[Any], columns: Sequence[npt.NDArray[Any] | None], make: Callable[[], Eta | None]
    ) -> Eta | None:
        digest = hashlib.blake2b(
            repr([words, [None if each is None else each.shape for each in columns]]).encode()
        )
        for column in columns:
            if column is not None:
                digest.update(np.ascontiguousarray(column).view(np.uint8).data)
        key = digest.digest()
        if key not in self._kept:
            while len(self._kept) >= _KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[key] = make()
        return self._kept[key]


def by_features(people: Population) -> tuple[Population, npt.NDArray[np.int64]]:
    """Return the users in an order that their features and labels decide, and the old row of each.

    Without features they are left as they are.  They are sorted, and then shuffled: models are calibrated on parts of
    rows that follow each other.
    """
    if people.x is None or not people.users:
        return people, np.arange(people.users)
    table = np.ascontiguousarray(np.column_stack([people.x, people.y]))
    row = np.dtype((np.void, table.dtype.itemsize * table.shape[1]))
    shuffled = random_order(words(0, stream("attack", "row", 0), 0, people.users))
    order = np.argsort(table.view(row).ravel(), kind="stable")[shuffled]
    cluster = None if people.clusters is None else people.clusters.codes[order]
    return Population.from_arrays(y=people.y[order], x=people.x[order], cluster=cluster), order


def moved(found: Eta, rows: npt.NDArray[np.int64]) -> Eta:
    """Return the estimate of the users of some rows."""
    half = None if found.from_half is None else found.from_half[rows]
    return replace(found, rows=found.rows[rows], from_half=half)
