"""What must hold for all parameters: the order of mechanisms and bounds, monotone figures, names of labels."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2p_sim import privacy
from p2p_sim.privacy import building_blocks
from p2p_sim.privacy.accountant import local_epsilon
from p2p_sim.privacy.bounds import shuffle
from protocols import PeerToPeer, RandomizedResponse

pytestmark = pytest.mark.slow

SLACK = 1 + 1e-9


def flips(most: float) -> st.SearchStrategy[float]:
    """Chances that can be drawn: 0, or at least one random word in 2^64."""
    return st.just(0.0) | st.floats(2.0**-64, most)


def of(alpha: float, view: str, theta: float, n: int, **more: int) -> privacy.PrivacyProfile:
    return privacy.profile(PeerToPeer(alpha, theta), view, cluster_size=n, **more)


@settings(max_examples=8, deadline=None)
@given(n=st.integers(300, 800), part=st.floats(0.2, 0.999), power=st.integers(3, 8))
def test_resampling_then_shuffling_then_clones_then_closed_forms(n: int, part: float, power: int) -> None:
    """Where the closed form's condition holds, in epsilon at delta."""
    delta = 10.0**-power
    local = part * math.log(n / (16 * math.log(4 / delta)))
    if local <= 0:
        return
    resampled = of(1 / (1 + math.exp(local)), "learner", 1.0, n).epsilon(delta)
    values = [resampled, privacy.shuffled_response(n, local).epsilon(delta)]
    for bound in (shuffle.clone_stronger, shuffle.clone, shuffle.fmt2021_theorem, shuffle.fmt2021_code):
        found = bound(n, local, delta)
        assert found.holds, found.why
        values.append(found.epsilon)
    assert all(before <= after * SLACK + 1e-15 for before, after in pairwise(values))
    assert 0 < values[0] < values[1]  # at these sizes the order is strict: the test compares something
    assert values[1] < local


VIEWS = ("learner", "user", "learner+user", "learner+2*user", "wire", "learner+wire")


@settings(max_examples=25, deadline=None)
@given(
    view=st.sampled_from(VIEWS), n=st.integers(3, 20), alpha=flips(0.5), theta=st.floats(0.05, 1),
    powers=st.lists(st.floats(-300, 0), min_size=2, max_size=2),
)  # fmt: skip
def test_epsilon_falls_with_delta(view: str, n: int, alpha: float, theta: float, powers: list[float]) -> None:
    profile = of(alpha, view, theta, n)
    small, large = sorted(10.0**power for power in powers)
    at_small, at_large = profile.epsilon(small), profile.epsilon(large)
    assert at_large <= at_small * SLACK
    assert at_small <= profile.epsilon(0) * SLACK
    assert profile.epsilon(1) == 0


@settings(max_examples=20, deadline=None)
@given(
    view=st.sampled_from(("user", "wire", "learner+wire", "learner")), n=st.integers(2, 25),
    alpha=flips(0.45), theta=st.floats(0.05, 0.9), epsilon=st.floats(0, 2),
)  # fmt: skip
def test_every_view_learns_less_from_more_noise_and_fewer_reports(
    view: str, n: int, alpha: float, theta: float, epsilon: float
) -> None:
    here = of(alpha, view, theta, n).delta(epsilon) * SLACK + 1e-15
    assert 0 <= here <= SLACK + 1e-15
    assert of(alpha + 0.05, view, theta, n).delta(epsilon) <= here
    assert of(alpha, view, theta * 0.7, n).delta(epsilon) <= here
    assert of(alpha, view, theta, n).delta(epsilon + 0.1) <= here


@settings(max_examples=20, deadline=None)
@given(n=st.integers(2, 12), alpha=flips(0.5), theta=st.floats(0.1, 1), epsilon=st.floats(0, 1))
def test_more_colluders_see_more(n: int, alpha: float, theta: float, epsilon: float) -> None:
    names = ["learner", *(f"learner+{c}*user" for c in range(1, n))]
    deltas = [of(alpha, name, theta, n).delta(epsilon) for name in names]
    assert all(a <= b * SLACK + 1e-15 for a, b in pairwise(deltas))
    peers = [of(alpha, f"{c}*user", theta, n).delta(epsilon) for c in range(1, n)]
    assert all(a <= b * SLACK + 1e-15 for a, b in pairwise(peers))
    assert all(a <= b * SLACK + 1e-15 for a, b in zip(peers, deltas[1:], strict=True))


@settings(max_examples=20, deadline=None)
@given(
    n=st.integers(2, 16), c=st.integers(0, 3), alpha=st.floats(0.01, 0.49), theta=st.floats(0.1, 1),
    ones=st.integers(0, 15), epsilon=st.floats(0, 0.5),
)  # fmt: skip
def test_swapping_the_names_of_the_labels_swaps_the_directions(
    n: int, c: int, alpha: float, theta: float, ones: int, epsilon: float
) -> None:
    c = min(c, n - 1)
    others = n - 1 - c
    ones = min(ones, others)
    view = f"learner+{c}*user" if c else "learner"
    first = of(alpha, view, theta, n, composition=ones).directions(epsilon)
    second = of(alpha, view, theta, n, composition=others - ones).directions(epsilon)
    assert first == pytest.approx(second[::-1], rel=1e-9, abs=1e-15)
    worst = of(alpha, view, theta, n)
    assert max(first) <= worst.delta(epsilon) * SLACK + 1e-15


@settings(max_examples=40, deadline=None)
@given(epsilon0=st.floats(0, 800), labels=st.integers(2, 50), power=st.floats(-300, -0.01))
def test_local_epsilon_is_never_exceeded(epsilon0: float, labels: int, power: float) -> None:
    """Neither that of the formula, nor that of the protocol, which is infinite where no lie can be drawn."""
    protocol = RandomizedResponse(epsilon0, labels)
    for profile, most in (
        (building_blocks.local_response(epsilon0, labels), epsilon0),
        (privacy.profile(protocol), local_epsilon(protocol)),
    ):
        low, value, high = profile.epsilon_bracket(10.0**power)
        assert 0 <= low <= value <= high <= most
