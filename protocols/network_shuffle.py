"""Network shuffling: noisy labels, sealed for the learner, walk along a graph before they are handed in."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from p2p_sim.core import (
    Inbox,
    Message,
    Party,
    Protocol,
    Rounds,
    check_labels,
    check_range,
    check_whole,
)
from p2p_sim.core.columns import PerMessage
from protocols.randomized_response import RandomizedResponse

MOST_STEPS = 10_000


@dataclass(frozen=True)
class NetworkShuffle(Protocol):
    """Users randomize their labels and seal them; each report walks the population's graph, then is handed in.

    ``epsilon``: at least 0, in nats, of the randomized response.  ``steps``: from 0 (everybody hands in her own) to
    10,000, how often every report moves to a uniform neighbour of its holder.  ``labels``: k, from 2 to 256.  Holders
    hand in all that they hold, and nothing if they hold nothing.  The learner returns columns ``sender`` (who held
    it last) and ``y`` (uint8).  Raises InputError for parameters out of range, and at the start of a run for a
    population without a graph, a user without a neighbour, and a graph that is not connected.

    *Source:* Liew et al., Network Shuffling: Privacy Amplification via Random Walks, 2022, the protocol in which all
    reports are sent.
    *Assumes:* users follow the protocol and do not tell the learner which reports passed through their hands; the
    graph is public; nobody but users sees who writes to whom.
    """

    epsilon: float
    steps: int = 10
    labels: int = 2

    hop = Message(
        "user", "user", "passes a sealed noisy label on to a random neighbour", sealed_for="learner", y=np.uint8
    )  # fmt: skip
    report = Message(
        "user", "learner", "hands in a sealed noisy label that ended its walk here", sealed_for="learner", y=np.uint8
    )  # fmt: skip

    def __post_init__(self) -> None:
        check_range("epsilon", self.epsilon, 0, math.inf)
        check_labels("labels", self.labels)
        check_whole("steps", self.steps, 0, MOST_STEPS)

    @property
    def randomizer(self) -> RandomizedResponse:
        """What each user does to her label."""
        return RandomizedResponse(self.epsilon, self.labels)

    def label_count(self) -> int:
        """Return k."""
        return self.labels

    def graph_over(self) -> str:
        """Return that one graph joins everybody."""
        return "everybody"

    def user(self, me: Party) -> Rounds:
        """Randomize, walk, and hand in what ended here."""
        held: Inbox | None = None
        y: Any = self.randomizer.noisy(me)
        for _ in range(self.steps):
            held = yield self.hop(to=me.draw.member("next", me.neighbours, each=held), y=y)
            y = mixed(me, held)
        yield self.report(y=y)

    def learner(self, me: Party) -> Rounds:
        """Open the reports."""
        reports = yield self.report.receive()
        return reports.columns()


def mixed(me: Party, reports: Inbox) -> PerMessage:
    """Return what each holder received, in a random order.

    An inbox is sorted by sender, and what is sent next is numbered in the order in which it is held: without this, the
    numbers would tell whoever receives the reports, the learner too, in what order their last holders stood.
    """
    return reports.y.take(me.draw.permutation("order", each=reports))
