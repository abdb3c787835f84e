"""Whose outcomes may depend on each other: the groups over which intervals are made."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.groups import Members
from p2p_sim.core.population import Population
from p2p_sim.core.protocol import Protocol
from p2p_sim.network.bags import bag_numbers


def groups_of(protocol: Protocol, people: Population) -> npt.NDArray[Any] | None:
    """Return the number of each user's group (n,): bags, or clusters in which users meet; None where there are no two.

    *Assumes:* messages of two groups do not depend on each other.  In one single crowd, where None is returned, users
    count as independent though the messages mix them all.
    """
    bags = bags_of(protocol, people)
    if bags is not None:
        return bags if bool((bags != bags[0]).any()) else None
    if protocol.in_clusters() and people.clusters is not None and len(people.sizes) > 1:
        return people.clusters.codes
    return None


def bags_of(protocol: Protocol, people: Population) -> npt.NDArray[np.int64] | None:
    """Return the number of each user's bag (n,); None of a protocol without bags.

    *Source:* ``network.bags``: the bags that the protocol itself sums.
    """
    sums = protocol.bag_sums()
    if sums is None:
        return None
    clusters = people.clusters or Members(np.zeros(people.users, np.int32), np.array([0, people.users]), None)
    return np.asarray(bag_numbers(clusters, np.arange(people.users), sums.size), np.int64)
