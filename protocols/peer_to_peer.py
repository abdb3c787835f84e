"""Peer-to-peer cluster randomized response: everybody reports the noisy label of a random peer."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from p2p_sim.core import Inbox, LabelNoise, Message, Party, Protocol, Rounds, beside, check_range, check_whole

MOST_RETRIES = 100


@dataclass(frozen=True)
class PeerToPeer(Protocol):
    """Users flip their labels, fetch the noisy label of a random peer of their cluster, and report it.

    ``alpha``: probability in [0, 1/2] that a user flips her own label.  ``theta``: probability in (0, 1] that a
    user reports.  ``retries``: how often a user whom nobody answered asks again, a fresh peer each time; then she has
    nothing to report.  Labels are bits.  The learner returns columns ``sender`` and ``y``.  Raises InputError for
    parameters out of range.

    *Source:* Clustering 2022, Algorithm 2 (there alpha may reach 1; beyond 1/2 it is the same with labels renamed).
    *Assumes:* users follow the protocol; the learner may be curious; every peer sees one noisy label, which is
    protected by alpha alone.
    """

    alpha: float
    theta: float = 1.0
    retries: int = 0

    ask = Message("user", "user", "asks a random peer of the cluster for her noisy label")
    label = Message("user", "user", "answers with the noisy label", y_hat=bool)
    report = Message("user", "learner", "hands the learner a resampled label", y=bool)

    def __post_init__(self) -> None:
        check_range("alpha", self.alpha, 0, 0.5)
        check_range("theta", self.theta, 0, 1, open_low=True)
        check_whole("retries", self.retries, 0, MOST_RETRIES)

    def label_noise(self) -> LabelNoise:
        """Return that labels are flipped, and drawn from the cluster."""
        return LabelNoise(Fraction(self.alpha), whose="cluster")

    def user(self, me: Party) -> Rounds:  # line 1
        """Run lines 2 to 10 for a block of users."""
        y_hat = me.y ^ me.draw.bernoulli("flip", self.alpha)  # 3
        asks = yield self.ask(to=me.draw.member("peer", me.cluster))  # 5
        labels = yield self.label.reply(asks, y_hat=y_hat)
        for _ in range(self.retries):  # not in the paper, whose messages all arrive
            labels = yield from self._ask_again(me, labels, y_hat)
        kept = me.draw.bernoulli("subsample", self.theta)  # 9
        yield self.report(y=labels.y_hat, when=kept)  # 7, 12

    def _ask_again(self, me: Party, heard: Inbox, y_hat: Any) -> Rounds:
        """Let those whom nobody answered ask another peer; return what everybody has heard by then."""
        asks = yield self.ask(to=me.draw.member("peer", me.cluster), when=heard.count == 0)
        labels = yield self.label.reply(asks, y_hat=y_hat)
        return beside(heard, labels)

    def learner(self, me: Party) -> Rounds:
        """Receive the noisy data set."""
        reports = yield self.report.receive()
        return reports.columns()  # 13
