"""Clusters of users with similar public features: mini-batch k-means, the same for any number of threads."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.core.population import check_seed
from p2p_sim.core.random_words import stream, words
from p2p_sim.learning.training.models import one_thread

BATCH = 1024


def kmeans(x: npt.NDArray[Any], clusters: int, seed: int) -> npt.NDArray[np.int64]:
    """Group the rows of x (n, d) into at most ``clusters`` (1 to n) clusters, by mini-batch k-means on scaled features.

    Returns cluster numbers (n,), 0 to k - 1 without gaps; warns if there are fewer clusters than requested.  ``seed``:
    below 2^64.  Equal arguments give equal clusters for any number of threads and any hash seed.  Raises InputError if
    x is not a finite table, or clusters or seed are out of range.
    """
    table = np.asarray(x)
    if table.ndim != 2 or not table.size or table.dtype.kind not in "biuf":
        raise InputError(
            f"x has shape {table.shape} and type {table.dtype}; clusters need numbers of shape (n, d)"
        )
    if (
        isinstance(clusters, bool)
        or not isinstance(clusters, int | np.integer)
        or not 1 <= clusters <= len(table)
    ):
        raise InputError(f"clusters is {clusters!r}; give a whole number from 1 to the {len(table)} rows")
    check_seed(seed)
    scaled = _standardised(table)
    if clusters in (1, len(table)):
        return np.arange(len(table), dtype=np.int64) if clusters > 1 else np.zeros(len(table), np.int64)
    found, numbered = np.unique(_fit(scaled, int(clusters), seed), return_inverse=True)
    if len(found) < clusters:
        warnings.warn(
            f"k-means was asked for {clusters} clusters and {len(found)} are not empty; ask for fewer",
            UserWarning,
            stacklevel=2,
        )
    return numbered.astype(np.int64)


def _standardised(table: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused below
        mean = table.mean(axis=0, dtype=np.float64)
        scale = table.std(axis=0, dtype=np.float64)
    if not (np.isfinite(mean).all() and np.isfinite(scale).all()):
        raise InputError(
            "x has values that are not finite, or too large to standardise; clusters need finite numbers"
        )
    scale[scale == 0] = 1
    if table.dtype.itemsize == 8:  # in float32, numbers that are large beside what differs would become one
        exact: npt.NDArray[np.float32] = ((table - mean) / scale).astype(np.float32)
        return exact
    scaled = table.astype(np.float32)
    scaled -= mean.astype(np.float32)
    scaled /= scale.astype(np.float32)
    return scaled


def _fit(scaled: npt.NDArray[np.float32], clusters: int, seed: int) -> npt.NDArray[np.int32]:
    from sklearn.cluster import MiniBatchKMeans

    state = int(words(seed, stream("split", "kmeans", 0), 0, 1)[0]) >> 32
    model = MiniBatchKMeans(
        clusters,
        random_state=state,
        batch_size=BATCH,
        n_init=3,
        init_size=min(len(scaled), max(3 * BATCH, 3 * clusters)),
    )
    with one_thread():  # sums over threads come in another order for another number of them
        groups: npt.NDArray[np.int32] = model.fit_predict(scaled)
    return groups
