"""The laws of Algorithm 2 with several labels: against enumeration and brute force, and the bounds beyond."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from p2p_sim import InputError, Population, privacy
from p2p_sim.network import topologies
from p2p_sim.privacy.laws.shuffled_categories import shuffled_response
from p2p_sim.privacy.mechanisms.peer_to_peer import bounded_categories
from p2p_sim.privacy.mechanisms.peer_to_peer.bounded_categories import ShownUsers
from p2p_sim.privacy.mechanisms.peer_to_peer.histogram_pmf import SmallCluster
from p2p_sim.privacy.mechanisms.peer_to_peer.theorems import theorems
from protocols import PeerToPeer
from tests.privacy import brute

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("ways_once")]

SCALES = [Fraction(1), Fraction(5, 4), Fraction(2)]


def agree(profile: privacy.PrivacyProfile, truth: Fraction, scale: Fraction) -> None:
    low, value, high = profile.delta_bracket(math.log(scale))
    assert profile.basis == "exact"
    assert value == pytest.approx(float(truth), rel=1e-12, abs=1e-14)
    assert low - 1e-15 <= float(truth) <= high + 1e-15


@pytest.mark.parametrize(
    ("theta", "retries", "view", "channels"),
    [
        (1.0, 0, "learner", "plain"),
        (1.0, 1, "learner", "plain"),
        (0.5, 0, "learner", "plain"),
        (1.0, 0, "user", "plain"),
        (1.0, 0, "wire", "plain"),
        (1.0, 0, "learner+user", "plain"),
    ],
)
def test_two_users_against_enumeration(theta: float, retries: int, view: str, channels: str) -> None:
    protocol = PeerToPeer(0.25, theta, retries, labels=3)
    laws = [
        privacy.enumerate_view(
            protocol, Population.from_arrays(y=[0, other]), view=view, channels=channels, to=1
        )
        for other in range(3)
    ]
    profile = privacy.profile(protocol, view, cluster_size=2, channels=channels)
    for scale in SCALES:
        agree(profile, max(law.delta_at(scale) for law in laws), scale)


def worst(
    n: int, alpha: Fraction, theta: Fraction, view: brute.View, mixed: bool
) -> dict[Fraction, Fraction]:
    """Delta over all labels of the others; ``mixed``: who of them has which does not matter."""
    every = itertools.combinations_with_replacement if mixed else _product
    found = dict.fromkeys(SCALES, Fraction(0))
    for rest in every(range(3), n - 1):
        p, q = (brute.law((own, *rest), alpha, theta, view, 3) for own in (0, 1))
        for scale in SCALES:
            found[scale] = max(found[scale], brute.excess(p, q, scale), brute.excess(q, p, scale))
    return found


def _product(labels: range, repeat: int) -> Any:
    return itertools.product(labels, repeat=repeat)


@pytest.mark.parametrize(
    ("n", "alpha", "theta", "c"),
    [
        (3, Fraction(3, 8), Fraction(1), 0),
        (3, Fraction(1, 4), Fraction(1, 2), 0),
        (3, Fraction(1, 4), Fraction(1, 2), 1),
        (3, Fraction(3, 8), Fraction(1), 2),
        (4, Fraction(1, 4), Fraction(1), 0),
    ],
)
def test_the_learner_and_colluders_against_brute_force(
    n: int, alpha: Fraction, theta: Fraction, c: int
) -> None:
    seen = brute.coalition(True, tuple(range(n - c, n)))
    name = f"learner+{c}*user" if c else "learner"
    profile = privacy.profile(PeerToPeer(float(alpha), float(theta), labels=3), name, cluster_size=n)
    for scale, truth in worst(n, alpha, theta, seen, mixed=not c).items():
        agree(profile, truth, scale)


@pytest.mark.parametrize(
    ("view", "channels"),
    [(brute.coalition(False, (2,)), "user"), (brute.wire, "wire"), (brute.metadata, "learner+wire")],
)
def test_views_that_know_who_asked_whom_against_brute_force(view: brute.View, channels: str) -> None:
    alpha, theta = Fraction(1, 4), Fraction(1, 2)
    how = "encrypted" if channels == "learner+wire" else "plain"
    profile = privacy.profile(PeerToPeer(0.25, 0.5, labels=3), channels, cluster_size=3, channels=how)
    for scale, truth in worst(3, alpha, theta, view, mixed=False).items():
        agree(profile, truth, scale)


@pytest.mark.parametrize("labels", [3, 10])
@pytest.mark.parametrize("alpha", [0.1, 0.5])
def test_a_peer_hears_a_randomized_response_one_time_in_n(labels: int, alpha: float) -> None:
    protocol, n = PeerToPeer(alpha, labels=labels), 50
    budget = math.log((1 - alpha) * (labels - 1) / alpha)
    local = (1 - alpha) - math.exp(0.3) * alpha / (labels - 1)
    for name, users, chance in [("user", "curious", 1 / n), ("user", "deviating", 1.0)]:
        profile = privacy.profile(protocol, name, cluster_size=n, users=users)
        assert profile.basis == "exact"
        assert profile.delta(0.3) == pytest.approx(chance * local, rel=1e-12)
        assert profile.epsilon(0.0) == pytest.approx(budget, rel=1e-12)


def test_two_labels_listed_are_the_law_of_bits() -> None:
    """A check of the listing itself, which two labels do not use."""
    for n, theta, c in [(6, 1.0, 0), (6, 0.4, 0), (6, 0.4, 2)]:
        listed = SmallCluster(0.2, theta, n, 2, c).law()
        view = f"learner+{c}*user" if c else "learner"
        bits = privacy.profile(PeerToPeer(0.2, theta), view, cluster_size=n)
        asked = 1 - (1 - 1 / n) ** c
        for epsilon in (0.0, 0.2, 0.7):
            local = 0.8 - math.exp(epsilon) * 0.2
            found = (1 - asked) * listed.delta(epsilon).value + asked * local
            assert found == pytest.approx(bits.delta(epsilon), rel=1e-11)


@pytest.mark.parametrize("ones", [0, 2, 5])
def test_a_given_composition_is_at_most_the_worst(ones: int) -> None:
    protocol = PeerToPeer(0.3, 0.6, labels=4)
    every = privacy.profile(protocol, cluster_size=6)
    given = privacy.profile(protocol, cluster_size=6, composition=ones)
    assert (every.basis, given.basis) == ("exact", "exact")
    assert "her label and the others' are 0 or 1" in given.assumes
    assert 0 < given.delta(0.2) <= every.delta(0.2) * (1 + 1e-12)


@pytest.mark.parametrize(
    ("n", "theta", "k", "c", "alpha"),
    [
        (5, 1.0, 3, 0, 0.2),
        (10, 1.0, 3, 0, 0.2),
        (10, 0.3, 3, 0, 0.5),
        (8, 1.0, 4, 0, 0.4),
        (6, 0.6, 3, 2, 0.3),
        (8, 0.5, 3, 4, 0.2),
    ],
)
def test_the_bound_of_large_clusters_holds_for_small_ones(
    n: int, theta: float, k: int, c: int, alpha: float
) -> None:
    exact, bound = SmallCluster(alpha, theta, n, k, c).law(), ShownUsers(alpha, theta, n, k, c)
    for epsilon in (0.0, 0.05, 0.3, 0.8, 1.3):
        assert exact.delta(epsilon).lower <= bound.delta(epsilon).upper
    assert bound.delta(0.0).upper < 2.5 * exact.delta(0.0).value


def test_a_bound_with_fewer_users_shown_would_not_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the test above is able to see."""
    exact, bound = SmallCluster(0.2, 1.0, 10, 3).law(), ShownUsers(0.2, 1.0, 10, 3)
    monkeypatch.setattr(bounded_categories, "_groups", lambda *_: ((4, 0.0),))
    assert exact.delta(0.0).lower > bound.bound(0.0)


