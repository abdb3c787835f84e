"""Labels that change together: exact laws equal the enumeration of all draws, bounds are nowhere below it."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest

from p2p_sim import Population, privacy
from p2p_sim.coalition import Coalition
from p2p_sim.core import InputError, Message, Party, Protocol, Rounds
from p2p_sim.network import topologies
from p2p_sim.privacy import building_blocks
from p2p_sim.privacy.composition.group_chain import GroupChain
from p2p_sim.privacy.enumeration import enumerate as enumeration
from p2p_sim.privacy.laws.group_counts import GroupCounts
from p2p_sim.privacy.laws.noise import DiscreteLaplace
from p2p_sim.privacy.laws.randomized_response import LocalResponse
from p2p_sim.privacy.laws.shuffled_bits import ShuffledBits
from protocols import EncryptedShuffle, NetworkShuffle, PeerToPeer, RandomizedResponse

EPSILONS = (0.0, 0.2, 0.5, 0.9, 1.3, 2.1)


@cache
def worlds(protocol: Protocol, users: int, view: str, joined: bool) -> dict[tuple[int, ...], Any]:
    """The law of a view for every labelling of the users; the last ones look."""
    parsed = Coalition.parse(view, protocol.roles())
    who = parsed.named(list(range(users - parsed.user_count, users)))
    found = {}
    for labels in itertools.product(range(protocol.label_count()), repeat=users):
        y = np.array(labels, np.uint8)
        people = Population.from_arrays(y=y if protocol.label_count() > 2 else y > 0)
        people = topologies.join(people, "ring:2", seed=0) if joined else people
        found[labels] = enumeration._laws(
            protocol, enumeration._ways(protocol, people, None), {"": who}, "plain"
        )[""]
    return found


def truth(
    protocol: Protocol, users: int, view: str, members: int, joined: bool = False
) -> dict[float, float]:
    """Delta at every epsilon over all worlds that differ in up to so many labels of users who do not look."""
    laws = worlds(protocol, users, view, joined)
    outcomes = list(dict.fromkeys(seen for law in laws.values() for seen in law))
    chances = {
        labels: np.array([float(law.get(seen, 0)) for seen in outcomes]) for labels, law in laws.items()
    }
    looking = Coalition.parse(view, protocol.roles()).user_count
    worst = dict.fromkeys(EPSILONS, 0.0)
    for one, other in itertools.permutations(laws, 2):
        moved = [i for i in range(users) if one[i] != other[i]]
        if len(moved) <= members and all(i < users - looking for i in moved):
            p, q = chances[one], chances[other]
            worst = {at: max(d, float(np.maximum(0, p - math.exp(at) * q).sum())) for at, d in worst.items()}
    return worst


PEERS, THIN = PeerToPeer(0.25), PeerToPeer(0.125, theta=0.5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("protocol", "users", "view", "members"),
    [
        (PEERS, 3, "learner", 2),
        (PEERS, 3, "learner", 3),
        (THIN, 2, "learner", 2),
        (PEERS, 3, "user", 2),
        (PEERS, 3, "2*user", 1),
        (EncryptedShuffle(1.0), 2, "learner", 2),
        (EncryptedShuffle(1.0), 2, "learner+shuffler", 2),
        (RandomizedResponse(1.0), 3, "learner", 3),
        (RandomizedResponse(1.0, labels=3), 2, "learner", 2),
    ],
)
def test_exact_laws_are_those_of_all_draws(protocol: Any, users: int, view: str, members: int) -> None:
    found = privacy.profile(protocol, view, cluster_size=users, group=members)
    assert found.basis == "exact"
    for at, delta in truth(protocol, users, view, members).items():
        assert found.delta(at) == pytest.approx(delta, rel=1e-9, abs=1e-14), at
        low, _, high = found.delta_bracket(at)
        assert low * (1 - 1e-12) <= delta <= high * (1 + 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("protocol", "users", "view", "members"),
    [
        (PEERS, 3, "learner+user", 2),
        (PEERS, 3, "wire", 2),
        (THIN, 2, "learner+wire", 2),
        (EncryptedShuffle(1.0, labels=3), 2, "learner", 2),
        (NetworkShuffle(1.0, steps=1), 3, "learner", 2),
        (NetworkShuffle(1.0, steps=1), 3, "learner", 3),
    ],
)
def test_bounds_are_nowhere_below_all_draws(protocol: Any, users: int, view: str, members: int) -> None:
    joined = protocol.graph_over() is not None
    where: dict[str, Any] = {"cluster_size": users}
    if joined:
        people = Population.from_arrays(y=np.zeros(users, bool))
        where = {"population": topologies.join(people, "ring:2", seed=0)}
    found = privacy.profile(protocol, view, group=members, **where)
    one = privacy.profile(protocol, view, **where)
    exact = truth(protocol, users, view, members, joined)
    assert found.basis == "upper"
    for at, delta in exact.items():
        assert delta <= found.delta_bracket(at).upper * (1 + 1e-12), at
    assert any(
        exact[at] > one.delta_bracket(at).upper for at in EPSILONS
    )  # power: one label's law is no bound


def test_the_chain_is_as_close_as_one_curve_allows() -> None:
    """Noise that is canonical for a flip: moved by two steps it shows as much as the chain of two of its laws."""
    for alpha in (0.05, 0.25, 0.4):
        budget = LocalResponse.flipping(alpha).epsilon0
        for members in (2, 3, 7):
            chain, moved = (
                GroupChain(LocalResponse(budget), members),
                DiscreteLaplace(members * budget, members),
            )
            for at in np.linspace(0, members * budget * 0.999, 40):
                assert moved.delta(at).lower * (1 - 1e-12) <= chain.delta(at).upper
            for step in range(members):
                at = step * budget
                assert chain.delta(at).value == pytest.approx(moved.delta(at).value, rel=1e-9)
            assert chain.pure() == members * budget


def test_a_larger_group_never_shows_less() -> None:
    """Some of its labels may stay as they are."""
    for alpha, size, theta in ((0.1, 30, 1.0), (0.2, 12, 0.4), (0.3, 5, None)):
        laws = [GroupCounts(alpha, size, members, theta) for members in (1, 2, 3, 4)]
        for at in EPSILONS:
            deltas = [law.delta(at).value for law in laws]
            assert deltas == sorted(deltas)


@pytest.mark.parametrize(("alpha", "size", "theta"), [(0.1, 25, 0.3), (0.25, 40, 1.0), (0.01, 60, 0.9)])
def test_a_group_of_one_is_one_label(alpha: float, size: int, theta: float) -> None:
    one, law = (
        privacy.profile(PeerToPeer(alpha, theta), cluster_size=size),
        GroupCounts(alpha, size, 1, theta),
    )
    shuffled, counts = ShuffledBits(alpha, size), GroupCounts(alpha, size, 1)
    for at in EPSILONS:
        assert law.delta(at).value == pytest.approx(one.delta(at), rel=1e-9, abs=1e-13)
        assert counts.delta(at).value == pytest.approx(shuffled.delta(at).value, rel=1e-9, abs=1e-13)
    assert law.pure() == pytest.approx(one.epsilon(0), rel=1e-9)


@pytest.mark.slow
def test_large_clusters_are_bounded_near_the_exact_figure() -> None:
    exact = privacy.profile(PeerToPeer(0.1), cluster_size=100, group=2)
    bound = privacy.grouped(privacy.profile(PeerToPeer(0.1), cluster_size=100), 2)
    assert exact.epsilon(1e-6) < bound.epsilon(1e-6) < 1.01 * exact.epsilon(1e-6)
    far = privacy.profile(PeerToPeer(0.1), cluster_size=20_000, group=2)
    one = privacy.profile(PeerToPeer(0.1), cluster_size=20_000).epsilon(1e-6)
    assert (far.basis, 2 * one < far.epsilon(1e-6) < 2.2 * one) == ("upper", True)


def test_what_a_group_learns_nothing_of() -> None:
    assert privacy.profile(EncryptedShuffle(1.0), "user", cluster_size=5, group=3).epsilon(0) == 0
    assert privacy.profile(PeerToPeer(0.5), cluster_size=5, group=3).epsilon(0) == 0
    assert privacy.profile(PeerToPeer(0.0), cluster_size=5, group=2).epsilon(0) == math.inf


@dataclass(frozen=True)
class Said(Protocol):
    """A label said aloud with a flip; its law is found on the program."""

    flip: float

    said = Message("user", "learner", "says a noisy label", y=bool)

    def user(self, me: Party) -> Rounds:
        yield self.said(y=me.y ^ me.draw.bernoulli("flip", self.flip))

    def learner(self, me: Party) -> Rounds:
        heard = yield self.said.receive()
        return heard.columns()


def test_a_law_that_is_found_is_of_each_label_apart() -> None:
    found = privacy.profile(Said(0.25), cluster_size=4, group=2)
    same = privacy.profile(RandomizedResponse(math.log(3)), group=2)
    assert found.basis == "exact"
    for at in EPSILONS:
        assert found.delta(at) == pytest.approx(same.delta(at), abs=1e-12)


@dataclass(frozen=True)
class Uneven(Protocol):
    """A label said aloud, of which 1 is kept and 0 is denied with chances of their own."""

    kept: float = 0.68
    false: float = 0.03

    said = Message("user", "learner", "says a noisy label", y=bool)

    def user(self, me: Party) -> Rounds:
        yield self.said(y=me.draw.bernoulli("one", np.where(me.y, self.kept, self.false)))

    def learner(self, me: Party) -> Rounds:
        heard = yield self.said.receive()
        return heard.columns()


@pytest.mark.parametrize("members", [2, 3])
def test_labels_that_change_in_opposite_directions_count(members: int) -> None:
    """Of an uneven report 0, 1 becoming 1, 0 is another pair than 0, 0 becoming 1, 1, and may be the worse one."""
    found = privacy.profile(Uneven(), cluster_size=4, group=members)
    one = (np.array([0.97, 0.03]), np.array([0.32, 0.68]))
    ways = list(itertools.product([one, one[::-1]], repeat=members))
    higher = False
    for at in (*EPSILONS, 2.2, 3.5):
        deltas = []
        for way in ways:
            p, q = np.ones(1), np.ones(1)
            for first, second in way:
                p, q = np.multiply.outer(p, first).ravel(), np.multiply.outer(q, second).ravel()
            deltas.append(float(np.maximum(p - math.exp(at) * q, 0).sum()))
        assert max(deltas) <= found.delta_bracket(at).upper * (1 + 1e-12)
        higher |= max(deltas[1:-1]) > 1.05 * max(deltas[0], deltas[-1])
    assert found.basis == "upper"
    assert higher or members > 2  # power: of two, a composition of equal runs is no bound


@pytest.mark.parametrize("composition", [2, "population"])
def test_a_composition_stays_one_in_all_that_is_made_of_it(composition: Any) -> None:
    people = Population.from_arrays(y=np.arange(5) < 2)
    where: dict[str, Any] = {"population": people} if composition == "population" else {"cluster_size": 5}
    given = privacy.profile(PEERS, composition=composition, **where)
    for made in (
        given,
        privacy.compose([(given, 3)]),
        building_blocks.seen_with_probability(given, 0.5),
        building_blocks.visible_cases([(0.5, given)]),
        building_blocks.worst_of([given]),
    ):
        with pytest.raises(InputError, match="is of one composition"):
            privacy.grouped(made, 2)


def test_what_is_out_of_reach_is_refused() -> None:
    for group in (0, 101, 1.5, True, "2"):
        with pytest.raises(InputError, match=r"group = .*must be a whole number from 1 to 100"):
            privacy.profile(PEERS, cluster_size=5, group=group)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="composition = 2: the labels of a group change it"):
        privacy.profile(PEERS, cluster_size=5, group=2, composition=2)
    with pytest.raises(InputError, match="group = 5: a cluster of 5 has 4 users outside the view"):
        privacy.profile(PEERS, "learner+user", cluster_size=5, group=5)
    given = privacy.profile(PEERS, cluster_size=5, composition=2)
    with pytest.raises(InputError, match="is of one composition"):
        privacy.grouped(given, 2)
    measured = privacy.PrivacyProfile("learner", "measured", "an audit", law=LocalResponse(1.0))
    with pytest.raises(InputError, match="basis 'measured'"):
        privacy.grouped(measured, 2)
    refused = privacy.PrivacyProfile.refused("learner", "no law")
    assert privacy.grouped(refused, 2) is refused


def test_clusters_of_several_sizes_have_a_bound() -> None:
    people = Population.from_arrays(y=np.zeros(9, bool), cluster=np.array([0] * 4 + [1] * 5))
    found = privacy.profile(PEERS, population=people, group=2)
    assert found.basis == "upper"
    for size in (4, 5):
        exact = privacy.profile(PEERS, cluster_size=size, group=2)
        assert all(exact.delta(at) <= found.delta_bracket(at).upper for at in EPSILONS)
