"""Algorithm 2: what the learner receives from thousands of disjoint clusters has the exact law; broken twins do not."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from p2p_sim.backends import local
from p2p_sim.core import Message, Population, Protocol
from p2p_sim.core.trace_level import TraceLevel
from protocols import PeerToPeer
from tests.statistical import chi

pytestmark = pytest.mark.slow

ALPHA, THETA = 0.2, 0.7
NONE = 2  # a report that was not sent


class Twin(Protocol):
    """Algorithm 2 with places to break it; ``user`` is that of the paper."""

    ask = Message("user", "user", "asks")
    label = Message("user", "user", "answers", y_hat=bool)
    report = Message("user", "learner", "reports", y=bool)

    def flip(self, me):
        return me.y ^ me.draw.bernoulli("flip", ALPHA)

    def peer(self, me):
        return me.draw.member("peer", me.cluster)

    def answer(self, me, asks, y_hat):
        return self.label.reply(asks, y_hat=y_hat)

    def kept(self, me, labels):
        return me.draw.bernoulli("subsample", THETA)

    def user(self, me):
        y_hat = self.flip(me)
        asks = yield self.ask(to=self.peer(me))
        labels = yield self.answer(me, asks, y_hat)
        yield self.report(y=labels.y_hat, when=self.kept(me, labels))

    def learner(self, me):
        reports = yield self.report.receive()
        return reports.columns()


@dataclass(frozen=True)
class Unbroken(Twin):
    pass


@dataclass(frozen=True)
class FlipsTooRarely(Twin):
    def flip(self, me):
        return me.y ^ me.draw.bernoulli("flip", ALPHA - 0.03)


@dataclass(frozen=True)
class FlipsOnesOnly(Twin):
    def flip(self, me):
        return me.y & ~me.draw.bernoulli("flip", ALPHA)


@dataclass(frozen=True)
class NeverPicksHerself(Twin):
    def peer(self, me):
        rank = me.id % me.cluster.size  # clusters here are consecutive ids of one size
        step = 1 + me.draw.below("peer", me.cluster.size - 1)
        return me.id - rank + (rank + step) % me.cluster.size


@dataclass(frozen=True)
class FavoursTheFirst(Twin):
    def peer(self, me):
        size = me.cluster.size
        return me.id - me.id % size + me.draw.below("peer", size + 1) % size


@dataclass(frozen=True)
class FlipsForEachAnswer(Twin):
    """Every report alone has the right law; only their joint law is wrong."""

    def answer(self, me, asks, y_hat):
        return self.label.reply(
            asks, y_hat=asks.rank * 0 + me.y == ~me.draw.bernoulli("again", ALPHA, each=asks)
        )


@dataclass(frozen=True)
class KeepsOnesMoreOften(Twin):
    def kept(self, me, labels):
        return me.draw.bernoulli(
            "subsample", THETA + 0.02 * labels.y_hat.first(False) - 0.02 * ~labels.y_hat.first(False)
        )


@dataclass(frozen=True)
class KeepsByOwnLabel(Twin):
    def kept(self, me, labels):
        return me.draw.bernoulli("subsample", np.where(me.y, THETA + 0.02, THETA - 0.02))


@dataclass(frozen=True)
class KeepsTooFew(Twin):
    def kept(self, me, labels):
        return me.draw.bernoulli("subsample", THETA - 0.02)


TWINS = (
    FlipsTooRarely, FlipsOnesOnly, NeverPicksHerself, FavoursTheFirst, FlipsForEachAnswer,
    KeepsOnesMoreOften, KeepsByOwnLabel, KeepsTooFew,
)  # fmt: skip


def worlds(compositions, copies):
    """Clusters of consecutive users, ``copies`` of each composition of labels."""
    y = np.tile(np.array(compositions, np.bool_).ravel(), copies)
    size = len(compositions[0])
    return Population.from_arrays(y=y, cluster=np.arange(len(y)) // size)


def reports(protocol, population, size, seed=11):
    """What each user reported, or NONE: shape (clusters, size)."""
    received = local.run(protocol, population, seed, digest=False).outputs["learner"]
    table = np.full(population.users, NONE)
    table[received["sender"]] = received["y"]
    return table.reshape(-1, size)


def view_law(labels):
    """The exact law of all reports of one cluster, by enumeration of flips, peers and who is kept."""
    alpha, theta, size = Fraction(ALPHA), Fraction(THETA), len(labels)
    law = defaultdict(Fraction)
    for flips in product((0, 1), repeat=size):
        weight = Fraction(1)
        for flip in flips:
            weight *= alpha if flip else 1 - alpha
        noisy = [y ^ flip for y, flip in zip(labels, flips, strict=True)]
        for peers in product(range(size), repeat=size):
            for kept in product((0, 1), repeat=size):
                p = weight / size**size
                for keep in kept:
                    p *= theta if keep else 1 - theta
                law[tuple(noisy[peer] if keep else NONE for peer, keep in zip(peers, kept, strict=True))] += p
    return law


TRIPLES = list(product((0, 1), repeat=3))
LAWS = {labels: view_law(labels) for labels in TRIPLES}


def views_follow(protocol):
    population = worlds(TRIPLES, 25_000)
    table = reports(protocol, population, 3)
    return all(
        chi.follows(chi.tally(*table[place :: len(TRIPLES)].T), LAWS[labels])
        for place, labels in enumerate(TRIPLES)
    )


@pytest.mark.parametrize("protocol", [PeerToPeer(ALPHA, THETA), Unbroken()])
def test_the_learners_whole_view_has_the_enumerated_law(protocol):
    assert views_follow(protocol)


@pytest.mark.parametrize("twin", TWINS)
def test_broken_twins_are_rejected_by_the_view(twin):
    assert not views_follow(twin())


def sum_law(size, ones):
    """The exact law of (reports received, ones among them) of a cluster with that many true ones."""
    alpha, law = Fraction(ALPHA), defaultdict(Fraction)
    for (stayed, flipped), p in chi.product(
        chi.binomial(ones, 1 - alpha), chi.binomial(size - ones, alpha)
    ).items():
        share = Fraction(stayed + flipped, size)
        for received, q in enumerate(chi.binomial(size, THETA)):
            for k, r in enumerate(chi.binomial(received, share)):
                law[received, k] += p * q * r
    return law


SIZE = 6
COMPOSITIONS = [[1] * ones + [0] * (SIZE - ones) for ones in range(SIZE + 1)]


def sums_follow(protocol):
    table = reports(protocol, worlds(COMPOSITIONS, 12_000), SIZE)
    received, ones = (table != NONE).sum(axis=1), (table == 1).sum(axis=1)
    step = SIZE + 1
    return all(
        chi.follows(chi.tally(received[place::step], ones[place::step]), sum_law(SIZE, place))
        for place in range(step)
    )


def test_reports_and_ones_received_have_their_joint_law_given_the_composition():
    assert sums_follow(PeerToPeer(ALPHA, THETA))


@pytest.mark.parametrize(
    "twin", [FlipsTooRarely, FlipsOnesOnly, FlipsForEachAnswer, KeepsOnesMoreOften, KeepsTooFew]
)
def test_broken_twins_are_rejected_by_the_sums(twin):
    assert not sums_follow(twin())


def table_of(protocol, kind, population):
    run = local.run(protocol, population, 4, trace=TraceLevel("full"), digest=False)
    parts = run.totals.trace[kind]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def peers_follow(protocol):
    size = 5
    asks = table_of(protocol, "ask", worlds([[0] * size], 20_000))
    assert (asks["sender"] // size == asks["recipient"] // size).all(), "peers are of one's own cluster"
    cells = chi.tally(asks["sender"] % size, asks["recipient"] % size)
    return chi.follows(cells, chi.product([Fraction(1, size)] * size, [Fraction(1, size)] * size))


def test_peers_are_uniform_whoever_asks():
    assert peers_follow(PeerToPeer(ALPHA, THETA))
    assert not peers_follow(NeverPicksHerself())
    assert not peers_follow(FavoursTheFirst())


def flips_follow(protocol, alpha):
    population = worlds([[0, 1, 1, 0]], 50_000)
    labels = table_of(protocol, "label", population)
    answered = dict(
        zip(labels["sender"].tolist(), labels["y_hat"].tolist(), strict=True)
    )  # one noisy label a user
    users = np.array(list(answered))
    lies = np.array(list(answered.values())) != population.y[users]
    return all(
        chi.follows(
            chi.tally(lies[population.y[users] == y]), {(i,): p for i, p in enumerate(chi.coin(alpha))}
        )
        for y in (0, 1)
    )


@pytest.mark.parametrize("alpha", [0.02, 0.2, 0.5])
def test_flips_have_their_rate_for_both_labels(alpha):
    assert flips_follow(PeerToPeer(alpha), alpha)


@pytest.mark.parametrize("twin", [FlipsTooRarely, FlipsOnesOnly])
def test_broken_twins_are_rejected_by_the_flips(twin):
    assert not flips_follow(twin(), ALPHA)


def subsampling_follows(protocol):
    """Who is kept depends neither on her own label nor on the label she holds."""
    population = worlds([[0, 1, 1, 0]], 40_000)
    held = table_of(protocol, "label", population)
    order = np.argsort(held["recipient"])
    kept = np.isin(np.arange(population.users), table_of(protocol, "report", population)["sender"])
    return all(
        chi.follows(chi.tally(kept[chosen]), {(i,): p for i, p in enumerate(chi.coin(THETA))})
        for own in (0, 1)
        for holds in (0, 1)
        for chosen in [(population.y == own) & (held["y_hat"][order] == holds)]
    )


def test_subsampling_has_its_rate_and_looks_at_no_label():
    assert subsampling_follows(PeerToPeer(ALPHA, THETA))
    for twin in (KeepsOnesMoreOften, KeepsByOwnLabel, KeepsTooFew):
        assert not subsampling_follows(twin())
