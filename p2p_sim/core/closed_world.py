"""The users whose messages can reach some given users, so that those users can be rerun without the rest."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.message import USER
from p2p_sim.core.population import Population
from p2p_sim.core.protocol import Protocol

Array = npt.NDArray[Any]


class Reach(Enum):
    """Who can reach a user: nobody else, those of her group, or everybody."""

    NOBODY, GROUP, EVERYBODY = range(3)


def reach(protocol: Protocol) -> Reach:
    """Return who can reach a user, by what the messages of a protocol are."""
    ends = [(message.sender, message.recipient) for message in protocol.messages().values()]
    if any(recipient == USER and sender != USER for sender, recipient in ends):
        return Reach.EVERYBODY
    return Reach.GROUP if (USER, USER) in ends else Reach.NOBODY


def closed_world(protocol: Protocol, population: Population, users: Array) -> Array:
    """Return the rows of everybody who can reach some users (rows, ascending), ascending."""
    far = reach(protocol)
    if far is Reach.NOBODY:
        return users
    clusters, graph = population.clusters, population.graph
    if far is Reach.EVERYBODY or clusters is None:  # one cluster of everybody
        return np.arange(population.users)
    if graph is None:
        groups = [clusters.rows_of(code) for code in sorted(set(clusters.codes[users].tolist()))]
        return _rows(population, np.sort(np.concatenate([users[:0], *groups])))
    inside = np.zeros(population.users, np.bool_)
    front = users
    while len(front):
        inside[front] = True
        following = np.zeros(population.users, np.bool_)
        for near in (clusters, graph):
            if near is not None:  # a group is looked up once, however many of the front share it
                reached = replace(near, codes=np.unique(near.codes[front])).everybody()[0]
                following[_rows(population, reached)] = True
        front = np.flatnonzero(following & ~inside)
    return np.flatnonzero(inside)


def _rows(population: Population, found: Array) -> Array:
    """Return the rows of some ids, without those who are not there: groups of a part are those of the whole."""
    ids = population.ids
    if ids is None:
        return found
    places = np.minimum(np.searchsorted(ids, found), len(ids) - 1)
    here: Array = places[ids[places] == found]
    return here
