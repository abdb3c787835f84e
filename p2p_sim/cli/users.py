"""The users that a command names, and their graph, for commands that run nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from p2p_sim.cli.options import comma_list
from p2p_sim.core.population import MAX_USERS, Population
from p2p_sim.network import edges, room, topologies

if TYPE_CHECKING:
    from p2p_sim.core.protocol import Protocol
    from p2p_sim.learning.experiment import Examples


Joined = tuple[Population, dict[str, Any] | None]
"""Users, and the figures of their graph (None without a graph)."""


def synthetic(command: Any, protocol: Protocol, users: int, size: int | None, progress: Any) -> Joined:
    """Return synthetic users, joined by a command's graph."""
    from p2p_sim.learning import experiment

    named = isinstance(command.graph, str) and not command.graph.endswith(edges.SUFFIXES)
    if named and users <= MAX_USERS:
        kind = topologies.parse(command.graph)  # before any user is made
        if size is None or protocol.graph_over() != "cluster":
            room.require(kind.kind, kind.degree, np.array([users]), command.graph)
    people = Population.synthetic(users=users, cluster_size=size, labels=protocol.label_count(), seed=0)
    return experiment.join(protocol, people, command.graph, command.seed, progress)


def users_of_data(command: Any, protocol: Protocol, progress: Any) -> Joined:
    """Read the data set of a command; return the users of a run with it, joined by the command's graph.

    ``command``: needs the options data, label, positive, cluster_column, clusters, test, graph and seed, and
    ``TableOptions``.
    """
    from p2p_sim.learning import experiment

    found, total = gathered(command, protocol, command.seed, progress)
    return experiment.join(
        protocol,
        found.population,
        command.graph,
        command.seed,
        progress,
        rows=found.rows,
        total=total,
    )


def gathered(command: Any, protocol: Protocol, seed: int, progress: Any) -> tuple[Examples, int]:
    """Read the data set of a command; return the users of a run with it, and how many rows the file has.

    ``seed``: of the test rows and of k-means.
    """
    from p2p_sim.learning import experiment
    from p2p_sim.learning.data import datasets

    progress(f"reading {command.data}", 0, 0)
    positive = None if command.positive is None else comma_list(command.positive)
    data = datasets.load(
        command.data, label=command.label, positive=positive, cluster=command.cluster_column,
        multiclass=protocol.label_count() > 2,
        numbers=protocol.numbers() is not None, classes=command.declared(), reading=command.reading(),
    )  # fmt: skip
    found = experiment.gather(
        protocol, data, clusters=command.clusters, test=command.test, seed=seed, progress=progress
    )
    return found, data.rows_in_file
