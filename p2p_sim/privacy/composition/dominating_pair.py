"""A finite dominating pair for a law known only by its delta(epsilon) curve ("connect the dots").

*Source:* ``docs/laws.md``, "Composition".
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from p2p_sim.privacy.composition.privacy_loss import Points
from p2p_sim.privacy.law import ZERO, Law

Array = npt.NDArray[np.float64]

KNOTS = 250
"""Values of epsilon, from 0 up, at which the curve is computed."""

_FAR = 1e-30  # the last knot is where delta has fallen to this, or to where it stays
_TINY = _FAR / 100  # deltas below need not be distinguished from 0
_ROUGH = 1e-22


def dominating(law: Law, knots: int = KNOTS) -> tuple[Points, Points]:
    """Return losses, from label 0 to 1 and back, whose hockey-stick curve is nowhere below the law's upper end.

    delta is convex in e^epsilon, so a chord between two knots is above it; negative epsilon is the other direction.
    *Source:* Doroshenko et al. (2022); composition of dominating pairs dominates, adaptively too: Zhu, Dong, Wang
    (2022).  *Assumes:* the law's upper ends are right.
    """
    at = np.linspace(0.0, _far(law), knots)
    upper = np.array([law.ceilings(float(e), _TINY) for e in at])
    knot, first, second = _both_ways(at, upper)
    return _joined(knot, first, up=True), _joined(knot, second, up=True)


def dominated(law: Law, knots: int = 2 * KNOTS) -> tuple[Points, Points]:
    """Return losses whose curve is nowhere above that of a law of one pair of distributions (``Law.one_pair``).

    Between two knots the curve is above the chords of the cells beside, drawn on; these are lowered until every
    chord is below those, and what is still not convex is cut off.
    """
    at = np.linspace(0.0, _far(law), knots)
    pairs = [law.directions(float(e)) if e < law.pure() else (ZERO, ZERO) for e in at]
    knot, *lower = _both_ways(at, np.array([[b.lower for b in pair] for pair in pairs]))
    _, *upper = _both_ways(at, np.array([[b.upper for b in pair] for pair in pairs]))
    first, second = (
        _joined(*_convex(*_lowered(knot, low * (1 - 1e-14), high * (1 + 1e-14))), up=False)
        for low, high in zip(lower, upper, strict=True)
    )
    return first, second


def _far(law: Law) -> float:
    """Return where the knots end, at most 700 nats: where delta is tiny, or stays."""
    pure, far = min(law.pure(), 700.0), 0.01
    while far < pure:
        now = law.ceilings(far, _TINY)
        later = law.ceilings(min(pure * (1 - 1e-9), far * 1.5), _TINY)
        if max(now) < _FAR or all(a <= b * (1 + 1e-9) for a, b in zip(now, later, strict=True)):
            break
        far *= 1.1
    return min(far, pure)


def _both_ways(at: Array, delta: Array) -> tuple[Array, Array, Array]:
    """Return the knots -e_n..e_n and delta there in both directions; ``at`` from 0 up, ``delta`` shape (n, 2)."""
    behind = (
        np.exp(-at)[:, None] * delta[:, ::-1] - np.expm1(-at)[:, None]
    )  # 1 - e^-e + e^-e (the other's delta)
    deltas = np.minimum(1.0, np.concatenate([behind[:0:-1], delta]))
    return np.r_[-at[:0:-1], at], deltas[:, 0], deltas[:, 1]


def _lowered(knots: Array, lower: Array, upper: Array) -> tuple[Array, Array]:
    """Return knots, with one more far to the left, and deltas whose chords are below the curve.

    What is tiny, hence rough, becomes 0, and so does the last dot, as the curve may fall beyond.  The curve comes
    from 1 at e^knot = 0, with a slope of at least -1.
    """
    step, width = float(knots[1] - knots[0]), math.exp(knots[0])
    lower = np.where(lower < _ROUGH, 0.0, lower)
    lower[-1] = 0.0
    low = np.r_[1 - 1e-14, lower]
    fall = low[:-1] - low[1:]  # along the chord of a cell; along the chords of the cells beside, drawn on:
    slopes = np.maximum(0.0, lower[:-1] - upper[1:])
    before = np.r_[width, width * math.expm1(step), (upper[:-2] - lower[1:-1]) * math.exp(step)]
    after = np.r_[slopes[0] / math.expm1(step), slopes[1:] * math.exp(-step), 0.0]
    left, right = np.maximum(0.0, before - fall), np.maximum(0.0, fall - after)
    gap = left * right / np.maximum(left + right, 1e-300)
    deltas = np.maximum(0.0, low - np.maximum(np.r_[gap, 0.0], np.r_[0.0, gap]))
    return np.r_[knots[0] - 40, knots], np.asarray(deltas, np.float64)


def _convex(knots: Array, deltas: Array) -> tuple[Array, Array]:
    """Return the knots and deltas of the greatest function below them that is convex in e^knot."""
    hull: list[int] = []
    for i in range(len(knots)):
        while len(hull) > 1 and _fall(knots, deltas, hull[-2], hull[-1]) <= _fall(knots, deltas, hull[-1], i):
            hull.pop()
        hull.append(i)
    return knots[hull], deltas[hull]


def _fall(knots: Array, deltas: Array, i: int, j: int) -> float:
    return float((deltas[i] - deltas[j]) / math.expm1(knots[j] - knots[i]) * math.exp(-knots[i]))


def _joined(knots: Array, deltas: Array, up: bool) -> Points:
    """Return masses on the knots: from the top down, the least that brings delta to each dot; then checked."""
    masses, infinite = np.zeros(len(knots)), float(deltas[-1])
    under, delta = 0.0, infinite  # of the masses above: times e^(knot - loss), and their delta at the knot
    for i in range(len(knots) - 1, 0, -1):
        rise = -math.expm1(knots[i - 1] - knots[i])
        masses[i] = max(0.0, (deltas[i - 1] - delta) / rise - under) if rise > 0 else 0.0
        delta += (under + masses[i]) * rise
        under = (under + masses[i]) * (1 - rise)
    masses[0] = max(0.0, 1.0 - infinite - float(masses.sum())) if up else 0.0
    keep = masses > 1e-290
    points = Points(knots[keep], masses[keep], infinite, 0.0, 1e-13, 1e-285)
    reached = np.array([points.delta(float(e)) for e in knots])
    positive = (deltas > 1e-280) & (reached > 0)
    ratios = deltas[positive] / reached[positive]
    factor = max(1.0, float(ratios.max(initial=1.0))) if up else min(1.0, float(ratios.min(initial=1.0)))
    lost = max(points.lost, float(deltas[~positive].max(initial=0.0))) if up else points.lost
    return replace(points, masses=points.masses * factor, infinite=min(1.0, infinite * factor), lost=lost)


def laplace(width: float, up: bool, cells: int = 2000) -> Points:
    """Return the losses of Laplace noise, sensitivity / scale = ``width`` (nats): ends of cells, or their middles.

    A cell drawn together at the ratio of its masses, which lies in its middle, is a lower end; shared between its
    two ends so that the mean of e^(-loss) stays, an upper end.
    *Source:* P(loss <= l) = e^((l - width) / 2) / 2 under the numerator, for -width <= l < width.
    """
    step = 2 * width / cells
    ends = (
        np.arange(-(cells // 2), cells - cells // 2 + 1, dtype=np.float64) * step
    )  # multiples of the step, so that sums stay on a lattice
    inner = np.exp((ends[:-1] - width) / 2) * math.expm1(step / 2) / 2
    masses = np.r_[inner, 0.5]
    losses = np.r_[step / 2 * (2 * np.arange(cells) + 1 - cells), ends[-1]]
    least = math.exp(-width) / 2
    error = 1e-14 + 1e-15 * width
    if not up:
        losses, masses = np.r_[ends[0], losses], np.r_[least, masses]
        keep = masses > 1e-290
        return Points(losses[keep], masses[keep], 0.0, error, error, 1e-286)
    share = math.expm1(-step / 2) / math.expm1(-step)
    both = np.zeros(cells + 1)
    both[:-1] += inner * (1 - share)
    both[1:] += inner * share
    both[0] += least
    both[-1] += 0.5
    keep = both > 1e-290
    return Points(ends[keep], both[keep], 0.0, error, error, 1e-286)
