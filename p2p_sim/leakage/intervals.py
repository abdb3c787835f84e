"""Confidence intervals of attack utilities: of shares, of means over groups of users, and of ratios of means."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.leakage.label_inference import Floats, Interval
from p2p_sim.privacy.auditing import confidence_bounds

Groups = npt.NDArray[np.int64]

FEW_GROUPS = 20
"""Fewer independent groups do not tell how much they vary: Student's t misses the mean of skewed ones too often."""

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


def of_mean(values: Floats, confidence: float, largest: float, groups: Groups | None = None) -> Interval:
    """Return the interval of the mean of ``values`` (n,), one a user, between -``largest`` and ``largest``.

    ``groups`` (n,): users of one group may depend on each other, those of two groups do not; None: all are independent.
    It is the mean over users with the standard error of a mean over groups, times Student's quantile for their number
    (that of equal groups which weigh as much), widened by their skewness, and ``largest`` ln(2 / (1 - confidence)) / n
    on top: what can still happen to users where nothing did happen.  Fewer than 20 groups do not tell their own spread:
    then it is Hoeffding's, of any values so large.  With one group nothing is known: from -``largest`` to ``largest``.

    *Source:* Student's t over groups; Liang and Zeger 1986 (variances that allow dependence within groups); Johnson
    1978 (the shift by skewness, here to both sides); Hoeffding 1963.
    """
    from scipy.special import stdtrit

    n, value = len(values), float(values.mean())
    sizes = np.ones(n) if groups is None else np.bincount(groups)
    weights = sizes[sizes > 0] / n
    m, error = 1 / float((weights**2).sum()), (1 - confidence) / 2
    if len(weights) < 2:
        return Interval(-largest, value, largest)
    if m < FEW_GROUPS - 1e-9:
        half = largest * math.sqrt(2 * math.log(1 / error) / m)
        return Interval(value - half, value, value + half)
    off = values - value
    sums = off if groups is None else np.bincount(groups, weights=off)[sizes > 0]
    spread = math.sqrt(float((sums**2).sum()) * m / (m - 1)) / n
    cubes = abs(float((sums**3).sum())) / n**3
    t = -float(stdtrit(m - 1, error))
    shift = 0.0 if spread == 0 else cubes / spread**2 * (1 + 2 * t**2) / 6
    half = t * spread + shift + largest * math.log(1 / error) / n
    return Interval(value - half, value, value + half)


def of_ratio(
    over: Floats, under: Floats, confidence: float, largest: float, groups: Groups | None = None
) -> Interval:
    """Return the interval of mean(over) / mean(under) of the same users; NaN where the second mean is 0.

    *Source:* the delta method: the ratio is off by the mean of (over - ratio under) / mean(under).
    """
    below = float(under.mean())
    if below == 0:
        return UNKNOWN
    value = float(over.mean()) / below
    most = max(1.0, value) * largest / below
    low, _, high = of_mean((over - value * under) / below, confidence, most, groups)
    return Interval(max(0.0, value + low), value, value + high)


def within(found: Interval, least: float, most: float) -> Interval:
    """Return the interval with its ends moved inside of what is possible."""
    return Interval(min(max(found.lower, least), most), found.value, max(min(found.upper, most), least))


def shifted(found: Interval, lower: float = 0.0, upper: float = 0.0) -> Interval:
    """Return the interval with its ends moved outwards by amounts of at least 0."""
    return Interval(found.lower - lower, found.value, found.upper + upper)


def numbered(labels: npt.NDArray[Any]) -> Groups:
    """Return group labels as numbers from 0 without gaps."""
    return np.asarray(np.unique(labels, return_inverse=True)[1], np.int64).reshape(-1)
