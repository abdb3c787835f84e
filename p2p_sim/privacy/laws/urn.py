"""Reports drawn with replacement from an urn of noisy bits: what their number of ones tells of one bit.

The urn holds one bit a user.  m reports are drawn, K of them are ones.  With the victim's noisy bit 0 or 1 the urn
holds R or R + 1 ones, so K is drawn by A(k) = E Bin(m, R/N)(k) or by B(k) = E Bin(m, (R + 1)/N)(k), and label 1 shows
(1 - a) B + a A, label 0 shows a B + (1 - a) A.  B/A increases with k, so the best event is {K >= k}, and

    delta = ((1 - a) - a e^eps) (P_B(K >= k) - P_A(K >= k)) - (e^eps - 1) P_A(K >= k)  at the best k.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt
from scipy.special import betainc

from p2p_sim.privacy.laws.tails import Window, noisy_ones

Array = npt.NDArray[np.float64]

_BETA = 4e-13  # relative error of one tail of a binomial, plus _BETA_SIZE a bit in the urn
_BETA_SIZE = 4e-19
_HALF = [2497, -28939, 162680, -641776, 4134338]
_TEN = np.array(_HALF + _HALF[::-1]) / 7257600  # integral over the middle of ten points, by interpolation
_STEEP = 0.14  # relative change from one point to the next up to which ten points give 12 digits
_FAR = -1e300  # stands for log 0, and times 0 is 0


@dataclass(frozen=True)
class Urn:
    """Bits of ``ones`` + ``zeros`` users of those labels, ``coins`` fair ones, known bits, and the victim's."""

    flip: float
    ones: int
    zeros: int
    coins: int = 0
    known_ones: int = 0
    known_zeros: int = 0

    def mirrored(self) -> Urn:
        """Return the urn with the names 0 and 1 swapped: its delta from 0 to 1 is this one's from 1 to 0."""
        return replace(
            self,
            ones=self.zeros,
            zeros=self.ones,
            known_ones=self.known_zeros,
            known_zeros=self.known_ones,
        )

    @property
    def size(self) -> int:
        """How many bits the urn holds."""
        return self.ones + self.zeros + self.coins + self.known_ones + self.known_zeros + 1

    def draws(self, cut: float) -> Draws:
        """Return the urn ready to be drawn from, without ``cut`` of its mass."""
        return _draws(self, cut)


@lru_cache(maxsize=64)
def _draws(urn: Urn, cut: float) -> Draws:
    return Draws(urn, noisy_ones(urn.flip, urn.ones, urn.zeros, urn.coins, cut))


