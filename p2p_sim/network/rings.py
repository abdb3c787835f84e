"""Rings: in each bag a graph in which users, in a random order, are joined to those nearest on a circle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Ring:
    """Directed edges (e,), each there and back: ``owner`` and ``peer`` are positions of users, ascending by owner.

    ``place``: 1 .. c, the number of the peer among the owner's c neighbours; ``back``: the edge the other way.
    *Source:* Harary graphs over a random order: Bell, Bonawitz, Gascon, Lepoint, Raykova 2020.
    """

    owner: Array
    peer: Array
    place: Array
    back: Array

    @classmethod
    def of(cls, bag: Array, rank: Array, degree: int) -> Ring:
        """Join the users of each bag: each to ``degree`` others (even), or to all where there are no more.

        ``bag`` (n,): of each user; ``rank`` (n,): random distinct numbers, whose order is that on the circle.
        """
        order = np.lexsort((rank, bag))
        size = np.unique(bag[order], return_inverse=True, return_counts=True)
        users, start = size[2][size[1]], (np.cumsum(size[2]) - size[2])[size[1]]
        count = np.minimum(users - 1, degree)
        at = np.repeat(np.arange(len(bag)), count)
        step = np.arange(len(at)) - np.repeat(np.cumsum(count) - count, count)
        ahead = (count[at] + 1) // 2
        shift = np.where(step < ahead, step + 1, users[at] - (step - ahead) - 1)
        there = start[at] + (at - start[at] + shift) % users[at]
        owner, peer = order[at], order[there]
        sort = np.argsort(owner, kind="stable")
        owner, peer, place = owner[sort], peer[sort], step[sort] + 1
        codes = owner * len(bag) + peer
        by_code = np.argsort(codes)
        back = by_code[np.searchsorted(codes[by_code], peer * len(bag) + owner)]
        return cls(owner, peer, place, back)

    def where(self, keep: Array) -> Ring:
        """Return the edges of a mask (e,) that is the same both ways."""
        number = np.cumsum(keep) - 1
        return Ring(self.owner[keep], self.peer[keep], self.place[keep], number[self.back[keep]])


def connected(users: int, owner: Array, peer: Array) -> Array:
    """Return for each of ``users`` the number (users,) of the part of the graph of edges in which she is."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    edges = coo_array((np.ones(len(owner), np.bool_), (owner, peer)), shape=(users, users))
    return np.asarray(connected_components(edges, directed=False)[1])
