"""A population in parts, made or read where they are needed: so many users may be too many for one process."""

from __future__ import annotations

import hashlib
import typing
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core import synthetic
from p2p_sim.core.argument_checks import check_whole
from p2p_sim.core.groups import Members
from p2p_sim.core.population import MAX_USERS, Population

Array = npt.NDArray[Any]

_PIECE = 1 << 20


class Origin(typing.Protocol):
    """Where users come from; it is small, and goes to whoever needs some of them."""

    @property
    def users(self) -> int:
        """How many users there are."""

    @property
    def labels(self) -> int:
        """How many label values there can be."""

    @property
    def sizes(self) -> Array | None:
        """Users in each cluster, clusters in the order of ids; None if there are no clusters."""

    @property
    def known(self) -> bool:
        """Whether nothing must be looked at before parts are made."""

    def part(self, low: int, high: int) -> Population:
        """Return the users ``low .. high - 1``; their clusters are those of all users."""

    def columns(self, low: int, high: int) -> dict[str, Callable[[], Any]] | None:
        """Return what makes each column of the users ``low .. high - 1``, where that costs little; else None.

        Then a block makes them when its program reads one, and holds none while it waits.
        """

    def look(self, low: int, high: int) -> Any:
        """Look at some users and return what must be known of all before any part is made; None for nothing."""

    def looked(self, found: Sequence[Any]) -> Origin:
        """Return the same, with what looks at all users have found, in the order of ids."""


def rows_of_sizes(sizes: Array, low: int, high: int, names: Array) -> Members:
    """Return the clusters of the users ``low .. high - 1``, where clusters of some sizes follow one another."""
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])
    first, last = np.searchsorted(starts, (low, max(low, high - 1)), side="right") - 1
    ends = np.clip(starts[first : last + 2], low, high)
    codes = np.repeat(np.arange(first, last + 1, dtype=np.int32), np.diff(ends))
    return Members(codes, starts, None, names)


