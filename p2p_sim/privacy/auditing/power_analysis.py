"""Power analysis of an audit: the smallest violation of a claim that its trials could have shown."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.privacy.auditing.confidence_bounds import share, upper_real

Array = npt.NDArray[Any]

POWER = 0.9
"""Probability with which a violation of this size would have been shown."""

_POINTS = 200  # quantiles of the count without the label, over which the chance is averaged
_STEPS = 50
_MOST = 60.0  # nats: no trials measure so much


@lru_cache(maxsize=1024)  # by the law, the same for every seed
def minimum_detectable(
    kind: str, at: float, claim: float, q: float, trials: int, thresholds: float, confidence: float
) -> float | None:
    """Return the smallest true ε or δ that an audit would show to exceed the claim, with probability ``POWER``.

    ``trials``: worlds per label.
    ``kind``, ``at``: "delta" if the claim is on ε, in nats, at δ = ``at``; "epsilon" if it is on δ at ε = ``at``.
    ``q``: how often the event of the bound is seen without the label, by the law or as it was counted.  It is
    held fixed and p, the rate with the label, rises; once p = 1, q falls instead.  ``thresholds``, ``confidence``: as
    of the bound.  None if no violation can be shown.

    *Source:* the binomial laws of both counts and Clopper and Pearson's bounds: the bound exceeds the claim if, for the
    count without the label, the count with it is above a quantile.
    """
    if not math.isfinite(claim):
        return None
    error, q = share(thresholds, confidence), max(q, 1 / trials)
    most = _MOST if kind == "delta" else 1.0

    def rates(true: float) -> tuple[float, float]:
        epsilon, delta = (true, at) if kind == "delta" else (at, true)
        p = delta + math.exp(min(epsilon, 700.0)) * q
        return (p, q) if p <= 1 else (1.0, (1 - delta) * math.exp(-epsilon))

    def limit(other: Array) -> Array:  # what the lower bound of p must exceed
        epsilon, delta = (claim, at) if kind == "delta" else (at, claim)
        return np.asarray(delta + np.exp(np.minimum(epsilon + np.log(other), 1.0)))

    @cache  # q stays the same until p is 1
    def needed(q: float) -> Array:
        return _needed(q, trials, error, limit)

    def shown(true: float) -> bool:
        p, q = rates(true)
        return _power(p, trials, needed(q)) >= POWER

    if claim >= most or not shown(most):
        return None
    low, high = claim, most
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if shown(middle) else (middle, high)
        if high - low <= 1e-4 * high:
            break
    return high


def _needed(q: float, trials: int, error: float, limit: Callable[[Array], Array]) -> Array:
    """Return how many hits with the label it takes at each quantile of those without it; infinity where none do."""
    from scipy import stats

    bounds, which = _bounds(q, trials, error)
    target = limit(bounds)
    possible = target < 1
    # The lower bound of x hits exceeds t if P(Bin(trials, t) >= x) < error.
    least_hits = stats.binom.isf(error, trials, np.where(possible, target, 0.5)) + 1
    return np.asarray(np.where(possible, least_hits, np.inf)[which])


@lru_cache(maxsize=1024)  # the same for every claim of an audit, and by the law for every seed
def _bounds(q: float, trials: int, error: float) -> tuple[Array, Array]:
    """Return the upper bounds of q by the count without the label, each once, and which one is at each quantile."""
    from scipy import stats

    quantiles = stats.binom.ppf((np.arange(_POINTS) + 0.5) / _POINTS, trials, q)
    counts, which = np.unique(quantiles, return_inverse=True)
    return upper_real(counts, trials, error), which


def _power(p: float, trials: int, needed: Array) -> float:
    """Return the chance that so many hits are seen with the label, over all quantiles of those without it."""
    from scipy import stats

    return float(stats.binom.sf(needed - 1, trials, p).mean())
