"""Groups of users as columns: the clusters of a population, the neighbours in a graph."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.core.lazy_attribute import lazy

Array = npt.NDArray[Any]
Ids = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Members:
    """For each party of a block, a set of users: her group, c in ``codes``.

    Group c is the rows ``order[starts[c] : starts[c + 1]]``, ascending; ``order`` None: the rows from ``starts[c]`` to
    ``starts[c + 1] - 1``.
    ``labels``: what the groups are called outside, None where they have no names.
    """

    codes: Ids
    starts: npt.NDArray[np.int64]
    order: Ids | None
    labels: Array | None = None

    @lazy
    def size(self) -> Array:
        """Users in each party's group, herself included where she belongs to it."""
        return self.starts[1:][self.codes] - self.starts[self.codes]

    @lazy
    def has_empty(self) -> bool:
        """Whether any group is empty."""
        return bool((np.diff(self.starts) == 0).any())

    @lazy
    def complete(self) -> bool:
        """Whether these are a complete graph, over everybody or in each cluster: users share groups they belong to.

        Only there is a user in her own group, so the first user of all decides; parts keep what holds of the whole.
        """
        if not len(self.codes):
            return False
        low, high = self.starts[self.codes[0]], self.starts[self.codes[0] + 1]
        return bool(low < high) and int(low if self.order is None else self.order[low]) == 0

    @lazy
    def components(self) -> Ids:
        """The number of each user's component, for the graph of a whole population; computed once."""
        if self.complete:
            return self.codes
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import connected_components

        ones, users = np.ones(self.starts[-1], np.int8), len(self.codes)
        edges = csr_array((ones, self.order, self.starts), shape=(users, users))
        # every edge is there in both directions, so strong components are the components, at half the work
        found: Ids = connected_components(edges, directed=True, connection="strong")[1]
        return found

    @property
    def label(self) -> Array:
        """The group's outside name (the cluster number as given), for each party."""
        if self.labels is None:
            return self.codes
        named: Array = self.labels[self.codes]
        named.flags.writeable = False
        return named

    def block(self, low: int, high: int) -> Members:
        """Return the same groups for the parties ``low .. high - 1``, read-only."""
        codes = self.codes[low:high]
        codes.flags.writeable = False
        return self.of(codes)

    def of(self, codes: Ids) -> Members:
        """Return the same groups for the parties of some codes, without a further look at all groups."""
        part = replace(self, codes=codes)
        vars(part).update(has_empty=self.has_empty, complete=self.complete)
        return part

    def pick(self, rows: Array) -> Members:
        """Return the same groups for the parties of some rows."""
        return self.of(self.codes[rows])

    def rows_of(self, code: int) -> Array:
        """Return the rows of one group."""
        low, high = int(self.starts[code]), int(self.starts[code + 1])
        return np.arange(low, high) if self.order is None else self.order[low:high].astype(np.int64)

    def places(self, ids: Array) -> npt.NDArray[np.int64]:
        """Return the place of each party (by row) in her own group, from 0; -1 where she does not belong to it."""
        low, end = self.starts[self.codes], self.starts[self.codes + 1]
        if self.order is None:
            return np.where((low <= ids) & (ids < end), ids - low, -1)
        first, high = low.copy(), end.copy()
        while bool((low < high).any()):  # bisection, for all parties at once
            middle = (low + high) // 2
            left = (low < high) & (self.order[np.minimum(middle, len(self.order) - 1)] < ids)
            low, high = np.where(left, middle + 1, low), np.where(left, high, np.minimum(middle, high))
        here = low < end
        here[here] = self.order[low[here]] == ids[here]
        return np.where(here, low - first, -1)

    def everybody(self) -> tuple[Ids, npt.NDArray[np.int64]]:
        """Return the rows of all users of each party's group, one group after the other, and where each begins."""
        size = self.size
        starts = np.concatenate([[0], np.cumsum(size)])
        place = np.arange(starts[-1]) + np.repeat(self.starts[self.codes] - starts[:-1], size)
        return (place.astype(np.int32) if self.order is None else self.order[place]), starts


