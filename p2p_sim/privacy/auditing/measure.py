"""From scores to lower bounds: events chosen in advance, counts, and the largest bound the trials could give."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from p2p_sim.privacy.auditing import confidence_bounds, power_analysis
from p2p_sim.privacy.auditing.claims import CONSISTENT, INCONCLUSIVE, VIOLATED
from p2p_sim.privacy.auditing.evidence import Evidence
from p2p_sim.privacy.auditing.worlds import Situation
from p2p_sim.privacy.enumeration.recent_results import memoized
from p2p_sim.privacy.law import Law

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


@memoized
def chances(law: Law, trials: int) -> tuple[tuple[Chance, ...], tuple[Chance, ...]]:
    """Return some events and their probabilities: first those of label 1 over 0, then those of label 0 over 1.

    A plan need not be exact, so the law is looked at quickly, and as far as ``trials`` can show anything.
    """
    near = law.quick()
    pure = min(near.pure(), 700.0)
    last = pure if law.closed and pure <= 1 else min(pure, near.epsilon(1 / (trials + 1)) * 1.05)
    knots = np.linspace(0.0, last, _KNOTS if law.closed else _KNOTS // 2)
    curves = [near.directions(float(e)) if e < pure else None for e in knots]
    first, second = ([0.0 if both is None else both[side].value for both in curves] for side in range(2))
    return _events(knots, first), _events(knots, second)


def _events(knots: npt.NDArray[np.float64], delta: list[float]) -> tuple[Chance, ...]:
    found = []
    for i in range(len(knots) - 1):
        rise = math.exp(knots[i]) * math.expm1(knots[i + 1] - knots[i])
        q = max(0.0, (delta[i] - delta[i + 1]) / rise) if rise else 0.0
        p = min(1.0, delta[i] + math.exp(knots[i]) * q)
        if p > 0:
            found.append(Chance(float(knots[i] + knots[i + 1]) / 2, p, q))
    return tuple(found)


def best(found: Sequence[Chance], delta: float, trials: int, confidence: float) -> Chance:
    """Return the event whose lower bound of epsilon is expected to be largest with so many trials a label."""

    def worth(chance: Chance) -> float:
        return confidence_bounds.expected_epsilon(chance.p, chance.q, delta, trials, confidence, 1)

    return max(found, key=worth, default=Chance(0.0, 0.0, 0.0))


def points_to_count(sides: Sequence[Sequence[Chance]], trials: int, confidence: float) -> list[float]:
    """Return epsilons, from 0 up, at which so many trials are expected to measure a good part of delta."""

    def measurable(chance: Chance) -> bool:
        delta = chance.p - math.exp(chance.epsilon) * chance.q
        bound = confidence_bounds.expected_delta(
            chance.p, chance.q, chance.epsilon, trials, confidence, 1 + POINTS
        )
        return bound > _PART * delta > 0

    last = max((chance.epsilon for side in sides for chance in side if measurable(chance)), default=0.0)
    return np.linspace(0.0, last, POINTS).tolist() if last > 0 else []


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
    bound was seen.  ``counted``: how often an event that was counted is seen without the label: by the law, in both
    directions, or where there is none the event of the bound, as it was counted.
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
    counted: tuple[float, ...] = ()

    def detectable(self, claim: float, trials: int) -> float | None:
        """Return the least violation of a claim that so many trials could have shown; None if there is none."""
        found = [
            power_analysis.minimum_detectable(
                self.kind, self.at, claim, q, trials, self.events, self.confidence
            )
            for q in self.counted
        ]
        return min((each for each in found if each is not None), default=None)

    def needed(self, target: float) -> int | None:
        """Return how many trials a label are expected to give a lower bound of ``target``; None if not known."""
        plans = []
        for chance in self.chances:
            if self.kind == "delta":
                found = confidence_bounds.trials_to_measure(
                    chance.p, chance.q, self.at, target, self.events, self.confidence
                )
            else:
                found = confidence_bounds.trials_to_measure_delta(
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
    sides: Sequence[Sequence[Chance]]
    if kind == "epsilon":
        sides = [] if here is None else [[_at(here, side, at)] for side in range(2)]
    else:
        sides = [] if here is None or here.pure() == 0 else chances(here, trials)
    epsilons: list[float] = []
    planned: list[Chance] = []
    if evidence.above is not None and evidence.below is not None:
        above, below = evidence.above, evidence.below
    elif kind == "epsilon":
        first = second = math.nextafter(at, math.inf)
        planned = [side[0] for side in sides]
        # Beyond its pure epsilon the law gives the event no chance, but what runs may not obey the law.
        if here is not None and at >= here.pure():
            planned = [best(side, 0.0, trials, confidence) for side in chances(here, trials)]
            first, second = (chance.epsilon for chance in planned)
        above, below = np.array([first]), np.array([-second])
    else:
        if here is not None and 0 < at < MEASURABLE / trials:
            epsilons = points_to_count(sides, trials, confidence)
        planned = [best(side, at, trials, confidence) for side in sides or [[], []]]
        first, second = (chance.epsilon for chance in planned)
        more = [math.nextafter(epsilon, math.inf) for epsilon in epsilons]
        above, below = np.array([first, *more]), -np.array([second, *more])
    hits = confidence_bounds.count(*evidence.scores, above, below)
    events = hits.events / 2
    if kind == "delta":
        found = confidence_bounds.epsilon_lower(hits, at, confidence)
        cap = confidence_bounds.cap_epsilon(trials, at, events, confidence)
    else:
        found = confidence_bounds.delta_lower(hits, at, confidence)
        cap = confidence_bounds.cap_delta(trials, at, events, confidence)
    points = tuple(
        _point(epsilon, confidence_bounds.delta_lower(hits, epsilon, confidence).value, here)
        for epsilon in epsilons
        if here is not None
    )
    known = tuple(chance for side in sides for chance in side)
    counted = tuple(chance.q for chance in planned if chance.p > 0)
    if evidence.above is not None:
        counted = (found.against / trials,)
    return Measured(
        kind, at, found.value, cap, events, points, known or _rates(hits), confidence,
        found.hits / trials, found.against / trials, counted,
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


def _rates(hits: confidence_bounds.Hits) -> tuple[Chance, ...]:
    """Return the events as often as they were seen, where no law tells."""
    above = zip(hits.above_b / hits.trials_b, hits.above_a / hits.trials_a, strict=True)
    below = zip(hits.below_a / hits.trials_a, hits.below_b / hits.trials_b, strict=True)
    return tuple(Chance(math.nan, float(p), float(q)) for p, q in (*above, *below) if p > 0)


_SHARE, _LEAST = 10, 400
PILOT_CONFIDENCE = 0.5
"""Of bounds of a pilot, which promises nothing, and only compares."""


def pilot_worlds(trials: int) -> int:
    """Return how many worlds a label a pilot has: a tenth of the trials, but no fewer than some."""
    return max(2, min(trials, max(_LEAST, trials // _SHARE)))


def worst_of_few(
    situation: Situation,
    honest: int,
    point: tuple[str, float],
    trials: int,
    seed: int,
    look: Callable[[Situation, int, int], Evidence],
) -> tuple[int, str]:
    """Return the composition that shows most, of all zeros, half ones and all ones, and a sentence about it.

    ``look``: scores so many worlds a label of a situation, with a seed.  The worlds here, a tenth of ``trials`` for
    each, have draws of their own and are not counted.  ``honest``: others.
    """
    few = sorted({0, honest // 2, honest})
    if len(few) == 1:
        return few[0], ""
    worlds = pilot_worlds(trials)

    def shown(ones: int) -> float:
        name = hashlib.sha256(f"pilot/{seed}/{ones}".encode()).digest()
        evidence = look(replace(situation, composition=ones), worlds, int.from_bytes(name[:8], "little"))
        return measured(*point, evidence, PILOT_CONFIDENCE, None).lower

    found = {ones: shown(ones) for ones in few}
    worst = max(few, key=lambda ones: found[ones])
    compositions = ", ".join(map(str, few))
    return worst, f"; composition {worst} showed most, of {compositions}, in {worlds:,} other worlds a label"
