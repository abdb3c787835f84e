"""Bags: the users of a cluster in the order of their ids, cut into groups whose labels are seen only together."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.columns import Inbox, PerMessage
from p2p_sim.core.errors import InputError
from p2p_sim.core.groups import Members

Array = npt.NDArray[Any]

LARGEST = 2**31 - 1


def check_size(name: str, value: Any, least: int = 1, most: int = LARGEST) -> None:
    """Check a number of users that a protocol takes; raises InputError naming it, its value and the range."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or not least <= value <= most:
        raise InputError(f"{name} = {value!r}: must be an integer from {least} to {most:,}")


def bags_of(users: int, size: int) -> int:
    """Return into how many bags a cluster is cut: all have ``size`` users, but the last takes the rest as well.

    So a bag has at least ``size`` users and less than twice as many; a smaller cluster is one bag.
    """
    return max(1, users // size)


def smallest(users: int, size: int) -> int:
    """Return how many users the smallest bag of a cluster has; it is the first."""
    return size if bags_of(users, size) > 1 else users


def bag_numbers(members: Members, ids: Array, size: int) -> npt.NDArray[np.int32]:
    """Return the number of the bag of each user ``ids``, counted through all clusters in their order.

    ``members``: their clusters (``me.cluster``).  Every user can tell her bag by herself: all of this is public.
    """
    counts = np.maximum(1, np.diff(members.starts) // size)
    if len(counts) == 1 and members.order is None:
        return np.asarray(np.minimum(ids // size, counts[0] - 1), np.int32)
    first, code = np.cumsum(counts) - counts, members.codes
    within = np.minimum(_places(members, ids) // size, counts[code] - 1)
    return np.asarray(first[code] + within, np.int32)


def once(inbox: Inbox) -> Inbox:
    """Return a server's inbox with the first message of each sender: who reports twice is counted once."""
    sender = inbox.sender.data
    fresh = np.ones(len(sender), np.bool_)
    np.not_equal(sender[1:], sender[:-1], out=fresh[1:])
    return inbox if bool(fresh.all()) else inbox.where(PerMessage(fresh, inbox.layout))


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
