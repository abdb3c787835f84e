"""Renyi divergences against 40 digits, quadrature and dp-accounting; the estimate stays below and promises nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import stats

from p2p_sim import privacy
from p2p_sim.core.errors import InputError
from p2p_sim.leakage import renyi
from p2p_sim.privacy.bounds import release2023
from p2p_sim.privacy.bounds.bound import Renyi
from protocols import EncryptedShuffle, LabelProportions, LaplaceLabelProportions, RandomizedResponse


@pytest.mark.parametrize("order", [1.0001, 1.5, 2.0, 17.0])
def test_finite_laws_match_40_digits(order: float) -> None:
    p, q = [0.5, 0.25, 0.25, 0.0], [0.125, 0.5, 0.25, 0.125]
    with mpmath.workdps(40):
        total = sum(
            mpmath.mpf(a) ** order * mpmath.mpf(b) ** (1 - mpmath.mpf(order))
            for a, b in zip(p, q, strict=True)
        )
        expected = mpmath.log(total) / (mpmath.mpf(order) - 1)
    found = renyi.finite(p, q, order)
    assert found.epsilon == pytest.approx(float(expected), rel=1e-11)
    assert found.basis == "exact"
    back = renyi.finite(q, p, order)
    assert back.epsilon == math.inf
    assert "excludes" in back.why


@pytest.mark.parametrize(("mean", "variance", "order"), [(1.0, 1.0, 2.0), (0.5, 2.0, 1.3), (-2.0, 0.7, 5.0)])
def test_gaussians_match_quadrature(mean: float, variance: float, order: float) -> None:
    with mpmath.workdps(30):
        first = lambda x: mpmath.npdf(x, mean, mpmath.sqrt(variance))  # noqa: E731
        second = lambda x: mpmath.npdf(x, 0, mpmath.sqrt(2.2))  # noqa: E731
        total = mpmath.quad(
            lambda x: first(x) ** order * second(x) ** (1 - order), np.linspace(-60, 60, 25).tolist()
        )
        expected = mpmath.log(total) / (order - 1)
    assert renyi.gaussians(mean, variance, 0.0, 2.2, order).epsilon == pytest.approx(
        float(expected), rel=1e-9
    )


def test_gaussians_add_over_independent_features_and_turn_with_them() -> None:
    rng = np.random.default_rng(0)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    means, others, scales = rng.normal(size=3), rng.normal(size=3), np.array([0.5, 1.0, 1.4])
    found = renyi.gaussians(
        turn @ means,
        turn @ np.diag(scales) @ turn.T,
        turn @ others,
        turn @ np.diag([1.0, 1.0, 2.0]) @ turn.T,
        1.7,
    )
    parts = [
        renyi.gaussians(a, s, b, o, 1.7).epsilon
        for a, s, b, o in zip(means, scales, others, (1, 1, 2), strict=True)
    ]
    assert found.epsilon == pytest.approx(sum(parts), rel=1e-9)
    assert renyi.gaussians(0.0, 3.0, 0.0, 1.0, 2.0).epsilon == math.inf


@pytest.mark.parametrize("delta", [1e-9, 1e-5, 0.01, 0.3])
@pytest.mark.parametrize("sigma", [0.4, 3.0, 300.0])
def test_conversion_is_that_of_dp_accounting(sigma: float, delta: float) -> None:
    from dp_accounting import rdp

    orders = [1.1, 1.5, 2.0, 4.0, 16.0, 64.0, 256.0]
    divergences = [renyi.gaussians(1.0, sigma**2, 0.0, sigma**2, order) for order in orders]
    expected, _ = rdp.compute_epsilon(orders, [each.epsilon for each in divergences], delta)
    found = renyi.to_epsilon(divergences, delta)
    assert found.epsilon == pytest.approx(expected, abs=1e-12)
    # and what is promised holds: the exact delta of the Gaussian mechanism is no larger
    gap = found.epsilon * sigma
    exact = stats.norm.sf(gap - 1 / (2 * sigma)) - math.exp(found.epsilon) * stats.norm.sf(
        gap + 1 / (2 * sigma)
    )
    assert exact <= delta * (1 + 1e-9)


def samples(seed: int, n: int, shift: float, wide: float) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return rng.normal(shift, wide, size=(n, 2)), rng.normal(0.0, 1.0, size=(n, 2))


def test_the_estimate_comes_near_from_below() -> None:
    order, exact = 1.5, 2 * renyi.gaussians(0.4, 1.0, 0.0, 1.0, 1.5).epsilon
    found = renyi.variational(*samples(0, 40_000, 0.4, 1.0), order)
    assert found.epsilon <= exact
    assert found.parameters["estimate"] == pytest.approx(exact, rel=0.15)
    assert found.epsilon > exact / 3
    assert found.basis == "lower"
    same = renyi.variational(*samples(1, 2_000, 0.0, 1.0), order)
    assert same.epsilon == 0


def test_the_lower_bound_is_seldom_above_the_truth() -> None:
    exact = 2 * renyi.gaussians(0.3, 0.9**2, 0.0, 1.0, 2.0).epsilon
    found = [renyi.variational(*samples(seed, 300, 0.3, 0.9), 2.0, confidence=0.8) for seed in range(40)]
    assert sum(each.epsilon > exact for each in found) <= stats.binom.isf(1e-9, 40, 0.2)
    assert any(each.parameters["estimate"] > exact for each in found)  # which is why there is a bound


@pytest.mark.parametrize("side", ["lower", "upper"])
def test_bounds_of_a_mean_fail_no_more_often_than_they_may(side: Any) -> None:
    """Of 500 bounds at 10 %; the mean itself in their place fails about half the time."""
    rng, sign = np.random.default_rng(0), 1 if side == "lower" else -1
    drawn = np.exp(rng.choice([-1.0, 0.5], p=[0.4, 0.6], size=(500, 80)))
    truth, ends = 0.4 * math.exp(-1.0) + 0.6 * math.exp(0.5), (math.exp(-1.0), math.exp(1.0))
    bounds = np.array([renyi._mean_bound(each, ends, 0.1, side) for each in drawn])
    limit = stats.binom.isf(1e-9, 500, 0.1)
    assert (sign * (bounds - truth) > 0).sum() <= limit
    assert (sign * (drawn.mean(axis=1) - truth) > 0).sum() > limit


def test_an_estimate_is_never_a_guarantee() -> None:
    found = renyi.variational(*samples(0, 100, 1.0, 1.0), 2.0)
    with pytest.raises(InputError, match="a lower bound of a divergence promises nothing"):
        renyi.to_epsilon(found, 1e-5)


def test_what_is_infinite_or_does_not_hold_stays_so() -> None:
    assert renyi.to_epsilon(renyi.finite([1, 0], [0, 1], 2.0), 1e-5).epsilon == math.inf
    refused = Renyi(math.inf, 2.0, False, "lam = 0", "somewhere", "upper")
    assert renyi.to_epsilon(refused, 1e-5).why == "lam = 0"
    assert renyi.to_epsilon([refused, renyi.finite([0.5, 0.5], [0.5, 0.5], 3.0)], 1e-5).epsilon == 0


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: renyi.finite([1.0], [1.0], 1.0), "order = 1: needs a finite number above 1"),
        (lambda: renyi.finite([0.5, 0.6], [0.5, 0.5], 2.0), "each row summing to 1"),
        (lambda: renyi.gaussians(0, 1, 0, 1, 0.5), "order = 0.5"),
        (lambda: renyi.gaussians(0, -1, 0, 1, 2), "covariance is not positive definite"),
        (lambda: renyi.gaussians([0, 1], 1, 0, 1, 2), "covariance of shape"),
        (lambda: renyi.gaussians([0, 1], np.eye(2), 0, 1, 2), "means of 2 and 1"),
        (lambda: renyi.variational([[0.0]] * 5, [[0.0]] * 50, 2.0), "at least 20 rows"),
        (lambda: renyi.variational([[0.0]] * 50, [[0.0, 1.0]] * 50, 2.0), "rows of 1 and 2 features"),
        (lambda: renyi.variational([[0.0]] * 50, [[1.0]] * 50, 1.0), "order = 1"),
        (lambda: renyi.variational([[0.0]] * 50, [[1.0]] * 50, 2.0, confidence=1.0), "confidence = 1.0"),
        (lambda: renyi.to_epsilon([], 0.1), "divergences is empty"),
        (lambda: renyi.to_epsilon(renyi.finite([1.0], [1.0], 2.0), 0.0), "delta = 0.0"),
    ],
)  # fmt: skip
def test_bad_input_is_named(call: Callable[[], Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        call()


@pytest.mark.parametrize("order", [1.01, 2.0, 7.5])
@pytest.mark.parametrize("ratio", [0.0, 0.3, 4.0])
def test_laplace_noise_matches_quadrature(ratio: float, order: float) -> None:
    with mpmath.workdps(30):
        density = lambda x, at: mpmath.exp(-abs(x - at)) / 2  # noqa: E731
        total = mpmath.quad(
            lambda x: density(x, ratio) ** order * density(x, 0) ** (1 - order),
            [-80, -8, 0, ratio, ratio + 8, 90],
        )
        expected = mpmath.log(total) / (order - 1)
    assert renyi.laplace(ratio, order).epsilon == pytest.approx(float(expected), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("order", [1.25, 2.0, 64.0])
def test_divergences_of_a_view_are_those_of_its_law(order: float) -> None:
    """Randomized response in closed form; a shuffle of three by all its reports; noise; what is not listed."""
    one = privacy.profile(RandomizedResponse(1.0), "learner").law
    lie = 1 / (1 + math.e)
    exact = release2023.label_divergence(order, 2 * lie, 2).epsilon
    found = renyi.of_cases(one, renyi.cases_of(one), order)
    assert found.epsilon == pytest.approx(exact, rel=1e-10)
    assert found.basis == "exact"

    crowd = privacy.profile(EncryptedShuffle(epsilon=1.0), "learner", cluster_size=3).law
    worst = 0.0
    for ones in range(3):
        laws = [np.zeros(4), np.zeros(4)]
        for label, told in product((0, 1), product((0, 1), repeat=3)):
            truth = (label, *(int(i < ones) for i in range(2)))
            laws[label][sum(told)] += math.prod(
                lie if a != b else 1 - lie for a, b in zip(told, truth, strict=True)
            )
        worst = max(worst, *(renyi.finite(*pair, order).epsilon for pair in (laws, laws[::-1])))
    assert renyi.of_cases(crowd, renyi.cases_of(crowd), order).epsilon == pytest.approx(worst, rel=1e-9)

    bound = renyi.of_cases(crowd, None, order)
    assert (bound.basis, bound.epsilon >= worst) == ("upper", True)
    noisy = privacy.profile(LaplaceLabelProportions(epsilon=1.0, bag_size=4), "learner", cluster_size=4).law
    assert renyi.of_cases(noisy, renyi.cases_of(noisy), order).epsilon <= noisy.pure() + 1e-12
    clear = privacy.profile(LabelProportions(bag_size=2), "learner", cluster_size=2).law
    assert renyi.of_cases(clear, renyi.cases_of(clear), order).epsilon == math.inf


def test_features_that_tell_labels_apart_are_found_and_others_are_not() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(50_000) % 2
    x = rng.normal(size=(50_000, 2)) + 0.4 * y[:, None]
    exact = 2 * renyi.gaussians(0.4, 1.0, 0.0, 1.0, 1.5).epsilon
    found = renyi.of_features(x, y, 1.5)
    assert 0.3 * exact < found.epsilon <= exact
    assert found.basis == "lower"
    assert renyi.of_features(rng.normal(size=(2000, 2)), y[:2000], 1.5).epsilon == 0
