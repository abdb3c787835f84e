"""The clusters of a run's users: whether they matter, where they come from, and how large they are."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.engine import Progress
from p2p_sim.core.errors import InputError
from p2p_sim.core.population import Population
from p2p_sim.core.protocol import Protocol
from p2p_sim.learning.training.kmeans import kmeans

if TYPE_CHECKING:
    from p2p_sim.learning.data.datasets import Dataset

Array = npt.NDArray[Any]

USERS_A_CLUSTER, MAX_CLUSTERS = 150, 200
"""How many k-means makes, unless that is said: one for so many users, and at most so many."""


def matter(protocol: Protocol) -> bool:
    """Return whether clusters matter to a run: users send messages within them or read them, or a server uses them."""
    return bool(
        protocol.graph_over() != "everybody" and protocol.in_clusters() and not protocol.mixes_everybody()
    )


def default_count(users: int) -> int:
    """Return the default number of clusters for k-means."""
    return min(MAX_CLUSTERS, max(1, users // USERS_A_CLUSTER))


def describe(protocol: Protocol, people: Population, origin: str) -> dict[str, Any] | None:
    """Return the number, origin and sizes of the clusters; None without clusters.

    Warns (UserWarning) of clusters of one user, if clusters matter.
    """
    if not people.divided:
        return None
    sizes = people.sizes
    alone = int((sizes == 1).sum())
    if alone and matter(protocol):
        what = "1 cluster has" if alone == 1 else f"{alone:,} clusters have"
        alone_in = (
            "who always picks herself: no peer hides her"
            if protocol.users_talk()
            else "so what is known of the cluster is known of her"
        )
        warnings.warn(f"{what} a single user, {alone_in}", stacklevel=3)
    return {
        "count": len(sizes), "origin": origin, "minimum": int(sizes.min()), "median": float(np.median(sizes)),
        "maximum": int(sizes.max()), "of_one_user": alone,
    }  # fmt: skip


def of_rows(
    protocol: Protocol, data: Dataset, rows: Array, clusters: int | None, seed: int, progress: Progress
) -> tuple[Array | None, str]:
    """Return the cluster of each user, (n,), None without clusters; and in words where they come from.

    ``rows`` (n,): the users' rows of the data set; ``clusters``: how many k-means makes, None for the default.  Raises
    InputError for a number of clusters that there cannot be.
    """
    if data.cluster is not None:
        return data.cluster[rows], "from a column"
    if clusters is None and not matter(protocol):
        return None, "none"
    if clusters is not None and not 1 <= clusters <= len(rows):
        raise InputError(f"clusters = {clusters!r}: must be an integer from 1 to the {len(rows):,} users")
    count = clusters or default_count(len(rows))
    progress(f"k-means, {count} clusters", 0, 0)
    default = f" (default: one for {USERS_A_CLUSTER} users, at most {MAX_CLUSTERS})"
    return kmeans(data.x[rows], count, seed), "by k-means" + (default if clusters is None else "")