@dataclass(frozen=True)
class SyntheticUsers:
    """Synthetic users; see ``Population.synthetic``.  Only a block whose program reads ``features`` makes them."""

    users: int
    cluster_size: int | None = None
    labels: int = 2
    shares: tuple[Any, ...] | None = None
    positive: float | None = None
    seed: int = 0
    features: int = 0
    known = True

    @cached_property
    def sizes(self) -> Array | None:
        """Users in each cluster; the last one may be smaller."""
        if self.cluster_size is None:
            return None
        found = np.full(-(-self.users // self.cluster_size), self.cluster_size, np.int64)
        found[-1] -= int(found.sum()) - self.users
        return found

    def part(self, low: int, high: int) -> Population:
        """Draw the labels of some users."""
        return Population(
            self._y(low, high), None if self.cluster_size is None else self._clusters(low, high)
        )

    def columns(self, low: int, high: int) -> dict[str, Callable[[], Any]]:
        """Return what makes the labels and the clusters of some users."""
        makes: dict[str, Callable[[], Any]] = {"y": lambda: self._y(low, high)}
        if self.features:
            makes["x"] = lambda: synthetic.draw_features(
                self._y(low, high), self.labels, self.features, self.seed, low
            )
        return makes if self.cluster_size is None else makes | {"cluster": lambda: self._clusters(low, high)}

    def _y(self, low: int, high: int) -> Array:
        shares = synthetic.shares_of(self.labels, self.shares, self.positive)
        return synthetic.draw_labels(high - low, shares, self.seed, low)

    def _clusters(self, low: int, high: int) -> Members:
        assert self.cluster_size is not None
        first, last = low // self.cluster_size, max(low, high - 1) // self.cluster_size
        ends = np.clip(np.arange(first, last + 2) * self.cluster_size, low, high)
        codes = np.repeat(np.arange(first, last + 1, dtype=np.int32), np.diff(ends))
        codes.flags.writeable = False
        return self._groups.of(codes)

    @cached_property
    def _groups(self) -> Members:
        """Where each cluster begins and what it is called, without users."""
        assert self.cluster_size is not None
        count = -(-self.users // self.cluster_size)
        starts = np.minimum(np.arange(count + 1, dtype=np.int64) * self.cluster_size, self.users)
        return Members(np.zeros(0, np.int32), starts, None, np.arange(count))

    def __getstate__(self) -> dict[str, Any]:
        """Return what it is made of, without what follows from it."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def look(self, _low: int, _high: int) -> None:
        """All is known."""

    def looked(self, _found: Sequence[Any]) -> SyntheticUsers:
        """Return the same."""
        return self


class PopulationInParts(Population):
    """A whole population that is made where a part of it is needed, by its ``origin``.

    Whoever asks for a column of everybody gets it, and then it is in memory here.
    """

    origin: Origin

    def __new__(cls, origin: Origin | None = None, **columns: Any) -> Any:
        """Make a population of columns where ``dataclasses.replace`` has changed some of them."""
        return Population(**columns) if origin is None else super().__new__(cls)

    def __init__(self, origin: Origin):
        vars(self).update(origin=origin, public={}, secret={})

    @classmethod
    def drawn(cls, *, users: int, cluster_size: int | None = None, **drawn_by: Any) -> PopulationInParts:
        """Return the users of ``Population.synthetic`` in parts, which have no features; raises what that raises."""
        Population.synthetic(
            users=1, cluster_size=cluster_size, **drawn_by
        )  # wrong numbers show before the work
        check_whole("users", users, 1, MAX_USERS)
        shares = drawn_by.get("shares")
        how = drawn_by | {"shares": None if shares is None else tuple(shares)}
        return cls(SyntheticUsers(users, cluster_size, **how))

    def __reduce__(self) -> Any:
        return PopulationInParts, (self.origin,)

    def look(self, each: Callable[[Origin], Sequence[Any]]) -> None:
        """Let ``each`` look at all users, in parts, and keep what they found; nothing where all is known."""
        if self.origin.known:
            return
        vars(self)["origin"] = self.origin.looked(each(self.origin))

    @cached_property
    def _whole(self) -> Population:
        return self.origin.part(0, self.users)

    @property
    def y(self) -> Array:
        """The labels of everybody, in memory from then on."""
        return self._whole.y

    @property
    def clusters(self) -> Members | None:
        """The clusters of everybody, in memory from then on."""
        return self._whole.clusters if self.divided else None

    @property
    def users(self) -> int:
        """How many users there are."""
        return self.origin.users

    @property
    def labels(self) -> int:
        """How many label values there can be."""
        return self.origin.labels

    @property
    def divided(self) -> bool:
        """Whether there are clusters."""
        return self.origin.sizes is not None

    @property
    def sizes(self) -> Array:
        """Users in each cluster."""
        sizes = self.origin.sizes
        return np.array([self.users]) if sizes is None else sizes

    def in_one_cluster(self) -> Population:
        """Return the same users without clusters; their labels are not made for it."""
        return PopulationInParts(_InOneCluster(self.origin))

    def piece(self, low: int, high: int) -> Population:
        """Make the users ``low .. high - 1``."""
        return self.origin.part(low, high)

    @cached_property
    def hash(self) -> str:
        """SHA-256 as of the same population in memory, a part at a time."""
        digest = hashlib.sha256(f"{self.users}".encode())
        of: dict[str, Callable[[Population], Array]] = {"y": lambda part: part.y.astype(np.uint8)}
        if self.divided:
            of = {"cluster": _names} | of
        for name, column in of.items():
            kind = column(self.piece(0, 1)).dtype
            digest.update(f"/{name}/{(self.users,)}/{kind.str}/".encode())
            for part in self._pieces():
                digest.update(np.ascontiguousarray(column(part)).data)
        return digest.hexdigest()

    def _pieces(self) -> Iterator[Population]:
        for low in range(0, self.users, _PIECE):
            yield self.piece(low, min(low + _PIECE, self.users))


def _names(part: Population) -> Array:
    assert part.clusters is not None
    return part.clusters.label


@dataclass(frozen=True)
class _InOneCluster:
    """The users of an origin, without clusters."""

    within: Origin
    sizes: None = None

    @property
    def users(self) -> int:
        return self.within.users

    @property
    def labels(self) -> int:
        return self.within.labels

    @property
    def known(self) -> bool:
        return self.within.known

    def part(self, low: int, high: int) -> Population:
        return Population(self.within.part(low, high).y)

    def columns(self, low: int, high: int) -> dict[str, Callable[[], Any]] | None:
        makes = self.within.columns(low, high)
        return None if makes is None else {"y": makes["y"]}

    def look(self, low: int, high: int) -> Any:
        return self.within.look(low, high)

    def looked(self, found: Sequence[Any]) -> _InOneCluster:
        return _InOneCluster(self.within.looked(found))
