"""Binomial tails as integrals of beta densities, summed over an urn's law from one vector of densities.

The derivative of P(Bin(m, r/size) >= k) in r is a beta density, which is also m, k's binomial probability times k/r.
So one exponential a count tells the tails at all counts and both likelihood ratios, at k and at k - 1.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import betainc

Array = npt.NDArray[np.float64]

_HALF = [2497, -28939, 162680, -641776, 4134338]
TEN = np.array(_HALF + _HALF[::-1]) / 7257600
"""Weights of the integral over the middle of ten points, by interpolation; symmetric."""

_STEEP = 0.14  # relative change from one point to the next up to which ten points give 12 digits
_LONG = 100_000  # points up to which tables are kept


class Sums(NamedTuple):
    """Means over the urn: ``rest`` of tails, ``more`` by how much one more one lifts them; ratios, as logarithms."""

    more: float
    rest: float
    before: float
    here: float


def steps(m: int, k: int, size: int, low: float, high: float) -> int:
    """Return in how many steps from one count to the next the density is smooth; 0 if in too many, or near an end."""
    if not (high - low >= 100 and k > 16 and m - k > 16 and low > 4 and high < size - 4):
        return 0
    steep = max(abs(k / r - (m - k) / (size - r)) for r in (low, high))
    steep = max(steep, math.sqrt(k / low**2 + (m - k) / (size - high) ** 2))
    return math.ceil(steep / _STEEP) if steep < 4 * _STEEP else 0


def tail(m: int, k: int, size: int, ones: float) -> float:
    """Return P(Bin(m, ones/size) >= k), 1 <= k <= m."""
    return float(betainc(k, m - k + 1, ones / size))


def log_binomial(m: int, k: int, size: int, ones: float) -> float:
    """Return log P(Bin(m, ones/size) = k) for k and m - k above 16."""
    off = ones * (m / size) - k
    constant = 0.5 * math.log(m / (2 * math.pi * k * (m - k)))
    constant += _stirling(m) - _stirling(k) - _stirling(m - k)
    return constant + k * math.log1p(off / k) + (m - k) * math.log1p(-off / (m - k))


class Tables:
    """What does not depend on the draws: logarithms of the counts, and weights of the densities there."""

    def __init__(self, mass: Array, low: float, size: int, parts: int) -> None:
        """Prepare for counts ``low``, ``low`` + 1, ... of probabilities ``mass``, in ``parts`` steps each."""
        count = len(mass)
        ones = low + np.arange(-4, count * parts + 5, dtype=np.float64) / parts
        self.low, self.size, self.parts, self.total = low, size, parts, float(mass.sum())
        self.middle = float(ones[len(ones) // 2])
        self.one = np.log1p((ones - self.middle) / self.middle)
        self.zero = np.log1p((self.middle - ones) / (size - self.middle))
        self.rows = np.zeros((6, len(ones)))
        above = np.append(np.cumsum(mass[:0:-1])[::-1], 0.0)
        for row, weights in enumerate((mass, above)):
            self.rows[row] = np.convolve(np.repeat(weights, parts), TEN)
        for shift in range(2):  # where the victim's bit is 0, and where it is 1
            at = slice(4 + shift * parts, 4 + shift * parts + count * parts, parts)
            self.rows[2 + shift, at] = mass * ones[at]
            self.rows[4 + shift, at] = mass * (size - ones[at])

    def sums(self, m: int, k: int) -> Sums | None:
        """Return the sums at ``k`` of ``m`` draws; None where numbers are too small to tell the ratios."""
        constant = log_binomial(m, k, self.size, self.middle) + math.log(k / (self.middle * self.parts))
        density = (k - 1) * self.one
        density += (m - k) * self.zero + constant
        np.exp(density, out=density)
        more, rest, a, b, before_a, before_b = (self.rows @ density).tolist()
        if not min(a, b, before_a, before_b) > 1e-250:
            return None
        rest += self.total * tail(m, k, self.size, self.low)
        return Sums(more, rest, math.log(before_b / before_a), math.log(b / a))


def tables(mass: Array, low: float, size: int, parts: int) -> Tables | None:
    """Return the tables, or None where they would be too long to keep."""
    return Tables(mass, low, size, parts) if len(mass) * parts <= _LONG else None


def tails(m: int, k: int, size: int, low: float, count: int, parts: int) -> Array:
    """Return P(Bin(m, r/size) >= k) for ``count`` consecutive r from ``low`` on: the integrals added up."""
    r = low + np.arange(-4, (count - 1) * parts + 5, dtype=np.float64) / parts
    off = r * (m / size) - k
    start = log_binomial(m, k, size, k * size / m)
    density = np.exp(start + k * np.log1p(off / k) + (m - k) * np.log1p(-off / (m - k))) * (k / (r * parts))
    pieces = np.convolve(density, TEN, "valid")
    out = np.empty(count)
    out[0] = tail(m, k, size, low)
    np.cumsum(pieces.reshape(count - 1, parts).sum(1), out=out[1:])
    out[1:] += out[0]
    return out


def _stirling(n: int) -> float:
    """Return log n! - log(sqrt(2 pi n) (n/e)^n) for n > 16, to 1e-13."""
    x = 1 / (n * n)
    return (1 / 12 - x * (1 / 360 - x * (1 / 1260 - x / 1680))) / n
