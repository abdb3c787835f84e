"""``Setting``: one question about the privacy of a protocol, as passed to its law."""

from __future__ import annotations

from dataclasses import dataclass, replace

from p2p_sim.coalition import Coalition
from p2p_sim.core.errors import InputError
from p2p_sim.core.groups import Members
from p2p_sim.core.population import Population

LEARNER = "learner"


@dataclass(frozen=True)
class Setting:
    """One question: a view of one cluster, or of ``people`` joined by a graph, checked.

    ``view``: who looks, ``text``: as it was asked.  ``size``: users of the cluster, None if it was not given; a law
    that needs it asks ``crowd``.  ``composition``: how many of the other honest users have label 1, None for the worst;
    ``real``: whether it is that of a population.  ``encrypted``: whether the wire reads nothing.  ``deviating``:
    whether the users who look need not follow the protocol.  ``people``: only for a protocol on a graph.
    """

    view: Coalition
    text: str
    size: int | None
    composition: int | None
    encrypted: bool
    deviating: bool
    real: bool = False
    people: Population | None = None
    servers_deviate: bool = False

    @property
    def learner(self) -> bool:
        """Whether the learner looks."""
        return LEARNER in self.view.servers

    def in_cluster_of(self, size: int) -> Setting:
        """Return the question about a cluster of ``size`` users, all but the victim looking at most."""
        return replace(self, size=size, view=self.view.at_most(size - 1))


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


def crowd(setting: Setting) -> int:
    """Return how many users the cluster has, for a law that depends on it; raises InputError if it was not given."""
    if setting.size is None:
        raise InputError("cluster_size = None: the law depends on it; give cluster_size or population")
    return setting.size
