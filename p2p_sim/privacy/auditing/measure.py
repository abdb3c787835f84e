"""From scores to figures: lower bounds, what the trials could have shown at most, and how many would show more."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from p2p_sim.privacy.auditing import intervals, plan
from p2p_sim.privacy.auditing.claims import CONSISTENT, INCONCLUSIVE, VIOLATED
from p2p_sim.privacy.auditing.evidence import Evidence
from p2p_sim.privacy.auditing.plan import Chance
from p2p_sim.privacy.profile import Law

MEASURABLE = 10
"""Trials in which something of probability delta should be seen, for delta to be measurable."""


@dataclass(frozen=True)
class Point:
    """A point of the curve: δ measured at ``epsilon`` (at least ``lower``) beside the ``exact`` one."""

    epsilon: float
    lower: float
    exact: float
    verdict: str


@dataclass(frozen=True)
class Measured:
    """``lower``: the bound on ε or δ; ``cap``: the most it could have been; ``events``: half of those counted.

    ``true_positive``, ``false_positive``: shares of the worlds with and without the label in which the event of the
    bound was seen.
    """

    kind: str
    at: float
    lower: float
    cap: float
    events: float
    points: tuple[Point, ...]
    chances: tuple[Chance, ...]
    confidence: float
    true_positive: float
    false_positive: float

    def needed(self, target: float) -> int | None:
        """Return how many trials a label are expected to give a lower bound of ``target``; None if it can't be told."""
        plans = []
        for chance in self.chances:
            if self.kind == "delta":
                found = intervals.trials_to_measure(
                    chance.p, chance.q, self.at, target, self.events, self.confidence
                )
            else:
                found = intervals.trials_to_measure_delta(
                    chance.p, chance.q, self.at, target, self.events, self.confidence
                )
            plans += [] if found is None else [found]
        return min(plans, default=None)


def measured(kind: str, at: float, evidence: Evidence, confidence: float, here: Law | None) -> Measured:
    """Count the events and return the figures.

    ``here``: the exact law at the composition that ran.  With it, events come from the law, and where δ is too small
    to be measured, it is measured at several ε.  Without scores of a law, events are those that a classifier chose.
    """
    trials = evidence.trials
    if kind == "epsilon":
        sides = [] if here is None else [[_at(here, side, at)] for side in range(2)]
    else:
        sides = [] if here is None or here.pure() == 0 else plan.chances(here, trials)
    epsilons: list[float] = []
    if evidence.above is not None and evidence.below is not None:
        above, below = evidence.above, evidence.below
    elif kind == "epsilon":
        first = second = math.nextafter(at, math.inf)
        # Beyond its pure epsilon the law gives the event no chance, but what runs may not obey the law.
        if here is not None and at >= here.pure():
            first, second = (
                plan.best(side, 0.0, trials, confidence).epsilon for side in plan.chances(here, trials)
            )
        above, below = np.array([first]), np.array([-second])
    else:
        if here is not None and 0 < at < MEASURABLE / trials:
            epsilons = plan.points(sides, trials, confidence)
        first, second = (plan.best(side, at, trials, confidence).epsilon for side in sides or [[], []])
        more = [math.nextafter(epsilon, math.inf) for epsilon in epsilons]
        above, below = np.array([first, *more]), -np.array([second, *more])
    hits = intervals.count(*evidence.scores, above, below)
    events = hits.events / 2
    if kind == "delta":
        found = intervals.epsilon_lower(hits, at, confidence)
        cap = intervals.cap_epsilon(trials, at, events, confidence)
    else:
        found = intervals.delta_lower(hits, at, confidence)
        cap = intervals.cap_delta(trials, at, events, confidence)
    points = tuple(
        _point(epsilon, intervals.delta_lower(hits, epsilon, confidence).value, here)
        for epsilon in epsilons
        if here is not None
    )
    known = tuple(chance for side in sides for chance in side)
    return Measured(
        kind, at, found.value, cap, events, points, known or _rates(hits), confidence,
        found.hits / trials, found.against / trials,
    )  # fmt: skip


def _point(epsilon: float, lower: float, here: Law) -> Point:
    exact = here.delta(epsilon)
    verdict = VIOLATED if lower > exact.upper else CONSISTENT if lower > 0 else INCONCLUSIVE
    return Point(epsilon, lower, exact.value, verdict)


def _at(law: Law, side: int, epsilon: float) -> Chance:
    """Return the event "loss > epsilon", from two points of the curve close by."""
    if epsilon >= law.pure():
        return Chance(epsilon, 0.0, 0.0)
    step = min(1e-3 * (epsilon + 1e-3), law.pure() - epsilon)
    first, second = (law.directions(e)[side].value for e in (epsilon, epsilon + step))
    q = max(0.0, (first - second) / (math.exp(min(epsilon, 700)) * math.expm1(step)))
    return Chance(epsilon, min(1.0, first + math.exp(min(epsilon, 700)) * q), q)


def _rates(hits: intervals.Hits) -> tuple[Chance, ...]:
    """Return the events as often as they were seen, where no law tells."""
    above = zip(hits.above_b / hits.trials_b, hits.above_a / hits.trials_a, strict=True)
    below = zip(hits.below_a / hits.trials_a, hits.below_b / hits.trials_b, strict=True)
    return tuple(Chance(math.nan, float(p), float(q)) for p, q in (*above, *below) if p > 0)
