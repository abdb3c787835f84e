"""What must hold for every parameter: order, monotonicity, symmetry, and a search that misses nothing."""

from __future__ import annotations

import math
import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2p_sim import privacy
from p2p_sim.privacy.branch_and_bound import blocks, climb, search
from p2p_sim.privacy.laws.randomized_response import LocalResponse
from p2p_sim.privacy.laws.shuffled_bits import ShuffledBits
from p2p_sim.privacy.mechanisms.peer_to_peer.cluster_reports import ClusterReports
from protocols import PeerToPeer

pytestmark = pytest.mark.slow


def of(alpha: float, view: str = "learner", theta: float = 1.0, n: int = 12) -> privacy.PrivacyProfile:
    return privacy.profile(PeerToPeer(alpha, theta), view, cluster_size=n)


def _clone(n: int, epsilon0: float, share: float, epsilon: float) -> float:
    """Return the bound of a clone with probability ``share`` a user, by adding up all outcomes."""
    keep, scale, total = 1 / (1 + math.exp(-epsilon0)), math.exp(epsilon), 0.0
    for c in range(n):
        weight = math.comb(n - 1, c) * share**c * (1 - share) ** (n - 1 - c)
        half = [math.comb(c, j) / 2**c for j in range(c + 1)] + [0.0]
        for j in range(c + 2):
            one, zero = half[j - 1] if j else 0.0, half[j]
            total += weight * max(
                0.0, keep * one + (1 - keep) * zero - scale * ((1 - keep) * one + keep * zero)
            )
    return total


@settings(max_examples=25, deadline=None)
@given(n=st.integers(2, 40), epsilon0=st.floats(0.1, 4), part=st.floats(0, 0.95))
def test_resampling_helps_and_clones_bound(n: int, epsilon0: float, part: float) -> None:
    alpha, epsilon = 1 / (1 + math.exp(epsilon0)), part * epsilon0
    resampled = of(alpha, n=n).delta(epsilon)
    shuffled = ShuffledBits.of(n, epsilon0).delta(epsilon).value
    near = _clone(n, epsilon0, 2 / (math.exp(epsilon0) + 1), epsilon)
    far = _clone(n, epsilon0, math.exp(-epsilon0), epsilon)
    local = LocalResponse(epsilon0).delta(epsilon).value
    slack = 1 + 1e-9
    assert resampled <= shuffled * slack + 1e-18
    assert shuffled <= near * slack + 1e-18
    assert near <= far * slack + 1e-18
    assert far <= local * slack + 1e-18


@settings(max_examples=15, deadline=None)
@given(
    n=st.integers(4, 25),
    alpha=st.floats(0.01, 0.45),
    theta=st.floats(0.05, 0.9),
    epsilon=st.floats(0, 1),
    c=st.integers(0, 2),
)
def test_monotone_in_everything_but_size(n: int, alpha: float, theta: float, epsilon: float, c: int) -> None:
    def delta(alpha: float = alpha, theta: float = theta, epsilon: float = epsilon, c: int = c) -> float:
        value = of(alpha, f"learner+{c}*user" if c else "learner", theta, n).delta(epsilon)
        assert 0 <= value <= 1
        return value * (1 - 1e-9) - 1e-15

    here = delta() * (1 + 2e-9) + 2e-15
    assert delta(alpha=alpha + 0.04) <= here
    assert delta(theta=theta / 2) <= here
    assert delta(epsilon=epsilon + 0.1) <= here
    assert here >= delta(c=max(0, c - 1))


@settings(max_examples=20, deadline=None)
@given(
    n=st.integers(2, 200), alpha=st.floats(0.01, 0.45), ones=st.integers(0, 199), epsilon=st.floats(0, 0.5)
)
def test_the_names_of_the_labels_do_not_matter(n: int, alpha: float, ones: int, epsilon: float) -> None:
    ones = min(ones, n - 1)
    first = ClusterReports(alpha, 1.0, n, 0, ones).directions(epsilon)
    second = ClusterReports(alpha, 1.0, n, 0, n - 1 - ones).directions(epsilon)
    assert first[0].value == pytest.approx(second[1].value, rel=1e-9, abs=1e-17)
    assert first[1].value == pytest.approx(second[0].value, rel=1e-9, abs=1e-17)


def test_delta_decreases_without_noise() -> None:
    profile = of(0.2, n=3000)
    values = [profile.delta(e) for e in np.linspace(0, 0.4, 25)]
    assert all(a >= b for a, b in pairwise(values))
    small = [profile.epsilon(d) for d in (1.13e-18, 1.11e-18, 1e-18)]
    assert 0 < small[0] < small[1] < small[2] < small[0] * 1.01


@settings(max_examples=60, deadline=None)
@given(
    size=st.integers(1, 300),
    seed=st.integers(0, 10**6),
    slack=st.floats(0, 0.5),
    growth=st.floats(0.01, 4),
    extra=st.tuples(st.floats(0, 400), st.floats(0, 400)),
)
def test_a_search_with_bounds_misses_nothing(
    size: int, seed: int, slack: float, growth: float, extra: tuple[float, float]
) -> None:
    values = [random.Random(seed + i).random() for i in range(size)]

    def bound(low: int, high: int) -> float:
        return max(values[low : high + 1]) + slack

    covered = sorted(i for low, high in blocks(size, growth, extra) for i in range(low, high + 1))
    assert covered == list(range(size))
    found = search(size, values.__getitem__, bound, growth=growth)
    assert found.value == max(values) == values[found.at] == found.upper
    some = search(size, values.__getitem__, bound, growth=growth, budget=3)
    assert some.value <= max(values) <= some.upper
    assert search(size, values.__getitem__, bound, floor=2.0).at == -1


def test_climbing_finds_a_peak_and_keeps_the_floor() -> None:
    for peak in (0, 3, 77, 499, 998, 1000):
        assert climb(1000, lambda i, peak=peak: -abs(i - peak), -1e9)[1] == peak  # type: ignore[misc]
    assert climb(10, lambda i: 0.5, 1.0) == (1.0, -1)