def clusters(labels: Array) -> Members:
    """Group users by cluster number: non-negative integers, gaps allowed, shape (n,)."""
    values = _checked(labels)
    top = int(values.max(initial=0)) + 1
    if top <= 4 * len(values) + 1024:
        present = np.bincount(values, minlength=top) > 0
        names = np.flatnonzero(present)
        codes = (np.cumsum(present, dtype=np.int32) - np.int32(1))[values] if len(names) < top else values
    else:
        names, codes = np.unique(values, return_inverse=True)
    codes = codes.astype(np.int32, copy=False)
    starts = np.zeros(len(names) + 1, np.int64)
    np.cumsum(np.bincount(codes, minlength=len(names)), out=starts[1:])
    return Members(codes, starts, by_code(codes, len(names)), names)


def by_code(codes: Ids, groups: int) -> Ids | None:
    """Return the rows sorted by code, ties in ascending row; None if they are sorted already."""
    if bool((codes[1:] >= codes[:-1]).all()):
        return None
    small = codes.astype(np.uint16) if groups <= 1 << 16 else codes  # 16 bits: numpy sorts by radix
    return np.argsort(small, kind="stable").astype(np.int32)


def neighbours(edges: Array, users: int) -> Members:
    """Turn edges, shape (m, 2), into each user's neighbours: undirected, without loops or doubles."""
    pairs = np.asarray(edges)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "ui":
        raise InputError(
            f"edges of shape {pairs.shape}, type {pairs.dtype}: needed are integers of shape (m, 2)"
        )
    if len(pairs) and not (int(pairs.min()) >= 0 and int(pairs.max()) < users):
        raise InputError(f"edges name users from {pairs.min()} to {pairs.max()}: users are 0 to {users - 1}")
    return joined(pairs, users)


def joined(pairs: Array, users: int) -> Members:
    """Return the graph of pairs of users 0 .. users - 1, shape (m, 2), in any direction; loops and doubles count once.

    A loop counts as nothing: nobody is her own neighbour.
    """
    bits = max(1, users.bit_length())
    apart = pairs[:, 0] != pairs[:, 1]
    one, two = (end.astype(np.int64) for end in (pairs if bool(apart.all()) else pairs[apart]).T)
    both = np.concatenate([(one << bits) | two, (two << bits) | one])
    both.sort()
    fresh = both[1:] != both[:-1]
    if not bool(fresh.all()):
        both = np.concatenate([both[:1], both[1:][fresh]])
    starts = np.zeros(users + 1, np.int64)
    np.cumsum(np.bincount(both >> bits, minlength=users), out=starts[1:])
    both &= (1 << bits) - 1
    return Members(np.arange(users, dtype=np.int32), starts, both.astype(np.int32))


def _checked(labels: Array) -> npt.NDArray[np.int64]:
    if np.ma.isMaskedArray(labels):
        raise InputError("cluster is a masked array: give every user a number of 0 or more")
    values = np.asarray(labels)
    if values.ndim != 1:
        raise InputError(f"cluster has shape {values.shape}: needed is one number a user, shape (n,)")
    if values.dtype.kind == "f":
        if not bool(np.isfinite(values).all()):
            row = int(np.flatnonzero(~np.isfinite(values))[0])
            raise InputError(
                f"cluster of user {row} is missing ({values[row]}): give every user a number of 0 or more"
            )
        if bool((values != np.floor(values)).any()):
            raise InputError("cluster holds fractions: clusters are whole numbers of 0 or more")
        bits = np.finfo(values.dtype).nmant + 1
        if bool((values >= 2.0**bits).any()):
            raise InputError(
                f"cluster holds {values.max()}, of type {values.dtype}, which holds whole numbers up to 2^{bits} "
                "exactly: give integers"
            )
    elif values.dtype.kind not in "uib":
        raise InputError(f"cluster has type {values.dtype}: clusters are whole numbers of 0 or more")
    if len(values) and int(values.max()) >= 2**63:
        raise InputError(f"cluster holds {values.max()}: clusters are whole numbers from 0 to 2^63 - 1")
    whole = values.astype(np.int64, copy=False)
    if len(whole) and int(whole.min()) < 0:
        row = int(whole.argmin())
        raise InputError(f"cluster of user {row} is {whole[row]}: clusters are whole numbers of 0 or more")
    return whole
