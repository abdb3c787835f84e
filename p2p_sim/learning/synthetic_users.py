"""Synthetic users of a run: how they are drawn, in memory or where they are needed, and what a run says of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from p2p_sim.core.population import Population
from p2p_sim.core.population_in_parts import PopulationInParts
from p2p_sim.core.protocol import Protocol
from p2p_sim.learning import user_clusters
from p2p_sim.learning.data_split import TEST_SHARE
from p2p_sim.learning.training import models

CLUSTER_SIZE = 1000
"""Users in a cluster, unless that is said."""

MOST_NUMBERS = 1 << 23
"""So many features in all are kept in memory, 64 MiB; more are drawn in batches, or read in part."""


MOST_TEST_ROWS = 1 << 20
"""So many test rows are read or drawn of those in batches, and ``MOST_NUMBERS`` features in all."""


def most_test_rows(features: int) -> int:
    """Return how many test rows with so many features are in memory at most, where users are not."""
    return min(MOST_TEST_ROWS, max(1, MOST_NUMBERS // features))


def drawn(
    protocol: Protocol,
    cluster_size: int | None,
    share: float | None,
    shares: Sequence[float] | None,
    features: int,
    seed: int,
) -> tuple[int | None, dict[str, Any]]:
    """Return the size of a cluster of synthetic users, None for none, and what else ``Population.synthetic`` takes."""
    default = CLUSTER_SIZE if user_clusters.matter(protocol) else None
    labels = protocol.label_count()
    how = {"labels": labels, "shares": shares, "positive": share, "features": features, "seed": seed}
    return (default if cluster_size is None else cluster_size), how


def population(users: int, cluster_size: int | None, drawn_by: dict[str, Any], apart: bool) -> Population:
    """Return synthetic users; ``apart``: they are made where they are needed."""
    if not apart:
        return Population.synthetic(users=users, cluster_size=cluster_size, **drawn_by)
    return PopulationInParts.drawn(users=users, cluster_size=cluster_size, **drawn_by)


def with_test_rows(users: int) -> int:
    """Return how many rows there are, of which ``users`` train a model and a fifth tests it."""
    return users + max(1, round(users * TEST_SHARE / (1 - TEST_SHARE)))


def in_batches(
    protocol: Protocol,
    users: int,
    features: int,
    model: str,
    *,
    graph: Any = None,
    canaries: float | None = None,
    backend: str | None = None,
    keep_features: bool = False,
) -> bool:
    """Return whether features of synthetic users are drawn, and a model is trained on them, in batches.

    So it is if they are many, and nothing needs them together: a graph, canaries, an attack, actors, a protocol that
    says that its users read some or that releases something else than classes, or a model that needs all rows.
    """
    few, together = users * features <= MOST_NUMBERS, keep_features or backend == "actors"
    if few or together or graph is not None or canaries is not None:
        return False
    from p2p_sim.learning.training import models_in_batches
    from p2p_sim.privacy.registered import label_noise

    asked = (protocol.feature_count(), protocol.bag_sums(), protocol.numbers())
    if any(each is not None for each in asked) or protocol.vector_lengths():
        return False
    noise = label_noise(protocol)
    if noise is not None and noise.reports is not None:
        return False
    return model == models.NO_MODEL or models_in_batches.learns_in_batches(model)


def described(
    labels: int, share: float | None, shares: Sequence[float] | None, features: int
) -> dict[str, Any]:
    """Return what a run's notes say of them, as of a data set; the arguments are those of ``experiment.simulate``."""
    if labels == 2 and shares is None:
        source = f"drawn by seed, each positive with probability {0.5 if share is None else share:g}"
    else:
        of_each = "equal shares" if shares is None else f"shares {', '.join(f'{each:g}' for each in shares)}"
        source = f"drawn by seed, labels 0 to {labels - 1} with {of_each}"
    about: dict[str, Any] = {"name": "synthetic", "source": source}
    return (
        about
        if not features
        else about | {"source": f"{source}, {features:,} features", "features": features}
    )
