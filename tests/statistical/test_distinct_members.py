"""Members who differ, and who are not the drawer: the exact law, the same bits in any blocks, and refusals."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim import Population, ProtocolError, privacy
from p2p_sim.core import Message, Protocol, kernels_numba, kernels_numpy
from p2p_sim.core.draw import Draw
from p2p_sim.core.groups import Members, clusters, neighbours
from p2p_sim.privacy.enumeration.exhaustive_draws import Tape, TapeDraw
from tests.statistical import chi

SIZE, CLUSTERS = 5, 40_000
USERS = SIZE * CLUSTERS
IN_ORDER = np.repeat(np.arange(CLUSTERS), SIZE)
MIXED = np.arange(USERS) % CLUSTERS


@pytest.fixture(params=(kernels_numpy, kernels_numba), ids=("numpy", "numba"))
def draw(request):
    return Draw(20_261, "user", range(USERS), request.param)


def places(codes, drawn):
    """The place in her cluster of each user drawn, counted from the drawer's own, so that she herself is 0."""
    place = np.arange(USERS) % SIZE if codes is IN_ORDER else np.arange(USERS) // CLUSTERS
    assert (codes[drawn.data] == codes[drawn.layout.holder]).all()
    return ((place[drawn.data] - place[drawn.layout.holder]) % SIZE).reshape(USERS, -1)


def even(who, times):
    ways = list(permutations(who, times))
    return dict.fromkeys(ways, Fraction(1, len(ways)))


@pytest.mark.parametrize("codes", [IN_ORDER, MIXED], ids=("in order", "mixed"))
@pytest.mark.parametrize("others", [False, True])
@pytest.mark.parametrize("times", [2, 3])
def test_every_ordered_choice_is_equally_likely(draw, codes, others, times):
    """Chi-square with a false-alarm rate of 1e-9 (``chi.FALSE_ALARM``), beside a law that is not it."""
    drawn = draw.member("a", clusters(codes), times=times, distinct=True, others=others)
    found = chi.tally(*places(codes, drawn).T)
    assert chi.follows(found, even(range(others, SIZE), times))
    skewed = even(range(others, SIZE), times)
    first, last = min(skewed), max(skewed)
    skewed[first], skewed[last] = skewed[first] * Fraction(12, 10), skewed[last] * Fraction(8, 10)
    assert not chi.follows(found, skewed)


@pytest.mark.parametrize("codes", [IN_ORDER, MIXED], ids=("in order", "mixed"))
def test_others_alone_are_uniform_and_never_oneself(draw, codes):
    one = draw.member("a", clusters(codes), others=True)
    place = np.arange(USERS) % SIZE if codes is IN_ORDER else np.arange(USERS) // CLUSTERS
    law = {(k,): Fraction(1, SIZE - 1) for k in range(1, SIZE)}
    assert chi.follows(chi.tally((place[one] - place) % SIZE), law)
    apart = places(codes, draw.member("b", clusters(codes), times=2, others=True))
    assert (apart > 0).all()
    assert (apart[:, 0] == apart[:, 1]).mean() == pytest.approx(1 / 4, abs=0.01)  # 10 standard deviations


def test_neighbours_who_differ():
    ring = neighbours(np.array([[0, 1], [1, 2], [2, 3], [3, 0]]), 4)
    drawn = Draw(5, "user", range(4), kernels_numpy).member("a", ring, times=2, distinct=True, others=True)
    assert np.sort(drawn.data.reshape(4, 2)).tolist() == [[1, 3], [0, 2], [1, 3], [0, 2]]


@dataclass(frozen=True)
class ToTwo(Protocol):
    """Each user hands her noisy label to two others of her cluster."""

    alpha: float = 0.25
    times: int = 2

    hand = Message("user", "user", "hands over her noisy label", y=bool)
    done = Message("user", "learner", "says that it came")

    def user(self, me):
        y_hat = me.y ^ me.draw.bernoulli("flip", self.alpha)
        peers = me.draw.member("peers", me.cluster, times=self.times, distinct=True, others=True)
        yield self.hand(to=peers, y=y_hat)
        yield self.done()

    def learner(self, me):
        done = yield self.done.receive()
        return done.columns()


