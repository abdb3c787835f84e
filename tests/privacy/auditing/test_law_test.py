"""The law test: honest runs pass at the stated rate, broken twins of Algorithm 2 do not, and small samples say so."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from p2p_sim import InputError, backends
from p2p_sim.coalition import Coalition
from p2p_sim.core import Message, Party, Protocol, Rounds
from p2p_sim.privacy.auditing.audit import statistic_of
from p2p_sim.privacy.auditing.law_test import CELLS, EXPECTED, LEAST_WORLDS, LawTest, law_test
from p2p_sim.privacy.auditing.worlds import Situation, batches
from protocols import PeerToPeer, RandomizedResponse

pytestmark = pytest.mark.slow

WORLDS = 20_000
SIZE = 20
HONEST = PeerToPeer(0.1, 0.5)
FALSE_ALARM = 1e-9


@dataclass(frozen=True)
class Twin(Protocol):
    """Algorithm 2 with faults, each with a probability: 0 is honest."""

    alpha: float = 0.1
    theta: float = 0.5
    own: float = 0.0  # reports her own label
    near: float = 0.0  # asks the first of two peers
    shy: float = 0.0  # withholds a report if her label is 1

    ask = Message("user", "user", "asks a peer")
    label = Message("user", "user", "answers", y_hat=bool)
    report = Message("user", "learner", "reports", y=bool)

    def user(self, me: Party) -> Rounds:
        y_hat = me.y ^ me.draw.bernoulli("flip", self.alpha)
        peer, other = me.draw.member("peer", me.cluster), me.draw.member("other", me.cluster)
        near = me.draw.bernoulli("near", self.near)
        asks = yield self.ask(to=np.where(near, np.minimum(peer, other), peer))
        labels = yield self.label.reply(asks, y_hat=y_hat)
        kept = me.draw.bernoulli("subsample", self.theta) & ~(me.y & me.draw.bernoulli("shy", self.shy))
        own = me.draw.bernoulli("own", self.own)
        yield self.report(y=(own & me.y) | (~own & labels.y_hat), when=kept)

    def learner(self, me: Party) -> Rounds:
        yield self.report.receive()


def stat_of(view: str, ones: int, size: int = SIZE, protocol: Any = HONEST) -> Any:
    who = Coalition.parse(view, ("user", "learner"))
    return statistic_of(protocol, who, size=size, composition=ones)


def sampled(
    protocol: Any, view: str, ones: int, worlds: int = WORLDS, seed: int = 1, size: int = SIZE
) -> Any:
    """The honest protocol's statistic of what a protocol really sent, by the victim's label."""
    situation = Situation(protocol, Coalition.parse(view, ("user", "learner")), size, ones)
    stat = stat_of(view, ones, size)
    return by_label(stat, list(batches(situation, worlds, seed, backends.Settings("local"))))


def by_label(stat: Any, batches: list[Any]) -> Any:
    parts = [(stat.read(seen), seen.ones) for seen in batches]
    return {
        label: {
            name: np.concatenate([part[name][ones == label] for part, ones in parts]) for name in parts[0][0]
        }
        for label in (0, 1)
    }


@lru_cache(maxsize=1)
def many() -> Any:
    """Honest worlds, enough for 20 tests."""
    return sampled(HONEST, "learner+2*user", 8, 20 * 2000)


def test_twenty_honest_runs_pass_at_the_stated_rate() -> None:
    """All pass where one of all twenty fails at a rate of 1e-9; at a rate of 0.05 each, few fail."""
    stat = stat_of("learner+2*user", 8)
    found = [
        law_test(stat, _worlds(many(), slice(2000 * i, 2000 * (i + 1))), i, FALSE_ALARM / 20)
        for i in range(20)
    ]
    assert not any(test.rejected for test in found)
    assert all(test.tested and not test.why for test in found)
    fails = sum(test.p_value <= 0.05 for test in found)
    chance = sum(math.comb(20, i) * 0.05**i * 0.95 ** (20 - i) for i in range(fails, 21))
    assert chance > FALSE_ALARM


def _worlds(columns: Any, part: slice) -> Any:
    return {label: {name: column[part] for name, column in half.items()} for label, half in columns.items()}


@pytest.mark.parametrize("view", ["learner", "user", "learner+2*user", "wire"])
@pytest.mark.parametrize("ones", [0, 8])
def test_an_honest_twin_passes(view: str, ones: int) -> None:
    found = law_test(stat_of(view, ones), sampled(Twin(), view, ones), 7, FALSE_ALARM)
    assert not found.rejected, found.why


@pytest.mark.parametrize(
    ("twin", "view", "ones"),
    [
        (Twin(alpha=0.12), "learner", 0),
        (Twin(alpha=0.12), "learner+2*user", 0),
        (Twin(alpha=0.17), "user", 0),
        (Twin(alpha=0.12), "wire", 8),
        (Twin(theta=0.52), "learner", 8),
        (Twin(theta=0.52), "learner+2*user", 8),
        (Twin(own=0.1), "learner", 0),
        (Twin(own=0.1), "learner+2*user", 0),
        (Twin(near=0.1), "learner", 8),
        (Twin(near=0.3), "user", 8),
        (Twin(shy=0.1), "learner", 8),
        (Twin(shy=0.1), "learner+2*user", 8),
    ],
)
def test_broken_twins_are_found(twin: Twin, view: str, ones: int) -> None:
    found = law_test(stat_of(view, ones), sampled(twin, view, ones), 7, FALSE_ALARM)
    assert found.rejected
    assert found.p_value <= FALSE_ALARM
    assert "does not follow the law" in found.why


def test_wrong_randomized_response_is_found() -> None:
    told, real = RandomizedResponse(1.0, 4), RandomizedResponse(1.1, 4)
    who = Coalition.parse("learner", ("user", "learner"))
    stat = stat_of("learner", 0, 2, told)
    for protocol, rejected in ((told, False), (real, True)):
        situation = Situation(protocol, who, 2, 0)
        columns = by_label(stat, list(batches(situation, 50_000, 1, backends.Settings("local"))))
        assert law_test(stat, columns, 7, FALSE_ALARM).rejected == rejected
    swapped = {0: columns[1], 1: columns[0]}
    assert law_test(stat, swapped, 7, FALSE_ALARM).rejected


def test_what_was_tested_is_told() -> None:
    found = law_test(stat_of("learner+2*user", 8), many(), 3, 0.01)
    names = ["bit", "known", "picked", "said", "m", "k", "own"]
    pairs = [f"{a} x {b}" for a, b in pairwise(names)]
    bits = ["bit = -1", "bit = 0", "bit = 1"]
    assert {test.coordinate for test in found.tests} == {*bits, *names[1:], *pairs}
    assert {test.label for test in found.tests} == {0, 1}
    for test in found.tests:
        assert test.cells <= CELLS
        assert test.coordinate in bits or test.expected == 40_000 / test.cells >= EXPECTED
        assert test.freedom == test.cells - 1
    assert found.p_value == min(1.0, min(test.p_value for test in found.tests) * len(found.tests))
    assert law_test(stat_of("learner+2*user", 8), many(), 3, 0.01) == found  # coins are keyed


def test_small_samples_are_not_passed_silently() -> None:
    stat = stat_of("learner", 8)
    for worlds, tested in ((LEAST_WORLDS - 1, False), (LEAST_WORLDS, True)):
        columns = _worlds(sampled(HONEST, "learner", 8, 200), slice(worlds))
        found = law_test(stat, columns, 1, 0.001)
        assert found.tested == tested
        assert not found.rejected
        assert ("has 99 worlds: the law is tested with 100" in found.why) != tested
    assert "no worlds" in law_test(stat, {}, 1, 0.001).why
    blind = statistic_of(
        HONEST, Coalition.parse("wire", ("user",)), size=9, composition=0, channels="encrypted"
    )
    assert blind is not None
    nothing = law_test(blind, {0: {"nothing": np.zeros(500, np.int8)}}, 1, 0.001)
    assert not nothing.tested
    assert "nothing that depends on a label" in nothing.why


def test_what_cannot_happen_rejects_at_once() -> None:
    columns = sampled(HONEST, "learner", 8, 200)
    columns[1]["m"][3] = SIZE + 1
    found = law_test(stat_of("learner", 8), columns, 1, FALSE_ALARM)
    assert found.rejected
    assert found.tested
    assert found.p_value == 0
    assert found.why == "label 1: 1 worlds have a value of 'm' that the law gives no chance"


def test_a_law_without_chance() -> None:
    stat = stat_of("learner", 0, 2, RandomizedResponse(math.inf))
    columns = {label: {"y": np.full(300, label)} for label in (0, 1)}
    found = law_test(stat, columns, 1, FALSE_ALARM)
    assert not found.rejected
    assert found.why.startswith("the law leaves nothing to chance")
    assert law_test(stat, {0: columns[1]}, 1, FALSE_ALARM).rejected


@pytest.mark.parametrize("rate", [0, 1, -0.1, True, math.nan])
def test_false_alarm_is_checked(rate: Any) -> None:
    with pytest.raises(InputError, match=r"false_alarm = .*must be a number in"):
        law_test(stat_of("learner", 8), {}, 1, rate)


def test_the_seed_is_checked() -> None:
    with pytest.raises(InputError, match="seed = -1"):
        law_test(stat_of("learner", 8), {}, -1, 0.1)


def test_a_test_that_does_not_reject_says_nothing_against_the_law():
    """Alone it rejects at 4e-7 of 1e-6; beside a silent second test it has half of that, and does."""
    near = LawTest(8e-7, True, (), "the law does not fit", 1e-6)
    both = near.with_rest(1.0)
    assert (both.rejected, both.why) == (False, "")
    sure = LawTest(1e-7, True, (), "the law does not fit", 1e-6)
    assert (sure.with_rest(1.0).rejected, sure.with_rest(1.0).why) == (True, "the law does not fit")
    found = LawTest(1.0, False, (), "", 1e-6).with_rest(1e-9)
    assert found.rejected
    assert found.why