@pytest.mark.parametrize(
    ("n", "theta", "k"), [(100, 1.0, 3), (1000, 1.0, 10), (1000, 0.1, 10), (50_000, 0.5, 5)]
)
def test_large_clusters_are_bounded_below_their_shuffle(n: int, theta: float, k: int) -> None:
    profile = privacy.profile(PeerToPeer(0.3, theta, labels=k), cluster_size=n)
    assert profile.basis == "upper"
    shuffle = shuffled_response(n, math.log(0.7 * (k - 1) / 0.3), k)
    assert 0 < profile.epsilon(1e-6) < shuffle.epsilon(1e-6)


def test_how_many_users_are_shown_is_bounded() -> None:
    """The law against simulation, and Chernoff's bound against the law."""
    rng = np.random.default_rng(3)
    n, theta = 200, 0.6
    tails = bounded_categories._tails(theta / n, n, n)
    shown = [len(np.unique(rng.integers(n, size=rng.binomial(n, theta)))) for _ in range(4000)]
    for most in (70, 85, 95):
        seen = np.mean(np.array(shown) > most)
        assert abs(seen - tails[most]) < 5.5 * math.sqrt(tails[most] / 4000)  # false alarm below 1e-6
    n = 3000
    tails = bounded_categories._tails(theta / n, n, n)
    [(most, rest)] = bounded_categories._far(-math.expm1(n * math.log1p(-theta / n)), n)
    assert tails[most] <= rest
    assert tails[most - 400] > rest


