"""One test of frequencies: does a sample follow an exact law?  False-alarm rate 1e-9, seeds fixed.

The chi-square law of the statistic is a limit, so rare cells are pooled until each expects 200 or more.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from fractions import Fraction
from math import comb
from typing import Any

import numpy as np
from scipy import stats

FALSE_ALARM = 1e-9
LEAST_EXPECTED = 200


def follows(
    counts: Mapping[Hashable, int] | Iterable[int], law: Mapping[Hashable, Any] | Iterable[Any]
) -> bool:
    """Whether counts by outcome follow a law by outcome (numbers that sum to 1; missing outcomes have none)."""
    seen = counts if isinstance(counts, Mapping) else dict(enumerate(counts))
    exact = law if isinstance(law, Mapping) else dict(enumerate(law))
    assert abs(sum(exact.values()) - 1) < 1e-12, "a law sums to 1"
    if any(count for outcome, count in seen.items() if not exact.get(outcome)):
        return False  # something impossible happened
    total = sum(int(count) for count in seen.values())
    cells = sorted((float(p) * total, int(seen.get(outcome, 0))) for outcome, p in exact.items() if p)
    pooled = [[0.0, 0]]
    for expected, observed in cells:
        if pooled[-1][0] >= LEAST_EXPECTED:
            pooled.append([0.0, 0])
        pooled[-1][0] += expected
        pooled[-1][1] += observed
    assert pooled[-1][0] >= LEAST_EXPECTED, "too few trials"
    if len(pooled) == 1:
        return sum(1 for p in exact.values() if p) == 1
    statistic = sum((observed - expected) ** 2 / expected for expected, observed in pooled)
    return bool(statistic <= stats.chi2.isf(FALSE_ALARM, len(pooled) - 1))


def tally(*columns: Any) -> dict[tuple[int, ...], int]:
    """Count how often each combination of values occurs."""
    arrays = [np.asarray(column).astype(np.int64) for column in columns]
    lows, spans = [int(a.min()) for a in arrays], [int(np.ptp(a)) + 1 for a in arrays]
    code = np.zeros(len(arrays[0]), np.int64)
    for array, low, span in zip(arrays, lows, spans, strict=True):
        code = code * span + (array - low)
    codes, counts = np.unique(code, return_counts=True)
    values = zip(
        *(part + low for part, low in zip(np.unravel_index(codes, spans), lows, strict=True)), strict=True
    )
    return {tuple(map(int, row)): count for row, count in zip(values, counts.tolist(), strict=True)}


def product(*laws: Mapping[Hashable, Any] | Iterable[Any]) -> dict[tuple[Any, ...], Any]:
    """The joint law of independent parts."""
    joint: dict[tuple[Any, ...], Any] = {(): 1}
    for law in laws:
        part = law if isinstance(law, Mapping) else dict(enumerate(law))
        joint = {(*before, outcome): p * q for before, p in joint.items() for outcome, q in part.items()}
    return joint


def coin(p: Any) -> list[Fraction]:
    return [1 - Fraction(p), Fraction(p)]


def binomial(n: int, p: Any) -> list[Fraction]:
    exact = Fraction(p)
    return [comb(n, k) * exact**k * (1 - exact) ** (n - k) for k in range(n + 1)]
