"""Protocols with faults, each with an honest setting: what audits must find, and must not accuse.

``Peers`` and ``Answers`` have the messages of Algorithm 2 and of randomized response, so the laws of those can read
them.  The others have no law in the package; their profile is given to the audit as ``against``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from p2p_sim.core import Label, Message, Party, Protocol, Rounds
from p2p_sim.core.columns import PerMessage


@dataclass(frozen=True)
class Peers(Protocol):
    """Algorithm 2 with faults, each with a probability: all 0 is honest."""

    alpha: float = 0.1
    theta: float = 0.5
    own: float = 0.0  # reports her own label as it is
    near: float = 0.0  # asks the first of two peers
    shy: float = 0.0  # withholds a report if her label is 1
    early: float = 0.0  # reports a round early if her label is 1
    one_sided: float = 0.0  # a label 1 is not flipped
    fresh: bool = False  # flips anew for every peer who asks
    only: int = 0  # of clusters of so many users, only the first ever reports her own label

    ask = Message("user", "user", "asks a random peer of the cluster for her noisy label")
    label = Message("user", "user", "answers with the noisy label", y_hat=bool)
    report = Message("user", "learner", "hands the learner a resampled label", y=bool)

    def user(self, me: Party) -> Rounds:
        honest = me.draw.bernoulli("flip", self.alpha)
        y_hat = me.y ^ (honest & ~(me.y & me.draw.bernoulli("sided", self.one_sided)))
        peer, other = me.draw.member("peer", me.cluster), me.draw.member("other", me.cluster)
        near = me.draw.bernoulli("near", self.near)
        asks = yield self.ask(to=np.where(near, np.minimum(peer, other), peer))
        anew = me.y ^ me.draw.bernoulli("again", self.alpha, each=asks) if self.fresh else y_hat
        labels = yield self.label.reply(asks, y_hat=anew)
        kept = me.draw.bernoulli("subsample", self.theta) & ~(me.y & me.draw.bernoulli("shy", self.shy))
        own, early = me.draw.bernoulli("own", self.own), me.y & me.draw.bernoulli("early", self.early)
        own = own & (me.id % self.only == 0) if self.only else own
        y = (own & me.y) | (~own & labels.y_hat)
        if self.early:
            yield self.report(y=y, when=kept & early)
        yield self.report(y=y, when=kept & ~early)

    def learner(self, me: Party) -> Rounds:
        for _ in range(2 if self.early else 1):
            yield self.report.receive()


@dataclass(frozen=True)
class LabelPeers(Protocol):
    """Algorithm 2 with several labels and faults: all 0 is honest."""

    alpha: float = 0.1
    theta: float = 0.5
    labels: int = 3
    own: float = 0.0  # reports her own label as it is
    near: float = 0.0  # asks the first of two peers
    next_only: float = 0.0  # of the other labels, says the next one
    fresh: bool = False  # draws what she says anew for every peer who asks

    ask = Message("user", "user", "asks a random peer of the cluster for her noisy label")
    label = Message("user", "user", "answers with the noisy label", y_hat=Label())
    report = Message("user", "learner", "hands the learner a resampled label", y=Label())

    def label_count(self) -> int:
        return self.labels

    def user(self, me: Party) -> Rounds:
        other = 1 + me.draw.below("other", self.labels - 1)
        other = np.where(me.draw.bernoulli("next", self.next_only), 1, other)
        y_hat = (me.y + me.draw.bernoulli("flip", self.alpha) * other) % self.labels
        peer, second = me.draw.member("peer", me.cluster), me.draw.member("second", me.cluster)
        asks = yield self.ask(
            to=np.where(me.draw.bernoulli("near", self.near), np.minimum(peer, second), peer)
        )
        anew = me.draw.bernoulli("again", self.alpha, each=asks) if self.fresh else 0
        labels = yield self.label.reply(asks, y_hat=(y_hat + anew) % self.labels)
        kept, own = me.draw.bernoulli("subsample", self.theta), me.draw.bernoulli("own", self.own)
        yield self.report(y=np.where(own, me.y, labels.y_hat), when=kept)

    def learner(self, me: Party) -> Rounds:
        yield self.report.receive()


@dataclass(frozen=True)
class Answers(Protocol):
    """Randomized response that draws the lie from all k values, or lies with another probability."""

    lie: float  # probability of a lie
    labels: int = 2
    all_values: bool = False  # a lie may be the truth
    copies: int = 1  # answers, with fresh lies

    report = Message("user", "learner", "hands the learner a randomized label", y=np.uint8)

    def label_count(self) -> int:
        return self.labels

    def user(self, me: Party) -> Rounds:
        lies = me.draw.bernoulli("lie", self.lie, times=self.copies)
        least = 0 if self.all_values else 1
        step = least + me.draw.below("other", self.labels - least, times=self.copies)
        yield self.report(y=(me.y + lies * step) % self.labels)

    def learner(self, me: Party) -> Rounds:
        yield self.report.receive()


@dataclass(frozen=True)
class Leaky(Protocol):
    """Randomized response and one more message, which tells the label."""

    epsilon: float

    report = Message("user", "learner", "hands the learner a randomized label", y=np.uint8)
    note = Message("user", "learner", "tells the truth")

    def user(self, me: Party) -> Rounds:
        yield self.report(y=me.y ^ me.draw.bernoulli("lie", 1 / (1 + math.exp(self.epsilon))))
        yield self.note(when=me.y)

    def learner(self, me: Party) -> Rounds:
        yield self.report.receive()
        yield self.note.receive()


@dataclass(frozen=True)
class Shuffled(Protocol):
    """Noisy bits, sealed for the learner, through a shuffler that mixes the clusters of ``size`` users each."""

    size: int
    flip: float
    keeps_order: bool = False

    report = Message(
        "user", "shuffler", "hands over a sealed noisy bit", sealed_for="learner", y=bool, cluster=np.int32
    )
    mixed = Message("shuffler", "learner", "passes it on", sealed_for="learner", y=bool, cluster=np.int32)

    def user(self, me: Party) -> Rounds:
        yield self.report(y=me.y ^ me.draw.bernoulli("flip", self.flip), cluster=me.id // self.size)

    def shuffler(self, me: Party) -> Rounds:
        reports = yield self.report.receive()
        cluster, keys = reports.sender // self.size, me.draw.uniform("order", each=reports)
        order = reports.rank
        if not self.keeps_order:
            order = PerMessage(np.lexsort((keys.data, cluster.data)), reports.layout)
        yield self.mixed(y=reports.y.take(order), cluster=reports.cluster.take(order))

    def learner(self, me: Party) -> Rounds:
        yield self.mixed.receive()


@dataclass(frozen=True)
class Counted(Protocol):
    """An aggregator counts the ones of each cluster of ``size`` users and adds discrete Laplace noise."""

    size: int
    scale: Fraction  # in users
    noisy: bool = True

    label = Message("user", "aggregator", "hands over the label", y=bool)
    total = Message("aggregator", "learner", "a noisy count", count_of_ones=np.int64, cluster=np.int32)

    def user(self, me: Party) -> Rounds:
        yield self.label(y=me.y)

    def aggregator(self, me: Party) -> Rounds:
        labels = yield self.label.receive()
        ones = me.each(labels.y.data.reshape(-1, self.size).sum(1))
        noise = me.draw.laplace("noise", self.scale, each=ones) if self.noisy else 0
        yield self.total(count_of_ones=ones + noise, cluster=ones.rank)

    def learner(self, me: Party) -> Rounds:
        yield self.total.receive()


@dataclass(frozen=True)
class Centralized(Protocol):
    """Clustering 2022, Algorithm 1, for two labels: lines 1 to 25, whose q~ is part of the modified loss.

    ``sigma``, ``tau``, ``lam``: its parameters; ``size``: users of each cluster.  Counts are on a grid of 1/``GRID``,
    q~ on one of 2^-``BITS``: rounding what was released privately keeps it so.
    """

    size: int
    sigma: int
    tau: Fraction
    lam: Fraction

    GRID = 100
    BITS = 20

    label = Message("user", "curator", "hands over the label", y=bool)
    distribution = Message(
        "curator", "learner", "q~ of a cluster", ones=np.int64, zeros=np.int64, cluster=np.int32
    )
    noisy = Message("curator", "learner", "a label of the noisy data set", y=bool, cluster=np.int32)

    def user(self, me: Party) -> Rounds:
        yield self.label(y=me.y)

    def curator(self, me: Party) -> Rounds:
        labels = yield self.label.receive()
        y = labels.y.data.reshape(-1, self.size)
        ones = me.each(y.sum(1))
        whole, floor = self.size * self.GRID, int(self.tau * self.size * self.GRID)
        # 4-7: the noise sigma/n of a share is that of sigma on its count
        q = [
            np.clip((count * self.GRID + me.draw.laplace(name, self.sigma * self.GRID, each=ones)).data, floor, whole)
            for name, count in (("ones", ones), ("zeros", self.size - ones))
        ]  # fmt: skip
        gap = whole - q[0] - q[1]  # 9
        xi = [np.where(gap < 0, part - floor, whole - part) for part in q]  # 10-16
        sums = np.maximum(1, xi[0] + xi[1])
        one, zero = (
            ((part * sums + x * gap) << self.BITS) // (sums * whole) for part, x in zip(q, xi, strict=True)
        )  # 18
        yield self.distribution(ones=me.each(one), zeros=me.each(zero), cluster=ones.rank)
        sender = labels.sender.data // self.size
        anew = me.draw.bernoulli("anew", self.lam, each=labels)  # 24
        drawn = me.draw.below("drawn", 1 << self.BITS, each=labels).data < one[sender].astype(np.uint64)  # 23
        yield self.noisy(y=me.each(np.where(anew.data, drawn, labels.y.data)), cluster=me.each(sender))

    def learner(self, me: Party) -> Rounds:
        yield self.distribution.receive()
        yield self.noisy.receive()


@dataclass(frozen=True)
class OneSided(Protocol):
    """Randomized response in which users with one label always tell the truth."""

    lie: float
    truthful: int

    report = Message("user", "learner", "hands the learner a randomized label", y=np.uint8)

    def user(self, me: Party) -> Rounds:
        yield self.report(y=me.y ^ (me.draw.bernoulli("lie", self.lie) & (me.y != self.truthful)))

    def learner(self, me: Party) -> Rounds:
        yield self.report.receive()


@dataclass(frozen=True)
class Unnamed(Protocol):
    """An aggregator whose messages do not say, or say wrongly, which cluster they are of."""

    size: int
    named: bool

    label = Message("user", "aggregator", "hands over the label", y=bool)
    total = Message("aggregator", "learner", "a count", ones=np.int64)
    total_of = Message("aggregator", "learner", "a count with a number", ones=np.int64, cluster=np.int32)

    def user(self, me: Party) -> Rounds:
        yield self.label(y=me.y)

    def aggregator(self, me: Party) -> Rounds:
        labels = yield self.label.receive()
        ones = me.each(labels.y.data.reshape(-1, self.size).sum(1))
        yield (
            self.total(ones=ones, when=not self.named),
            self.total_of(ones=ones, cluster=ones.rank + 7, when=self.named),
        )

    def learner(self, me: Party) -> Rounds:
        yield self.total.receive(), self.total_of.receive()


@dataclass(frozen=True)
class ReusedDraw(Protocol):
    """Algorithm 2 in which one uniform draw both flips the label and decides the subsample."""

    alpha: float = 0.2
    theta: float = 0.5

    ask = Message("user", "user", "asks a random peer of the cluster for her noisy label")
    label = Message("user", "user", "answers with the noisy label", y_hat=bool)
    report = Message("user", "learner", "hands the learner a resampled label", y=bool)

    def user(self, me: Party) -> Rounds:
        u = me.draw.uniform("u")
        y_hat = me.y ^ (u < self.alpha)
        asks = yield self.ask(to=me.draw.member("peer", me.cluster))
        labels = yield self.label.reply(asks, y_hat=y_hat)
        yield self.report(y=labels.y_hat, when=u < self.theta)

    def learner(self, me: Party) -> Rounds:
        yield self.report.receive()


@dataclass(frozen=True)
class TruthfulClass(Protocol):
    """k-ary randomized response that always tells the truth where the label is ``truthful``; -1: honest."""

    epsilon: float
    labels: int
    truthful: int

    report = Message("user", "learner", "hands the learner a randomized label", y=np.uint8)

    def label_count(self) -> int:
        return self.labels

    def user(self, me: Party) -> Rounds:
        truth = math.exp(self.epsilon) / (math.exp(self.epsilon) + self.labels - 1)
        honest = me.draw.bernoulli("honest", truth) | (me.y == self.truthful)
        other = me.draw.below("other", self.labels - 1)
        yield self.report(y=np.where(honest, me.y, other + (other >= me.y)))

    def learner(self, me: Party) -> Rounds:
        yield self.report.receive()
