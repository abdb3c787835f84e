"""Laplace label proportions: a trusted aggregator adds noise to the number of positive labels of each bag."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from p2p_sim.core import BagSums, InputError, Message, Party, Protocol, Rounds, check_range, check_whole
from p2p_sim.core.exact import LAPLACE_LIMIT
from p2p_sim.network.bags import bag_numbers
from protocols.label_proportions import counted

LARGEST = 700.0
"""Largest epsilon of noise, in nats: beyond it one label in e^700 would be noised."""

MOST_MOVED = 24.0
"""Most nats by which one label may move a draw of a run."""


@dataclass(frozen=True)
class LaplaceLabelProportions(Protocol):
    """As label proportions, with Laplace(1 / (k epsilon)) noise on each proportion: scale 1 / epsilon on its count.

    ``epsilon``: in (0, 700], in nats; in a run at most 24, for the tail that hides a label must be drawn.
    ``bag_size``: k, users a bag, as in LabelProportions.  ``grid``: steps of
    noise a label, at least 1.  The noise is discrete, on the multiples of 1 / (k grid) of a proportion, so that its
    law is exact; 1 is the geometric mechanism, many steps come close to the paper's continuous noise.  Labels are bits.
    The learner returns columns ``bag``, ``cluster``, ``size`` (labels that arrived) and ``total``, the noisy number of
    ones in steps: the proportion is total / (grid size), and may lie outside of 0 to 1.  Raises InputError for
    parameters out of range.

    *Source:* Unified 2023, section 6 (Lap-LLP); Ghosh, Roughgarden, Sundararajan 2009 (discrete noise).
    *Assumes:* the aggregator is trusted: she sees every label.  For nobody trusted see SecureAggregation.
    """

    epsilon: float
    bag_size: int = 16
    grid: int = 1

    report = Message(
        "user", "aggregator", "hands the trusted aggregator a label", bag=np.int32, cluster=np.int32, y=bool
    )
    proportion = Message(
        "aggregator", "learner", "tells how many labels of a bag there are, and about how many are 1",
        bag=np.int32, cluster=np.int32, size=np.int32, total=np.int64,
    )  # fmt: skip

    def __post_init__(self) -> None:
        check_whole("bag_size", self.bag_size)
        check_noise(self.epsilon, self.grid, LAPLACE_LIMIT)

    def bag_sums(self) -> BagSums:
        """Return the bags."""
        return BagSums(self.bag_size, self.grid)

    def user(self, me: Party) -> Rounds:
        """Hand in the label, with the public number of the bag."""
        bag = bag_numbers(me.cluster, me.id, self.bag_size)
        yield self.report(bag=bag, cluster=me.cluster.codes, y=me.y)

    def aggregator(self, me: Party) -> Rounds:
        """Count each bag, and add noise."""
        check_tail(self.epsilon, self.epsilon)
        reports = yield self.report.receive()
        bag, cluster, size, ones = counted(reports)
        exact = me.each(ones * self.grid)
        noise = me.draw.laplace("noise", scale(self.epsilon, self.grid), each=exact)
        yield self.proportion(
            bag=me.each(bag), cluster=me.each(cluster), size=me.each(size), total=exact + noise
        )

    def learner(self, me: Party) -> Rounds:
        """Receive the noisy counts."""
        proportions = yield self.proportion.receive()
        return proportions.columns()


def check_tail(epsilon: float, moved: float) -> None:
    """Check, in a program, that the noise reaches as far as its law says; raises InputError.

    ``moved``: by how many nats one label moves one draw.  A value rarer than one random word in 2^64 is never drawn, so
    a move of m nats shows itself with a probability of about e^m / 2^64: 1.4e-9 at the most that is taken.
    """
    if moved > MOST_MOVED:
        raise InputError(
            f"epsilon = {epsilon!r}: one label would move the noise by {moved:.4g} nats, and the tail that hides it "
            f"is too rare to be drawn; at most {MOST_MOVED:g} are possible: give an epsilon of at most "
            f"{math.floor(1000 * epsilon * MOST_MOVED / moved) / 1000:g}"
        )


def scale(epsilon: float, grid: int) -> Fraction:
    """Return the scale of the noise in steps, exactly."""
    return Fraction(int(grid)) / Fraction(epsilon)


def check_noise(epsilon: float, grid: int, limit: int) -> None:
    """Check the noise's parameters, and that its table has no more than so many steps; raises InputError."""
    check_range("epsilon", epsilon, 0, LARGEST, open_low=True)
    check_whole("grid", grid)
    if scale(epsilon, grid) > limit:
        coarser = f"a grid of at most {int(limit * epsilon):,}, or " if limit * epsilon >= 1 else ""
        raise InputError(
            f"epsilon = {epsilon!r} with grid = {grid}: noise of {float(scale(epsilon, grid)):,.0f} steps; at most "
            f"{limit:,} are drawn: give {coarser}an epsilon of at least {grid / limit:g}"
        )
