"""Proportion matching: its gradient, what it learns, and which users it takes for members of a bag."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim import InputError, Population
from p2p_sim.learning import experiment
from p2p_sim.learning.datasets import Dataset
from p2p_sim.learning.proportions import MODEL, ProportionMatching, Proportions, of_run
from protocols import LabelProportions, LaplaceLabelProportions, RandomizedResponse, SecureAggregation


def examples(n: int, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4))
    return x, rng.random(n) < 1 / (1 + np.exp(-(2 * x[:, 0] - x[:, 1] + 0.5)))


def dataset(x: Any, y: Any) -> Dataset:
    names = ("a", "b", "c", "d")
    return Dataset("made up", x, y, None, names, "y", ("no", "yes"), "yes", "this test", None)


def proportions(y: Any, k: int) -> Proportions:
    bag = np.arange(len(y)) // k
    return Proportions(bag, np.bincount(bag, weights=y) / np.bincount(bag), np.bincount(bag))


def test_the_gradient_is_that_of_the_loss() -> None:
    x, y = examples(40)
    told, model = proportions(y, 8), ProportionMatching()
    features = np.concatenate([x, np.ones((40, 1))], axis=1)
    weights = np.array([0.3, -0.2, 0.5, 0.1, -0.4])
    value, gradient = model._loss(weights, features, told.bag, told)
    for i in range(5):
        step = np.eye(5)[i] * 1e-6
        numeric = model._loss(weights + step, features, told.bag, told)[0] - value
        assert gradient[i] == pytest.approx(numeric / 1e-6, rel=1e-3, abs=1e-3)


def test_bags_of_one_are_logistic_regression() -> None:
    from sklearn.linear_model import LogisticRegression

    x, y = examples(500)
    x = (x - x.mean(0)) / x.std(0)
    model = ProportionMatching().fit(x, proportions(y, 1))
    known = LogisticRegression(tol=1e-8).fit(x, y)
    assert model.converged
    assert np.allclose(model.weights, np.append(known.coef_, known.intercept_), atol=1e-3)


@pytest.mark.parametrize("k", [2, 8, 32])
def test_it_learns_from_bags(k: int) -> None:
    (x, y), (x_test, y_test) = examples(6400), examples(4000, seed=1)
    accuracy = float((ProportionMatching().fit(x, proportions(y, k)).predict(x_test) == y_test).mean())
    best = float((ProportionMatching().fit(x, proportions(y, 1)).predict(x_test) == y_test).mean())
    assert accuracy > best - 0.03
    mixed = np.random.default_rng(2).permutation(len(y))  # twin: proportions of other bags teach nothing
    wrong = ProportionMatching().fit(x, proportions(y[mixed], k)).predict(x_test)
    assert float((wrong == y_test).mean()) < best - 0.1


def test_nothing_released_is_an_error_of_the_model() -> None:
    with pytest.raises(InputError, match="no proportion was released"):
        ProportionMatching().fit(np.zeros((3, 1)), Proportions(np.full(3, -1), np.zeros(0), np.zeros(0)))


def test_members_of_bags_are_those_of_the_run() -> None:
    people = Population.from_arrays(y=np.arange(50) % 3 == 0, cluster=np.arange(50) % 4)
    run = p2p_sim.run(LabelProportions(5), people)
    told = of_run(run.output("learner"), run.parameters, people)
    assert told is not None
    assert np.allclose(np.bincount(told.bag, weights=people.y) / np.bincount(told.bag), told.share)
    assert of_run({"y": people.y}, run.parameters, people) is None


@pytest.mark.parametrize(
    "protocol",
    [
        LabelProportions(8),
        LaplaceLabelProportions(2.0, 8, 5),
        SecureAggregation(8),
        SecureAggregation(8, epsilon=2.0),
    ],
    ids=lambda p: type(p).__name__,
)
def test_a_run_trains_on_its_bags(protocol: Any) -> None:
    x, y = examples(1500)
    data = dataset(x, y)
    found = experiment.learn(protocol, data, seed=1).comparison
    assert found is not None
    assert found.model == MODEL
    assert found.trained_on == 150
    assert found.accuracy_private > found.baseline
    assert found.accuracy_true >= found.accuracy_private - 0.02


def test_where_every_bag_is_refused_the_note_says_so() -> None:
    x, y = examples(60)
    data = dataset(x, y)
    found = experiment.learn(SecureAggregation(80), data).comparison
    assert found is not None
    assert found.trained_on == 0
    assert found.accuracy_private == found.baseline
    assert "no proportion was released" in found.note


def test_labels_are_trained_on_as_before() -> None:
    x, y = examples(200)
    data = dataset(x, y)
    found = experiment.learn(RandomizedResponse(2.0), data).comparison
    assert found is not None
    assert found.what == "labels"