def test_colluders_raise_the_bound_up_to_the_local_law() -> None:
    found = [
        privacy.profile(PeerToPeer(0.3, labels=5), view, cluster_size=200).delta(0.1)
        for view in ("learner", "learner+user", "learner+20*user", "learner+150*user", "learner+199*user")
    ]
    local = 0.7 - math.exp(0.1) * 0.3 / 4
    assert found == sorted(found)
    assert found[-1] <= local * (1 + 1e-9)


def test_corners() -> None:
    assert privacy.profile(PeerToPeer(2 / 3, labels=3), cluster_size=9).epsilon(0.0) == 0
    assert privacy.profile(PeerToPeer(0.9, labels=10), "wire", cluster_size=900).delta(0.0) == 0
    everything = privacy.profile(PeerToPeer(0.0, labels=3), cluster_size=1)
    assert everything.epsilon(0.5) == math.inf
    alone = privacy.profile(PeerToPeer(0.3, 0.5, labels=256), cluster_size=1)
    assert alone.delta(0.0) == pytest.approx(0.5 * (0.7 - 0.3 / 255), rel=1e-11)
    with pytest.raises(InputError, match="9 users beside"):
        privacy.profile(PeerToPeer(0.3, labels=3), "learner+10*user", cluster_size=10)


def test_runs_on_the_same_labels_compose_each_composition() -> None:
    one = privacy.profile(PeerToPeer(0.4, labels=3), cluster_size=6)
    two = privacy.composed(one, 2)
    assert one.epsilon(1e-4) < two.epsilon(1e-4) <= 2 * one.epsilon(0.0)


@pytest.mark.parametrize(
    ("theta", "view", "faults"),
    [(1.0, "learner", ["late=0.3"])],
)
def test_no_figure_under_faults_is_below_the_enumerated_law(
    theta: float, view: str, faults: list[str]
) -> None:
    protocol = PeerToPeer(0.25, theta, labels=3)
    profile = privacy.profile(protocol, view, cluster_size=2, faults=faults)
    assert profile.basis == "upper"
    for other in (0, 2):  # her label or a third one; her other label is the first case, the other way round
        people = Population.from_arrays(y=[0, other])
        law = privacy.enumerate_view(protocol, people, view=view, faults=faults, to=1)
        for scale in SCALES:
            assert float(law.delta_at(scale)) <= profile.delta_bracket(math.log(scale)).upper * (1 + 1e-9)


@pytest.mark.parametrize("retries", [0, 2])
def test_under_faults_the_learner_learns_at_most_what_she_would_if_told_who_asked_whom(retries: int) -> None:
    protocol, n = PeerToPeer(0.3, 0.5, retries, labels=3), 30
    profile = privacy.profile(protocol, cluster_size=n, faults=["loss=0.1", "drop=0.1"])
    asks = 1 - (1 - 1 / n) ** (1 + retries) if retries else 1 / n
    chance = 1 - (1 - 0.5 * asks) ** n
    assert (profile.basis, profile.delta(0.2)) == (
        "upper",
        pytest.approx(chance * (0.7 - math.exp(0.2) * 0.15)),
    )
    assert "if who asked whom is told" in profile.source


def test_theorems_on_bits_are_not_listed() -> None:
    for view in ("learner", "user", "learner+user"):
        [promise] = theorems(PeerToPeer(0.4, labels=3), view, [20], 1e-6)
        assert (promise["name"], promise["epsilon"]) == ("local", pytest.approx(math.log(3)))
    assert [promise["name"] for promise in theorems(PeerToPeer(0.4), "learner", [20], 1e-6)] == [
        "Theorem 3",
        "Lemma 9",
    ]


def test_groups_of_labels() -> None:
    protocol = PeerToPeer(0.3, labels=3)
    peers = privacy.profile(protocol, "2*user", cluster_size=10, group=2)
    learner = privacy.profile(protocol, cluster_size=10, group=2)
    assert (peers.basis, learner.basis) == ("exact", "upper")
    assert learner.delta(0.3) >= privacy.profile(protocol, cluster_size=10).delta(0.3)


def test_among_neighbours_the_label_is_seen_or_not() -> None:
    people = Population.synthetic(users=60, cluster_size=30, labels=3)
    people = topologies.join(people, "regular:4", 1, within_clusters=True)
    protocol = PeerToPeer(0.3, 0.5, over="neighbours", labels=3)
    local = 0.7 - math.exp(0.2) * 0.15
    wire = privacy.profile(protocol, "user", population=people)
    assert (wire.basis, wire.delta(0.2)) == ("exact", pytest.approx(local / 4))
    learner = privacy.profile(protocol, population=people)
    assert learner.basis == "upper"
    assert learner.delta(0.2) == pytest.approx((1 - (1 - 0.5 / 4) ** 4) * local)
