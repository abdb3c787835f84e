"""Protocols of whose laws nobody wrote any down: what is found of them is tested."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from p2p_sim.coalition import Coalition
from p2p_sim.core import Message, Party, Protocol, Rounds
from p2p_sim.privacy.enumeration.law_finder import found_law
from p2p_sim.privacy.profile import PrivacyProfile
from p2p_sim.privacy.setting import Setting


@dataclass(frozen=True)
class Own(Protocol):
    """What the protocols below have in common."""

    labels: int = 2

    report = Message("user", "learner", "hands the learner something", y=np.int64)

    def label_count(self) -> int:
        return self.labels

    def learner(self, me: Party) -> Rounds:
        reports = yield self.report.receive()
        return reports.columns()


@dataclass(frozen=True)
class Leaky(Own):
    """Response over k labels that forgets to lie where the label is the last."""

    def user(self, me: Party) -> Rounds:
        honest = me.draw.bernoulli("honest", Fraction(1, 2)) | (me.y == self.labels - 1)
        other = me.draw.below("other", self.labels - 1)
        yield self.report(y=np.where(honest, me.y, other + (other >= me.y)))


@dataclass(frozen=True)
class Unary(Own):
    """One bit a label, each flipped by itself."""

    def user(self, me: Party) -> Rounds:
        flips = me.draw.bernoulli("flip", Fraction(1, 4), times=self.labels)
        yield self.report(y=(flips.rank == me.y) ^ flips)


@dataclass(frozen=True)
class Subset(Own):
    """A pair of labels, more often one with her own in it."""

    def user(self, me: Party) -> Rounds:
        pairs = np.array(
            [sum(1 << i for i in pair) for pair in itertools.combinations(range(self.labels), 2)]
        )
        inside = (pairs[None, :] >> me.y[:, None].astype(np.int64)) & 1 == 1
        want = me.draw.bernoulli("inside", Fraction(3, 4))
        pick = me.draw.categorical("pick", [1] * len(pairs))
        again = me.draw.categorical("again", [1] * (self.labels - 1))
        own = np.array([np.flatnonzero(row)[a] for row, a in zip(inside, again, strict=True)])
        yield self.report(y=pairs[np.where(want, own, pick)])


@dataclass(frozen=True)
class Shy(Own):
    """Reports more often where the label is 1: that there is a message tells."""

    def user(self, me: Party) -> Rounds:
        often = me.draw.bernoulli("often", np.where(me.y == 1, 0.75, 0.25))
        yield self.report(y=7 * np.ones(me.size, np.int64), when=often)


@dataclass(frozen=True)
class Reused(Own):
    """One draw both flips the label and decides whether a second message is sent: each by itself tells less."""

    note = Message("user", "learner", "says that something was drawn")

    def user(self, me: Party) -> Rounds:
        u = me.draw.below("u", 4)
        yield self.report(y=me.y ^ (u < 1))
        yield self.note(when=u < 2)

    def learner(self, me: Party) -> Rounds:
        reports = yield self.report.receive()
        yield self.note.receive()
        return reports.columns()


@dataclass(frozen=True)
class ToPeers(Own):
    """A noisy label to a random peer, which is 0 on the way to the learner."""

    told = Message("user", "user", "tells a random peer a noisy label", y=bool)

    def user(self, me: Party) -> Rounds:
        y = me.y ^ me.draw.bernoulli("flip", Fraction(1, 4))
        heard = yield self.told(to=me.draw.member("peer", me.cluster), y=y)
        yield self.report(y=np.zeros(me.size, np.int64))
        return {"heard": heard.count}


@dataclass(frozen=True)
class Twice(Own):
    """Two noisy labels, each to a peer drawn anew."""

    told = Message("user", "user", "tells a random peer a noisy label", y=bool)

    def user(self, me: Party) -> Rounds:
        for flip in (Fraction(1, 4), Fraction(1, 8)):
            y = me.y ^ me.draw.bernoulli("flip", flip)
            yield self.told(to=me.draw.member("peer", me.cluster), y=y)
        yield self.report(y=np.zeros(me.size, np.int64))


@dataclass(frozen=True)
class WhichPeer(Own):
    """Writes to one peer twice, or to two: the label decides, so who is written to tells."""

    told = Message("user", "user", "tells a random peer nothing")

    def user(self, me: Party) -> Rounds:
        first, other = me.draw.member("one", me.cluster), me.draw.member("two", me.cluster)
        yield self.told(to=first)
        yield self.told(to=first, when=me.y == 1)
        yield self.told(to=other, when=me.y == 0)
        yield self.report(y=np.zeros(me.size, np.int64))


@dataclass(frozen=True)
class Thanked(Own):
    """The learner thanks for every report without a look at what it says."""

    thanks = Message("learner", "user", "thanks", n=np.int64)

    def user(self, me: Party) -> Rounds:
        yield self.report(y=me.y ^ me.draw.bernoulli("flip", Fraction(1, 4)))
        yield self.thanks.receive()

    def learner(self, me: Party) -> Rounds:
        reports = yield self.report.receive()
        yield self.thanks(to=me.each(reports.sender.data), n=me.each(np.arange(reports.count[0])))
        return reports.columns()


@dataclass(frozen=True)
class Hidden(Own):
    """A sealed noisy label by way of a mixer."""

    sealed = Message("user", "mixer", "hands in a noisy label", sealed_for="learner", y=bool)
    passed = Message("mixer", "learner", "passes labels on", sealed_for="learner", y=bool)

    def user(self, me: Party) -> Rounds:
        yield self.sealed(y=me.y ^ me.draw.bernoulli("flip", Fraction(1, 4)))
        yield self.report(y=np.ones(me.size, np.int64))

    def mixer(self, me: Party) -> Rounds:
        inbox = yield self.sealed.receive()
        yield self.passed(y=inbox.y.take(me.draw.permutation("order", each=inbox)))

    def learner(self, me: Party) -> Rounds:
        yield self.report.receive()
        yield self.passed.receive()


def law_of(
    protocol: Any, view: str, size: int | None = 3, *, channels: str = "plain", users: str = "curious"
) -> PrivacyProfile:
    """The law found, also for a protocol that has one written down."""
    who = Coalition.parse(view, protocol.roles())
    return found_law(protocol, Setting(who, view, size, None, channels == "encrypted", users == "deviating"))
