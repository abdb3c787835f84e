"""How often each of k categories comes among independent draws that differ, and what that tells of each draw.

For few draws: all histograms are listed.  Two categories: ``poisson_binomial``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

MOST_ENTRIES = 10_000_000
"""Histograms, times draws, that are listed at most."""


def listed(draws: int, most: Sequence[int]) -> bool:
    """Whether so many draws, of which category a comes up to ``most[a]`` times, have few enough histograms."""
    return draws * math.prod(each + 1 for each in most[1:]) <= MOST_ENTRIES


def category_likelihoods(chances: Floats, log_weights: Floats) -> Floats:
    """Return ln E[w(histogram) | draw i = a], shape (n, k), each row up to a constant.

    ``chances`` (n, k): of each category in each draw.  ``log_weights``: ln w by the numbers of categories 1 to k - 1,
    an axis each; beyond its ends w is 0.
    """
    n, k = chances.shape
    weights = np.exp(log_weights - log_weights.max())
    before = [np.zeros(weights.shape)]
    before[0][(0,) * (k - 1)] = 1.0
    for i in range(n - 1):
        law = before[-1]
        grown = law * chances[i, 0]
        for a in range(1, k):
            into, out = _one_more(a, k)
            grown[into] += law[out] * chances[i, a]
        before.append(grown)
    found, after = np.empty((n, k)), weights
    for i in range(n - 1, -1, -1):
        law = before.pop()
        expected = after * chances[i, 0]
        found[i, 0] = (law * after).sum()
        for a in range(1, k):
            into, out = _one_more(a, k)
            found[i, a] = (law[out] * after[into]).sum()
            expected[out] += after[into] * chances[i, a]
        largest = expected.max()
        after = expected / largest if largest > 0 else expected
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(found))


def _one_more(category: int, k: int) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """Return the entries with one more of a category, and those that they come from."""
    into, out = [slice(None)] * (k - 1), [slice(None)] * (k - 1)
    into[category - 1], out[category - 1] = slice(1, None), slice(None, -1)
    return tuple(into), tuple(out)
