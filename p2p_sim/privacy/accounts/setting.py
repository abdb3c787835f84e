"""One question about the privacy of a protocol, as its law is asked it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from p2p_sim.core.errors import InputError
from p2p_sim.core.groups import Members
from p2p_sim.core.population import Population
from p2p_sim.privacy.profile import PrivacyProfile
from p2p_sim.views import Coalition

LEARNER = "learner"


@dataclass(frozen=True)
class Setting:
    """One question: a view of one cluster, or of ``people`` joined by a graph, checked."""

    view: Coalition
    text: str
    size: int | None
    composition: int | None
    encrypted: bool
    deviating: bool
    real: bool = False  # whether the composition is that of a population
    people: Population | None = None
    servers_deviate: bool = False

    @property
    def learner(self) -> bool:
        """Whether the learner looks."""
        return LEARNER in self.view.servers

    def met(self, size: int) -> Setting:
        """Return the question about a cluster of ``size`` users, all but the victim looking at most."""
        return replace(self, size=size, view=self.view.at_most(size - 1))


LawOf = Callable[[Any, Setting], PrivacyProfile]
"""What answers: a profile with a law, or one that is refused."""


def fits(setting: Setting, n: int) -> int:
    """Return how many users look; raises InputError if a cluster of ``n`` has no room for them, or for the ones."""
    c = setting.view.user_count
    if c >= n:
        raise InputError(f"view = {setting.text!r}: a cluster of {n} has {n - 1} users beside the victim")
    if setting.composition is not None and setting.composition > n - 1 - c:
        raise InputError(
            f"composition = {setting.composition}: a cluster of {n} has {n - 1 - c} other honest users; "
            f"give 0 to {n - 1 - c}, or 'worst'"
        )
    return c


def joined(setting: Setting) -> tuple[Population, Members]:
    """Return the users whom a graph joins, and the graph; only asked where there are such."""
    people = setting.people
    assert people is not None
    assert people.graph is not None
    return people, people.graph
