"""Randomized response keeps and lies with exactly its probabilities, whatever the label; broken twins do not."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from p2p_sim.backends import local
from p2p_sim.core import Message, Population, Protocol
from protocols import RandomizedResponse
from tests.exact import interpreter
from tests.statistical import chi

USERS_A_LABEL = 60_000
EPSILON = 1.0


class Twin(Protocol):
    """k-ary randomized response with a place to break it."""

    report = Message("user", "learner", "reports", y=np.uint8)

    def label_count(self):
        return self.k

    def user(self, me):
        yield self.report(y=self.answer(me, float(interpreter.lie_probability(EPSILON, self.k))))

    def learner(self, me):
        reports = yield self.report.receive()
        return reports.columns()


@dataclass(frozen=True)
class Unbroken(Twin):
    k: int

    def answer(self, me, lie):
        return (me.y + me.draw.bernoulli("lie", lie) * (1 + me.draw.below("other", self.k - 1))) % self.k


@dataclass(frozen=True)
class LiesMayBeTrue(Twin):
    """Draws the lie from all k labels, the true one included."""

    k: int

    def answer(self, me, lie):
        return (me.y + me.draw.bernoulli("lie", lie) * me.draw.below("other", self.k)) % self.k


@dataclass(frozen=True)
class AlwaysTheNext(Twin):
    """Lies as often as it should, but always with the next label."""

    k: int

    def answer(self, me, lie):
        return (me.y + 1 * me.draw.bernoulli("lie", lie)) % self.k


@dataclass(frozen=True)
class LiesTooRarely(Twin):
    k: int

    def answer(self, me, lie):
        return (
            me.y + me.draw.bernoulli("lie", lie - 0.02) * (1 + me.draw.below("other", self.k - 1))
        ) % self.k


@dataclass(frozen=True)
class SparesZero(Twin):
    """Users with label 0 lie half as often."""

    k: int

    def answer(self, me, lie):
        lies = me.draw.bernoulli("lie", np.where(me.y == 0, lie / 2, lie))
        return (me.y + lies * (1 + me.draw.below("other", self.k - 1))) % self.k


def answers_follow(protocol, k, lie):
    y = np.arange(k * USERS_A_LABEL) % k
    received = local.run(protocol, Population.from_arrays(y=y), 23, digest=False).outputs["learner"]
    assert (received["sender"] == np.arange(len(y))).all()
    shift = (received["y"].astype(np.int64) - y) % k
    law = [1 - lie] + [lie / (k - 1)] * (k - 1)
    return all(chi.follows(np.bincount(shift[y == label], minlength=k), law) for label in range(k))


@pytest.mark.parametrize("k", [2, 3, 10])
@pytest.mark.parametrize("epsilon", [0.0, EPSILON, 3.0])
def test_answers_have_the_law_of_the_paper(k, epsilon):
    assert answers_follow(RandomizedResponse(epsilon, k), k, interpreter.lie_probability(epsilon, k))


@pytest.mark.parametrize("k", [2, 3, 10])
@pytest.mark.parametrize("twin", [LiesMayBeTrue, AlwaysTheNext, LiesTooRarely, SparesZero])
def test_broken_twins_are_rejected(k, twin):
    lie = interpreter.lie_probability(EPSILON, k)
    assert answers_follow(Unbroken(k), k, lie)
    assert answers_follow(twin(k), k, lie) is (twin is AlwaysTheNext and k == 2), (
        "of two labels the next is the other"
    )


@pytest.mark.parametrize("p", [0.01, 0.25, 0.5])
def test_flipping_has_the_given_rate(p):
    assert answers_follow(RandomizedResponse.flipping(p), 2, Fraction(p))
    assert not answers_follow(RandomizedResponse.flipping(p), 2, Fraction(p) * Fraction(8, 10))


def test_without_lies_everybody_tells_the_truth():
    assert answers_follow(RandomizedResponse(math.inf, 3), 3, Fraction(0))
    assert answers_follow(RandomizedResponse.flipping(0.0), 2, Fraction(0))
    assert not answers_follow(RandomizedResponse(20.0 - 12, 3), 3, Fraction(0))
