"""What to ask for to see what a lane of many users holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.trace.diagram.flat import Flat

Array = npt.NDArray[Any]


def options(
    table: Flat,
    parties: Array,
    lane: Array,
    shared: list[int],
    clusters: Callable[[Array], Array] | None,
    most: tuple[int, int],
) -> dict[int, str]:
    """Return, for each of the ``shared`` lanes, the options that draw its first user's cluster, or only her.

    ``parties``: all, ascending; ``lane``: of each of them.  A cluster is named if its messages can be drawn one by one,
    on at most so many lanes with at most so many arrows, ``most``: otherwise its picture would have the same lane.
    """
    users = np.flatnonzero(parties >= 0)
    first = {number: int(users[lane[users] == number][0]) for number in shared}
    if clusters is None or not shared:
        return {number: _user(parties, place) for number, place in first.items()}
    names, inverse = np.unique(clusters(parties[users]), return_inverse=True)
    code = np.full(len(parties), -1)
    code[users] = inverse.reshape(-1)
    ends = [code[np.searchsorted(parties, column)] for column in (table.sender, table.recipient)]
    found = {}
    for number, place in first.items():
        inside = (ends[0] == code[place]) | (ends[1] == code[place])
        alone = _fits(table.sender[inside], table.recipient[inside], *most)
        found[number] = f"--cluster {names[code[place]]}" if alone else _user(parties, place)
    return found


def _user(parties: Array, place: int) -> str:
    return f"--user {parties[place]}"


def _fits(senders: Array, recipients: Array, most_lanes: int, most_arrows: int) -> bool:
    """Whether messages can be drawn one by one."""
    if len(senders) > most_arrows:
        return False
    return len(np.unique(np.concatenate([senders, recipients]))) <= most_lanes
