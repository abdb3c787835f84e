"""Labels that came over a graph: whose a reported label may be, a random neighbour's or the start's of a walk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.groups import Members
from p2p_sim.network.walks import stepping

Array = npt.NDArray[Any]

MAX_WALK_STEPS = 30_000_000
"""Limit of steps times pairs of neighbours (of users, if all are neighbours): about 0.1 s an evaluation of the loss."""


@dataclass(frozen=True)
class Origins:
    """Labels by reporter, ``counts`` (n, k), as ``losses.Released``.

    ``origins``: the functions ``mean`` and ``back``.  The first takes the mean of users' values, for each reporter over
    the users whose label hers may be, each with its probability; the second is its transpose.
    """

    counts: Array
    origins: tuple[Callable[[Array], Array], Callable[[Array], Array]]

    def mean(self, single: Array) -> Array:
        """Return for each reporter the mean (n, k) of values (n, k) over the users whose label hers may be."""
        return self.origins[0](single)

    def back(self, rows: Array) -> Array:
        """Return the transpose of ``mean``."""
        return self.origins[1](rows)


def short(graph: Members, steps: int) -> bool:
    """Return whether walks are short enough to be traced back."""
    pairs = len(graph.codes) if graph.complete else int(graph.starts[-1])
    return steps * pairs <= MAX_WALK_STEPS


def of_neighbours(graph: Members, counts: Array) -> Origins:
    """Return labels that are each the label of a random neighbour of their reporter."""
    ahead, back = stepping(graph, 1)
    return Origins(counts, (back, ahead))


def of_walks(graph: Members, steps: int, counts: Array) -> Origins:
    """Return labels that walked: one started at each user and ended at its reporter after ``steps`` steps.

    A label that ended at v is u's with probability P_t(u, v) / sum over all w of P_t(w, v).
    """
    ahead, back = stepping(graph, steps)
    ended = ahead(np.ones(len(counts)))[:, None]  # labels that end at each user, on average
    return Origins(counts, (lambda single: ahead(single) / ended, lambda rows: back(rows / ended)))
