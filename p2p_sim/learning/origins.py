"""Labels that came over a graph: reported by one user, they are those of others near her."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.groups import Members
from p2p_sim.network.walks import stepping

Array = npt.NDArray[Any]

LONGEST = 30_000_000
"""Steps times neighbours of all users, beyond which labels are not followed back: a tenth of a second, each time."""


@dataclass(frozen=True)
class Origins:
    """Labels by who reported them, ``counts`` (n, k); ``mean`` and ``back`` as in ``losses.Released``.

    ``origins``: the map from values of users to their means over whose label each one's report may be, and its
    transpose.
    """

    counts: Array
    origins: tuple[Callable[[Array], Array], Callable[[Array], Array]]

    def mean(self, single: Array) -> Array:
        """Return for each reporter the mean over whose label hers may be."""
        return self.origins[0](single)

    def back(self, rows: Array) -> Array:
        """Return the transpose of ``mean``."""
        return self.origins[1](rows)


def short(graph: Members, steps: int) -> bool:
    """Whether walks are short enough to be followed back."""
    pairs = len(graph.codes) if graph.complete else int(graph.starts[-1])
    return steps * pairs <= LONGEST


def of_neighbours(graph: Members, counts: Array) -> Origins:
    """Return labels each of which is that of a random neighbour of its reporter."""
    ahead, back = stepping(graph, 1)
    return Origins(counts, (back, ahead))


def of_walks(graph: Members, steps: int, counts: Array) -> Origins:
    """Return labels of which one began at every user, and ended at its reporter after so many steps.

    A label that ended at v is u's with probability P_t(u, v) / sum over all w of P_t(w, v).
    """
    ahead, back = stepping(graph, steps)
    ended = ahead(np.ones(len(counts)))[:, None]  # labels that end at each user, on average
    return Origins(counts, (lambda single: ahead(single) / ended, lambda rows: back(rows / ended)))