@pytest.mark.parametrize("mixed", [False, True])
def test_the_same_bits_in_any_blocks_and_in_a_replay(mixed):
    cluster = np.arange(60) % 7 if mixed else np.arange(60) // 8
    people = Population.from_arrays(y=np.arange(60) % 3 == 0, cluster=cluster)
    runs = [p2p_sim.run(ToTwo(), people, seed=3, blocks=blocks, trace="full") for blocks in (1, 2, 7, 60)]
    assert len({run.digest for run in runs}) == 1
    sent = runs[0].messages("hand")
    pairs = set(zip(sent["sender"].tolist(), sent["recipient"].tolist(), strict=True))
    assert len(pairs) == 120
    assert all(a != b and cluster[a] == cluster[b] for a, b in pairs)
    to = {int(b) for a, b in pairs if a == 17}
    assert set(runs[0].replay(17).sent["hand"]["recipient"].tolist()) == to


@pytest.mark.parametrize(("size", "times", "most"), [(2, 2, 3), (3, 3, 4), (1, 1, 2)])
def test_a_cluster_too_small_is_refused_with_numbers(size, times, most):
    people = Population.from_arrays(y=np.zeros(12, bool), cluster=np.arange(12) // size)
    text = f"{times} distinct others of a group of {size} users?: groups of at least {most}"
    for blocks in (1, 5):
        with pytest.raises(ProtocolError, match=text):
            p2p_sim.run(ToTwo(times=times), people, seed=0, blocks=blocks)
    larger = Population.from_arrays(y=np.zeros(most, bool))  # the advice works
    assert p2p_sim.run(ToTwo(times=times), larger, seed=0).by_kind()["hand"].messages == most * times


def test_distinct_needs_times():
    group = Members(np.zeros(3, np.int32), np.array([0, 3]), None)
    with pytest.raises(ProtocolError, match="distinct= goes with times="):
        Draw(0, "user", range(3), kernels_numpy).member("a", group, distinct=True)


def laws(group: Any, **how: Any) -> dict[tuple[int, ...], Fraction]:
    tape, law = Tape(), dict[tuple[int, ...], Fraction]()
    while True:
        drawn = TapeDraw(tape, "user", range(1)).member("a", group, **how)
        key = tuple(np.atleast_1d(getattr(drawn, "data", drawn)).tolist())
        law[key] = law.get(key, Fraction(0)) + tape.weight
        if not tape.rewind():
            return law


def test_enumeration_takes_every_ordered_pair_with_its_exact_weight():
    group = Members(np.zeros(1, np.int32), np.array([0, 4]), None)
    assert laws(group, times=2, distinct=True, others=True) == even([1, 2, 3], 2)
    assert laws(group, times=2, distinct=True) == even(range(4), 2)
    assert laws(group, others=True) == even([1, 2, 3], 1)


def test_the_law_of_a_peer_by_enumeration_and_found_on_the_program():
    """A curious peer of a cluster of s is handed the label with probability 2 / (s - 1), and else nothing."""
    three = Population.from_arrays(y=np.zeros(3, np.bool_))
    for times, share in ((1, Fraction(1, 2)), (2, Fraction(1))):  # randomized response at 1/4: delta(0) = 1/2
        exact = privacy.enumerate_view(ToTwo(times=times), three, view="user").delta_at(1)
        assert exact == Fraction(1, 2) * share
    for size in (3, 4, 9):
        found = privacy.profile(ToTwo(), "user", cluster_size=size)
        assert found.basis == "exact", found.why
        assert "watched with 3 and 4 users" in found.assumes[0]
        assert found.delta(0.0) == pytest.approx(0.5 * 2 / (size - 1), abs=1e-12)


def test_an_enumeration_of_too_few_is_refused_by_name():
    two = Population.from_arrays(y=np.zeros(2, np.bool_))
    with pytest.raises(ProtocolError, match=r"'peers'.* 2 distinct others of a group of 2 users"):
        privacy.enumerate_view(ToTwo(), two, view="user")
    assert "'peers'" in privacy.profile(ToTwo(), "user", cluster_size=2).why


@pytest.mark.slow
def test_the_check_makes_a_world_that_is_large_enough():
    assert p2p_sim.check(ToTwo(times=8)).users == 60
