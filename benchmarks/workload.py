"""What is benchmarked: Algorithm 2 at theta = 0.1 on synthetic users in clusters of 1e5."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Literal

import numpy as np

from p2p_sim.core.population import Population
from protocols import PeerToPeer

Clusters = Literal["contiguous", "scattered"]
BOTH: tuple[Clusters, ...] = ("contiguous", "scattered")

SEED = 7
ALPHA = 0.1
THETA = 0.1
CLUSTER_SIZE = 100_000
PROTOCOL = PeerToPeer(alpha=ALPHA, theta=THETA)


@lru_cache(maxsize=2)
def population(users: int, clusters: Clusters, cluster_size: int = CLUSTER_SIZE) -> Population:
    """Make bit labels in clusters, of consecutive users or of users scattered over all ids."""
    together = Population.synthetic(users=users, cluster_size=cluster_size, positive=0.3, seed=1)
    if clusters == "contiguous" or together.clusters is None:
        return together
    mixed = np.random.default_rng(0).permutation(together.clusters.codes)
    return Population.from_arrays(y=together.y, cluster=mixed)


def with_features(users: int, features: int) -> Population:
    """Make the users of ``population``, in clusters of consecutive ones, with normal features."""
    plain = population(users, "contiguous")
    x = np.random.default_rng(0).normal(size=(users, features))
    return replace(plain, x=x)
