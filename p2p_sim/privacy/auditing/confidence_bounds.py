"""Lower confidence bounds on epsilon and delta from hit counts in two worlds, and their limits."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError


def number(name: str, value: Any, low: float, high: float, *, closed: bool = False) -> float:
    """Return a finite number in [low, high), or in [low, high] if ``closed``; raises InputError otherwise."""
    fits = not isinstance(value, bool) and isinstance(value, Real) and math.isfinite(value)
    if not fits or not (low <= value < high or (closed and value == high)):
        raise InputError(
            f"{name} = {value!r}: must be a number in [{low:g}, {high:g}{']' if closed else ')'}"
        )
    return float(value)


def probability(name: str, value: Any) -> float:
    """Return a number in (0, 1); raises InputError otherwise."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < 1:
        raise InputError(f"{name} = {value!r}: must be a number in (0, 1)")
    return float(value)


def whole(name: str, value: Any) -> int:
    """Return a whole number of at least 1; raises InputError otherwise."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < 1:
        raise InputError(f"{name} = {value!r}: must be a whole number, at least 1")
    return int(value)


def counted(name: str, hits: Any, trials: Any) -> npt.NDArray[np.int64]:
    """Return hits as whole numbers from 0 to ``trials``; raises InputError otherwise."""
    most, found = whole("trials", trials), np.asarray(hits)
    if found.dtype.kind not in "iu" and found.size:
        raise InputError(f"{name} = {hits!r}: must be whole numbers from 0 to the {most:,} trials")
    wrong = (found < 0) | (found > most)
    if wrong.any():
        raise InputError(f"{name} = {found[wrong][0]}: must be from 0 to the {most:,} trials")
    return found.astype(np.int64)


Array = npt.NDArray[Any]

HAIR = 1e-12
"""Bounds are rounded outward by this share; scipy's inverse is good to about 1e-15."""


def lower(hits: Any, trials: int, error: float) -> Array:
    """Return the lower Clopper-Pearson bound of a probability, too high with probability at most ``error``.

    ``hits``: whole numbers from 0 to ``trials``, any shape.  ``error`` in (0, 1).  Raises InputError otherwise.
    Source: Clopper & Pearson 1934.
    """
    found = counted("hits", hits, trials).astype(np.float64)
    return lower_real(found, trials, probability("error", error))


def upper(hits: Any, trials: int, error: float) -> Array:
    """Return the upper Clopper-Pearson bound of a probability, too low with probability at most ``error``.

    Arguments as in ``lower``.  Source: Clopper & Pearson 1934.
    """
    found = counted("hits", hits, trials).astype(np.float64)
    return upper_real(found, trials, probability("error", error))


def share(thresholds: float, confidence: float) -> float:
    """Return the error left for one bound: the budget over 2 directions, ``thresholds`` each, and 2 worlds.

    ``thresholds`` is half the number of events, where the directions have different numbers of them.
    """
    if isinstance(thresholds, bool) or not thresholds >= 0.5 or not (2 * thresholds) % 1 == 0:
        raise InputError(
            f"thresholds = {thresholds!r}: must be a whole number, at least 1, or half the events"
        )
    return (1 - probability("confidence", confidence)) / (4 * thresholds)


def lower_real(hits: Array, trials: Any, error: float) -> Array:
    """Return the bound for hits that need not be whole, as planning has them."""
    from scipy.special import betaincinv

    # Without hits the first parameter would be 0; the bound is then 0 whatever it is.
    inner: Array = betaincinv(np.maximum(hits, 1e-9), trials - hits + 1, error) * (1 - HAIR)
    return np.where(hits > 0, inner, 0.0)


def upper_real(hits: Array, trials: Any, error: float) -> Array:
    """Return the bound for hits that need not be whole; 1 where every trial hit."""
    from scipy.special import betainccinv

    # The complement takes a tiny error as it is: 1 - 1e-20 would be 1.
    inner: Array = betainccinv(hits + 1, np.maximum(trials - hits, 1e-9), error) * (1 + HAIR)
    return np.where(hits < trials, np.minimum(inner, 1.0), 1.0)


