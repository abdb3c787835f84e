"""Multi-stage response: what a stage of users reported becomes the prior under which the next stage answers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core import (
    FixedPoint,
    Inbox,
    InputError,
    Message,
    Party,
    Protocol,
    Rounds,
    Vector,
    check_labels,
    check_range,
    check_whole,
)
from p2p_sim.core.columns import PerMessage
from p2p_sim.core.errors import near
from protocols.prior_response import PriorResponse

Array = npt.NDArray[Any]

CHANCE, PUBLIC = "chance", "public"
SPLITS = (CHANCE, PUBLIC)

MOST_STAGES = 100

AT_ONCE = 16_384
"""Reports counted at a time: what lies between stays in the processor's cache."""

PROBABILITY = FixedPoint(resolution=2**-15, low=0, high=1)
"""A probability of a prior on its way, two bytes."""


@dataclass(frozen=True)
class MultiStage(Protocol):
    """Users answer in stages, each user once: later stages by randomized response under what earlier ones reported.

    Stage 1 answers by randomized response over all k labels.  From its reports the learner estimates how frequent each
    label is in each cluster, and sends that, in steps of 2^-15, to the users of the next stage who ask for it; they
    answer among the labels that it makes likely, as ``PriorResponse`` has it, and so on.  An estimate is the share of a
    label among reports without what lies add, the mean over the stages so far weighted by their reports, negative
    shares cut to 0 and the rest divided by its sum.  Of labels that could not be reported it keeps the prior.
    The prior of a cluster of which nobody has reported is uniform.

    ``epsilon``: as of ``PriorResponse``.  ``labels``: k, from 2 to 256.  ``stages``: T, from 1 to 100, at most as many
    as there are users; LP-2ST has 2.  ``split``: "chance", every user draws her stage uniformly; or "public": the
    population's public column "stage", 1 to T.

    The learner returns columns ``sender``, ``stage`` (from 1) and ``y`` (uint8).  Raises InputError for parameters out
    of range, for a population with fewer users than stages, and for a column of stages that does not fit.

    *Source:* Ghazi et al. 2021, "Deep Learning with Label Differential Privacy", LP-MST; LP-2ST of Attacks 2023,
    Appendix B.  There the prior is a model's prediction; here it is the histogram of the public cluster.
    *Assumes:* users follow the protocol and answer once; stages and clusters depend on no user's label; nobody need be
    trusted.
    """

    epsilon: float
    labels: int = 2
    stages: int = 2
    split: str = CHANCE

    report = Message("user", "learner", "hands the learner a randomized label", cluster=np.int32, y=np.uint8)
    ask = Message("user", "learner", "asks for the prior of her cluster", cluster=np.int32)
    prior = Message(
        "learner", "user", "tells how likely each label is in the cluster", p=Vector(PROBABILITY, "labels")
    )

    def __post_init__(self) -> None:
        check_range("epsilon", self.epsilon, 0, math.inf)
        check_labels("labels", self.labels)
        check_whole("stages", self.stages, 1, MOST_STAGES)
        if self.split not in SPLITS:
            raise InputError(
                f"split = {self.split!r}: must be one of {', '.join(SPLITS)}{near(str(self.split), SPLITS)}"
            )

    def label_count(self) -> int:
        """Return k."""
        return self.labels

    def least_users(self) -> int:
        """Return that every stage may have a user."""
        return self.stages

    @property
    def response(self) -> PriorResponse:
        """The randomizer, whose prior stage 1 has."""
        return PriorResponse(self.epsilon, self.labels)

    def user(self, me: Party) -> Rounds:
        """Report once, in the own stage: the label or a lie, among the labels that can be reported then."""
        stage = self._stage(me)
        said = self.answers(me)
        yield self.report(cluster=me.cluster.codes, y=said, when=stage == 1)
        for number in range(2, self.stages + 1):
            yield self.ask(cluster=me.cluster.codes, when=stage == number)
            given = yield self.prior.receive()
            answers = PerMessage(self.answers(me, given), given.layout)
            # whatever priors a learner hands out, nobody answers twice
            yield self.report(cluster=me.cluster.codes, y=answers, when=(given.rank == 0) & (stage == number))

    def answers(self, me: Party, given: Inbox | None = None) -> Array:
        """Draw what users say: under the uniform prior, or whoever was given one, once for each message, under that."""
        if given is not None:
            return self.response.answers_to(me, given, given.p)
        first = self.response.shared_prior()
        assert first is not None
        order, m = self.response.reportable(first[None])
        return self.response.answers(me, order, int(m[0]))

    def _stage(self, me: Party) -> Array:
        """Return each user's stage, from 1."""
        if self.split == CHANCE:
            return np.asarray(1 + me.draw.below("stage", self.stages, dtype=np.uint8))
        return check_stage(me.public["stage"], self.stages, me.id)

    def learner(self, me: Party) -> Rounds:
        """Receive the randomized labels, stage by stage; after each but the last, tell the users of the next."""
        reports = yield self.report.receive()
        parts, beliefs = [reports.columns()], Beliefs(self.response)
        for _ in range(1, self.stages):
            beliefs.learn(reports.cluster.data, reports.y.data)
            asks = yield self.ask.receive()
            priors = beliefs.travelling(asks.cluster.data)
            yield self.prior.reply(asks, p=PerMessage(priors, asks.layout, fixed=PROBABILITY))
            reports = yield self.report.receive()
            parts.append(reports.columns())
        stage = np.repeat(np.arange(1, self.stages + 1, dtype=np.uint8), [len(part["y"]) for part in parts])
        joined = {name: np.concatenate([part[name] for part in parts]) for name in ("sender", "y")}
        return joined | {"stage": stage}


