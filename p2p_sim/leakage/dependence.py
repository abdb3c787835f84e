"""Whose outcomes may depend on each other: the groups over which intervals are made."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from p2p_sim.core.groups import Members
from p2p_sim.core.population import Population
from p2p_sim.core.protocol import Protocol
from p2p_sim.leakage.attack_results import Floats
from p2p_sim.network.bags import bag_numbers


def groups_of(protocol: Protocol, people: Population) -> npt.NDArray[np.int64] | None:
    """Return the number of each user's group: whose messages are mixed with whose, so that outcomes depend on others.

    Bags where labels are summed in bags, else the clusters in which users meet; one group where everybody is mixed, or
    there are no clusters.  None where each user's messages are her own.

    *Assumes:* messages of two groups do not depend on each other.
    """
    bags = bags_of(protocol, people)
    if bags is not None:
        return bags
    if not protocol.in_clusters():
        return None
    apart = not protocol.mixes_everybody() and protocol.graph_over() != "everybody"
    if apart and people.clusters is not None:
        return np.asarray(people.clusters.codes, np.int64)
    return np.zeros(people.users, np.int64)


def likeness(y: npt.NDArray[np.int64], eta: Floats, groups: npt.NDArray[np.int64]) -> float:
    """Return how much more alike labels of one group are than independent ones drawn by ``eta``, in deviations.

    ``y`` (n,), ``eta`` (n, k), ``groups`` (n,).  Of the label of which it is most: the sum over pairs of one group of
    the products of 1[y = c] - eta_c, whose mean is 0 if labels are independent.  No message enters.
    """
    number = np.unique(groups, return_inverse=True)[1].reshape(-1)
    most = 0.0
    for label in range(eta.shape[1]):
        off, spread = (y == label) - eta[:, label], eta[:, label] * (1 - eta[:, label])
        pairs = (np.bincount(number, off) ** 2).sum() - (off**2).sum()
        variance = 2 * ((np.bincount(number, spread) ** 2).sum() - (spread**2).sum())
        most = max(most, float(pairs / np.sqrt(variance))) if variance > 0 else most
    return most


def bags_of(protocol: Protocol, people: Population) -> npt.NDArray[np.int64] | None:
    """Return the number of each user's bag (n,); None of a protocol without bags.

    *Source:* ``network.bags``: the bags that the protocol itself sums.
    """
    sums = protocol.bag_sums()
    if sums is None:
        return None
    clusters = people.clusters or Members(np.zeros(people.users, np.int32), np.array([0, people.users]), None)
    ids = np.arange(people.users) if people.ids is None else people.ids
    return np.asarray(bag_numbers(clusters, ids, sums.size), np.int64)
