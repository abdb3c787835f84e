"""Rows of ``reference_values.csv`` that are laws: each to the digits given, and inside its bracket."""

from __future__ import annotations

import math

import pytest

from p2p_sim import privacy
from p2p_sim.privacy.laws.categories import shuffled_response
from p2p_sim.privacy.laws.noise import Gaussian, Laplace
from p2p_sim.privacy.laws.randomized_response import LocalResponse
from p2p_sim.privacy.laws.shuffle import ShuffledBits
from protocols import PeerToPeer, RandomizedResponse

SHUFFLED = [  # users, epsilon0, delta, colluders, epsilon
    (1000, 0.5, 1e-6, 0, "0.05685381"),
    (1000, 1, 1e-6, 0, "0.12661448"),
    (1000, 2, 1e-6, 0, "0.32332355"),
    (1000, 4, 1e-6, 0, "1.69100632"),
    (100_000, 0.5, 1e-6, 0, "0.00457454"),
    (100_000, 1, 1e-6, 0, "0.01014251"),
    (100_000, 2, 1e-6, 0, "0.02466066"),
    (100_000, 4, 1e-6, 0, "0.08471618"),
    (1, 1, 1e-6, 0, "0.99999863"),
    (10, 1, 1e-6, 0, "0.99997707"),
    (20, 1, 1e-6, 0, "0.99947390"),
    (100, 1, 1e-2, 0, "0.10513803"),
    (100, 1, 1e-6, 50, "0.74882656"),
]


def same(value: float, printed: str) -> bool:
    """Return whether a value rounds to the digits printed."""
    digits = len(printed.split(".")[1])
    return f"{value:.{digits}f}" == printed


@pytest.mark.parametrize(("n", "epsilon0", "delta", "colluders", "printed"), SHUFFLED)
def test_shuffled_bits(n: int, epsilon0: float, delta: float, colluders: int, printed: str) -> None:
    law = ShuffledBits.of(n, epsilon0, colluders=colluders)
    assert same(law.epsilon(delta), printed)
    if n <= 1000:
        low, value, high = law.epsilon_bracket(delta)
        assert low <= value <= high <= low * (1 + 1e-10)


def test_worst_composition_of_shuffled_bits() -> None:
    worst, _ = ShuffledBits.of(1000, 2).worst(1e-6)
    assert isinstance(worst, ShuffledBits)
    assert worst.composition in (2, 997)
    none = ShuffledBits.of(100, 1, composition=0).delta(0.3).value
    assert none == pytest.approx(1.775226748e-4, rel=1e-9)
    assert ShuffledBits.of(100, 1).delta(0.3).value == pytest.approx(1.8032e-4, rel=1e-4)
    middle = ShuffledBits(0.01, 200).at_worst(0.0)
    assert isinstance(middle, ShuffledBits)
    assert middle.composition in (99, 100)


def test_a_large_shuffle_is_bracketed() -> None:
    profile = shuffled_response(100_000, 4.0)
    assert profile.basis == "lower"
    low, value, high = profile.delta_bracket(0.0847)
    assert low <= value <= high < 1.1 * value


def test_shuffled_three_labels() -> None:
    profile = shuffled_response(21, 1.0, 3)
    assert profile.basis == "exact"
    assert same(profile.epsilon(1e-6), "0.91789262")
    assert shuffled_response(5, 1.0, 3).delta(0.5) == pytest.approx(0.0522221534, abs=1e-10)


@pytest.mark.parametrize(("epsilon0", "printed"), [(0.5, "0.13736338"), (2, "0.76961075")])
def test_resampled_with_replacement(epsilon0: float, printed: str) -> None:
    alpha = 1 / (1 + math.exp(epsilon0))
    profile = privacy.profile(PeerToPeer(alpha), cluster_size=100)
    assert same(profile.epsilon(1e-6), printed)
    assert profile.epsilon_bracket(1e-6).lower <= float(printed) + 1e-8


def test_local_responses() -> None:
    assert same(privacy.profile(RandomizedResponse(1.0)).epsilon(1e-6), "0.99999863")
    assert same(privacy.profile(RandomizedResponse(1.0, labels=10)).delta(0), "0.14663257")
    assert same(LocalResponse(1.0, 10).delta(0.0).value, "0.14663257")


def test_noise() -> None:
    assert same(Laplace(1.0).delta(0.5).value, "0.2211992169")
    assert same(Gaussian(2.0).epsilon(1e-6), "2.254084650")


LEARNER = [  # users, alpha, theta, delta, epsilon
    (10, 0.2, 1.0, 1e-3, "0.7002928"),
    (20_000, 0.39614, 1.0, 2.5e-9, "0.009356"),
    (100_000, 0.41190, 0.25, 1e-10, "0.002406"),
]


@pytest.mark.parametrize(("n", "alpha", "theta", "delta", "printed"), LEARNER)
def test_learner(n: int, alpha: float, theta: float, delta: float, printed: str) -> None:
    profile = privacy.profile(PeerToPeer(alpha, theta), cluster_size=n)
    assert profile.basis == (
        "exact" if theta == 1 else "lower"
    )  # with theta < 1 the composition is searched for
    assert same(profile.epsilon(delta), printed)
    assert profile.epsilon_bracket(delta).lower <= float(printed) * (1 + 1e-3)
    assert profile.epsilon_bracket(delta).upper >= float(printed) * (1 - 1e-3)


def test_the_headline_the_same_promise_needs_far_less_noise() -> None:
    profile = privacy.profile(PeerToPeer(0.00013), cluster_size=20_000)
    assert 1.0 < profile.epsilon(2.5e-9) <= 1.425
    assert privacy.profile(PeerToPeer(0.00013), "user", cluster_size=20_000).epsilon(2.5e-9) > 8.9


def test_coalitions() -> None:
    protocol = PeerToPeer(0.25)
    assert same(privacy.profile(protocol, "learner+user", cluster_size=3).delta(0), "0.342592592592593")
    assert privacy.profile(protocol, "learner+1*user", cluster_size=3).delta(math.log(1.25)) == pytest.approx(
        9 / 32
    )
    assert same(privacy.profile(protocol, "user", cluster_size=3).delta(0), "0.166666666666667")


@pytest.mark.parametrize(("theta", "printed"), [(1.0, "0.632"), (0.1, "0.0952")])
def test_metadata_factor(theta: float, printed: str) -> None:
    profile = privacy.profile(
        PeerToPeer(0.25, theta), "learner+wire", cluster_size=1000, channels="encrypted"
    )
    assert same(profile.delta(0.2) / LocalResponse.flipping(0.25).delta(0.2).value, printed)