def ratio(p: Any, q: Any, delta: float) -> Array:
    """Return ln((p - delta)/q), minus infinity where delta alone explains p."""
    over = np.asarray(p) - delta
    return np.asarray(np.where(over > 0, np.log(np.maximum(over, 1e-320)), -np.inf) - np.log(q))


def excess(p: Any, q: Any, epsilon: float) -> Array:
    """Return p - e^epsilon q, or about -1 where that is far below 0; finite for any epsilon."""
    return np.asarray(p - np.exp(np.minimum(epsilon + np.log(q), 1.0)))


MOST_TRIALS = 1 << 53
"""Planning stops here: no audit has so many trials."""

_NONE = 1e-300  # stands for a probability of 0, whose logarithm is asked for


def cap_epsilon(trials: int, delta: float, thresholds: float, confidence: float) -> float:
    """Return the largest ``epsilon_lower`` of any attack, all hits against none, with ``thresholds`` a direction."""
    shift, error = number("delta", delta, 0.0, 1.0), share(thresholds, confidence)
    return _cap(whole("trials", trials), error, lambda p, q: ratio(p, q, shift))


def cap_delta(trials: int, epsilon: float, thresholds: float, confidence: float) -> float:
    """Return the largest ``delta_lower`` of any attack, all hits against none, with ``thresholds`` a direction."""
    at, error = number("epsilon", epsilon, 0.0, math.inf), share(thresholds, confidence)
    return _cap(whole("trials", trials), error, lambda p, q: excess(p, q, at))


def expected_epsilon(
    p: float, q: float, delta: float, trials: int, confidence: float, thresholds: float
) -> float:
    """Return the ``epsilon_lower`` of an event of probabilities ``p`` and ``q`` by expected counts, at least 0."""
    shift, error = number("delta", delta, 0.0, 1.0), share(thresholds, confidence)
    return max(0.0, _mean(p, q, whole("trials", trials), error, lambda x, y: ratio(x, y, shift)))


def expected_delta(
    p: float, q: float, epsilon: float, trials: int, confidence: float, thresholds: float
) -> float:
    """Return the ``delta_lower`` of an event of probabilities ``p`` and ``q`` by expected counts, at least 0."""
    at, error = number("epsilon", epsilon, 0.0, math.inf), share(thresholds, confidence)
    return max(0.0, _mean(p, q, whole("trials", trials), error, lambda x, y: excess(x, y, at)))


def trials_for_epsilon(claim: float, delta: float, thresholds: float, confidence: float) -> int | None:
    """Return the least number of trials a world whose ``cap_epsilon`` exceeds a claim; None if it never does."""
    claim, shift = number("claim", claim, 0.0, math.inf), number("delta", delta, 0.0, 1.0)
    error = share(thresholds, confidence)
    return _least(lambda n: _cap(n, error, lambda p, q: ratio(p, q, shift)) > claim)


def trials_for_delta(claim: float, epsilon: float, thresholds: float, confidence: float) -> int | None:
    """Return the least number of trials a world whose ``cap_delta`` exceeds a claim; None if it never does."""
    claim, at = number("claim", claim, 0.0, 1.0, closed=True), number("epsilon", epsilon, 0.0, math.inf)
    error = share(thresholds, confidence)
    return _least(lambda n: _cap(n, error, lambda p, q: excess(p, q, at)) > claim)


def trials_to_measure(
    p: float, q: float, delta: float, target: float, thresholds: float, confidence: float
) -> int | None:
    """Return how many trials a world should give ``epsilon_lower >= target``, by expected counts; None if none do.

    ``p``, ``q``: true probabilities of the best event in the world that has it more often and in the other.
    ``target`` in nats.  With this many trials, half of all audits or so reach the target.
    """
    shift, target = number("delta", delta, 0.0, 1.0), number("target", target, 0.0, math.inf)
    return _expected(p, q, thresholds, confidence, target, lambda x, y: ratio(x, y, shift))


