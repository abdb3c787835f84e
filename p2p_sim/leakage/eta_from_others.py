"""P(y | x) of the users of a run from people who are not in it: of the same kind, such as a data set's test part.

None of their labels is in a message, so nobody who reads the messages counts a label twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.core.population import Population
from p2p_sim.leakage import eta as priors
from p2p_sim.leakage.eta import Eta
from p2p_sim.leakage.label_inference import Floats
from p2p_sim.leakage.nearest_neighbours import scaled

ENOUGH = 20
"""Fewer people than so many tell too little of others."""

_CHUNK = 20_000  # users whose neighbours are held at once


def from_others(kind: str, people: Population, others: Population, labels: int, seed: int = 0) -> Eta | None:
    """Return P(y | x) of ``people`` by the labels of ``others``, who are not in the run; None if these are too few.

    ``kind``: "knn", "model" or "prior", as in ``eta.of_population``; without features it is the class shares of the
    others.  ``from_half``: by half of the others, drawn by ``seed``.  Too few: below ``ENOUGH``, or with one label.
    Raises InputError for others with other features or labels than the users.

    *Source:* as of ``eta.nearest`` and ``eta.modelled``.  *Assumes:* others are drawn as the users are.
    """
    y = np.asarray(others.y, np.int64)
    _check(people, others, labels)
    if others.users < ENOUGH or len(np.unique(y)) < 2:
        return None
    whom = f"{others.users:,} people who are not in the run"
    if kind == "prior" or people.x is None or others.x is None:
        return Eta(
            np.tile(priors.shares_of(y, labels), (people.users, 1)), f"class shares of {whom}", alike=True
        )
    if kind == "knn":
        search = _Search(people.x, others.x, seed)
        count = min(others.users, search.most, max(10, round(others.users**0.5)))
        half, _ = priors.halves(others.users, seed)
        rows, coarse = (
            search.shares(those, y[those], labels, many)
            for those, many in ((np.arange(others.users), count), (half, max(1, count // 2)))
        )
        return Eta(rows, f"{count:,} nearest of {whom}, {search.how}", from_half=coarse)
    half, _ = priors.halves(others.users, seed)
    rows, coarse = (
        priors.calibrated(others.x[those], y[those], people.x, labels, priors.MODEL)
        for those in (np.arange(others.users), half)
    )
    return Eta(rows, f"{priors.MODEL}, calibrated, trained on {whom}", from_half=coarse)


def _check(people: Population, others: Population, labels: int) -> None:
    """Raise InputError unless other people are described as the users are."""
    if people.x is not None and others.x is not None and people.x.shape[1] != others.x.shape[1]:
        raise InputError(
            f"held_out: has {others.x.shape[1]:,} features, and the users of the run have {people.x.shape[1]:,}; give "
            "people who are described as they are"
        )
    if others.users and int(others.y.max()) >= labels:
        raise InputError(
            f"held_out: has label {int(others.y.max())}, and the protocol handles 0 to {labels - 1}"
        )


class _Search:
    """A search for the people who are nearest to each user: in ``how``, and at most how many, ``most``."""

    def __init__(self, users: npt.NDArray[Any], people: npt.NDArray[Any], seed: int):
        table = scaled(np.vstack([users, people]))
        self._users, self._people, self._seed = table[: len(users)], table[len(users) :], seed
        self._approximate = priors.searched_approximately(len(people), people.shape[1])
        self.how = "found approximately by pynndescent" if self._approximate else "found exactly"
        self.most = priors.FEW_NEIGHBOURS if self._approximate else len(people)

    def shares(
        self, those: npt.NDArray[np.int64], y: npt.NDArray[np.int64], labels: int, count: int
    ) -> Floats:
        """Return label shares (users, labels) among the ``count`` nearest of ``those`` people, with labels ``y``.

        The shares of all of them count as one more neighbour, so that no label is ruled out.
        """
        near = self._places(self._people[those], count)
        found = np.empty((len(self._users), labels))
        for low in range(0, len(found), _CHUNK):
            places = near(self._users[low : low + _CHUNK])
            for label in range(labels):
                found[low : low + _CHUNK, label] = (y[places] == label).mean(axis=1)
        return np.asarray((found * count + priors.shares_of(y, labels)) / (count + 1), np.float64)

    def _places(
        self, table: npt.NDArray[np.float32], count: int
    ) -> Callable[[npt.NDArray[Any]], npt.NDArray[Any]]:
        if self._approximate:
            from pynndescent import NNDescent

            graph = NNDescent(table, n_neighbors=count, random_state=self._seed % 2**32)
            return lambda at: np.asarray(graph.query(at, k=count)[0], np.int64)
        from sklearn.neighbors import NearestNeighbors

        tree = NearestNeighbors(n_neighbors=count).fit(table)
        return lambda at: np.asarray(tree.kneighbors(at, return_distance=False), np.int64)
