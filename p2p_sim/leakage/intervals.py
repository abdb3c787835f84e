"""Confidence intervals of attack utilities: of shares, of means over groups of users, and of ratios of means."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.leakage.attack_results import Floats, Interval
from p2p_sim.privacy.auditing import confidence_bounds

Groups = npt.NDArray[np.int64]

FEW_GROUPS = 20
"""Fewer independent groups do not tell how much they vary: Student's t misses the mean of skewed ones too often."""

Ends = Callable[[float], Interval]
"""From a confidence to the interval of one number."""

UNKNOWN = Interval(math.nan, math.nan, math.nan)


def exactly(value: float) -> Interval:
    """Return the interval of a value that is known."""
    return Interval(value, value, value)


def of_share(hits: int, trials: int, confidence: float) -> Interval:
    """Return the Clopper-Pearson interval of a probability, from ``hits`` of ``trials`` independent ones.

    *Source:* Clopper and Pearson 1934.
    """
    error = (1 - confidence) / 2
    low, high = (
        float(end(hits, trials, error)) for end in (confidence_bounds.lower, confidence_bounds.upper)
    )
    return Interval(low, hits / trials, high)


def equal_groups(users: int, groups: Groups | None) -> int:
    """Return how many equal groups weigh as much in a mean over ``users`` as these do; None: users by themselves."""
    if groups is None:
        return users
    sizes = np.unique(groups, return_counts=True)[1].astype(np.float64)
    return int(users**2 / float((sizes**2).sum()) + 1e-9)


@dataclass(frozen=True)
class Spread:
    """A mean of values, one a user, and how much it varies: all that its intervals need.

    ``users``: how many; ``groups``: of them; ``weigh``: how many equal groups weigh as much; ``error``: the standard
    error over groups; ``cubes``: the third moment of the mean, without its sign.
    """

    users: int
    groups: int
    weigh: float
    value: float
    error: float
    cubes: float

    def interval(self, confidence: float, largest: float) -> Interval:
        """Return the interval of the mean of values between -``largest`` and ``largest``.

        It is the mean over users with the standard error of a mean over groups, times Student's quantile for their
        number (that of equal groups which weigh as much), widened by their skewness, and ``largest``
        ln(2 / (1 - confidence)) / n on top: what can still happen to users where nothing did happen.  Fewer than 20
        groups do not tell their own spread: then it is Hoeffding's, of any values so large.  With one group nothing is
        known: from -``largest`` to ``largest``.

        *Source:* Student's t over groups; Liang and Zeger 1986 (variances that allow dependence within groups); Johnson
        1978 (the shift by skewness, here to both sides); Hoeffding 1963.
        """
        from scipy.special import stdtrit

        error = (1 - confidence) / 2
        if self.groups < 2:
            return Interval(-largest, self.value, largest)
        if self.weigh < FEW_GROUPS - 1e-9:
            half = largest * math.sqrt(2 * math.log(1 / error) / self.weigh)
            return Interval(self.value - half, self.value, self.value + half)
        t = -float(stdtrit(self.weigh - 1, error))
        shift = 0.0 if self.error == 0 else self.cubes / self.error**2 * (1 + 2 * t**2) / 6
        half = t * self.error + shift + largest * math.log(1 / error) / self.users
        return Interval(self.value - half, self.value, self.value + half)


def spread(values: Floats, groups: Groups | None = None) -> Spread:
    """Return the mean of ``values`` (n,), one a user, and how much it varies.

    ``groups`` (n,): users of one group may depend on each other, those of two groups do not; None: all are independent.
    """
    n, value = len(values), float(values.mean())
    sizes = np.ones(n) if groups is None else np.bincount(groups)
    weights = sizes[sizes > 0] / n
    m = 1 / float((weights**2).sum())
    off = values - value
    sums = off if groups is None else np.bincount(groups, weights=off)[sizes > 0]
    squares = sums * sums
    error = math.sqrt(float(squares.sum()) * m / (m - 1)) / n if len(weights) > 1 else math.inf
    return Spread(n, len(weights), m, value, error, abs(float((squares * sums).sum())) / n**3)


def of_mean(values: Floats, confidence: float, largest: float, groups: Groups | None = None) -> Interval:
    """Return the interval of the mean of ``values`` (n,), as ``spread`` and ``Spread.interval`` say."""
    return spread(values, groups).interval(confidence, largest)


def of_ratio(
    over: Floats, under: Floats, confidence: float, largest: float, groups: Groups | None = None
) -> Interval:
    """Return the interval of mean(over) / mean(under) of the same users; NaN where the second mean is 0.

    *Source:* the delta method: the ratio is off by the mean of (over - ratio under) / mean(under).
    """
    return ratio_ends(over, under, largest, groups)(confidence) if under.any() else UNKNOWN


def ratio_ends(over: Floats, under: Floats, largest: float, groups: Groups | None = None) -> Ends:
    """Return the same at any confidence; the second mean is above 0."""
    below = float(under.mean())
    value = float(over.mean()) / below
    off, most = spread((over - value * under) / below, groups), max(1.0, value) * largest / below

    def ends(confidence: float) -> Interval:
        low, _, high = off.interval(confidence, most)
        return Interval(max(0.0, value + low), value, value + high)

    return ends


def of_least(several: Sequence[Ends], confidence: float, value: float) -> Interval:
    """Return the interval of the least of several numbers, around an estimate ``value`` of it.

    The number that is least has its own lower end above the least of all lower ends; so these need no correction.
    Any upper end may be too low, so those are each wrong as many times more seldom as there are numbers.

    *Source:* Bonferroni; docs/label-inference.md, "The baseline".
    """
    strict = 1 - (1 - confidence) / len(several)
    lower, upper = (
        min(each(confidence).lower for each in several),
        min(each(strict).upper for each in several),
    )
    return Interval(min(lower, value), value, max(upper, value))


def of_largest(several: Sequence[Ends], confidence: float, value: float) -> Interval:
    """Return the interval of the largest of several numbers, as ``of_least`` does of the least."""
    strict = 1 - (1 - confidence) / len(several)
    lower, upper = (
        max(each(strict).lower for each in several),
        max(each(confidence).upper for each in several),
    )
    return Interval(min(lower, value), value, max(upper, value))


def within(found: Interval, least: float, most: float) -> Interval:
    """Return the interval with its ends moved inside of what is possible."""
    return Interval(min(max(found.lower, least), most), found.value, max(min(found.upper, most), least))


def shifted(found: Interval, lower: float = 0.0, upper: float = 0.0) -> Interval:
    """Return the interval with its ends moved outwards by amounts of at least 0."""
    return Interval(found.lower - lower, found.value, found.upper + upper)


def numbered(labels: npt.NDArray[Any]) -> Groups:
    """Return group labels as numbers from 0 without gaps."""
    return np.asarray(np.unique(labels, return_inverse=True)[1], np.int64).reshape(-1)