def trials_to_measure_delta(
    p: float, q: float, epsilon: float, target: float, thresholds: float, confidence: float
) -> int | None:
    """Return how many trials a world should give ``delta_lower >= target``; otherwise as ``trials_to_measure``."""
    at, target = number("epsilon", epsilon, 0.0, math.inf), number("target", target, 0.0, 1.0, closed=True)
    return _expected(p, q, thresholds, confidence, target, lambda x, y: excess(x, y, at))


def _cap(trials: int, error: float, figure: Callable[[Any, Any], Array]) -> float:
    low = math.exp(math.log(error) / trials)
    none = -math.expm1(math.log(error) / trials)
    return max(0.0, float(figure(low, none)))


def _expected(
    p: float,
    q: float,
    thresholds: float,
    confidence: float,
    target: float,
    figure: Callable[[Any, Any], Array],
) -> int | None:
    error = share(thresholds, confidence)
    if not float(figure(number("p", p, 0.0, 1.0, closed=True), max(q, _NONE))) > target:
        return None  # a bound comes as near to the truth as one likes, but not to it
    return _least(lambda n: _mean(p, q, n, error, figure) >= target)


def _mean(p: float, q: float, trials: int, error: float, figure: Callable[[Any, Any], Array]) -> float:
    """Return the figure that the expected counts give, which need not be whole."""
    p, q = number("p", p, 0.0, 1.0, closed=True), number("q", q, 0.0, 1.0, closed=True)
    low, high = (
        lower_real(np.array(p * trials), trials, error),
        upper_real(np.array(q * trials), trials, error),
    )
    return float(figure(low, high))


def _least(enough: Callable[[int], bool]) -> int | None:
    """Return the least number of trials that is enough, by doubling and bisection; None beyond ``MOST_TRIALS``."""
    high = 1
    while not enough(high):
        high *= 2
        if high > MOST_TRIALS:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


__all__ = [
    "ABOVE",
    "BELOW",
    "BestEvent",
    "Hits",
    "cap_delta",
    "cap_epsilon",
    "count",
    "delta_lower",
    "epsilon_lower",
    "expected_delta",
    "expected_epsilon",
    "lower",
    "trials_for_delta",
    "trials_for_epsilon",
    "trials_to_measure",
    "trials_to_measure_delta",
    "upper",
]

ABOVE, BELOW = "above", "below"


@dataclass(frozen=True)
class Hits:
    """How often each event happened in each world; ``above``: "score >= t", ``below``: "score <= t".

    Each column has a number for each threshold of its direction.  Raises InputError for hits that are no whole
    numbers from 0 to the trials, unequal columns, or no threshold at all.
    """

    above_a: Array
    above_b: Array
    below_a: Array
    below_b: Array
    trials_a: int
    trials_b: int

    def __post_init__(self) -> None:
        for name in ("above_a", "above_b", "below_a", "below_b"):
            trials = self.trials_a if name.endswith("a") else self.trials_b
            object.__setattr__(self, name, np.atleast_1d(counted(name, getattr(self, name), trials)))
        if (
            len(self.above_a) != len(self.above_b)
            or len(self.below_a) != len(self.below_b)
            or not self.events
        ):
            lengths = [len(x) for x in (self.above_a, self.above_b, self.below_a, self.below_b)]
            raise InputError(
                f"hits of {lengths} thresholds; needed: as many in both worlds, at least one in all"
            )

    @property
    def events(self) -> int:
        """How many events are counted, over both directions: the budget is shared by two bounds of each."""
        return len(self.above_a) + len(self.below_a)

    def swapped(self) -> Hits:
        """Return what one counts if the worlds trade names and scores change sign."""
        return Hits(self.below_b, self.below_a, self.above_b, self.above_a, self.trials_b, self.trials_a)

    def __add__(self, other: Hits) -> Hits:
        """Return the hits of two batches at the same thresholds."""
        if len(self.above_a) != len(other.above_a) or len(self.below_a) != len(other.below_a):
            raise InputError("hits can be added only if they were counted at the same thresholds")
        return replace(
            self,
            above_a=self.above_a + other.above_a,
            above_b=self.above_b + other.above_b,
            below_a=self.below_a + other.below_a,
            below_b=self.below_b + other.below_b,
            trials_a=self.trials_a + other.trials_a,
            trials_b=self.trials_b + other.trials_b,
        )


