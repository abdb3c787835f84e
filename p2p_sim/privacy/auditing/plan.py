"""What an audit counts, chosen before any trial is looked at: the events, from the exact law.

A score is the log likelihood ratio of label 1 to label 0.  Of the exact curve, in x = e^epsilon, delta is convex with
slope -q, where q is the chance under the denominator that the loss exceeds epsilon.  So the curve alone tells what
the event "loss > epsilon" is worth with so many trials, in each direction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from p2p_sim.privacy.auditing import intervals
from p2p_sim.privacy.profile import Law

_KNOTS = 96
_PART = 0.2  # of delta, that the bound at a point should reach
POINTS = 5
"""Points of the curve that are audited where delta is too small to be measured."""


@dataclass(frozen=True)
class Chance:
    """The event "loss > ``epsilon``", with its probability under the numerator, ``p``, and the denominator, ``q``."""

    epsilon: float
    p: float
    q: float


def chances(law: Law, trials: int) -> list[list[Chance]]:
    """Return some events and their probabilities: first those of label 1 over 0, then those of label 0 over 1.

    A plan need not be exact, so the law is looked at quickly, and as far as ``trials`` can show anything.
    """
    near = law.quick()
    pure = min(near.pure(), 700.0)
    last = pure if law.closed and pure <= 1 else min(pure, near.epsilon(1 / (trials + 1)) * 1.05)
    knots = np.linspace(0.0, last, _KNOTS if law.closed else _KNOTS // 2)
    curves = [near.directions(float(e)) if e < pure else None for e in knots]
    deltas = ([0.0 if both is None else both[side].value for both in curves] for side in range(2))
    return [_events(knots, delta) for delta in deltas]


def _events(knots: npt.NDArray[np.float64], delta: list[float]) -> list[Chance]:
    found = []
    for i in range(len(knots) - 1):
        rise = math.exp(knots[i]) * math.expm1(knots[i + 1] - knots[i])
        q = max(0.0, (delta[i] - delta[i + 1]) / rise) if rise else 0.0
        p = min(1.0, delta[i] + math.exp(knots[i]) * q)
        if p > 0:
            found.append(Chance(float(knots[i] + knots[i + 1]) / 2, p, q))
    return found


def best(found: list[Chance], delta: float, trials: int, confidence: float) -> Chance:
    """Return the event whose lower bound of epsilon is expected to be largest with so many trials a label."""

    def worth(chance: Chance) -> float:
        return intervals.expected_epsilon(chance.p, chance.q, delta, trials, confidence, 1)

    return max(found, key=worth, default=Chance(0.0, 0.0, 0.0))


def points(sides: list[list[Chance]], trials: int, confidence: float) -> list[float]:
    """Return epsilons, from 0 up, at which so many trials are expected to measure a good part of delta."""

    def measurable(chance: Chance) -> bool:
        delta = chance.p - math.exp(chance.epsilon) * chance.q
        bound = intervals.expected_delta(chance.p, chance.q, chance.epsilon, trials, confidence, 1 + POINTS)
        return bound > _PART * delta > 0

    last = max((chance.epsilon for side in sides for chance in side if measurable(chance)), default=0.0)
    return np.linspace(0.0, last, POINTS).tolist() if last > 0 else []
