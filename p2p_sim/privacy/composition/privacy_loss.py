"""Privacy losses: their distribution in one direction, exact in types, or on a grid with certified rounding.

Everything rests on one order.  In one direction delta(epsilon) = E[(1 - e^(epsilon - L))_+], L the loss under the
numerator: convex and decreasing in x = e^(-L).  For a sum of independent losses it is so in each of them.  Hence an
*upper* end may raise losses or spread x around its mean, a *lower* end may lower losses or draw x together, one
loss at a time, before or after any sum.
*Source:* decreasing convex order; spreading is the "connect the dots" of Doroshenko et al. (2022).

*Source:* ``docs/laws.md``, "Composition".
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

TYPES = 1 << 18
"""Up to this many distinct types (counts of outcomes) a composition is exact."""

_U = 2.0**-53
_LEAST = 1e-305  # masses below are not kept: they are moved to `lost`
_SUM = 3e-14  # relative error of adding up gains


@dataclass(frozen=True, eq=False)
class Points:
    """Losses (ascending, nats) with their masses under the numerator; ``infinite``: mass of an infinite loss.

    Each loss is right to ``shift`` (nats), each mass to the factor 1 +- ``error``; ``lost``: most that is missing.
    """

    losses: Array
    masses: Array
    infinite: float = 0.0
    shift: float = 0.0
    error: float = 0.0
    lost: float = 0.0

    def delta(self, epsilon: float) -> float:
        """Return E[(1 - e^(epsilon - L))_+] of the points as they are; any epsilon, in nats."""
        start = int(np.searchsorted(self.losses, epsilon, "right"))
        gains = self.masses[start:] * -np.expm1(epsilon - self.losses[start:])
        return min(1.0, self.infinite + float(gains.sum()))

    def least(self, epsilon: float) -> float:
        """Return a certified lower end of delta."""
        return max(0.0, 1 - self.error - _SUM) * self.delta(epsilon + self.shift + 4 * _U * abs(epsilon))

    def most(self, epsilon: float) -> float:
        """Return a certified upper end of delta."""
        above = self.delta(epsilon - self.shift - 4 * _U * abs(epsilon))
        return min(1.0, (1 + self.error + _SUM) * above + self.lost)

    def inverse(self, delta: float) -> float:
        """Return about the least epsilon >= 0 at which delta of the points is at most ``delta``, or infinity."""
        if self.delta(0.0) <= delta:
            return 0.0
        if self.infinite > delta or not len(self.losses):
            return math.inf
        low, high = int(np.searchsorted(self.losses, 0.0, "right")), len(self.losses) - 1
        while low < high:  # the least loss at which delta is reached
            middle = (low + high) // 2
            low, high = (
                (low, middle) if self.delta(float(self.losses[middle])) <= delta else (middle + 1, high)
            )
        top, masses, above = float(self.losses[low]), self.masses[low:], self.losses[low:]
        weight = float(
            (masses * np.exp(top - above)).sum()
        )  # between two losses delta is linear in e^epsilon
        reached = delta - self.infinite - float((masses * -np.expm1(top - above)).sum())
        return max(0.0, top + math.log1p(-max(0.0, reached) / weight)) if reached < weight else 0.0


NOTHING = Points(np.zeros(1), np.ones(1))
"""The loss is 0: nothing is learned."""


def points_of(log_p: Array, log_q: Array, wrong: float = 0.0) -> Points:
    """Return the losses log p - log q of outcomes with probabilities p (numerator) and q, given as logarithms.

    *Assumes:* each probability is right to four units in the last place and to the share ``wrong``; -infinity is 0.
    """
    positive = log_p > math.log(_LEAST)
    endless = positive & (log_q == -np.inf)
    finite = positive & ~endless
    size = float(np.abs(np.r_[log_p[finite], log_q[finite], 0.0]).max())
    error = (8 + size) * 4 * _U + wrong
    missing = float(np.exp(log_p[~positive]).sum()) * (1 + error) + (
        _LEAST if np.any(log_p[~positive] > -np.inf) else 0
    )
    infinite = min(1.0, math.fsum(np.exp(log_p[endless])))
    losses, masses = log_p[finite] - log_q[finite], np.exp(log_p[finite])
    return tidy(Points(losses, masses, infinite, 2 * error, error, missing))


def tidy(points: Points) -> Points:
    """Sort; join losses that differ by rounding alone; move masses too small for floats to ``lost``."""
    keep = points.masses >= _LEAST
    lost = points.lost + float(np.count_nonzero(~keep)) * _LEAST
    order = np.argsort(points.losses[keep], kind="stable")
    losses, masses = points.losses[keep][order], points.masses[keep][order]
    apart = max(2 * points.shift, 1e-15 * float(np.abs(losses).max(initial=0.0)))
    first = np.r_[True, np.diff(losses) > apart][: len(losses)]
    starts = np.flatnonzero(first)
    if len(starts) == len(losses):
        return replace(points, losses=losses, masses=masses, lost=lost)
    ends = np.r_[starts[1:], len(losses)] - 1
    width, count = float((losses[ends] - losses[starts]).max()), int((ends - starts).max()) + 1
    if width > 16 * apart:
        return replace(points, losses=losses, masses=masses, lost=lost)
    sums = np.add.reduceat(masses, starts)
    error = points.error + count * _U
    return Points(losses[starts], sums, points.infinite, points.shift + width, error, lost)


def types(atoms: int, times: int) -> int:
    """Return the number of types: ways to share ``times`` among ``atoms`` outcomes."""
    if atoms < 2:
        return 1
    if atoms == 2:
        return min(
            times + 1, 8 * math.isqrt(times) + 8
        )  # a window, eight times as long, has only two outcomes
    return math.comb(times + atoms - 1, atoms - 1) if min(atoms - 1, times) < 40 else TYPES * 1000


def power(points: Points, times: int) -> Points:
    """Return the loss of ``times`` >= 1 independent runs, counted by types; there must be few enough (``types``).

    *Assumes:* the logarithm of a factorial (scipy's gammaln) is right to four units in the last place.
    """
    atoms, logs = len(points.losses), np.log(points.masses)
    infinite = 1.0 if points.infinite >= 1 else -math.expm1(times * math.log1p(-points.infinite))
    lost = min(1.0, times * points.lost)
    if times == 1 or atoms == 0:
        return replace(points, infinite=infinite, lost=lost)
    left, weight = np.array([times]), np.array([_log_factorial(np.array([times]))[0]])
    losses = np.zeros(1)
    for j in range(atoms - 1):
        if atoms == 2:
            counts, rows = (
                _window(times, float(points.masses[0] / points.masses.sum())),
                np.zeros(1, np.int64),
            )
            lost += _LEAST
        else:
            rows = np.repeat(np.arange(len(left)), left + 1)
            counts = np.arange(len(rows)) - np.repeat(np.cumsum(left + 1) - left - 1, left + 1)
        weight = weight[rows] + counts * logs[j] - _log_factorial(counts)
        losses, left = losses[rows] + counts * points.losses[j], left[rows] - counts
    weight = weight + left * logs[-1] - _log_factorial(left)
    losses = losses + left * points.losses[-1]
    shift = times * (points.shift + 2 * (atoms + 2) * _U * float(np.abs(points.losses).max()))
    largest = 2 * float(_log_factorial(np.array([times]))[0]) + times * float(np.abs(logs).max())
    error = times * points.error + 4 * (atoms + 2) * _U * largest + 4 * _U * 700
    return tidy(Points(losses, np.exp(weight), infinite, shift, math.expm1(error), lost))


def _window(times: int, chance: float) -> npt.NDArray[np.int64]:
    """Return the counts that a binomial count leaves with a probability below 1e-305 (Hoeffding)."""
    reach = math.isqrt(355 * times) + 2
    middle = round(times * chance)
    return np.arange(max(0, middle - reach), min(times, middle + reach) + 1)


def _log_factorial(counts: npt.NDArray[np.int64]) -> Array:
    from scipy.special import gammaln

    return np.asarray(gammaln(counts + 1.0), np.float64)


def product(one: Points, two: Points) -> Points:
    """Return the loss of two independent runs, pair by pair: exact, as many points as pairs that differ."""
    losses = np.add.outer(one.losses, two.losses).ravel()
    masses = np.multiply.outer(one.masses, two.masses).ravel()
    infinite = one.infinite + two.infinite - one.infinite * two.infinite
    size = float(np.abs(losses).max(initial=0.0))
    shift, error = (
        one.shift + two.shift + 2 * _U * size,
        one.error + two.error + one.error * two.error + 2 * _U,
    )
    return tidy(Points(losses, masses, infinite, shift, error, one.lost + two.lost))
