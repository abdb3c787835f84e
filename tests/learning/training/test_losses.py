"""The losses: against 40 digits, and against their expectation over every way in which users may lie."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import mpmath
import numpy as np
import pytest

from p2p_sim.learning.training.losses import Bags, backward, forward, undo
from p2p_sim.privacy.label_matrices import channel

EPS = float(np.finfo(np.float64).eps)
CASES = [(2, 0.0), (2, 0.3), (3, 0.25), (5, 0.7)]
BAG = np.array([0, 0, 1, 2, 2, 2])


def scores_of(labels: int, users: int = len(BAG), seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=(users, labels)) * 2


def counts_of(labels: int) -> Any:
    return np.random.default_rng(1).integers(0, 4, size=(3, labels)) + 0.5


def softmax(row: Any) -> list[Any]:
    powers = [mpmath.exp(score) for score in row]
    return [power / mpmath.fsum(powers) for power in powers]


def slow_forward(scores: list[list[Any]], bags: Bags, lie: Any) -> Any:
    """The loss of ``forward``, written again for numbers of any precision, bag by bag."""
    total, labels = mpmath.mpf(0), bags.counts.shape[1]
    for b, counts in enumerate(bags.counts.tolist()):
        members = [softmax(row) for row, bag in zip(scores, bags.bag, strict=True) if bag == b]
        for j in range(labels):
            mean = mpmath.fsum(p[j] for p in members) / len(members)
            total -= counts[j] * mpmath.log((1 - lie) * mean + lie / (labels - 1) * (1 - mean))
    return total


def slow_backward(scores: list[list[Any]], released: Any, lie: Any) -> Any:
    """The loss of ``backward`` by solving for the weights of each true label: those that give its loss on average."""
    labels = len(scores[0])
    law = mpmath.matrix(labels)
    for j, y in itertools.product(range(labels), repeat=2):
        law[j, y] = 1 - lie if j == y else lie / (labels - 1)
    weights = law**-1
    return -mpmath.fsum(
        weights[y, int(j)] * mpmath.log(softmax(row)[y])
        for row, j in zip(scores, released, strict=True)
        for y in range(labels)
    )


def agrees(value: float, gradient: Any, scores: Any, slow: Callable[[Any], Any], size: float) -> None:
    """Loss and gradient are those of ``slow`` to rounding: a term a user and class, each at most ``size``."""
    with mpmath.workdps(40):
        exact = [[mpmath.mpf(score) for score in row] for row in scores.tolist()]
        slack = 8 * scores.size * size * EPS
        assert abs(value - float(slow(exact))) <= slack
        for i, j in itertools.product(*map(range, scores.shape)):

            def along(step: Any, i: int = i, j: int = j) -> Any:
                moved = [list(row) for row in exact]
                moved[i][j] += step
                return slow(moved)

            assert abs(gradient[i, j] - float(mpmath.diff(along, 0))) <= slack


@pytest.mark.parametrize(("labels", "lie"), CASES)
def test_forward_against_40_digits(labels: int, lie: float) -> None:
    scores, bags = scores_of(labels), Bags(BAG, counts_of(labels))
    value, gradient = forward(scores, bags, channel(labels, lie))
    agrees(value, gradient, scores, lambda s: slow_forward(s, bags, mpmath.mpf(lie)), 10 * bags.counts.max())


@pytest.mark.parametrize(("labels", "lie"), CASES)
def test_backward_against_40_digits(labels: int, lie: float) -> None:
    scores, released = scores_of(labels), np.arange(len(BAG)) % labels
    value, gradient = backward(scores, released, channel(labels, lie))
    largest = 10 / (1 - lie * labels / (labels - 1))
    agrees(value, gradient, scores, lambda s: slow_backward(s, released, mpmath.mpf(lie)), largest)


def ways(y: tuple[int, ...], labels: int, lie: float) -> Iterator[tuple[tuple[int, ...], float]]:
    """Every way in which users with labels y may answer, and its probability."""
    for released in itertools.product(range(labels), repeat=len(y)):
        chances = [1 - lie if j == t else lie / (labels - 1) for j, t in zip(released, y, strict=True)]
        yield released, float(np.prod(chances))


@pytest.mark.parametrize(("labels", "lie"), [(2, 0.3), (3, 0.25)])
@pytest.mark.parametrize("assumed", [0.0, 0.05])
def test_backward_is_unbiased(labels: int, lie: float, assumed: float) -> None:
    """Over all answers the mean is the loss of the true labels; a twin that takes another lie is off."""
    y = (0, 1, 1, labels - 1)
    scores = scores_of(labels, len(y))
    clean, slope = backward(scores, np.array(y), channel(labels, 0.0))
    law, value, gradient = channel(labels, lie + assumed), 0.0, np.zeros_like(scores)
    for released, chance in ways(y, labels, lie):
        found, direction = backward(scores, np.array(released), law)
        value, gradient = value + chance * found, gradient + chance * direction
    slack = 100 * labels ** len(y) * EPS  # a loss is below 100, and so many are added up
    same = abs(value - clean) <= slack and float(abs(gradient - slope).max()) <= slack
    assert same is (assumed == 0)


def expected(scores: Any, truth: Any, bag: Any, lie: float, assumed: float) -> tuple[float, Any]:
    """The mean of ``forward`` over all labels drawn from softmax(truth), and all answers."""
    labels, users = scores.shape[1], len(scores)
    p = np.array([softmax(row) for row in truth.tolist()], float)
    value, gradient = 0.0, np.zeros_like(scores)
    for y in itertools.product(range(labels), repeat=users):
        chance_of_y = float(np.prod(p[range(users), y]))
        for released, chance in ways(y, labels, lie):
            counts = np.zeros((int(bag.max()) + 1, labels))
            np.add.at(counts, (bag, list(released)), 1.0)
            found, direction = forward(scores, Bags(bag, counts), channel(labels, assumed))
            value += chance_of_y * chance * found
            gradient += chance_of_y * chance * direction
    return value, gradient


@pytest.mark.parametrize(("labels", "bag"), [(2, [0, 1, 2]), (2, [0, 0, 1]), (3, [0, 1]), (3, [0, 0])])
def test_forward_s_mean_is_least_at_the_truth(labels: int, bag: list[int]) -> None:
    """There the mean gradient is zero, and elsewhere the mean is larger; a twin that takes another lie moves on."""
    groups, lie = np.array(bag), 0.3
    truth = scores_of(labels, len(bag), seed=3) / 2
    least, gradient = expected(truth, truth, groups, lie, lie)
    slack = 100 * labels ** (2 * len(bag)) * EPS  # a gradient is below 100, and so many are added up
    assert abs(gradient).max() <= slack
    for seed in range(5):
        other = truth + scores_of(labels, len(bag), seed=10 + seed) / 4
        assert expected(other, truth, groups, lie, lie)[0] > least
    assert abs(expected(truth, truth, groups, lie, 0.2)[1]).max() > 1e6 * slack


def test_undo_inverts_the_channel() -> None:
    for labels, lie in CASES:
        law = channel(labels, lie)
        assert np.allclose(law.sum(axis=0), 1, rtol=0, atol=4 * EPS)
        assert np.allclose(undo(law, law.T), np.eye(labels), rtol=0, atol=100 * EPS)


def test_a_bag_without_reports_costs_nothing() -> None:
    scores = scores_of(2, 3)
    one = forward(scores[:2], Bags(np.array([0, 0]), np.array([[1.0, 2.0]])), channel(2, 0.1))
    two = forward(scores, Bags(np.array([0, 0, 1]), np.array([[1.0, 2.0], [0.0, 0.0]])), channel(2, 0.1))
    assert abs(two[0] - one[0]) <= 8 * EPS * one[0]
    assert np.allclose(two[1][:2], one[1], rtol=8 * EPS, atol=0)
    assert not two[1][2].any()


def test_predictions_that_are_certain_stay_finite() -> None:
    scores = np.array([[0.0, 2000.0], [0.0, -2000.0]])
    value, gradient = forward(
        scores, Bags(np.array([0, 1]), np.array([[1.0, 0.0], [0.0, 1.0]])), channel(2, 0.0)
    )
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()
