"""Shuffles under faults: never below the enumerated law, as much where who came is seen, refused by name."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from p2p_sim import Population, privacy
from p2p_sim.network import topologies
from p2p_sim.privacy.laws.finite import Nothing
from p2p_sim.privacy.laws.shuffled_bits import ShuffledBits
from p2p_sim.privacy.mechanism_parts.arrivals import CUT, Counts
from p2p_sim.privacy.mechanisms.peer_permutation import remaining
from protocols import EncryptedShuffle, NetworkShuffle, PeerPermutation, peer_permutation

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("ways_once")]

EPSILONS = (0.0, 0.1, 0.5, 0.8, 1.0, 1.2)
ONE, TWO, THREE = (EncryptedShuffle(1.0, shufflers=m) for m in (1, 2, 3))
CROWD, LABELS = EncryptedShuffle(1.0, over="everybody"), EncryptedShuffle(1.0, labels=3)


def enumerated(protocol: Any, users: int, view: str, faults: list[str]) -> dict[float, float]:
    """Delta over all labels of the others, by following every draw and every fault both ways.

    Of two labels, not over those that are others turned, unless a fault prefers a label: all labels turned give the
    same two worlds, turned, the one for the other.
    """
    worst = dict.fromkeys(EPSILONS, 0.0)
    kinds = range(protocol.label_count())
    turns = len(kinds) == 2 and not any("constant" in fault for fault in faults)
    for others in itertools.combinations_with_replacement(kinds, users - 1):
        if turns and 2 * sum(others) > len(others):
            continue
        labels = np.array([0, *others], np.uint8)
        people = Population.from_arrays(y=labels if protocol.label_count() > 2 else labels > 0)
        law = privacy.enumerate_view(protocol, people, view=view, faults=faults)
        worst = {at: max(value, law.delta(at)) for at, value in worst.items()}
    return worst


@pytest.mark.parametrize(
    ("protocol", "users", "view", "faults"),
    [
        (ONE, 3, "learner", ["drop=0.3"]),
        (ONE, 2, "learner", ["loss=0.3", "late=0.2"]),
        (ONE, 2, "learner+user", ["loss=0.3"]),
        (ONE, 2, "learner", ["lie=flip:0.2"]),
        (ONE, 2, "learner", ["lie=constant1:0.2", "drop=0.1"]),
        (ONE, 2, "learner", ["lie=random:0.4"]),
        (ONE, 2, "learner", ["duplicate=0.5"]),
        (ONE, 2, "learner", ["replay=0.5"]),
        (ONE, 2, "learner", ["tamper=0.3", "misdirect=0.2"]),
        (TWO, 2, "learner+shuffler", ["tamper=0.2"]),
        (ONE, 3, "learner", ["stop=shuffler:1"]),
        (ONE, 2, "shuffler", ["loss=0.5"]),
        (CROWD, 3, "learner", ["drop=0.3"]),
        (LABELS, 2, "learner", ["loss=0.3"]),
        (LABELS, 2, "learner", ["lie=flip:0.3"]),
        (TWO, 2, "learner", ["loss=0.2"]),
        (TWO, 2, "learner+shuffler", ["late=0.2"]),
        (TWO, 2, "learner+shuffler", ["loss=0.2"]),
        (TWO, 2, "learner+shuffler2+wire", ["loss=0.2"]),
        (THREE, 2, "learner+shuffler2", ["late=0.5"]),
    ],
)
def test_no_figure_is_below_the_enumerated_law(
    protocol: Any, users: int, view: str, faults: list[str]
) -> None:
    profile = privacy.profile(protocol, view, cluster_size=users, faults=faults)
    assert profile.basis == "upper"
    for at, delta in enumerated(protocol, users, view, faults).items():
        assert delta <= profile.delta_bracket(at).upper * (1 + 1e-9), at


@pytest.mark.parametrize(
    ("protocol", "users", "view", "faults"),
    [
        (ONE, 3, "learner+wire", ["drop=0.3"]),
        (TWO, 3, "learner+shuffler2", ["drop=0.2"]),
        (ONE, 2, "shuffler+learner", ["loss=0.3", "late=0.2"]),
        (ONE, 2, "shuffler+learner", ["tamper=0.3"]),
        (TWO, 2, "learner+shuffler+shuffler2", ["late=0.2", "drop=0.3"]),
    ],
)
def test_where_it_is_seen_who_came_the_figure_is_no_larger_than_it_must_be(
    protocol: Any, users: int, view: str, faults: list[str]
) -> None:
    """At an epsilon where one composition is the worst of all crowds."""
    profile = privacy.profile(protocol, view, cluster_size=users, faults=faults)
    truth = enumerated(protocol, users, view, faults)
    for at in (0.0, 0.5, 0.8, 1.0):
        assert profile.delta(at) == pytest.approx(truth[at], rel=1e-9, abs=1e-12)


def test_the_law_of_all_users_would_be_no_bound() -> None:
    """Power: what all three show, where it is seen that the victim's report came, is less than the truth."""
    truth = enumerated(ONE, 3, "learner+wire", ["drop=0.3"])
    assert truth[0.8] > 0.7 * privacy.profile(ONE, cluster_size=3).delta(0.8) * 1.1


