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

from p2p_sim.privacy.laws import beta
from p2p_sim.privacy.laws.tails import Window, noisy_ones

Array = npt.NDArray[np.float64]

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

    def draws(self, cut: float) -> Draws:
        """Return the urn ready to be drawn from, without ``cut`` of its mass."""
        return _draws(self, cut)


@lru_cache(maxsize=64)
def _draws(urn: Urn, cut: float) -> Draws:
    return Draws(urn, noisy_ones(urn.alpha, urn.ones, urn.zeros, urn.coins, cut))


@dataclass(frozen=True, eq=False)
class Draws:
    """An urn and the law of its ones."""

    urn: Urn
    ones: Window

    @cached_property
    def tables(self) -> dict[int, beta.Tables | None]:
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

    def _smooth(self, m: int, level: float) -> beta.Sums | None:
        """Return the sums at that k, where tables tell them; None elsewhere."""
        first = self._guess(m, level)[0]
        at = first + self.known.get("off", 0.0)  # a normal guess is off by much the same, time after time
        for _ in range(_TRIES):
            k = math.floor(min(m, max(0.0, at))) + 1
            parts = beta.steps(m, k, self.urn.size, float(self.counts[0]), float(self.counts[-1]))
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

    def _tables(self, parts: int) -> beta.Tables | None:
        made = beta.tables(self.ones.mass, float(self.counts[0]), self.urn.size, parts) if parts else None
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
    parts = beta.steps(m, k, size, float(counts[0]), float(counts[-1]))
    if parts:
        return beta.tails(m, k, size, float(counts[0]), len(counts), parts)
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
