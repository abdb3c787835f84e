"""What colluders know beside messages: their own draws, world by world, as numbers for a classifier."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.backends import local
from p2p_sim.core.faults import Faults
from p2p_sim.core.message import USER
from p2p_sim.core.population import Population
from p2p_sim.trace.draws import Draws, Recorder
from p2p_sim.views import Coalition

Array = npt.NDArray[Any]

MOST = 8
"""Of so many colluders, and of so many values that one of them draws at a time, each gives a number."""


def drawn(
    protocol: Any, population: Population, coalition: Coalition, seed: int, faults: Faults | None
) -> Draws:
    """Return what the users of a coalition draw in a run, by running it again here: draws depend on nothing else."""
    members = np.array(sorted(coalition.users), np.int64)
    if not len(members):
        return {}
    recorder = Recorder({USER: members})
    local.run(protocol, population, seed, digest=False, watch=recorder.watch, faults=faults)
    return recorder.columns()


def numbers(draws: Draws, size: int, worlds: int) -> tuple[Array, list[str]]:
    """Return a table (worlds, f) of drawn values, and names; a user of the world is told by her place in it."""
    names: list[str] = []
    columns: list[Array] = []
    for stream, told in sorted(draws.items()):
        if told["value"].ndim > 1:
            continue
        world, place = np.divmod(told["party"], size)
        value = told["value"].astype(np.float64)
        low = world * size
        if np.all((value >= low) & (value < low + size)):
            value = value - low
        kept = (place <= MOST) & (told["slot"] < MOST)
        for who in np.unique(place[kept]).tolist():
            for slot in np.unique(told["slot"][kept & (place == who)]).tolist():
                mine = kept & (place == who) & (told["slot"] == slot)
                column = np.zeros(worlds)
                column[world[mine]] = value[mine]
                names.append(f"{stream} drawn by colluder {who}, number {slot}")
                columns.append(column)
    return (np.stack(columns, axis=1) if columns else np.zeros((worlds, 0))), names