@dataclass(frozen=True, eq=False)
class Draws:
    """An urn and the law of its ones."""

    urn: Urn
    ones: Window

    @cached_property
    def counts(self) -> Array:
        """Ones in the urn where the victim's bit is 0, and one more at the end: shape (w + 1,)."""
        start = self.ones.low + self.urn.known_ones
        return np.arange(start, start + len(self.ones.mass) + 1, dtype=np.float64)

    @cached_property
    def logs(self) -> tuple[Array, Array, Array]:
        """Logarithms of the window's mass, of the counts, and of the zeros, each finite."""
        with np.errstate(divide="ignore"):
            raw = np.log(self.ones.mass), np.log(self.counts), np.log(self.urn.size - self.counts)
        return tuple(np.maximum(part, _FAR) for part in raw)  # type: ignore[return-value]

    def ratio(self, m: int, k: int) -> float:
        """Return log B(k)/A(k), which increases with k (and is infinite where A(k) = 0)."""
        mass, one, zero = self.logs
        weight = k * one + (m - k) * zero
        first, second = mass + weight[:-1], mass + weight[1:]
        top = max(float(first.max()), float(second.max()))
        a, b = float(np.exp(first - top).sum()), float(np.exp(second - top).sum())
        if a == 0 or b == 0:
            return float(second.max() - first.max())
        return math.log(b / a)

    def gain(self, m: int, epsilon: float) -> tuple[float, float]:
        """Return (delta from label 0 to 1 of m draws, a bound of its error) at epsilon >= 0."""
        a = self.urn.flip
        keep = (1 - a) - a * math.exp(epsilon) if epsilon < 700 else float(a == 0)
        if m == 0 or keep <= 0:
            return 0.0, 0.0
        price = math.expm1(min(epsilon, 700.0))
        k = self.best(m, math.log1p(price / keep))
        if k > m:
            return 0.0, keep * self.ones.lost
        tail = upper_tails(m, k, self.urn.size, self.counts)
        more = float(self.ones.mass @ (tail[1:] - tail[:-1]))
        rest = float(self.ones.mass @ tail[:-1])
        error = (_BETA + _BETA_SIZE * self.urn.size) * (keep * (2 * rest + more) + price * rest)
        error += keep * self.ones.lost
        return max(0.0, keep * more - price * rest), error

    def best(self, m: int, level: float) -> int:
        """Return the least k in 0..m whose log ratio is above ``level`` >= 0, or m + 1."""
        last, at = math.nan, -1
        low, high = 0, m + 1  # ratio(low) <= level < ratio(high)
        q = min(1 - 1e-9, max(1e-9, (self.ones.mean + self.urn.known_ones + 0.5) / self.urn.size))
        slope = (m / self.urn.size) / (m * q * (1 - q) + (m / self.urn.size) ** 2 * self.ones.variance)
        target = m * q + level / slope
        for step in range(200):
            if high - low == 1:
                break
            k = (low + high) // 2 if step > 8 else min(high - 1, max(low + 1, math.ceil(target)))
            value = self.ratio(m, k)
            if math.isfinite(value) and math.isfinite(last) and k != at and value != last:
                slope = max(1e-300, (value - last) / (k - at))
            last, at = value, k
            if value > level:
                high = k
                target = k - (value - level) / slope if math.isfinite(value) else low
                target = k - 1 if target > k - 1 else target
            else:
                low, target = k, k + (level - value) / slope
        return high


def upper_tails(m: int, k: int, size: int, counts: Array) -> Array:
    """Return P(Bin(m, r/size) >= k) for consecutive counts r, shape (w,), each to 12 digits; 0 <= k <= m."""
    if k <= 0:
        return np.ones(len(counts))
    low, high = float(counts[0]), float(counts[-1])
    if len(counts) > 100 and k > 16 and m - k > 16 and low > 4 and high < size - 4:
        steep = max(abs(k / r - (m - k) / (size - r)) for r in (low, high))
        steep = max(steep, math.sqrt(k / low**2 + (m - k) / (size - high) ** 2))
        if steep < 4 * _STEEP:
            return _integrated(m, k, size, low, len(counts), math.ceil(steep / _STEEP))
    return np.asarray(betainc(k, m - k + 1, np.minimum(counts / size, 1.0)), np.float64)


def _integrated(m: int, k: int, size: int, low: float, count: int, parts: int) -> Array:
    """Add up the derivative of the tail, a beta density, in steps of 1/parts: one exponential a step."""
    r = low + np.arange(-4, (count - 1) * parts + 5, dtype=np.float64) / parts
    off = r * (m / size) - k
    constant = (
        0.5 * math.log(m / (2 * math.pi * k * (m - k))) + _stirling(m) - _stirling(k) - _stirling(m - k)
    )
    density = np.exp(constant + k * np.log1p(off / k) + (m - k) * np.log1p(-off / (m - k))) * (
        k / (r * parts)
    )
    steps = np.convolve(density, _TEN, "valid")  # the weights are symmetric
    tails = np.empty(count)
    tails[0] = float(betainc(k, m - k + 1, low / size))
    np.cumsum(steps.reshape(count - 1, parts).sum(1), out=tails[1:])
    tails[1:] += tails[0]
    return tails


def _stirling(n: int) -> float:
    """Return log n! - log(sqrt(2 pi n) (n/e)^n) for n > 16, to 1e-13."""
    x = 1 / (n * n)
    return (1 / 12 - x * (1 / 360 - x * (1 / 1260 - x / 1680))) / n
