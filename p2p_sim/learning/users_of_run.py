"""The users of a run, without the run: whom ``experiment`` would take, for plans, accounts and calibration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from p2p_sim.core.engine import Progress
from p2p_sim.core.population import Population
from p2p_sim.core.protocol import Protocol
from p2p_sim.learning import data_split, synthetic_users, user_graph
from p2p_sim.plan import Crowd

if TYPE_CHECKING:
    from p2p_sim.learning.data.datasets import Dataset

Joined = tuple[Population, dict[str, Any] | None]
"""Users, and the figures of their graph (None without a graph)."""

_FLOAT, _TEST_ROWS, _COPIES = 8, 1.25, 2
"""Bytes of a feature; users and test rows, in users; copies that training makes."""


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
    size, how = synthetic_users.drawn(protocol, cluster_size, share, shares, features, seed)
    return user_graph.join(protocol, Population.synthetic(users=users, cluster_size=size, **how), graph, seed)


def crowd(
    protocol: Protocol,
    users: int,
    *,
    cluster_size: int | None = None,
    share: float | None = None,
    shares: Sequence[float] | None = None,
    features: int = 0,
    graph: str | None = None,
    seed: int,
) -> Crowd:
    """Return the same users for a plan, which makes no more than a few of them; raises InputError for wrong numbers."""
    size, how = synthetic_users.drawn(protocol, cluster_size, share, shares, features, seed)
    found = Crowd.synthetic(users, size, how)

    def joined(some: int) -> Population:
        return user_graph.join(protocol, found.make(some), graph, seed)[0]

    return found if graph is None else replace(found, make=joined, apart=False)


BYTES_IN_BATCHES = 1 << 28
"""Bytes of memory that training in batches takes, however many users there are."""


def bytes_of_examples(users: int, features: int, trains: bool) -> int:
    """Return the bytes that the features of so many users and of their test rows take, copies of training included."""
    return round(users * features * _FLOAT * (_TEST_ROWS + _COPIES * trains))


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
    found = data_split.gather(protocol, data, clusters=clusters, test=test, seed=split, progress=progress)
    return user_graph.join(
        protocol, found.population, graph, seed, progress, rows=found.rows, total=data.rows_in_file
    )
