"""The users of a run, without the run: whom ``experiment`` would take, for plans, accounts and calibration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from p2p_sim.core.engine import Progress
from p2p_sim.core.population import Population
from p2p_sim.core.protocol import Protocol
from p2p_sim.learning import data_split, synthetic_users, user_graph
from p2p_sim.learning.data import stored_examples
from p2p_sim.plan import Crowd, Scratch

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


_FIXED, _BATCHES, _TESTS, _OF_LABELS = 100 << 20, 5, 3, 5
"""Bytes of what training imports; copies of a batch and of the test rows; numbers for each label value of a row."""


@dataclass(frozen=True)
class TrainingInBatches:
    """Training on ``users`` rows in ``clusters``, of which one batch is in memory, and on ``test_rows``."""

    users: int
    clusters: int
    features: int
    labels: int
    test_rows: int

    @property
    def memory(self) -> int:
        """Bytes of memory, however many users there are: only clusters count."""
        rows = min(self.users, stored_examples.rows_at_once(self.features))
        numbers = rows * (_BATCHES * self.features + _OF_LABELS * self.labels)
        numbers += self.test_rows * (_TESTS * self.features + _OF_LABELS * self.labels)
        numbers += self.clusters * (self.features + _OF_LABELS * self.labels)
        return _FIXED + _FLOAT * numbers

    @property
    def scratch(self) -> Scratch:
        """Bytes that are written for a time: released labels, about one a user, and features and true labels."""
        from p2p_sim.learning.training import scratch_examples, scratch_labels

        return Scratch(
            self.users * scratch_labels.RECORD.itemsize,
            self.users * scratch_examples.bytes_a_row(self.features),
            scratch_examples.ROOM,
        )


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
