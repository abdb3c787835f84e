"""Groups of users whose bits are counted together: what a number of ones says of each of them.

*Source:* ``docs/laws.md``, "What a view says of single labels".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.core.groups import Members, clusters
from p2p_sim.observed_view import View
from p2p_sim.privacy.label_likelihoods import Floats, LabelLikelihoods
from p2p_sim.privacy.laws.poisson_binomial import bit_likelihoods
from p2p_sim.privacy.mechanism_parts.label_reports import of_senders

Ints = npt.NDArray[np.int64]


def clusters_of(view: View) -> Members:
    """Return the clusters of a view's users, whose rows are the population's; one of all if there are none.

    Raises InputError where a part of a population ran: sizes of clusters and bags are those of the whole.
    """
    if view.of_a_part:
        raise InputError(
            f"view = {view.name!r}: only a part of a population took part in the run, and who else is in its clusters "
            "and bags is not known; attack a run of all of them"
        )
    users = len(view.public["user"])
    return clusters(view.public["cluster"] if "cluster" in view.public else np.zeros(users, np.int64))


@dataclass(frozen=True, eq=False)
class Groups:
    """Users by group: ``of`` (n,), the number of each user's group, in the population's order; -1: in none."""

    of: Ints

    @cached_property
    def rows(self) -> Ints:
        """The rows of all users in groups, group after group."""
        order = np.argsort(self.of, kind="stable")
        return np.asarray(order[np.searchsorted(self.of[order], 0) :], np.int64)

    @cached_property
    def names(self) -> Ints:
        """The numbers of the groups that somebody is in, ascending, (groups,)."""
        return np.unique(self.of[self.rows])

    @cached_property
    def sizes(self) -> Ints:
        """How many users each has, (groups,)."""
        return np.asarray(np.unique(self.of[self.rows], return_counts=True)[1], np.int64)

    @cached_property
    def counts(self) -> tuple[Ints, Ints]:
        """Return, for each number of ones that each group can have, the place of the group and the number."""
        which = np.repeat(np.arange(len(self.sizes)), self.sizes + 1)
        starts = np.cumsum(self.sizes + 1) - (self.sizes + 1)
        return which, np.arange(len(which)) - starts[which]

    def likelihoods(self, ones: Floats, log_weights: Floats) -> Floats:
        """Return ln P(what was seen | bit = c) of the users in ``rows``, (m, 2).

        ``ones`` (n,): P(bit = 1) of every user; ``log_weights``: of what was seen given each of ``counts``.
        """
        return bit_likelihoods(ones[self.rows], self.sizes, log_weights)


def of_rows(
    view: View, rows: Ints, logs: Floats, source: str, basis: Literal["exact", "lower"] = "exact"
) -> LabelLikelihoods:
    """Return logarithms (m, k) of users by row, in any order, as likelihoods of a view."""
    order = np.argsort(rows)
    return of_senders(view, view.public["user"][rows[order]], logs[order], source, basis)
