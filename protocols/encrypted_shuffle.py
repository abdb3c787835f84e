"""Encrypted shuffle: noisy labels, sealed for the learner, whose senders a shuffler strips before it permutes them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from p2p_sim.core import (
    InputError,
    Message,
    Party,
    Protocol,
    Rounds,
    check_labels,
    check_range,
    check_whole,
)
from p2p_sim.core.errors import near
from protocols.randomized_response import RandomizedResponse

OVER = ("cluster", "everybody")
LONGEST = 3
"""Most shufflers in a chain: one that is honest is enough, so more of them only cost more."""


@dataclass(frozen=True)
class EncryptedShuffle(Protocol):
    """Users randomize their labels and seal them for the learner; shufflers strip the senders and permute.

    ``epsilon``: at least 0, in nats, of the randomized response.  ``labels``: k, from 2 to 256.  ``over``: "cluster"
    seals each user's cluster number with her label, so that the learner knows labels cluster by cluster; "everybody"
    does not, and hides better.  ``shufflers``: 1 to 3 in a chain, under whose layers of sealing reports travel:
    shuffler3, shuffler2, shuffler.  The learner returns columns ``cluster`` (-1: not told) and ``y`` (uint8) in the
    order in which they arrived, which says nothing of their senders.  Raises InputError for parameters out of range.

    *Source:* Clustering 2022, section 5.1; Bittau et al. 2017 (Prochlo); the chain: Chaum 1981.
    *Assumes:* users follow the protocol; at least one shuffler of the chain permutes honestly and tells nobody how.
    """

    epsilon: float
    labels: int = 2
    over: str = "cluster"
    shufflers: int = 1

    report = Message(
        "user", "shuffler", "hands over a noisy label, sealed for the learner", sealed_for="learner",
        layers=("shuffler",), cluster=np.int64, y=np.uint8,
    )  # fmt: skip
    report2 = Message(
        "user", "shuffler2", "the same, to the first shuffler of two", sealed_for="learner",
        layers=("shuffler2", "shuffler"), cluster=np.int64, y=np.uint8,
    )  # fmt: skip
    report3 = Message(
        "user", "shuffler3", "the same, to the first shuffler of three", sealed_for="learner",
        layers=("shuffler3", "shuffler2", "shuffler"), cluster=np.int64, y=np.uint8,
    )  # fmt: skip
    passed3 = Message(
        "shuffler3", "shuffler2", "passes a report on, one layer less, in another order", sealed_for="learner",
        layers=("shuffler2", "shuffler"), cluster=np.int64, y=np.uint8,
    )  # fmt: skip
    passed2 = Message(
        "shuffler2", "shuffler", "passes a report on, one layer less, in another order", sealed_for="learner",
        layers=("shuffler",), cluster=np.int64, y=np.uint8,
    )  # fmt: skip
    mixed = Message(
        "shuffler", "learner", "passes a report on without its sender, in another order", sealed_for="learner",
        cluster=np.int64, y=np.uint8,
    )  # fmt: skip

    def __post_init__(self) -> None:
        check_range("epsilon", self.epsilon, 0, math.inf)
        check_labels("labels", self.labels)
        if self.over not in OVER:
            raise InputError(
                f"over = {self.over!r}: must be one of {', '.join(OVER)}{near(str(self.over), OVER)}"
            )
        check_whole("shufflers", self.shufflers, 1, LONGEST)

    @property
    def randomizer(self) -> RandomizedResponse:
        """What each user does to her label."""
        return RandomizedResponse(self.epsilon, self.labels)

    def label_count(self) -> int:
        """Return k."""
        return self.labels

    @classmethod
    def in_clusters(cls) -> bool:
        """Return that clusters matter: a shuffler may mix each by itself."""
        return True

    def mixes_everybody(self) -> bool:
        """Whether the learner cannot tell clusters apart."""
        return self.over == "everybody"

    def kinds_at_work(self) -> dict[str, Message]:
        """Return what is sent along a chain of this length."""
        chain = (("report",), ("report2", "passed2"), ("report3", "passed3", "passed2"))[self.shufflers - 1]
        return {kind: self.messages()[kind] for kind in (*chain, "mixed")}

    def user(self, me: Party) -> Rounds:
        """Randomize, seal for the learner and then for each shuffler, and hand over."""
        y_hat = self.randomizer.noisy(me)
        cluster = -1 if self.mixes_everybody() else me.cluster.label
        first = (self.report, self.report2, self.report3)[self.shufflers - 1]
        yield first(cluster=cluster, y=y_hat)

    def shuffler3(self, me: Party) -> Rounds:
        """Begin a chain of three."""
        if self.shufflers == LONGEST:
            yield from self._mix(me, self.report3, self.passed3)

    def shuffler2(self, me: Party) -> Rounds:
        """Begin a chain of two, or go on with one of three."""
        if self.shufflers > 1:
            yield from self._mix(
                me, self.passed3 if self.shufflers == LONGEST else self.report2, self.passed2
            )

    def shuffler(self, me: Party) -> Rounds:
        """End every chain."""
        yield from self._mix(me, self.passed2 if self.shufflers > 1 else self.report, self.mixed)

    def _mix(self, me: Party, taken: Message, given: Message) -> Rounds:
        """Take reports, forget who sent them, and pass them on in a uniformly random order.

        All are permuted at once: what the learner can tell, that reports name clusters, is what she would know if
        each cluster's were permuted apart.
        """
        reports = yield taken.receive()
        order = me.draw.permutation("order", each=reports)
        yield given(cluster=reports.cluster.take(order), y=reports.y.take(order))

    def learner(self, me: Party) -> Rounds:
        """Open the reports."""
        reports = yield self.mixed.receive()
        return {"cluster": reports.cluster.data, "y": reports.y.data}
