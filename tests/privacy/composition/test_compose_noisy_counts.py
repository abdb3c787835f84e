"""Compositions of counts with discrete noise: both ends, beside convolutions by definition and dp-accounting."""

from __future__ import annotations

import importlib
import math
from collections import defaultdict
from typing import Any

import numpy as np
import pytest

from p2p_sim import privacy
from p2p_sim.privacy.composition.compose import composed
from p2p_sim.privacy.law import Law
from p2p_sim.privacy.laws.finite import Atoms
from p2p_sim.privacy.laws.mixtures import Scaled
from p2p_sim.privacy.laws.noise import MOST_LISTED, DiscreteLaplace, NoiseShares
from p2p_sim.privacy.profile import PrivacyProfile
from protocols import LaplaceLabelProportions, SecureAggregation
from tests.privacy.composition.composing import of

pytestmark = pytest.mark.slow


def digits() -> Any:
    context = importlib.import_module("mpmath").mp.clone()
    context.dps = 40
    return context


def losses_of_discrete_laplace(epsilon: float, steps: int, times: int) -> dict[int, Any]:
    """The law of the sum of losses, in steps' worths, by definition: noise j, released with label 0."""
    mpmath = digits()
    q = mpmath.exp(-mpmath.mpf(epsilon) / steps)
    one: dict[int, Any] = defaultdict(lambda: mpmath.mpf(0))
    for j in range(-math.ceil(95 * steps / epsilon), math.ceil(95 * steps / epsilon) + 1):
        one[abs(j - steps) - abs(j)] += (1 - q) / (1 + q) * q ** abs(j)
    total: dict[int, Any] = {0: mpmath.mpf(1)}
    for _ in range(times):
        more: dict[int, Any] = defaultdict(lambda: mpmath.mpf(0))
        for a, p in total.items():
            for b, r in one.items():
                more[a + b] += p * r
        total = more
    return total


@pytest.mark.parametrize(("epsilon", "steps"), [(1.0, 1), (0.4, 3), (3.0, 7)])
@pytest.mark.parametrize("times", [2, 5])
def test_discrete_laplace_composed_is_the_convolution(epsilon: float, steps: int, times: int) -> None:
    mpmath = digits()
    true = losses_of_discrete_laplace(epsilon, steps, times)
    found = composed(of(DiscreteLaplace(epsilon, steps)), times)
    assert found.basis == "exact"
    rate = mpmath.mpf(epsilon) / steps
    for share in (0.0, 0.1, 0.5, 0.9, 0.999):
        at = share * times * epsilon
        delta = sum(p * (1 - mpmath.exp(at - rate * loss)) for loss, p in true.items() if rate * loss > at)
        low, value, high = found.delta_bracket(at)
        assert low <= float(delta) * (1 + 1e-12) + 1e-30
        assert float(delta) * (1 - 1e-12) <= high
        assert value == pytest.approx(float(delta), rel=1e-9, abs=1e-30)


@pytest.mark.parametrize(("epsilon", "steps", "times"), [(1.0, 1, 10), (0.5, 4, 4), (2.0, 20, 3)])
def test_discrete_laplace_beside_dp_accounting(epsilon: float, steps: int, times: int) -> None:
    pld = importlib.import_module("dp_accounting.pld.privacy_loss_distribution")
    one = pld.from_discrete_laplace_mechanism(epsilon / steps, steps, value_discretization_interval=1e-5)
    theirs = float(one.self_compose(times).get_epsilon_for_delta(1e-4))
    low, _, high = composed(of(DiscreteLaplace(epsilon, steps)), times).epsilon_bracket(1e-4)
    assert high - low <= 1e-4 * high
    assert low <= theirs <= high + times * 2e-5  # their losses are rounded up, by one interval a run at most


