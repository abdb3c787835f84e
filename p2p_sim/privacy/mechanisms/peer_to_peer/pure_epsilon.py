"""The pure epsilon of reports: the log ratio of the event that every user reports a one.

All m = N draws are ones with probability A = E[(R/N)^m] where the victim's bit is 0 and B = E[((R + 1)/N)^m] where it
is 1.  Far tails of R decide, so its law is tilted first: e^(lambda R) has the same mean in A and B, which cancels, and

    B / A = E'[(R + 1)^m e^(-lambda R)] / E'[R^m e^(-lambda R)],  E' under coins with odds p / (1 - p) e^lambda.

With lambda = m / r*, r* the mean of R under E', what A averages is flat there: R^m e^(-lambda R) is largest at r*.

*Source:* ``docs/laws.md``, "The learner".
"""

from __future__ import annotations

import math

import numpy as np

from p2p_sim.privacy.law import Bracket
from p2p_sim.privacy.laws.binomial_tails import Window, add, binomial
from p2p_sim.privacy.laws.randomized_response import local_epsilon
from p2p_sim.privacy.mechanisms.peer_to_peer.urn import times

_CUT = 1e-40
_U = 2.2e-16
_NEVER = Bracket(math.inf, math.inf, math.inf)


def all_ones(alpha: float, ones: int, zeros: int) -> Bracket:
    """Return the log ratio of the two labels where every user of a cluster reports a one, above a ``alpha`` of 0.

    ``ones``, ``zeros``: labels of the others.
    """
    low, value, high = _bits(alpha, ones, zeros)
    found = [_labels(ratio, alpha) for ratio in (low, value, high)]
    return Bracket(found[0] * (1 - 4 * _U), found[1], found[2] * (1 + 4 * _U))


def _bits(alpha: float, ones: int, zeros: int) -> Bracket:
    """Return log B/A; it is at least 1, as R + 1 is at most m."""
    m = ones + zeros + 1
    if m == 1 or (alpha == 0 and ones == 0):
        return _NEVER
    if alpha == 0:
        return _bracket(m * math.log1p(1 / ones), 4 * _U * m / ones)
    tilt = _tilt(alpha, ones, zeros)
    window = _tilted(alpha, ones, zeros, tilt)
    middle = max(1, round(m / tilt))
    off = np.arange(len(window.mass), dtype=np.float64) + (window.low - middle)
    with np.errstate(divide="ignore"):
        first, second = (m * np.log1p((off + more) / middle) - tilt * off for more in (0, 1))
    top = float(second.max())
    a, b = float(window.mass @ np.exp(first)), float(window.mass @ np.exp(second - top))
    # Counts beyond the window weigh at most about 1 in A and e^tilt in B.
    spread = (float(np.abs(off).max()) + 1) * (tilt + m / middle)
    error = 4 * _U * (len(off) + 16 + spread) + 2 * window.lost / a
    value = top + math.log(b / a)
    return _bracket(value, error + 2 * window.lost * math.exp(min(700.0, tilt - top)) / b + 2 * _U * value)


def _bracket(value: float, error: float) -> Bracket:
    return Bracket(max(1.0, value - error), value, value + error)


def _tilt(alpha: float, ones: int, zeros: int) -> float:
    """Return where lambda times the mean is m."""
    low, high = 0.0, 1400.0
    for _ in range(80):
        middle = (low + high) / 2
        one, zero = _odds(alpha, middle)
        mean = ones * one / (1 + one) + zeros * zero / (1 + zero)
        low, high = (low, middle) if middle * mean > ones + zeros + 1 else (middle, high)
    return high


def _odds(alpha: float, tilt: float) -> tuple[float, float]:
    """Return the odds of a noisy one, tilted, of users with label 1 and label 0; at most 1e150."""
    return min(1e150, times((1 - alpha) / max(alpha, 1e-300), tilt)), min(
        1e150, times(alpha / (1 - alpha), tilt)
    )


def _tilted(alpha: float, ones: int, zeros: int, tilt: float) -> Window:
    parts = [
        binomial(count, odds / (1 + odds), 1 / (1 + odds), _CUT)
        for count, odds in zip((ones, zeros), _odds(alpha, tilt), strict=True)
    ]
    return add(*parts)


def _labels(ratio: float, alpha: float) -> float:
    """Return the log ratio of the two labels where the bit's is ``ratio`` >= 0."""
    if alpha == 0:
        return ratio
    if ratio > 1400:
        return local_epsilon(alpha)
    if ratio > 600:
        return ratio + math.log1p(-alpha) - math.log1p(times(alpha, ratio))
    up = math.expm1(ratio)
    return math.log1p((1 - 2 * alpha) * up / (1 + alpha * up))