@dataclass
class Beliefs:
    """What the learner knows of the labels of each cluster that has reported; plain arithmetic, the same everywhere.

    ``shares``: estimates of how frequent each label is, which may be negative, a row for each cluster by its number;
    ``weight``: how many reports each comes from.
    """

    response: PriorResponse
    shares: Array = field(init=False)
    weight: Array = field(default_factory=lambda: np.zeros(0))
    sent_yet: bool = False

    def __post_init__(self) -> None:
        self.shares = np.zeros((0, self.response.labels))

    def learn(self, cluster: Array, y: Array) -> None:
        """Take in the reports of a stage, made under the priors that were sent: whose cluster, and which label."""
        k = self.response.labels
        self._make_room(cluster)
        clusters = len(self.weight)
        prior = self.table()[:-1] if self.sent_yet else np.full((clusters, k), 1 / k)
        counts: Array = np.zeros(clusters * k)
        step = max(AT_ONCE, clusters * k)
        for low in range(0, len(y), step):
            few = slice(low, low + step)
            counts += np.bincount(cluster[few].astype(np.int64) * k + y[few], minlength=clusters * k)
        found, reports = self._debiased(prior, counts.reshape(-1, k))
        total = self.weight + reports
        sums = self.weight[:, None] * self.shares + reports[:, None] * found
        self.shares, self.weight = sums / np.maximum(total, 1)[:, None], total

    def _make_room(self, cluster: Array) -> None:
        more = int(cluster.max(initial=-1)) + 1 - len(self.weight)
        if more > 0:
            self.weight = np.concatenate([self.weight, np.zeros(more)])
            self.shares = np.concatenate([self.shares, np.zeros((more, self.response.labels))])

    def _debiased(self, prior: Array, counts: Array) -> tuple[Array, Array]:
        """Return estimates from counts of reports, and of how many reports each is: 0 where they tell nothing."""
        order, m = self.response.reportable(prior)
        among = np.argsort(order, axis=1, kind="stable") < m[:, None]
        reports = _total(counts)
        lies = np.array([0.0, *(float(self.response.lying(n)) for n in range(1, self.response.labels + 1))])[
            m
        ]
        other = (lies / np.maximum(m - 1, 1))[:, None]
        gap = (1 - lies)[:, None] - other  # how much likelier the truth is than another label
        tells = (m > 1) & (gap[:, 0] > 0) & (reports > 0)
        within = _total(np.where(among, prior, 0.0)) / _total(prior)
        expected = other * within[:, None] + ((1 - within) / m)[:, None]
        share = counts / np.maximum(reports, 1)[:, None]
        found = np.where(among, (share - expected) / np.where(gap > 0, gap, 1.0), prior)
        return found, np.where(tells, reports, 0.0)

    def as_read(self, cluster: Array) -> Array:
        """Return the priors of clusters as users read them, shape (n, k)."""
        return np.asarray(PROBABILITY.decoded(self.travelling(cluster)))

    def travelling(self, cluster: Array) -> Array:
        """Return the priors of clusters as they travel, shape (n, k), which is not to be changed."""
        self.sent_yet = True
        priors = np.take(self._multiples(), cluster, axis=0, mode="clip")
        priors.setflags(write=False)  # so that sending it needs no copy
        return np.asarray(priors)

    def table(self) -> Array:
        """Return the prior of each cluster as users read it; the last row is for clusters beyond."""
        return PROBABILITY.decoded(self._multiples())

    def _multiples(self) -> Array:
        likely = np.where(self.weight[:, None] > 0, np.clip(self.shares, 0, None), 1.0)
        likely = np.vstack([likely, np.ones((1, self.response.labels))])
        return PROBABILITY.encoded(likely / _total(likely)[:, None], "prior")


def _total(rows: Array) -> Array:
    """Return the sum of each row, from left to right: the same bits everywhere."""
    return np.asarray(np.cumsum(rows, axis=1)[:, -1])


def check_stage(stage: Array, stages: int, users: Array) -> Array:
    """Return a public column of stages, 1 to ``stages``, of users with some ids; raises InputError naming a user."""
    if stage.ndim != 1 or stage.dtype.kind not in "ui":
        raise InputError(
            f'public column "stage": has {stage.dtype} of shape {stage.shape}; give one integer a user, 1 to {stages}'
        )
    bad = (stage < 1) | (stage > stages)
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f'public column "stage": user {int(users[row])} has {int(stage[row])}; give integers from 1 to {stages}, '
            "or more stages"
        )
    return stage
