"""Fits to labels that say little: as likely as what scipy finds from many starts, and constant only if told."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from p2p_sim.core.population import Population
from p2p_sim.learning.training import (
    bag_training,
    cluster_effects,
    losses,
    models_in_batches,
    noise_correction,
)
from p2p_sim.learning.training.losses import Bags, Regression, forward, match, match_reports, starting_shares
from p2p_sim.learning.training.models_in_batches import FirstPass, Moments
from p2p_sim.privacy.label_matrices import ResamplingMatrices, channel
from p2p_sim.privacy.registry import LabelNoise

WEAK = 1.0
"""The penalty of scikit-learn, whose constant is free: the default one of noisy labels leaves less to go wrong."""

NEAR = 0.1
"""A fit's objective is at most so much larger (nats) than the least of all starts'."""


def softmax(scores: Any) -> Any:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def made(labels: int, lie: float, often: float, users: int, size: int, seed: int) -> tuple[Any, Bags]:
    """Features, three of which matter, and noisy labels by bag; the larger ``often``, the more are of the first."""
    rng = np.random.default_rng(seed)
    x, weights = rng.normal(size=(users, 6)), np.zeros((6, labels))
    weights[:3] = rng.normal(size=(3, labels)) * 1.5
    p = softmax(x @ weights + np.r_[often, np.zeros(labels - 1)])
    y = (p.cumsum(axis=1) < rng.random((users, 1))).sum(axis=1).clip(0, labels - 1)
    said = np.where(rng.random(users) < lie, (y + rng.integers(1, labels, users)) % labels, y)
    bag = np.arange(users) // size
    counts = np.zeros((int(bag[-1]) + 1, labels))
    np.add.at(counts, (bag, said), 1.0)
    return x, Bags(bag, counts)


def objective(x: Any, bags: Bags, law: Any) -> Callable[[Any], tuple[float, Any]]:
    """Return the penalized likelihood of what was released, and its gradient, by flat weights; written anew here."""
    labels, size = len(law), np.bincount(bags.bag)[:, None]
    z = np.c_[(x - x.mean(axis=0)) / x.std(axis=0), np.ones(len(x))]

    def of(flat: Any) -> tuple[float, Any]:
        w = flat.reshape(z.shape[1], -1)
        p = softmax(z @ (np.c_[np.zeros(len(w)), w] if labels == 2 else w))
        shown = np.stack([np.bincount(bags.bag, column) for column in p.T], axis=1) / size @ law.T
        slope = (-(bags.counts / shown) @ law / size)[bags.bag]
        by_score = p * (slope - (p * slope).sum(axis=1, keepdims=True))
        gradient = z.T @ (by_score[:, 1:] if labels == 2 else by_score)
        gradient[:-1] += w[:-1]
        return float(-(bags.counts * np.log(shown)).sum() + (w[:-1] ** 2).sum() / 2), gradient.ravel()

    return of


def least(of: Any, width: int, labels: int, starts: int) -> float:
    """Return the least that BFGS finds from random starts."""
    rng, found = np.random.default_rng(0), []
    for _ in range(starts):
        begin = rng.normal(0, 0.5, (width + 1, 1 if labels == 2 else labels))
        begin[-1] = rng.normal(0, 2, begin.shape[1])
        found.append(minimize(of, begin.ravel(), jac=True, method="BFGS", options={"gtol": 1e-3}).fun)
    return float(min(found))


def as_before(x: Any, bags: Bags, law: Any, monkeypatch: Any) -> Regression:
    """Return the fit from the debiased shares to scikit-learn's tolerance: the twin that is broken."""
    with monkeypatch.context() as patched:
        patched.setattr(losses, "REDUCTION", np.inf)
        begin = starting_shares(bags, law)
        return Regression(len(law)).fit(x, lambda scores: forward(scores, bags, law), begin)


@pytest.mark.parametrize(
    ("labels", "lie", "often", "users", "size", "seed"),
    [(2, 0.45, 7, 8000, 1, 3), (2, 0.45, 7, 8000, 1, 5), (2, 0.45, 7, 8000, 1, 8), (2, 0.47, 7, 4000, 1, 8),
     (2, 0.0, 3, 10_000, 1000, 0), (2, 0.4, 3, 4000, 16, 2), (10, 0.8, 0, 1500, 1, 0)],
)  # fmt: skip
def test_it_is_as_likely_as_the_best_of_many_starts(
    labels: int, lie: float, often: float, users: int, size: int, seed: int, monkeypatch: Any
) -> None:
    """Debiased shares of the first four are below 0; of the fifth bags are so large that gradients are small."""
    x, bags = made(labels, lie, often, users, size, seed)
    law = channel(labels, lie)
    of = objective(x, bags, law)
    best = least(of, x.shape[1], labels, 4 if size > 1 else 10)
    model = match(x, bags, lie, penalty=WEAK)
    assert model.converged
    assert not model.flat
    near = NEAR if labels == 2 else 0.5  # ten classes have as many places that are nearly as likely
    assert of(model.weights.ravel())[0] < best + near
    twin = as_before(x, bags, law, monkeypatch)
    if size != 16:
        assert of(twin.weights.ravel())[0] > best + near
        assert labels > 2 or size > 1 or twin.flat


