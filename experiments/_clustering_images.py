"""Images as Figure 1 of Clustering 2022 uses them, and the test accuracy that each mechanism leaves on them.

Pixels are replaced by their first principal components, and clusters are k-means clusters of half of these: features
are public here, so both cost nothing.  The regression is the paper's: scikit-learn's multinomial objective with its
default penalty C = 1.  L-BFGS minimizes it in place of SAGA, for SAGA takes no loss with negative weights.
"""

from __future__ import annotations

import functools
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import p2p_sim
from experiments import _dp_sgd as dp_sgd
from experiments._rows import content
from p2p_sim import Population
from p2p_sim.learning.data import datasets
from p2p_sim.learning.training.models import one_thread
from p2p_sim.learning.training.weighted_regression import WeightedLossRegression
from p2p_sim.privacy.mechanisms.cluster_response import evidence
from protocols import ClusterResponse
from protocols.cluster_response import PHI

Array = npt.NDArray[Any]

STEPS = 100
"""Steps of L-BFGS at most, as many as scikit-learn's default; on true labels more change accuracy by 0.1 points."""

BOUND = 4.0
"""Rows are shortened to this length before DP-SGD, of a median of 6.7 (MNIST) and 7.8 (Fashion-MNIST)."""


@dataclass(frozen=True)
class Images:
    """A data set: components of training and test rows, (n, d), their labels, and how true the images are."""

    name: str
    x: Array
    y: Array
    x_test: Array
    y_test: Array
    classes: int
    fidelity: str
    content: str


@functools.lru_cache(maxsize=3)
def images(name: str, rows: int | None, components: int) -> Images:
    """Return the first ``rows`` training rows (None: all) and all test rows."""
    from sklearn.decomposition import PCA

    found = datasets.load(name, multiclass=True)
    assert found.test is not None
    train = np.flatnonzero(~found.test)
    if rows is not None:  # spread, for the rows of CIFAR-10 come class by class
        train = train[:: max(1, len(train) // rows)][:rows]
    pixels = np.asarray(found.x, np.float32) / np.float32(255)
    with one_thread():
        parts = PCA(components, svd_solver="covariance_eigh").fit(pixels[train])
        x, x_test = (parts.transform(pixels[at]).astype(np.float32) for at in (train, found.test))
    y = found.y.astype(np.uint8)
    classes = len(found.classes)
    fingerprint = content(name, multiclass=True)
    return Images(name, x, y[train], x_test, y[found.test], classes, found.fidelity(), fingerprint)


@functools.cache
def clusters(name: str, rows: int | None, components: int, count: int, starts: int) -> Array:
    """Return the cluster of each training row: the best of ``starts`` runs of k-means."""
    from sklearn.cluster import KMeans

    found = images(name, rows, components)
    with one_thread():
        model = KMeans(count, n_init=starts, random_state=0).fit(found.x[:, : components // 2])
    return np.asarray(model.labels_, np.int64)


def heterogeneity(found: Images, cluster: Array) -> float:
    """Return 2 (1 - mean over rows of the sum of squared label shares of their cluster): phi cannot be above it.

    It is phi if a row's label is certain.  It reads true labels, and stands here as a fact of the data alone.
    """
    counts = np.zeros((cluster.max() + 1, found.classes))
    np.add.at(counts, (cluster, found.y), 1)
    return float(2 * (1 - (counts**2 / counts.sum(axis=1, keepdims=True)).sum() / counts.sum()))


def trained(found: Images, weights: Array, penalty: float = 1.0) -> float:
    """Return the test accuracy of the model with ``weights`` (n, k) of the losses of each training row."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # stops on purpose
        model = WeightedLossRegression(penalty, max_iter=STEPS).fit_losses(found.x, weights)
    return float((model.predict(found.x_test) == found.y_test).mean())


def cluster_rr(epsilon: float, labels: int) -> ClusterResponse:
    """Return ClusterRR that spends ``epsilon`` in all by Theorem 1 as corrected: Corollary 2 at a third of it."""
    return ClusterResponse(epsilon, labels, "cluster", PHI, 2 / 3)


def uniform_rr(epsilon: float, labels: int) -> ClusterResponse:
    """Return UniformRR, Corollary 1."""
    return ClusterResponse(epsilon, labels, "uniform")


def response(
    found: Images, cluster: Array, protocol: ClusterResponse, seed: int, penalty: float
) -> tuple[float, bool]:
    """Run Algorithm 1 once; return the test accuracy of the model that its modified loss asks for, and True.

    False: there is none, as noise leaves a class less than no labels and its intercept falls without end; then the
    loss is not modified.
    """
    people = Population.from_arrays(y=found.y, cluster=cluster)
    columns = p2p_sim.run(protocol, people, seed=seed, digest=False, progress=False).outputs["learner"]
    order = np.argsort(columns["sender"])
    plain = np.eye(found.classes)[columns["y"][order]]
    if protocol.settings().beta == 0:  # the loss is not modified
        return trained(found, plain, penalty), True
    weights = evidence(protocol, columns, people).unbiased()[order]
    bounded = bool((weights.sum(axis=0) > 0).all())
    return trained(found, weights if bounded else plain, penalty), bounded


def descended(found: Images, chosen: dp_sgd.Settings, epsilon: float, seed: int) -> float:
    """Return the test accuracy of DP-SGD, for a replaced row at delta = 1/n.

    The order is drawn once, as the rows of CIFAR-10 come class by class.
    """
    order = np.random.default_rng(0).permutation(len(found.x))
    rows = (found.x[order], found.y[order], found.x_test, found.y_test, found.classes)
    return dp_sgd.accuracy(chosen.model(epsilon, len(order), BOUND), rows, seed)
