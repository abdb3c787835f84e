"""A set of parties: users as a mask that grows, servers by role."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.message import USER

Array = npt.NDArray[Any]


class Crowd:
    """Some parties.  ``size``: largest id of a user plus one, as far as it is known."""

    def __init__(self, size: int = 0):
        self._users = np.zeros(size, np.bool_)
        self.servers: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self.servers) or bool(self._users.any())

    @property
    def users(self) -> int:
        """How many users are in it."""
        return int(np.count_nonzero(self._users))

    def ids(self) -> Array:
        """The ids of its users, ascending."""
        return np.flatnonzero(self._users)

    def add(self, role: str, ids: Array) -> None:
        """Put parties of a role in."""
        if not len(ids):
            return
        if role != USER:
            self.servers.add(role)
            return
        missing = int(ids.max()) + 1 - len(self._users)
        if missing > 0:
            self._users = np.concatenate([self._users, np.zeros(missing, np.bool_)])
        self._users[ids] = True

    def join(self, other: Crowd) -> None:
        """Put everybody of another crowd in."""
        self.add(USER, other.ids())
        self.servers |= other.servers

    def has(self, role: str, ids: Array) -> Array:
        """Return a mask of the parties of a role who are in it."""
        if role != USER:
            return np.full(len(ids), role in self.servers)
        if not len(self._users):
            return np.zeros(len(ids), np.bool_)
        known = np.minimum(ids, len(self._users) - 1)
        return np.asarray(self._users[known] & (ids == known))

    def could_have(self, role: str) -> bool:
        """Whether any party of a role is in it."""
        return bool(self._users.any()) if role == USER else role in self.servers
