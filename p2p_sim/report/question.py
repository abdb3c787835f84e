"""What is accounted: which views are rows of a table, of what users, at which composition."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from p2p_sim import privacy
from p2p_sim.core.errors import InputError
from p2p_sim.core.faults import Faults
from p2p_sim.core.population import Population
from p2p_sim.privacy.accountant import crowds
from p2p_sim.privacy.profile import PrivacyProfile
from p2p_sim.privacy.rows import View, rows
from p2p_sim.views import Coalition

REAL = "population"
"""The composition that the labels of a population really have."""


@dataclass(frozen=True)
class Question:
    """What is accounted.  One of ``cluster_size`` and ``population``, or neither; ``quick``: within 2 seconds.

    ``only``: names of views, all rows if empty.  ``composition``, ``faults``: as ``privacy.profile`` takes them.
    Raises InputError for a composition that does not fit, and for views asked for by name that the clusters or the
    composition rule out.
    """

    protocol: Any
    delta: float
    cluster_size: int | None = None
    population: Population | None = None
    channels: str = "plain"
    quick: bool = False
    only: tuple[str, ...] = ()
    composition: str | int = "worst"
    faults: Faults | None = None

    def __post_init__(self) -> None:
        people = crowds(self.protocol, self.population)
        if people is not None and people.clusters is not None and self.protocol.graph_over() == "everybody":
            people = replace(people, clusters=None)  # walks do not mind clusters
        object.__setattr__(self, "population", people)
        if self.composition == REAL and self.population is None:
            raise InputError(f"composition = {REAL!r}: needs users with labels; give --data or --users")
        if isinstance(self.composition, int) and self.population is not None:
            raise InputError(f"composition = {self.composition}: of one cluster; give --cluster-size alone")
        why = {view.name: self.misfit(view) for view in self.views()}
        for name, reason in why.items():
            if reason and (self.only or all(why.values())):
                raise InputError(f"view = {name!r}: {reason}")

    @property
    def on_graph(self) -> bool:
        """Whether laws are of users whom a graph joins, so that no size stands for them."""
        return self.population is not None and self.protocol.graph_over() is not None

    def views(self) -> list[View]:
        """Return the rows; raises InputError for a part of a view that the protocol does not have."""
        every, roles = rows(self.protocol), self.protocol.roles()
        chosen: list[View] = []
        for name in self.only:
            who = Coalition.parse(name, roles)
            found = [view for view in every if view.who == who] or [View(name, str(who), who)]
            chosen += [view for view in found if view not in chosen]
        return chosen if self.only else every

    def sizes(self) -> list[int]:
        """Return the distinct sizes of clusters."""
        if self.population is not None:
            return [int(size) for size in np.unique(self.population.sizes)]
        return [] if self.cluster_size is None else [int(self.cluster_size)]

    def misfit(self, view: View) -> str:
        """Return why nobody can look like this here, or nothing."""
        sizes = self.sizes()
        if sizes and view.colluders >= sizes[-1]:
            return f"the largest cluster has {sizes[-1]} users: at most {sizes[-1] - 1} beside the victim"
        if self.composition == REAL and view.colluders:
            return f"composition = {REAL!r} is for views without users, who know their own labels"
        honest = sizes[-1] - 1 - view.colluders if sizes else 0
        if sizes and isinstance(self.composition, int) and self.composition > honest:
            return f"composition = {self.composition}: there are {honest} other honest users"
        return ""

    def profile(self, view: View, size: int | None = None) -> PrivacyProfile:
        """Return a view's profile: of a cluster size, or of what was asked about."""
        size = None if self.on_graph else size
        where: dict[str, Any] = {"cluster_size": self.cluster_size if size is None else size}
        if self.population is not None and size is None:
            where = {"population": self.population}
        who = view.who if size is None else view.who.at_most(size - 1)
        name = view.name if who == view.who or not str(who) else str(who)
        return privacy.profile(
            self.protocol,
            name,
            composition=self.composition,
            channels=self.channels,
            users=view.users,
            faults=self.faults,
            **where,
        )
