"""The users of a run, without the run: whom ``experiment`` would take, for plans, accounts and calibration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from p2p_sim.core.engine import Progress
from p2p_sim.core.population import Population
from p2p_sim.core.protocol import Protocol
from p2p_sim.learning import experiment

if TYPE_CHECKING:
    from p2p_sim.learning.data.datasets import Dataset

Joined = tuple[Population, dict[str, Any] | None]
"""Users, and the figures of their graph (None without a graph)."""


def synthetic(
    protocol: Protocol,
    users: int,
    *,
    cluster_size: int | None = None,
    share: float | None = None,
    shares: Sequence[float] | None = None,
    features: int = 0,
    graph: Any = None,
    seed: int,
) -> Joined:
    """Return the users of ``experiment.simulate``, which has the same arguments; raises InputError as it does."""
    size, how = experiment.drawn(protocol, cluster_size, share, shares, features, seed)
    return experiment.join(protocol, Population.synthetic(users=users, cluster_size=size, **how), graph, seed)


def of_data(
    protocol: Protocol,
    data: Dataset,
    *,
    clusters: int | None = None,
    test: float | None = None,
    graph: Any = None,
    seed: int,
    split_seed: int | None = None,
    progress: Progress | None = None,
) -> Joined:
    """Return the users of ``experiment.learn``, which has the same arguments, of a data set that was read.

    Raises InputError as it does.
    """
    split = seed if split_seed is None else split_seed
    found = experiment.gather(protocol, data, clusters=clusters, test=test, seed=split, progress=progress)
    return experiment.join(
        protocol, found.population, graph, seed, progress, rows=found.rows, total=data.rows_in_file
    )
