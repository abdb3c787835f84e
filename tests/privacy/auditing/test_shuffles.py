"""Every view of the shuffles is audited by its law and stays below it; twins that do not shuffle are found."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from p2p_sim import InputError, privacy
from p2p_sim.core import Message, Party, Protocol, Rounds
from p2p_sim.privacy.auditing.worlds import users_a_batch
from protocols import EncryptedShuffle, PeerPermutation, RandomizedResponse
from protocols.peer_permutation import SHARES, successors

pytestmark = pytest.mark.slow

SETTINGS: dict[str, Any] = {"trials": 10_000, "confidence": 0.9999, "false_alarm": 1e-9, "seed": 2}
ONE, THREE = EncryptedShuffle(1.0), EncryptedShuffle(1.0, shufflers=3)
ALL_THREE = "shuffler+shuffler2+shuffler3+learner"
VIEWS = [
    *((ONE, view, "plain") for view in ("shuffler", "learner", "user", "learner+user", "learner+3*user")),
    *((ONE, view, "plain") for view in ("shuffler+learner", "wire", "learner+wire", "shuffler+user+wire")),
    (ONE, "learner+wire", "encrypted"), (ONE, "shuffler+learner+wire", "encrypted"), (ONE, "wire+user", "encrypted"),
    *((THREE, view, "plain") for view in ("shuffler3", "shuffler3+shuffler+learner", ALL_THREE)),
    (THREE, "shuffler+learner+user", "plain"),
    *((PeerPermutation(0.2), view, "plain") for view in ("learner", "user", "3*user", "learner+user", "wire")),
    *((PeerPermutation(0.2), view, "plain") for view in ("learner+wire", "wire+user")),
    *((PeerPermutation(0.2), view, "encrypted") for view in ("wire", "wire+user", "learner+wire", "learner+user+wire")),
]  # fmt: skip


@pytest.mark.parametrize(("protocol", "view", "channels"), VIEWS)
def test_views_follow_their_law(protocol: Protocol, view: str, channels: str) -> None:
    """Each view at one point: at a δ or at an ε, in turn."""
    point = ({"delta": 0.02}, {"epsilon": 0.3})[VIEWS.index((protocol, view, channels)) % 2]
    audit = privacy.audit(protocol, view, cluster_size=5, channels=channels, **point, **SETTINGS)
    assert audit.statistic == "exact likelihood ratio"
    assert not audit.failed, audit.why
    assert audit.exact is not None
    assert audit.lower <= audit.exact
    assert audit.lower >= 0.4 * audit.exact, "and much of it is measured"


@pytest.mark.parametrize("composition", [0, 2, 4])
def test_other_compositions_follow_their_law(composition: int) -> None:
    for protocol in (ONE, PeerPermutation(0.2)):
        found = privacy.audit(protocol, cluster_size=5, delta=0.02, composition=composition, **SETTINGS)
        assert not found.failed, found.why


@pytest.mark.parametrize("view", ["learner", "learner+user", "shuffler"])
def test_a_classifier_finds_nothing_beside_the_law(view: str) -> None:
    small = SETTINGS | {"trials": 6000}
    for protocol in (ONE, EncryptedShuffle(1.0, labels=3)):
        audit = privacy.audit(protocol, view, cluster_size=4, epsilon=0.3, statistic="classifier", **small)
        assert not audit.failed, audit.why
    found = privacy.audit(
        EncryptedShuffle(1.0, labels=3), "shuffler+learner", cluster_size=4, delta=0.0, **small
    )
    assert not found.failed
    assert found.lower > 0.7


@dataclass(frozen=True)
class Shuffles(EncryptedShuffle):
    """Passes reports on as they came, or lets the first user tell on herself, or lies less than it says."""

    sorts: bool = False
    less: float = 0.0

    def user(self, me: Party) -> Rounds:
        lies = me.draw.bernoulli("lie", RandomizedResponse(self.epsilon + self.less).lying())
        yield self.report(cluster=me.cluster.label, y=(me.y ^ lies).view(np.uint8))

    def shuffler(self, me: Party) -> Rounds:
        reports = yield self.report.receive()
        order = reports.rank if self.sorts else me.draw.permutation("order", each=reports)
        yield self.mixed(cluster=reports.cluster.take(order), y=reports.y.take(order))


@pytest.mark.parametrize(
    ("twin", "found"),
    [(Shuffles(1.0), False), (Shuffles(1.0, sorts=True), True), (Shuffles(1.0, less=0.5), True)],
)
def test_broken_shufflers_are_found(twin: Shuffles, found: bool) -> None:
    audit = privacy.audit(twin, cluster_size=8, delta=0.02, against=ONE, **SETTINGS)
    assert (audit.law is not None and audit.law.rejected) == found


@dataclass(frozen=True)
class Permutes(Protocol):
    """A peer permutation whose contributions are all zero, or whose users keep their labels half of the time."""

    alpha: float
    silent: bool = False
    keeps: float = 0.0

    share = Message("user", "user", "contributes to the seed", sealed_for="user", word=np.uint64)
    label = Message("user", "user", "hands the noisy label on", y_hat=bool)
    report = Message("user", "learner", "hands the learner the label that came", y=bool)

    def user(self, me: Party) -> Rounds:
        y_hat = me.y ^ me.draw.bernoulli("flip", self.alpha)
        word = me.draw.below("share", SHARES).astype(np.uint64) * np.uint64(not self.silent)
        shares = yield self.share(to=me.all_of(me.cluster), word=word)
        to = successors(me.cluster, me.id, shares.word.sum() % np.uint64(SHARES))
        labels = yield self.label.reply(shares.where(shares.sender == to), y_hat=y_hat)
        own = me.draw.bernoulli("own", self.keeps)
        yield self.report(y=np.where(own, y_hat, labels.y_hat.first(False)))

    def learner(self, me: Party) -> Rounds:
        yield self.report.receive()


@pytest.mark.parametrize(
    ("twin", "view", "found"),
    [
        (Permutes(0.2), "learner", False), (Permutes(0.2), "user", False), (Permutes(0.2), "learner+user", False),
        (Permutes(0.2, silent=True), "user", True), (Permutes(0.1), "learner", True), (Permutes(0.1), "wire", True),
        (Permutes(0.2, keeps=0.5), "learner", True),
    ],
)  # fmt: skip
def test_broken_permutations_are_found(twin: Permutes, view: str, found: bool) -> None:
    audit = privacy.audit(twin, view, cluster_size=5, delta=0.02, against=PeerPermutation(0.2), **SETTINGS)
    assert audit.failed == found


def test_worlds_in_which_users_talk_a_lot_are_run_few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert users_a_batch(PeerPermutation(0.2), 100, 10**6) == 100_000
    assert users_a_batch(PeerPermutation(0.2), 3000, 10**6) == 6000
    assert users_a_batch(EncryptedShuffle(1.0), 100, 10**6) == 1_000_000
    monkeypatch.setattr(PeerPermutation, "users_at_once", lambda self, size: 20 * size)
    assert users_a_batch(PeerPermutation(0.2), 30, 10**6) == 20 * 30
    audit = privacy.audit(PeerPermutation(0.2), cluster_size=30, epsilon=0.1, trials=400)
    assert not audit.failed


def test_worlds_that_are_mixed_with_each_other_are_refused() -> None:
    with pytest.raises(InputError, match="over = 'everybody': the worlds of an audit would be mixed"):
        privacy.audit(EncryptedShuffle(1.0, over="everybody"), cluster_size=5, delta=0.1)


def test_certain_labels_are_seen_at_once() -> None:
    for protocol in (EncryptedShuffle(math.inf), PeerPermutation(0.0)):
        audit = privacy.audit(protocol, cluster_size=4, delta=0.0, **SETTINGS)
        assert not audit.failed
        assert audit.lower > 5
