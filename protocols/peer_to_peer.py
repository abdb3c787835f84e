"""Peer-to-peer cluster randomized response: everybody reports the noisy label of a random peer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from p2p_sim.core import (
    Inbox,
    InputError,
    Label,
    Message,
    Party,
    Protocol,
    Rounds,
    beside,
    check_flip,
    check_labels,
    check_range,
    check_whole,
)
from p2p_sim.core.errors import near
from p2p_sim.core.groups import Members

MOST_RETRIES = 100
OVER = ("cluster", "neighbours")


@dataclass(frozen=True)
class PeerToPeer(Protocol):
    """Users randomize their labels, fetch the noisy label of a random peer of their cluster, and report it.

    ``alpha``: probability in [0, (k - 1)/k] that a user replaces her own label by one of the k - 1 others, each as
    likely; with two labels, in [0, 1/2] that she flips it.  ``theta``: probability in (0, 1] that a user reports.
    ``retries``: how often a user whom nobody answered asks again, a fresh peer each time; then she has nothing to
    report.  ``over``: of whom the peer is drawn, "cluster" (all users of the cluster, herself included) or
    "neighbours" (hers in the population's graph, which stays within clusters).  ``labels``: k, from 2 to 256.  The
    learner returns columns ``sender`` and ``y`` (bool where k = 2, else uint8).  Raises InputError for parameters out
    of range, and at the start of a run over neighbours for a population without a graph, a user without a neighbour,
    neighbours of two clusters, and a cluster whose graph is not connected.

    *Source:* Clustering 2022, Algorithm 2 (there labels are bits, k = 2, alpha may reach 1, beyond 1/2 it is the same
    with labels renamed, and peers are of the whole cluster).
    *Assumes:* users follow the protocol; the learner may be curious; every peer sees one noisy label, which is
    protected by alpha alone.
    """

    alpha: float
    theta: float = 1.0
    retries: int = 0
    over: str = "cluster"
    labels: int = 2

    ask = Message("user", "user", "asks a random peer of the cluster for her noisy label")
    label = Message("user", "user", "answers with the noisy label", y_hat=Label())
    report = Message("user", "learner", "hands the learner a resampled label", y=Label())

    def __post_init__(self) -> None:
        check_labels("labels", self.labels)
        check_range("alpha", self.alpha, 0, 0.5 if self.labels == 2 else 1)
        if self.alpha > (most := (self.labels - 1) / self.labels):
            raise InputError(
                f"alpha = {self.alpha!r}: of {self.labels} labels at most {most!r}, where each label is as likely"
            )
        check_range("theta", self.theta, 0, 1, open_low=True)
        check_whole("retries", self.retries, 0, MOST_RETRIES)
        if self.over not in OVER:
            raise InputError(
                f"over = {self.over!r}: must be one of {', '.join(OVER)}{near(str(self.over), OVER)}"
            )

    def label_count(self) -> int:
        """Return k."""
        return self.labels

    def graph_over(self) -> str | None:
        """Return that peers among neighbours need a graph in each cluster."""
        return "cluster" if self.over == "neighbours" else None

    def peers(self, me: Party) -> Members:
        """Return of whom each user draws her peer."""
        return me.cluster if self.over == "cluster" else me.neighbours

    def noisy(self, me: Party) -> Any:
        """Draw what each user says her label is."""
        flips = me.draw.bernoulli("flip", self.alpha)
        if self.labels == 2:
            return me.y ^ flips
        other = 1 + me.draw.below("other", self.labels - 1)  # how far another label is, counted around
        return ((me.y + flips * other) % self.labels).astype(me.y.dtype)

    def user(self, me: Party) -> Rounds:  # line 1
        """Run lines 2 to 10 for a block of users."""
        check_flip("alpha", self.alpha)
        y_hat = self.noisy(me)  # 3
        asks = yield self.ask(to=me.draw.member("peer", self.peers(me)))  # 5
        labels = yield self.label.reply(asks, y_hat=y_hat)
        for _ in range(self.retries):  # not in the paper, whose messages all arrive
            labels = yield from self._ask_again(me, labels, y_hat)
        kept = me.draw.bernoulli("subsample", self.theta)  # 9
        yield self.report(y=labels.y_hat, when=kept)  # 7, 12

    def _ask_again(self, me: Party, heard: Inbox, y_hat: Any) -> Rounds:
        """Let those whom nobody answered ask another peer; return what everybody has heard by then."""
        asks = yield self.ask(to=me.draw.member("peer", self.peers(me)), when=heard.count == 0)
        labels = yield self.label.reply(asks, y_hat=y_hat)
        return beside(heard, labels)

    def learner(self, me: Party) -> Rounds:
        """Receive the noisy data set."""
        reports = yield self.report.receive()
        return reports.columns()  # 13