def count(scores_a: Any, scores_b: Any, above: Any, below: Any = None) -> Hits:
    """Count both directions' events; the thresholds must not depend on these scores.

    ``above``, ``below``: thresholds of each direction (``below`` None: the same); all may be infinite.
    Raises InputError for NaN and for a world without scores.
    """
    a, b = np.sort(_scores("scores_a", scores_a)), np.sort(_scores("scores_b", scores_b))
    over = np.atleast_1d(_scores("above", above))
    under = over if below is None else np.atleast_1d(_scores("below", below))
    return Hits(
        above_a=len(a) - np.searchsorted(a, over, "left"),
        above_b=len(b) - np.searchsorted(b, over, "left"),
        below_a=np.searchsorted(a, under, "right"),
        below_b=np.searchsorted(b, under, "right"),
        trials_a=len(a),
        trials_b=len(b),
    )


class BestEvent(NamedTuple):
    """A lower bound with the event that gave it: ``direction`` "above" or "below", and its threshold's index.

    ``hits`` of the event in the world that should have it more often, ``against`` in the other.  A bound of 0
    comes with the event that came closest.
    """

    value: float
    direction: str
    threshold: int
    hits: int
    against: int


def epsilon_lower(counts: Hits, delta: float, confidence: float) -> BestEvent:
    """Return a lower bound on epsilon at ``delta`` in [0, 1), in nats, at least 0 and always finite.

    With probability ``confidence`` in (0, 1) or more, the protocol is not (value, delta)-private.
    Raises InputError for arguments out of range.  Source: Jagielski et al. 2020; Nasr et al. 2021.
    """
    shift = number("delta", delta, 0.0, 1.0)
    return _best(counts, confidence, lambda p, q: ratio(p, q, shift) * (1 - HAIR))


def delta_lower(counts: Hits, epsilon: float, confidence: float) -> BestEvent:
    """Return a lower bound on delta at ``epsilon`` >= 0 nats, at least 0.

    With probability ``confidence`` in (0, 1) or more, it holds at all epsilons at once.
    Raises InputError for arguments out of range.  Source: as ``epsilon_lower``.
    """
    at = number("epsilon", epsilon, 0.0, math.inf)
    return _best(counts, confidence, lambda p, q: excess(p, q, at) - HAIR * p)


def _best(counts: Hits, confidence: float, figure: Callable[[Array, Array], Array]) -> BestEvent:
    error = (1 - probability("confidence", confidence)) / (2 * counts.events)
    hits = np.concatenate([counts.above_b, counts.below_a])
    against = np.concatenate([counts.above_a, counts.below_b])
    first, split = np.arange(counts.events), len(counts.above_a)
    of, other = (
        np.where(first < split, x, y)
        for x, y in ((counts.trials_b, counts.trials_a), (counts.trials_a, counts.trials_b))
    )
    values = figure(
        lower_real(hits.astype(float), of, error), upper_real(against.astype(float), other, error)
    )
    best = int(np.argmax(values))
    place = (ABOVE, best) if best < split else (BELOW, best - split)
    return BestEvent(max(0.0, float(values[best])), *place, int(hits[best]), int(against[best]))


def _scores(name: str, values: Any) -> Array:
    found = np.asarray(values, np.float64)
    if np.isnan(found).any() or not found.size:
        raise InputError(
            f"{name}: {'NaN among' if found.size else 'no'} scores; needed: numbers, infinities allowed"
        )
    return found
