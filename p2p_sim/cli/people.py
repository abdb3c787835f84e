"""The users of ``--data``, for verbs that run nothing."""

from __future__ import annotations

from typing import Any

from p2p_sim.core.population import Population
from p2p_sim.report.options import comma_list


def users_of_data(command: Any, protocol: Any, progress: Any) -> Population:
    """Read the data set that a command names, and return the users it would have in a run.

    ``command``: has the options data, label, positive, cluster_column, clusters, test and seed.
    """
    from p2p_sim.learning import datasets, experiment

    progress(f"reading {command.data}", 0, 0)
    positive = None if command.positive is None else comma_list(command.positive)
    data = datasets.load(
        command.data, label=command.label, positive=positive, cluster=command.cluster_column,
        multiclass=protocol.label_count() > 2,
    )  # fmt: skip
    found = experiment.gather(
        protocol, data, clusters=command.clusters, test=command.test, seed=command.seed, progress=progress
    )
    return found.population
