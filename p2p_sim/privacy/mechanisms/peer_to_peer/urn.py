"""Reports drawn with replacement from an urn of noisy bits: delta of one bit, given their number of ones."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import betainc

from p2p_sim.privacy.laws.binomial_tails import Window, noisy_ones

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


_BETA = 4e-13  # relative error of one tail of a binomial, plus _BETA_SIZE a bit in the urn
_BETA_SIZE = 4e-19
_TRIES = 8
_MARGIN_ERROR = 8e-16  # error of ``bit_margin``, in parts of 1 - 2 alpha
_FAR = -1e290  # stands for log 0: times 0 it is 0, times any number of draws a float


@dataclass(frozen=True)
class Urn:
    """Bits of ``ones`` + ``zeros`` users of those labels, ``coins`` fair ones, known bits, and the victim's."""

    alpha: float
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

    def draws(self, cut: float) -> UrnDraws:
        """Return the urn ready to be drawn from, without ``cut`` of its mass."""
        return _draws(self, cut)


@lru_cache(maxsize=64)
def _draws(urn: Urn, cut: float) -> UrnDraws:
    return UrnDraws(urn, noisy_ones(urn.alpha, urn.ones, urn.zeros, urn.coins, cut))


@dataclass(frozen=True, eq=False)
class UrnDraws:
    """An urn and the law of its ones."""

    urn: Urn
    ones: Window

    @cached_property
    def tables(self) -> dict[int, Tables | None]:
        """Tables by the steps they are made in."""
        return {}

    @cached_property
    def known(self) -> dict[str, float]:
        """By how much the last guess was off."""
        return {}

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
        keep, slip = bit_margin(self.urn.alpha, epsilon), margin_error(self.urn.alpha)
        if m == 0 or keep <= 0:
            return 0.0, slip if m and keep > -slip else 0.0
        level = level_of(keep, epsilon)
        found = self._sums(m, level)
        if found is None:
            return 0.0, keep * self.ones.lost
        more, rest = found
        paid = math.expm1(epsilon) * rest if epsilon < 700 else times(rest, epsilon)
        error = slip * more + (_BETA + _BETA_SIZE * self.urn.size) * (keep * (2 * rest + more) + paid)
        error += keep * self.ones.lost
        return max(0.0, keep * more - paid), error

    def _sums(self, m: int, level: float) -> tuple[float, float] | None:
        """Return (P_B - P_A, P_A) of {K >= k} at the least k whose log ratio is above ``level``; None beyond m."""
        found = self._smooth(m, level)
        if found is not None:
            return found.more, found.rest
        k = self.best(m, level)
        if k > m:
            return None
        tail = upper_tails(m, k, self.urn.size, self.counts)
        return float(self.ones.mass @ (tail[1:] - tail[:-1])), float(self.ones.mass @ tail[:-1])

    def _smooth(self, m: int, level: float) -> Sums | None:
        """Return the sums at that k, where tables tell them; None elsewhere."""
        first = self._guess(m, level)[0]
        at = first + self.known.get("off", 0.0)  # a normal guess is off by much the same, time after time
        for _ in range(_TRIES):
            k = math.floor(min(m, max(0.0, at))) + 1
            parts = steps(m, k, self.urn.size, float(self.counts[0]), float(self.counts[-1]))
            tables = self.tables.get(parts) if parts in self.tables else self._tables(parts)
            found = tables.sums(m, k) if tables is not None else None
            if found is None or not found.before < found.here:
                return None
            at = k - 1 + (level - found.before) / (found.here - found.before)
            if found.before <= level < found.here:
                self.known["off"] = at - first
                return found
            if math.floor(min(m, max(0.0, at))) + 1 == k:
                at = k + 0.5 if level >= found.here else k - 1.5
        return None

    def _tables(self, parts: int) -> Tables | None:
        made = tables(self.ones.mass, float(self.counts[0]), self.urn.size, parts) if parts else None
        self.tables[parts] = made
        return made

    def _guess(self, m: int, level: float) -> tuple[float, float]:
        """Return (about where the log ratio is ``level``, its slope there), by a normal approximation."""
        share = m / self.urn.size
        q = min(1 - 1e-9, max(1e-9, (self.ones.mean + self.urn.known_ones + 0.5) / self.urn.size))
        slope = share / (m * q * (1 - q) + share**2 * self.ones.variance)
        return m * q + level / slope, slope

    def best(self, m: int, level: float) -> int:
        """Return the least k in 0..m whose log ratio is above ``level`` >= 0, or m + 1."""
        last, at = math.nan, -1
        low, high = 0, m + 1  # ratio(low) <= level < ratio(high)
        target, slope = self._guess(m, level)
        for step in range(200):
            if high - low == 1:
                break
            k = (low + high) // 2 if step > 8 else math.ceil(min(high - 1, max(low + 1, target)))
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
    parts = steps(m, k, size, float(counts[0]), float(counts[-1]))
    if parts:
        return tails(m, k, size, float(counts[0]), len(counts), parts)
    return np.asarray(betainc(k, m - k + 1, np.minimum(counts / size, 1.0)), np.float64)


def bit_margin(alpha: float, epsilon: float) -> float:
    """Return (1 - a) - a e^epsilon, what one more one is worth, right to ``margin_error`` where positive."""
    if epsilon < 700:
        return (1 - 2 * alpha) - alpha * math.expm1(epsilon)
    return (1 - 2 * alpha) - times(alpha, epsilon)


def margin_error(alpha: float) -> float:
    """Return what ``bit_margin`` may be wrong by: next to the pure epsilon this is all that it is."""
    return _MARGIN_ERROR * (1 - 2 * alpha) if alpha else 0.0


def level_of(keep: float, epsilon: float) -> float:
    """Return the log ratio above which a number of ones is in the best event."""
    return math.log1p(math.expm1(epsilon) / keep) if epsilon < 700 else epsilon - math.log(keep)


def times(factor: float, epsilon: float) -> float:
    """Return factor * e^epsilon, at most e^700, right to some ulps; the factor may be 0 or tiny and epsilon large."""
    half = math.exp(min(1400.0, epsilon) / 2)
    return min(1e304, factor * half * half)
