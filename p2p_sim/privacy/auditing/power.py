"""What a number of trials can show: caps that no attack exceeds, and how many trials would decide.

``thresholds`` is their number in each direction; for unequal numbers half of ``Hits.events``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.privacy.auditing._checks import number, whole
from p2p_sim.privacy.auditing.clopper import excess, lower_real, ratio, share, upper_real

Array = npt.NDArray[Any]

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