def by_hand(users: int, ones: int, alpha: Fraction, drop: Fraction) -> privacy.EnumeratedView:
    """The learner's view of a peer permutation, by every permutation, noise and time of leaving."""
    leaves = [drop * (1 - drop) ** step for step in range(3)] + [(1 - drop) ** 3]
    worlds: list[dict[Any, Fraction]] = [{}, {}]
    for label, world in enumerate(worlds):
        truth = [label] + [int(i < ones) for i in range(users - 1)]
        for times in itertools.product(range(4), repeat=users):
            chance = math.prod((leaves[t] for t in times), start=Fraction(1))
            for to in itertools.permutations(range(users)):
                for flips in itertools.product((0, 1), repeat=users):
                    weight = chance / math.factorial(users)
                    weight *= math.prod((alpha if f else 1 - alpha for f in flips), start=Fraction(1))
                    told = [
                        (to[u], truth[u] ^ flips[u])
                        for u in range(users)
                        if times[u] >= 2 and times[to[u]] == 3
                    ]
                    world[tuple(sorted(told))] = world.get(tuple(sorted(told)), Fraction(0)) + weight
    return privacy.EnumeratedView("learner", *worlds)


ALPHA, DROP = Fraction(1, 4), Fraction(1, 4)


def one_of_two(seed: int, size: int) -> np.ndarray:
    """The order of one of two seeds; one function for all tests, so that they share the ways that they follow."""
    return np.array([[0, 1], [1, 0]][seed][:size])


@pytest.mark.parametrize("ones", [0, 1])
def test_the_hand_is_the_program(ones: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_permutation, "SHARES", 2)
    monkeypatch.setattr(peer_permutation, "agreed_order", one_of_two)
    people = Population.from_arrays(y=np.array([False, bool(ones)]))
    found = privacy.enumerate_view(PeerPermutation(0.25), people, faults=["drop=0.25"])
    hand = by_hand(2, ones, ALPHA, DROP)
    assert sorted(found.pairs()) == sorted(hand.pairs())


@pytest.mark.parametrize("users", [2, 3])
def test_users_who_leave_a_permutation(users: int) -> None:
    found = privacy.profile(PeerPermutation(0.25), cluster_size=users, faults=["drop=0.25"])
    assert found.basis == "upper"
    for at in EPSILONS:
        truth = max(by_hand(users, ones, ALPHA, DROP).delta(at) for ones in range(users))
        assert truth <= found.delta_bracket(at).upper * (1 + 1e-9)
        if at == 0.0:
            assert found.delta(at) < 1.3 * truth


