"""A law that is given by its losses in both directions, and the losses of laws that list their outcomes.

*Source:* ``docs/laws.md``, "Composition".
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from p2p_sim.privacy.composition.privacy_loss import Points, points_of
from p2p_sim.privacy.law import Bracket, Law

Pair = tuple[Points, Points]
"""Losses from label 0 to 1 and back."""


@dataclass(frozen=True, eq=False)
class Losses(Law):
    """Losses of one label's view in both directions, with an upper and a lower end each.

    ``single``: laws of single runs, whose deltas are lower ends too; ``top``: the pure epsilon, nats.
    """

    upper: Pair
    lower: Pair
    top: float
    exact: bool
    single: tuple[Law, ...] = ()

    def directions(self, epsilon: float) -> tuple[Bracket, Bracket]:
        """Return delta in both directions; the value is the upper end unless the losses are exact."""
        found = []
        known = [law.directions(epsilon) for law in self.single if epsilon < law.pure()]
        for side, (up, down) in enumerate(zip(self.upper, self.lower, strict=True)):
            high, middle = up.most(epsilon), up.delta(epsilon)
            low = max([down.least(epsilon), *(pair[side].lower for pair in known)])
            found.append(Bracket(min(low, high), min(max(middle, low), high) if self.exact else high, high))
        return found[0], found[1]

    def pure(self) -> float:
        """Return the sum of the parts' pure epsilons."""
        return self.top

    def one_pair(self) -> Law | None:
        """Return this law if it is that of one pair: each part lists its outcomes, or is of noise."""
        return None if self.single else self

    def epsilon(self, delta: float) -> float:
        """Return the least epsilon whose delta is at most ``delta``, in (0, 1)."""
        if not self.exact:
            return self.epsilon_bracket(delta).value
        return min(self.top, max(points.inverse(delta) for points in self.upper))

    def epsilon_bracket(self, delta: float) -> Bracket:
        """Return ``epsilon`` with ends at which delta was checked."""
        high = max(points.inverse(delta) for points in self.upper)
        low = max(points.inverse(delta) for points in self.lower)
        value, width = high, 1e-13
        while high < self.top and max(points.most(high) for points in self.upper) > delta:
            high, width = value + width * (value + 1e-3), width * 4
        width = 1e-13
        under, low = low, min(low, value)
        while 0 < low < math.inf and self.delta(low).lower < delta:
            low, width = under - width * (under + 1e-3), width * 4
        low = max([low, *(law.epsilon_bracket(delta).lower for law in self.single)])  # more runs show no less
        low, high = max(0.0, min(low, self.top)), min(high, self.top)
        return Bracket(low, min(max(value, low), high) if self.exact else high, high)


def composed_before(law: Law) -> tuple[Pair, Pair, tuple[Law, ...]] | None:
    """Return the losses of a composition at both ends, and its ``single`` laws; None of other laws."""
    return (law.upper, law.lower, law.single) if isinstance(law, Losses) else None


def losses_of(law: Law) -> Pair | None:
    """Return the losses of a law that lists its outcomes, or was composed exactly; None of any other."""
    if isinstance(law, Losses):
        return law.upper if law.upper is law.lower else None
    outcomes, wrong = law.outcomes(), law.outcomes_error()
    if outcomes is None:
        return None
    p, q = (np.array(side) for side in outcomes)
    return points_of(q, p, wrong), points_of(p, q, wrong)
