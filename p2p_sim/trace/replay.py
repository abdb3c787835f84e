"""Replay: one user's whole history, recomputed from the seed by re-running her closed world.

The closed world is everybody who can reach her: nobody where users send each other nothing; her cluster, and with a
graph whoever is joined to it by clusters and edges; everybody where a server sends to users, where there are no
clusters, or where users write to ids that are neither a drawn member's nor an asker's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.backends import local
from p2p_sim.core.columns import PerMessage
from p2p_sim.core.engine import Finished
from p2p_sim.core.errors import InputError
from p2p_sim.core.ledger import TraceLevel
from p2p_sim.core.message import USER
from p2p_sim.core.population import Population
from p2p_sim.trace import store

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Drawn:
    """One draw of a user: its name, the step in which she drew it, her value or values."""

    name: str
    step: int
    value: Any


@dataclass(frozen=True)
class Life:
    """What one user sent and received (columns by kind, as ``Run.messages``) and drew, and her world's size."""

    user: int
    world: int
    sent: Mapping[str, dict[str, Array]]
    received: Mapping[str, dict[str, Array]]
    drawn: tuple[Drawn, ...]


def replay(protocol: Any, population: Population, seed: int, user: int) -> Life:
    """Recompute the life of one user; raises InputError if there is no such user."""
    if isinstance(user, bool) or not isinstance(user, (int, np.integer)) or not 0 <= user < population.users:
        raise InputError(f"user {user!r}: this population has users 0 to {population.users - 1}")
    rows = closed_world(protocol, population, int(user))
    try:
        finished, drawn = _relive(protocol, population, seed, int(user), rows)
        narrow = finished.totals.strayed and len(rows) < population.users
    except (
        Exception
    ):  # a program may not bear to be run on a part; if it is wrong altogether, it fails again below
        if len(rows) == population.users:
            raise
        narrow = True
    if narrow:  # somebody outside may have written to her
        rows = np.arange(population.users)
        finished, drawn = _relive(protocol, population, seed, int(user), rows)
    full = TraceLevel("full")
    messages = store.sorted_trace(protocol, finished.totals.trace, full)
    sent: dict[str, dict[str, Array]] = {}
    received: dict[str, dict[str, Array]] = {}
    for kind, message in protocol.messages().items():
        columns = messages[kind]
        for end, role, into in (("sender", message.sender, sent), ("recipient", message.recipient, received)):
            if role == USER:
                mine = columns[end] == user
                into[kind] = {name: column[mine] for name, column in columns.items()}
    return Life(int(user), len(rows), sent, received, tuple(drawn))


def _relive(
    protocol: Any, population: Population, seed: int, user: int, rows: Array
) -> tuple[Finished, list[Drawn]]:
    """Run the users of some rows, the asked one in a block of her own."""
    world = population if len(rows) == population.users else population.part(rows)
    place = int(np.searchsorted(rows, user))
    drawn: list[Drawn] = []

    def observe(name: str, step: int, value: Any) -> None:
        values = value.data if isinstance(value, PerMessage) else value
        drawn.append(Drawn(name, step, values[0] if len(values) == 1 else values))

    cuts = sorted({0, place, place + 1, len(rows)})
    kept: dict[str, Any] = {"digest": False, "trace": TraceLevel("full"), "observed": (place, observe)}
    return local.run(protocol, world, seed, cuts=cuts, **kept), drawn


def closed_world(protocol: Any, population: Population, user: int) -> Array:
    """Return the rows of everybody who can reach a user, ascending."""
    ends = [(message.sender, message.recipient) for message in protocol.messages().values()]
    if any(recipient == USER and sender != USER for sender, recipient in ends):
        return np.arange(population.users)
    if (USER, USER) not in ends:
        return np.array([user])
    clusters, graph = population.clusters, population.graph
    if clusters is None:  # one cluster of everybody
        return np.arange(population.users)
    if graph is None:
        return clusters.rows_of(int(clusters.codes[user]))
    inside = np.zeros(population.users, np.bool_)
    front = np.array([user])
    while len(front):
        inside[front] = True
        codes = np.unique(clusters.codes[front]).tolist()
        reached = [clusters.rows_of(code) for code in codes] + [graph.rows_of(int(row)) for row in front]
        following = np.unique(np.concatenate(reached))
        front = following[~inside[following]]
    return np.flatnonzero(inside)