@pytest.mark.parametrize(
    ("view", "faults"), [("learner", ["loss=0.25"]), ("user", ["late=0.25"]), ("learner", ["misdirect=0.25"])]
)
def test_lost_shares(view: str, faults: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Members disagree on the permutation; what they tell is bounded by what each label tells by itself."""
    monkeypatch.setattr(peer_permutation, "SHARES", 2)
    monkeypatch.setattr(peer_permutation, "agreed_order", one_of_two)
    found = privacy.profile(PeerPermutation(0.25), view, cluster_size=2, faults=faults)
    people = Population.from_arrays(y=np.array([False, True]))
    law = privacy.enumerate_view(PeerPermutation(0.25), people, view=view, faults=faults)
    for at in EPSILONS:
        assert law.delta(at) <= found.delta_bracket(at).upper * (1 + 1e-9)


def test_how_many_stay_adds_up() -> None:
    """Of 4 users, by every set of those there at the second and the third step, and every permutation."""
    drop, users = 0.3, 4
    exact = np.zeros(users)
    for there in itertools.product((0, 1), repeat=users):
        for last in itertools.product((0, 1), repeat=users):
            chance = math.prod(0.7**2 if a else 1 - 0.7**2 for a in there)
            chance *= math.prod(0.7 if b else 0.3 for b in last)
            for to in itertools.permutations(range(users)):
                told = [u for u in range(users) if there[u] and there[to[u]] and last[to[u]]]
                if 0 in told:
                    exact[len(told) - 1] += chance / math.factorial(users)
    found = remaining(users, drop)
    assert found.chances[1:] == pytest.approx(exact[1:], rel=1e-9)
    assert found.chances[0] + found.lost == pytest.approx(exact[0], rel=1e-9)
    for users in (60, 3000):
        found = remaining(users, 0.02)
        told = 0.98**2 * (1 / users + (1 - 1 / users) * 0.98**2) * 0.98
        assert found.chances.sum() + found.lost == pytest.approx(told, rel=1e-9)


@pytest.mark.parametrize(("others", "chance"), [(0, 0.5), (1, 0.9), (99, 0.01), (200, 0.95), (10**9, 0.9025)])
@pytest.mark.parametrize("most", [1, 3, 12])
def test_groups_hold_everything_and_none_is_of_more(others: int, chance: float, most: int) -> None:
    parts = sorted((least, weight) for weight, least in Counts.of(others, chance, 0.5).groups(most))
    assert sum(weight for _, weight in parts) == pytest.approx(0.5, abs=1e-12)
    assert len(parts) <= most + 1
    summed = 0.0
    for least, weight in parts:  # every group holds only numbers from its least on
        assert summed >= 0.5 * binom.cdf(least - 1, others, chance) - 1e-12
        summed += weight
    if binom.cdf(0, others, chance) < CUT:
        assert sum(weight for least, weight in parts if least == 0) <= 2 * CUT


def test_figures_move_gently() -> None:
    """Small faults change little: the crowd is smaller by as much as is missing."""
    for size in (100, 1000, 30_000, 10**6):
        plain = privacy.profile(ONE, cluster_size=size).epsilon(1e-6)
        found = privacy.profile(ONE, cluster_size=size, faults=["loss=0.01"]).epsilon(1e-6)
        assert plain < found < plain * 1.1
        assert found > ShuffledBits.of(int(size * 0.99**2), 1.0).epsilon(1.1e-6) * 0.999
    for size in (100, 5000):
        plain = privacy.profile(PeerPermutation(0.2), cluster_size=size).epsilon(1e-6)
        found = privacy.profile(PeerPermutation(0.2), cluster_size=size, faults=["drop=0.01"]).epsilon(1e-6)
        assert plain < found < plain * 1.1


def test_certain_faults_leave_nothing() -> None:
    for faults in (["loss=1"], ["drop=1"], ["late=1"]):
        assert privacy.profile(ONE, cluster_size=9, faults=faults).delta(0) == 0.0
    assert privacy.profile(PeerPermutation(0.1), cluster_size=9, faults=["drop=1"]).delta(0) == 0.0
    assert isinstance(privacy.profile(ONE, "shuffler", cluster_size=9, faults=["loss=0.5"]).law, Nothing)


def test_what_is_not_covered_is_refused_by_name() -> None:
    for protocol in (ONE, PeerPermutation(0.1)):
        found = privacy.profile(protocol, cluster_size=9, composition=3, faults=["lie=flip:0.1"])
        assert found.basis == "refused"
        assert "composition 'worst'" in found.why


@pytest.mark.parametrize("protocol", [ONE, TWO, PeerPermutation(0.2)])
@pytest.mark.parametrize("view", ["learner", "learner+user"])
def test_audits_under_faults(protocol: Any, view: str) -> None:
    found = privacy.audit(
        protocol, view, cluster_size=3, delta=0.01, trials=2000, faults=["loss=0.1", "drop=0.1"]
    )
    assert found.verdict != "violated"
    assert [claim.basis for claim in found.claims] == ["upper"]


def test_clusters_of_a_population_are_the_worst_of_each() -> None:
    people = Population.from_arrays(y=np.arange(14) % 2 == 0, cluster=[0] * 4 + [1] * 10)
    for protocol, faults in ((ONE, ["loss=0.05"]), (ONE, None), (PeerPermutation(0.2), ["drop=0.05"])):
        for view in ("learner", "learner+6*user"):
            found = privacy.profile(protocol, view, population=people, faults=faults)
            small = view.replace("6", "3")
            parts = [
                privacy.profile(protocol, who, cluster_size=n, faults=faults)
                for who, n in ((small, 4), (view, 10))
            ]
            assert found.basis == parts[0].basis
            for at in EPSILONS:
                assert found.delta(at) == max(part.delta(at) for part in parts)


def test_a_walk_that_does_not_open_is_as_good_as_lost() -> None:
    """Only at its end is it opened; so a loss of 0.3 at one hop and at the end is a tampering of 1 - 0.7^2."""
    people = topologies.join(Population.from_arrays(y=np.arange(40) % 2 == 0), "regular:20", 3)
    curves = [
        [
            privacy.profile(NetworkShuffle(1.0, 1), population=people, faults=faults).delta(at)
            for at in EPSILONS
        ]
        for faults in (["loss=0.3"], ["tamper=0.51"], ["misdirect=0.51"], ["replay=0.5"])
    ]
    assert curves[0] == pytest.approx(curves[1], rel=1e-9)
    assert curves[1] == curves[2]
    assert curves[3][0] > curves[2][0]  # all are there
