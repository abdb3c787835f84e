"""The probability mass function of (number of reports, ones among them) of a small cluster at one composition.

*Source:* ``docs/laws.md``, "The learner": M ~ Bin(n, theta), N the noisy ones, K | M, N ~ Bin(M, N / n), summed over N.
All terms are positive, so relative errors add up and nothing cancels.  ``cluster_reports`` takes these
probabilities where all can be listed, and elsewhere its own brackets, which have no such rounding errors.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from p2p_sim.privacy.laws.bit_count_pmf import bit_count_pmf, bits_error, no_underflow

Array = npt.NDArray[np.float64]

LARGEST = 40
"""Users of a cluster up to which outcomes are listed."""

_U = 2.0**-53


def listable(alpha: float, theta: float, size: int) -> bool:
    """Return whether the cluster is small enough, and no probability underflows."""
    if size > LARGEST or not 0 < alpha < 0.5 or not theta:
        return False
    least = size * math.log(size) - size * math.log(min(theta, 1 - theta) if theta < 1 else 1.0)
    return no_underflow(alpha, size, least)


def reports_error(size: int) -> float:
    """Return the relative error of ``report_pmf``: of the bits, of powers, of factors and of the sum over N."""
    return bits_error(size) + (8 * size + 64) * _U


def report_pmf(alpha: float, theta: float, size: int, ones: int) -> Array:
    """Return the probability of every (reports, ones among them), (outcomes,); ``ones``: users with label 1."""
    urn = bit_count_pmf(alpha, ones, size - ones)
    return np.concatenate([weight * (ways @ urn) for weight, ways in _draws(theta, size)])


@lru_cache(maxsize=8)
def _draws(theta: float, size: int) -> list[tuple[float, Array]]:
    """Return, for each number of reports m, its probability and P(k of m | N), shape (m + 1, size + 1)."""
    share = np.arange(size + 1) / size
    rest = share[::-1]  # 1 - share, rounded once
    found = []
    for m in [size] if theta == 1 else range(size + 1):
        weight = math.comb(size, m) * theta**m * (1 - theta) ** (size - m)
        k = np.arange(m + 1)[:, None]
        ways = np.array([float(math.comb(m, i)) for i in range(m + 1)])[:, None]
        found.append((weight, ways * share**k * rest ** (m - k)))
    return found
