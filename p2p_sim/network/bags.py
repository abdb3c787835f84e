"""Bags: the users of a cluster in the order of their ids, cut into groups; and rings, the sparse graphs in bags."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.columns import Inbox, PerMessage
from p2p_sim.core.groups import Members

Array = npt.NDArray[Any]


def bags_of(users: int, size: int) -> int:
    """Return into how many bags a cluster is cut: all have ``size`` users, but the last takes the rest as well.

    So a bag has at least ``size`` users and less than twice as many; a smaller cluster is one bag.
    """
    return max(1, users // size)


def smallest(users: int, size: int) -> int:
    """Return how many users the smallest bag of a cluster has; it is the first."""
    return size if bags_of(users, size) > 1 else users


def largest(users: int, size: int) -> int:
    """Return how many users the largest bag of a cluster has; it is the last."""
    return users - (bags_of(users, size) - 1) * size


def bag_numbers(members: Members, ids: Array, size: int) -> npt.NDArray[np.int32]:
    """Return the number of the bag of each user ``ids``, counted through all clusters in their order.

    ``members``: their clusters (``me.cluster``).  Every user can tell her bag by herself: all of this is public.
    """
    edges, first = _table(members.starts, size)
    if members.order is None and len(ids) and int(ids[-1] - ids[0]) == len(ids) - 1:  # rows as they come
        low, high = int(ids[0]), int(ids[-1]) + 1
        begin, end = np.searchsorted(edges, low, "right") - 1, np.searchsorted(edges, high)
        inside = np.diff(np.clip(edges[begin : end + 1], low, high))
        return np.repeat(np.arange(begin, end, dtype=np.int32), inside)
    code = members.codes
    within = np.minimum(_places(members, ids) // size, first[code + 1] - first[code] - 1)
    return np.asarray(first[code] + within, np.int32)


def once(inbox: Inbox) -> Inbox:
    """Return a server's inbox with the first message of each sender: who reports twice is counted once."""
    if inbox.rows.one_a_sender:
        return inbox
    sender = inbox.sender.data
    fresh = np.ones(len(sender), np.bool_)
    np.not_equal(sender[1:], sender[:-1], out=fresh[1:])
    return inbox if bool(fresh.all()) else inbox.where(PerMessage(fresh, inbox.layout))


def _table(starts: Array, size: int) -> tuple[Array, Array]:
    """Return where each bag begins, and the end, in users sorted by cluster; and the first bag of each cluster, and the
    end.  The latest table is kept: all blocks of a run ask for the same.
    """
    latest = _LATEST[0] if _LATEST else None
    if latest is None or latest[0] is not starts or latest[1] != size:
        counts = np.maximum(1, np.diff(starts) // size)
        first = np.zeros(len(starts), np.int64)
        np.cumsum(counts, out=first[1:])
        edges = np.repeat(starts[:-1] - first[:-1] * size, counts)
        edges += np.arange(len(edges)) * size
        latest = (starts, size, np.append(edges, starts[-1]), first)
        _LATEST[:] = [latest]
    return latest[2], latest[3]


_LATEST: list[tuple[Array, int, Array, Array]] = []


def _places(members: Members, ids: Array) -> Array:
    """Return each user's position in her cluster, by ascending id."""
    start = members.starts[members.codes]
    if members.order is None:
        return np.asarray(ids - start)
    low, high = start.copy(), members.starts[members.codes + 1] - 1
    while bool((low < high).any()):  # bisection, all users at once
        middle = (low + high) // 2
        right = members.order[middle] < ids
        low, high = np.where(right, middle + 1, low), np.where(right, high, middle)
    return np.asarray(low - start)


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
