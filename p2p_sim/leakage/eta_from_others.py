"""P(y | x) of the users of a run from people who are not in it: of the same kind, such as a data set's test part.

None of their labels is in a message, so nobody who reads the messages counts a label twice.
"""

from __future__ import annotations

import numpy as np

from p2p_sim.core.errors import InputError
from p2p_sim.core.population import Population
from p2p_sim.leakage import eta as priors
from p2p_sim.leakage.eta import Eta
from p2p_sim.leakage.neighbour_search import AmongOthers, shares_of

ENOUGH = 20
"""Fewer people than so many tell too little of others."""


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
        return Eta(np.tile(shares_of(y, labels), (people.users, 1)), f"class shares of {whom}", alike=True)
    if kind == "knn":
        search = AmongOthers(people.x, others.x, seed)
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