def test_reports_and_batches_find_the_same() -> None:
    """Of labels on which the fits of both ended at their start."""
    x, bags = made(2, 0.45, 7, 8000, 1, 5)
    law, y = channel(2, 0.45), bags.counts.argmax(axis=1)
    one = match(x, bags, 0.45)
    by_reports = match_reports(x, ResamplingMatrices.uniform(2, 0.45).evidence(np.arange(len(y)), y))
    assert np.allclose(one.weights, by_reports.weights, rtol=0, atol=1e-6)
    parts = [(x[low : low + 3000], bags.counts[low : low + 3000]) for low in (0, 3000, 6000)]
    moments = Moments()
    moments.add(x)

    def labelled() -> Any:
        yield x[:10], np.zeros((10, 2), np.int64)  # rows of which nothing was released
        yield from ((rows, counts.astype(np.int64)) for rows, counts in parts)

    first = FirstPass.over(labelled, 2)
    in_batches = models_in_batches.corrected(labelled, law, first, moments)
    assert not in_batches.flat
    assert np.allclose(one.weights, in_batches.weights, rtol=0, atol=1e-6)


def test_a_small_gain_does_not_end_a_fit_before_its_gradient_is_small(monkeypatch: Any) -> None:
    """The loss of 50,000 reports that say next to nothing falls by a small share of it only."""
    lie = 0.4999
    x, bags = made(2, lie, 0, 50_000, 1, 0)
    of = objective(x, bags, channel(2, lie))
    at_start = np.abs(of(np.zeros(7))[1][:-1]).max()
    model = match(x, bags, lie, penalty=WEAK)
    assert model.converged
    assert np.abs(of(model.weights.ravel())[1]).max() <= losses.REDUCTION * at_start
    monkeypatch.setattr(losses, "FINE", 2.2e-9)  # scipy's own
    twin = match(x, bags, lie, penalty=WEAK)
    assert np.abs(of(twin.weights.ravel())[1]).max() > losses.REDUCTION * at_start


def test_expected_reports_of_little_epsilon_give_the_true_probabilities(monkeypatch: Any) -> None:
    """Gradients are of second order in how little a report says: for each row below the tolerance from the start."""
    kind = np.arange(1000) % 2
    x, chance, lie = kind[:, None].astype(float), np.where(kind, 0.1, 0.02), 0.49
    said = (1 - 2 * lie) * chance + lie
    bags = Bags(np.arange(1000), np.stack([1 - said, said], axis=1))
    model = match(x, bags, lie, penalty=1e-6)
    assert model.probabilities(x[:2])[:, 1] == pytest.approx([0.02, 0.1], abs=0.01)
    assert as_before(x, bags, channel(2, lie), monkeypatch).flat


def test_a_constant_model_is_told() -> None:
    rng = np.random.default_rng(0)
    x, y = np.ones((2000, 3)), rng.integers(0, 2, 2000)
    alone = Bags(np.arange(2000), np.eye(2)[y])
    constant = match(x, alone, 0.3)
    assert constant.converged
    assert constant.flat
    noise = LabelNoise(Fraction(3, 10))
    assert noise_correction.fit(x, alone, noise).notes(noise) == [cluster_effects.TOO_LITTLE]
    people = Population.from_arrays(x=x, y=y.astype(bool))
    bag = np.arange(2000) // 8
    proportions = bag_training.Proportions(bag, np.bincount(bag, y) / 8, np.full(250, 8))
    told = bag_training.compare(people, x, y.astype(bool), proportions, "logistic-regression").note
    assert "constant, for the proportions tell nothing of features" in told


def test_a_model_that_differs_in_one_row_is_not_constant() -> None:
    x = np.zeros((1000, 1))
    x[0] = 1.0
    y = np.arange(1000) % 2
    assert not match(x, Bags(np.arange(1000), np.eye(2)[y]), 0.1).flat
