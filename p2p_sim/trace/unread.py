"""The population of a run directory, of which no more is read than is asked for."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from p2p_sim.core.population import Population
from p2p_sim.trace import near, people, sums
from p2p_sim.trace.about import agree
from p2p_sim.trace.damaged import guarded
from p2p_sim.trace.replay import reach

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Unread:
    """A population that lies in a run directory, of which ``told`` is what run.json said when it was opened.

    Every reading of it raises InputError for a file that is missing or was altered.
    """

    folder: Path
    told: Mapping[str, Any]
    _near: dict[Any, Population | None] = field(default_factory=dict, repr=False)

    @property
    def users(self) -> int | None:
        """How many users there are; earlier versions did not say."""
        users: int | None = self.told.get("users")
        return users

    @property
    def proven(self) -> bool:
        """Whether checksums prove the files, so that a part of them can be read; earlier versions wrote none.

        Asked before each reading: the folder may have been replaced since.
        """
        self._check()
        return people.FILE in self._kept

    def whole(self) -> Population | None:
        """Read everybody, whom their hash proves; None if nobody was kept."""
        self._check()  # also what is not read of the files
        file = self.folder / people.FILE
        found = guarded(file, lambda: people.read(self.folder, self.told.get("stored_hash")))
        if found is not None:
            agree(self.folder, "users", self.users, people.FILE, found.users)
        return found

    def near(self, protocol: Any, users: Array) -> Population | None:
        """Read the clusters of some users (ids); None where everybody may be needed.

        Raises InputError for a user who is not there.
        """
        if not self.proven:
            return None
        asked = reach(protocol), users.tobytes()
        if asked not in self._near:
            found = guarded(self.folder / people.FILE, lambda: near.near(self.folder, protocol, users))
            self._near.clear()  # the last only: a question comes as its messages, draws and inputs
            self._near[asked] = found
        return self._near[asked]

    def clusters(self, users: Array) -> Array | None:
        """Read the cluster numbers of some users (ids); None if there are no clusters."""
        return guarded(self.folder / people.FILE, lambda: near.clusters(self.folder, users))

    def members(self, cluster: int) -> Array:
        """Read the ids of the users of a cluster, ascending; of none if there is no such cluster."""
        return guarded(self.folder / people.FILE, lambda: near.members(self.folder, cluster))

    @functools.cached_property
    def sizes(self) -> Array | None:
        """How many users each cluster has; None if there are no clusters."""
        return guarded(self.folder / people.FILE, lambda: near.sizes(self.folder))

    @property
    def _kept(self) -> Mapping[str, str]:
        kept: Mapping[str, str] = self.told.get("sha256", {})
        return kept

    def _check(self) -> None:
        for part in (people.FILE, people.GRAPH):
            guarded(self.folder / part, functools.partial(sums.check, self.folder, self._kept, part))


class Later:
    """The attribute ``population`` of a run: one that is still unread is read when it is first asked for."""

    @overload
    def __get__(self, run: None, owner: type) -> None: ...

    @overload
    def __get__(self, run: object, owner: type) -> Population | None: ...

    def __get__(self, run: object | None, owner: type) -> Population | None:
        """Return the population; of the class None, the default."""
        if run is None:
            return None
        if (left := unread(run)) is not None:
            vars(run)["population"] = left.whole()
        found: Population | None = vars(run)["population"]
        return found

    def __set__(self, run: object, population: Population | Unread | None) -> None:
        vars(run)["population"] = population


def unread(run: object) -> Unread | None:
    """Return what has not been read of a run's population; None if all has, or there is none."""
    left = vars(run).get("population")
    return left if isinstance(left, Unread) else None


def some(run: Any, protocol: Any, users: Array) -> Population | None:
    """Return of a run's population at least the clusters of some users (ids), everybody if they may be needed.

    Raises InputError for a user who is not there.
    """
    left = unread(run)
    part = None if left is None else left.near(protocol, users)
    whole: Population | None = run.population if part is None else part
    return whole


def rows_of(people: Population, users: Array) -> Array:
    """Return the rows of some users (ids, ascending); raises InputError for one who is not there."""
    if people.ids is None:
        rows, there = users, (users >= 0) & (users < people.users)
    else:
        rows = np.minimum(np.searchsorted(people.ids, users), people.users - 1)
        there = people.ids[rows] == users
    for user in users[~there].tolist():
        people.row(user, f"user {user}")
    return rows
