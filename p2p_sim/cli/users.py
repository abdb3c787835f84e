"""The users that a command names, and their graph, for commands that run nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from p2p_sim.cli.options import comma_list, set_options
from p2p_sim.core.population import MAX_USERS, Population
from p2p_sim.network import edges, room, topologies

if TYPE_CHECKING:
    from p2p_sim.core.protocol import Protocol
    from p2p_sim.learning.data_split import Examples
    from p2p_sim.learning.users_of_run import Joined


def synthetic(command: Any, protocol: Protocol, users: int, size: int | None, progress: Any) -> Joined:
    """Return users of no run, joined by a command's graph; ``size``: of their clusters, None for none."""
    from p2p_sim.learning import user_graph

    named = isinstance(command.graph, str) and not command.graph.endswith(edges.SUFFIXES)
    if named and users <= MAX_USERS:
        kind = topologies.parse(command.graph)  # before any user is made
        if size is None or protocol.graph_over() != "cluster":
            room.require(kind.kind, kind.degree, np.array([users]), command.graph)
    people = Population.synthetic(users=users, cluster_size=size, labels=protocol.label_count(), seed=0)
    return user_graph.join(protocol, people, command.graph, command.seed, progress)


def how_read(command: Any) -> dict[str, Any]:
    """Return how ``--data`` is read, as ``data_split.read`` and ``learn`` take it.

    ``command``: needs the options label, positive and cluster_column, and ``TableOptions``.
    """
    positive = None if command.positive is None else comma_list(command.positive)
    choices = set_options(command, "label", "cluster_column")
    return choices | {"positive": positive, "classes": command.declared(), "reading": command.reading()}


def users_of_data(command: Any, protocol: Protocol, progress: Any) -> Joined:
    """Read the data set of a command; return the users of a run with it, joined by the command's graph.

    ``command``: needs the options data, clusters, test, graph and seed, and those of ``how_read``.
    """
    from p2p_sim.learning import data_split, users_of_run

    data = data_split.read(protocol, command.data, **how_read(command), progress=progress)
    return users_of_run.of_data(
        protocol, data, clusters=command.clusters, test=command.test, graph=command.graph, seed=command.seed,
        progress=progress,
    )  # fmt: skip


def gathered(command: Any, protocol: Protocol, seed: int, progress: Any) -> Examples:
    """Read the data set of a command, and divide it; ``seed``: of the test rows and of k-means."""
    from p2p_sim.learning import data_split

    data = data_split.read(protocol, command.data, **how_read(command), progress=progress)
    return data_split.gather(
        protocol, data, clusters=command.clusters, test=command.test, seed=seed, progress=progress
    )
