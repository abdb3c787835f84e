"""Where no law can be found on the program: what carries a label on is named, or what was looked at."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from p2p_sim.core import Message, Party, Rounds
from protocols import EncryptedShuffle, LabelProportions, NetworkShuffle, PeerToPeer
from tests.privacy.enumeration.own import Hidden, Own, law_of


@dataclass(frozen=True)
class Forwarded(Own):
    """Peers hand the learner what they were told."""

    told = Message("user", "user", "tells a random peer a noisy label", y=bool)

    def user(self, me: Party) -> Rounds:
        y = me.y ^ me.draw.bernoulli("flip", Fraction(1, 4))
        heard = yield self.told(to=me.draw.member("peer", me.cluster), y=y)
        yield self.report(y=heard.y)


@dataclass(frozen=True)
class Keyed(Own):
    """The label under a one-time pad, and the pad by way of a server, who sends it on: together they tell all."""

    pad = Message("user", "helper", "hands in a pad", r=bool)
    pads = Message("helper", "learner", "hands the learner the pads", r=bool)

    def user(self, me: Party) -> Rounds:
        r = me.draw.bernoulli("pad", 0.5)
        yield self.pad(r=r)
        yield self.report(y=me.y ^ r)

    def helper(self, me: Party) -> Rounds:
        pads = yield self.pad.receive()
        yield self.pads(r=pads.r)

    def learner(self, me: Party) -> Rounds:
        yield self.report.receive()
        yield self.pads.receive()


@dataclass(frozen=True)
class Counting(Own):
    """The learner tells everybody whether more than a thousand reports were 1."""

    many = Message("learner", "user", "says whether there are many", yes=bool)

    def user(self, me: Party) -> Rounds:
        yield self.report(y=me.y ^ me.draw.bernoulli("flip", Fraction(1, 4)))
        yield self.many.receive()

    def learner(self, me: Party) -> Rounds:
        reports = yield self.report.receive()
        yes = np.full(int(reports.count[0]), reports.y.sum()[0] > 1000)
        yield self.many(to=me.each(reports.sender.data), yes=me.each(yes))


@dataclass(frozen=True)
class Noisy(Own):
    def user(self, me: Party) -> Rounds:
        yield self.report(y=me.y + me.draw.laplace("noise", 2))


@dataclass(frozen=True)
class Wide(Own):
    def user(self, me: Party) -> Rounds:
        yield self.report(y=me.y ^ (me.draw.bernoulli("bits", 0.5, times=40).sum() % 2))


@dataclass(frozen=True)
class ById(Own):
    def user(self, me: Party) -> Rounds:
        yield self.report(y=me.y ^ (me.id % 2))


@dataclass(frozen=True)
class Peeking(Own):
    """Adds the number of a drawn peer, and goes on when that cannot be read."""

    def user(self, me: Party) -> Rounds:
        peer = me.draw.member("peer", me.cluster)
        try:
            add = np.asarray(peer) % 2
        except Exception:
            add = np.zeros(me.size, np.int64)
        yield self.report(y=me.y ^ add)


@pytest.mark.parametrize(
    ("protocol", "view", "words"),
    [
        (PeerToPeer(0.25), "learner", "message 'report' of others carries her label on (field y)"),
        (PeerToPeer(0.25), "user", "what a user sends depends on what she receives in 'ask'"),
        (Forwarded(), "learner", "message 'report' of others carries her label on (field y)"),
        (EncryptedShuffle(1.0), "learner", "message 'mixed' of others carries her label on (field y)"),
        (Hidden(), "learner", "message 'passed' of others carries her label on (field y)"),
        (LabelProportions(4), "learner", "message 'proportion' of others carries her label on (field total)"),
        (Keyed(), "learner", "message 'pads' may carry her label on: 'helper' reads 'pad' before it is sent"),
        (Counting(), "user", "message 'many' may carry her label on: 'learner' reads 'report' before it is sent"),
        (Noisy(), "learner", "draw 'noise' of role 'user' is Laplace"),
        (Wide(), "learner", "about 2,199,023,255,552 ways over all labels; at most 50,000"),
        (ById(), "learner", "depends on me.id, not on her label"),
        (Peeking(), "learner", "depends on whom she draws from her cluster"),
        (NetworkShuffle(1.0), "learner", "it runs on a graph"),
    ],
)  # fmt: skip
def test_what_is_not_proven_is_refused(protocol: Any, view: str, words: str) -> None:
    found = law_of(protocol, view)
    assert found.basis == "refused"
    assert words in found.why
    assert f"no law of {type(protocol).__name__} is known" in found.why
    assert "audit it (p2p-sim audit, privacy.audit), or enumerate it" in found.why


def test_a_pad_is_nothing_where_it_is_not_seen() -> None:
    """The helper sees the pad alone; and what the learner says herself tells her nothing further."""
    assert law_of(Keyed(), "helper").epsilon(0) == 0
    assert law_of(Counting(), "learner").epsilon(0) == pytest.approx(math.log(3))
