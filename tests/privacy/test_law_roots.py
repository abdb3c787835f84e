"""epsilon(delta) and delta(epsilon) are each other's inverse down to the smallest deltas; no number overflows."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import pytest

from p2p_sim import InputError, privacy
from p2p_sim.privacy.law import Law, root
from p2p_sim.privacy.laws.mixtures import Mixture, Scaled, Worst
from p2p_sim.privacy.laws.noise import Gaussian, Laplace
from p2p_sim.privacy.laws.randomized_response import LocalResponse
from p2p_sim.privacy.laws.shuffled_bits import ShuffledBits
from p2p_sim.privacy.mechanisms.peer_to_peer.cluster_reports import ClusterReports
from protocols import PeerToPeer, RandomizedResponse
from tests.privacy.composition.composing import FOUR, of

DELTAS = (1e-1, 1e-2, 1e-5, 1e-9, 1e-15, 1e-25, 1e-40, 1e-80, 1e-150, 1e-300)
LAWS: dict[str, Law] = {
    "a small cluster": ClusterReports(0.2, 1.0, 10),
    "a cluster": ClusterReports(0.15, 1.0, 100),
    "few reports": ClusterReports(0.3, 0.5, 20),
    "many noisy": ClusterReports(0.45, 1.0, 60),
    "with a peer": privacy.profile(PeerToPeer(0.2), "learner+user", cluster_size=8).law or FOUR,
    "shuffled": ShuffledBits(0.2, 40),
    "response": LocalResponse(2.0, 3),
    "seen at times": Scaled(0.01, LocalResponse(1.0)),
    "one of two": Mixture(((0.5, LocalResponse(1.0)), (0.25, LocalResponse(0.3)))),
    "the worst": Worst((ClusterReports(0.2, 1.0, 6), LocalResponse(0.2))),
    "laplace": Laplace(0.7),
    "gaussian": Gaussian(2.0),
    "atoms": FOUR,
    "composed": privacy.composed(of(FOUR), 3).law or FOUR,
}


@pytest.fixture(autouse=True)
def _strict() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.slow
@pytest.mark.parametrize("name", LAWS)
def test_the_root_keeps_delta_and_a_little_less_does_not(name: str) -> None:
    profile = of(LAWS[name])
    last = 0.0
    for delta in DELTAS:
        epsilon = profile.epsilon(delta)
        assert last <= epsilon <= profile.epsilon(0) * (1 + 1e-15)
        kept = epsilon * (1 + 4e-16) if LAWS[name].closed else epsilon  # a closed form is rounded to nearest
        assert profile.delta(kept) <= delta * (1 + 1e-9)
        if epsilon > 0:
            assert profile.delta(epsilon * (1 - 1e-6)) > delta
        last = epsilon


@pytest.mark.slow
@pytest.mark.parametrize(
    ("alpha", "n", "delta"), [(0.15, 100, 1e-40), (0.15, 100, 1e-300), (0.2, 30, 1e-25), (0.4, 60, 1e-33)]
)
def test_far_roots_against_decimals(alpha: float, n: int, delta: float) -> None:
    """The worst composition at delta = 1e-300 is not where the search begins."""
    profile = privacy.profile(PeerToPeer(alpha), cluster_size=n)
    low, value, high = profile.epsilon_bracket(delta)
    assert low <= value <= high < low * (1 + 1e-9)
    below, above = (max(_delta(alpha, n, ones, e) for ones in range(n)) for e in (low, high))
    assert above <= delta * (1 + 1e-6)
    assert below >= delta * (1 - 1e-6) or low == 0


def _delta(alpha: float, n: int, ones: int, epsilon: float) -> float:
    """delta from label 0 to 1 at theta = 1, outcome by outcome, to 60 digits."""
    with localcontext() as context:
        context.prec = 60
        flip, odds, urn = Decimal(alpha), Decimal(epsilon).exp(), [Decimal(1)]
        for i in range(n - 1):
            p = 1 - flip if i < ones else flip
            urn = [a * (1 - p) + b * p for a, b in zip([*urn, Decimal(0)], [Decimal(0), *urn], strict=True)]
        total = Decimal(0)
        for k in range(n, -1, -1):  # likelihood ratios fall with k
            zero, one = (
                sum(w * ((r + x) ** k * (n - r - x) ** (n - k)) for r, w in enumerate(urn)) for x in (0, 1)
            )
            gain = ((1 - flip) - odds * flip) * one - (odds * (1 - flip) - flip) * zero
            if gain <= 0:
                break
            total += math.comb(n, k) * gain
        return float(total / Decimal(n) ** n)


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("huge", [10**400, Fraction(10**400, 3)])
def test_numbers_beyond_all_floats(name: str, huge: Any) -> None:
    profile = of(LAWS[name])
    assert profile.epsilon(huge) == 0
    assert profile.epsilon_bracket(huge) == (0, 0, 0)
    assert profile.delta(huge) == profile.delta(math.inf) == 0
    assert profile.directions(huge) == (0, 0)
    with pytest.raises(InputError, match="at least 0"):
        profile.delta(-huge)


def test_what_is_shown_in_the_clear_stays_at_huge_epsilon() -> None:
    shown = privacy.profile(RandomizedResponse(math.inf))
    assert shown.delta(10**400) == shown.delta(math.inf) == 1


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [5e-324, 1e-300, 1e-18, 0.4999999999, math.nextafter(0.5, 0)])
@pytest.mark.parametrize("theta", [5e-324, 1e-18, 1.0])
@pytest.mark.parametrize("n", [1, 2, 3, 30])
def test_extreme_parameters(alpha: float, theta: float, n: int) -> None:
    views = ["learner", "wire"] + (["user", "learner+user"] if n > 1 else [])
    for view in views:
        profile = privacy.profile(PeerToPeer(alpha, theta), view, cluster_size=n)
        ends = [profile.delta_bracket(epsilon) for epsilon in (0, 0.5, 700, 800)]
        assert all(0 <= low <= value <= high <= 1 for low, value, high in ends)
        roots = [profile.epsilon_bracket(delta) for delta in (0.3, 1e-6, 5e-324, 0)]
        assert all(0 <= low <= value <= high for low, value, high in roots)
        assert [r.value for r in roots] == sorted(r.value for r in roots)


@pytest.mark.parametrize(("alpha", "theta"), [(5e-324, 1.0), (1e-18, 1e-18), (0.4999999999, 1.0)])
def test_a_thousand_million_users(alpha: float, theta: float) -> None:
    low, value, high = privacy.profile(PeerToPeer(alpha, theta), cluster_size=10**9).delta_bracket(0.01)
    assert 0 <= low <= value <= high <= low * (1 + 1e-6) + 1e-280


def test_a_root_is_on_the_side_that_keeps_the_target() -> None:
    calls = []

    def falls(x: float) -> float:
        calls.append(x)
        return math.exp(-(x**3)) + 1e-20

    for target in (0.9, 1e-3, 1e-12):
        for guess in (1e-9, 1.0, 50.0):
            found = root(falls, target, guess, 100.0)
            assert falls(found) <= target * (1 + 1e-13)
            assert falls(found * (1 - 1e-12)) > target
    assert root(lambda x: 1 - x, 1e-9, 0.3, 0.5) == 0.5
    assert root(falls, 2.0, 0.3) == 0
    assert len(calls) < 400