@pytest.mark.parametrize(("epsilon", "steps", "parts"), [(1.0, 1, 1.25), (1.0, 1, 0.5), (2.0, 3, 2 / 3)])
@pytest.mark.parametrize("times", [2, 3])
def test_shares_composed_lie_between_their_ends(epsilon: float, steps: int, parts: float, times: int) -> None:
    """The oracle: all runs' outcomes side by side; the noise is the difference of two of scipy's Polya variables."""
    from scipy.stats import nbinom

    polya = nbinom.pmf(np.arange(400), parts, -math.expm1(-epsilon / steps))
    noise = np.convolve(polya, polya[::-1])
    noise = noise[noise > 1e-13]
    p, q = np.r_[noise, np.zeros(steps)], np.r_[np.zeros(steps), noise]
    joint_p, joint_q = np.ones(1), np.ones(1)
    for _ in range(times):
        joint_p, joint_q = np.multiply.outer(joint_p, p).ravel(), np.multiply.outer(joint_q, q).ravel()
    cut = times * 1e-10  # of the noise that was left out
    found = composed(of(NoiseShares(epsilon, steps, parts)), times)
    assert found.basis == "upper"
    for at in (0.0, 0.5, epsilon, 1.5 * epsilon):
        true = float(np.maximum(joint_p - math.exp(at) * joint_q, 0.0).sum())
        low, _, high = found.delta_bracket(at)
        assert low <= true + cut
        assert true <= high + cut
        assert high - low <= 0.02 * high


def one_run(law: Law, delta: float) -> float:
    return of(law).epsilon_bracket(delta).lower


SHARES = SecureAggregation(8, threshold=6, epsilon=1.0, grid=2)


@pytest.mark.parametrize(
    "profile",
    [
        privacy.profile(LaplaceLabelProportions(1.0, 8)),
        privacy.profile(LaplaceLabelProportions(1.0, 8, grid=50)),
        privacy.profile(LaplaceLabelProportions(1.0, 8), faults=["loss=0.1"]),
        privacy.profile(SHARES, cluster_size=8),
        privacy.profile(SHARES, "aggregator+2*user", cluster_size=8, users="all deviating"),
        of(DiscreteLaplace(0.5, MOST_LISTED + 1)),
        of(Scaled(0.25, NoiseShares(1.0, 2, 0.5))),
    ],
    ids=lambda profile: f"{profile.view}: {profile.law!r}"[:60],
)
def test_the_lower_end_is_of_all_runs(profile: PrivacyProfile) -> None:
    """It was that of one run: what a law does not say of its pair, a composition cannot add up."""
    assert profile.law is not None
    low, _, high = composed(profile, 4).epsilon_bracket(1e-3)
    assert high <= low * (1 + 2e-3)
    assert low > 1.5 * one_run(profile.law, 1e-3)


@pytest.mark.parametrize(
    "inner",
    [
        composed(of(DiscreteLaplace(1.0, 2)), 2),
        composed(privacy.laplace(2.0), 2),
        composed(privacy.gaussian(2.0), 2),
        privacy.compose([privacy.gaussian(2.0), privacy.laplace(2.0)]),
        composed(of(Atoms.of([0.1] * 10, [0.05, 0.15, 0.08, 0.12, 0.06, 0.14, 0.09, 0.11, 0.1, 0.1])), 30),
    ],
    ids=["listed", "laplace", "gaussian", "noises", "on a grid"],
)
def test_a_composition_composed_again_has_both_ends(inner: PrivacyProfile) -> None:
    """As in a law of one's own that is made of a composition: two flips a run, and ten runs."""
    assert inner.law is not None
    again = of(inner.law)
    low, _, high = composed(again, 3).epsilon_bracket(1e-3)
    assert low > 1.2 * one_run(inner.law, 1e-3)
    assert high <= low * 1.01


def test_of_several_pairs_the_lower_end_is_that_of_a_bad_one() -> None:
    """It was that of the first pair, however little that shows."""
    weak, strong = ([0.5, 0.5], [0.51, 0.49]), ([0.8, 0.2], [0.3, 0.7])
    both = Atoms(np.array([weak[0], strong[0]]), np.array([weak[1], strong[1]]))
    bad = Atoms.of(*strong)
    low, _, high = composed(of(both), 6).epsilon_bracket(1e-4)
    true = composed(of(bad), 6).epsilon(1e-4)
    assert 0.99 * true <= low <= true * (1 + 1e-9)
    assert true * (1 - 1e-9) <= high
