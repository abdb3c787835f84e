"""The corrected regression: it finds the model that labels came from, and is scikit-learn's where nobody lies."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import chi2

from p2p_sim import InputError
from p2p_sim.learning.training.losses import TOLERANCE, Bags, match
from p2p_sim.privacy.label_matrices import channel

pytestmark = pytest.mark.slow

FALSE_ALARM = 1e-9
USERS = 30_000
TRUTH = {2: np.array([[1.0], [-0.7], [0.3], [-0.5]]),
         3: np.array([[1.0, -0.5], [0.2, 0.9], [-0.6, 0.3], [0.4, -0.2]])}  # fmt: skip
"""Weights of the second and further classes over the first, the constant last."""


def features(users: int, seed: int) -> Any:
    x = np.random.default_rng(seed).normal(size=(users, 3))
    return (x - x.mean(axis=0)) / x.std(axis=0)


def known(labels: int, lie: float, bag: Any, seed: int) -> tuple[Any, Bags]:
    """Features, and labels of the known model, lied about, by bag."""
    rng, x = np.random.default_rng(seed + 100), features(len(bag), seed)
    y = (np.cumsum(chances(x, TRUTH[labels]), axis=1) < rng.random((len(bag), 1))).sum(axis=1)
    lies = rng.random(len(bag)) < lie
    released = (y + lies * rng.integers(1, labels, len(bag))) % labels
    counts = np.zeros((int(bag.max()) + 1, labels))
    np.add.at(counts, (bag, released), 1.0)
    return x, Bags(bag, counts)


def chances(x: Any, weights: Any) -> Any:
    scores = np.concatenate([x, np.ones((len(x), 1))], axis=1) @ weights
    return softmax(np.concatenate([np.zeros((len(x), 1)), scores], axis=1), axis=1)


def far(labels: int, lie: float, assumed: float, size: int, seed: int) -> float:
    """How far the weights found are from the true ones, in the metric of their covariance's bound.

    For labels known by user that is Fisher's information I, so the distance is chi-square with as many degrees of
    freedom as weights.  For bags it is the information if counts were multinomial: they vary less, for the users of a
    bag differ, so the distance is stochastically below chi-square.
    """
    bag = np.arange(USERS) // size
    x, bags = known(labels, lie, bag, seed)
    weights = match(x, bags, assumed).weights
    found = weights if labels == 2 else weights[:, 1:] - weights[:, :1]
    z = np.concatenate([x, np.ones((USERS, 1))], axis=1)
    p, law = chances(x, TRUTH[labels]), channel(labels, lie)
    b = len(bags.counts)
    mean = np.stack([np.bincount(bag, weights=p[:, y]) for y in range(labels)], axis=1) / size
    slopes = []  # of each bag's mean prediction, by weight: (b, weights, classes)
    for c in range(1, labels):
        inner = p * ((np.arange(labels) == c) - p[:, [c]])  # by the score of class c
        per = (z[:, :, None] * inner[:, None, :]).reshape(b, size, z.shape[1], labels).mean(axis=1)
        slopes.append(per)
    slope = np.concatenate(slopes, axis=1) @ law.T
    information = size * np.einsum("bwj,bvj,bj->wv", slope, slope, 1 / (mean @ law.T))
    off = (found - TRUTH[labels]).T.ravel()
    return float(off @ information @ off)


@pytest.mark.parametrize(
    ("labels", "lie", "size"), [(2, 0.3, 1), (2, 0.0, 6), (2, 0.2, 6), (3, 0.3, 1), (3, 0.2, 3)]
)
def test_it_finds_the_known_model(labels: int, lie: float, size: int) -> None:
    """The twin takes another lie, and is caught."""
    limit = float(chi2.isf(FALSE_ALARM, TRUTH[labels].size))
    assert far(labels, lie, lie, size, seed=1) < limit
    assert far(labels, lie, lie + 0.12, size, seed=1) > limit


@pytest.mark.parametrize("labels", [2, 3])
def test_where_nobody_lies_it_is_scikit_learn_s(labels: int) -> None:
    """Both minimize one function; where it is as convex as its penalty, a gradient g leaves at most |g|²/2 to gain."""
    from sklearn.linear_model import LogisticRegression

    x, bags = known(labels, 0.0, np.arange(600), seed=2)
    model = match(x, bags)
    reference = LogisticRegression(tol=1e-10, max_iter=10_000).fit(x, bags.counts.argmax(axis=1))
    assert model.converged
    z = np.concatenate([x, np.ones((600, 1))], axis=1)

    def loss(p: Any, weights: Any) -> float:
        return float(-np.log(p[bags.counts > 0]).sum() + (weights[:-1] ** 2).sum() / 2)

    theirs = np.concatenate([reference.coef_, reference.intercept_[:, None]], axis=1).T
    scores = z @ theirs if labels == 3 else np.concatenate([np.zeros((600, 1)), z @ theirs], axis=1)
    least = loss(softmax(scores, axis=1), theirs)
    left = theirs.size * (TOLERANCE * 600) ** 2 / 2
    assert least <= loss(model.probabilities(x), model.weights) < least + left
    assert np.mean(model.predict(x) == reference.predict(x)) > 0.99


@pytest.mark.parametrize("labels", [2, 3, 49])
def test_labels_without_information_are_refused(labels: int) -> None:
    bags = Bags(np.arange(labels), np.eye(labels))
    for lie in (Fraction(labels - 1, labels), (labels - 0.5) / labels, -0.1, float("nan")):
        with pytest.raises(InputError, match=f"of {labels} labels: a released label says nothing"):
            match(np.eye(labels), bags, lie)
    almost = match(np.eye(labels), bags, Fraction(labels - 1, labels) - Fraction(1, 10**9))
    assert np.isfinite(almost.weights).all()


def test_nothing_released_is_refused() -> None:
    for counts in (np.zeros((0, 2)), np.zeros((3, 2))):
        with pytest.raises(InputError, match="no label was released"):
            match(np.zeros((3, 1)), Bags(np.full(3, -1), counts))


def test_users_in_no_bag_are_left_out() -> None:
    x, bags = known(2, 0.1, np.arange(400), seed=4)
    bag = np.where(np.arange(400) < 200, bags.bag, -1)
    some = match(x, Bags(bag, bags.counts[:200]), 0.1)
    half = match(x, Bags(bag, np.concatenate([bags.counts[:200], np.zeros((200, 2))])), 0.1)
    assert np.array_equal(some.weights, half.weights)
    assert not np.array_equal(some.weights, match(x, bags, 0.1).weights)


def test_a_constant_feature_is_no_division_by_zero() -> None:
    x, bags = known(2, 0.1, np.arange(400), seed=4)
    x[:, 1] = 3.0
    assert match(x, bags, 0.1).weights[1, 0] == 0
