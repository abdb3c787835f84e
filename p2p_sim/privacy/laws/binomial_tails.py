"""Sums of independent Bernoulli variables, as windows of probabilities with a bound on the mass left out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

_SMALL = 100.0  # windows of a smaller variance are not trimmed: what they leave out is bounded much better
_SHORT = 5_000  # half of the length of windows of which hundreds may be kept: 80 kB each


@dataclass(frozen=True, eq=False)
class Window:
    """Probabilities ``mass`` of ``low``, ``low`` + 1, ...; at most ``lost`` lies outside.

    Every probability has a relative error of at most 1e-15 times the length, plus ``lost``: that is what the
    rounding of a chance, each time it is multiplied by, comes to.
    """

    low: int
    mass: Array
    lost: float
    mean: float
    variance: float

    @property
    def last(self) -> int:
        """The largest number in the window."""
        return self.low + len(self.mass) - 1


def reach(variance: float, cut: float) -> float:
    """Return t with P(|X - mean| >= t) <= cut for sums of independent coins.  *Source:* Bernstein's inequality."""
    nats = math.log(2 / cut)
    return nats / 3 + math.sqrt(nats * nats / 9 + 2 * nats * variance)


@lru_cache(maxsize=256)
def binomial(n: int, p: float, q: float, cut: float) -> Window:
    """Return Bin(n, p), q = 1 - p, without at most ``cut`` of its mass.

    Ratios of neighbours are multiplied outward from the mode and scaled to sum to 1: nothing cancels.
    """
    mean, variance = n * p, n * p * q
    if n == 0 or p == 0 or q == 0:
        return Window(n if q == 0 else 0, np.ones(1), 0.0, mean, 0.0)
    t = reach(variance, cut)
    low, high = max(0, math.floor(mean - t)), min(n, math.ceil(mean + t))
    mode = min(n, math.floor((n + 1) * p))
    up = np.arange(mode, high, dtype=np.float64)
    down = np.arange(mode, low, -1, dtype=np.float64)
    right = np.cumprod((n - up) / (up + 1) * (p / q))
    left = np.cumprod(down / (n - down + 1) * (q / p))
    mass = np.concatenate([left[::-1], np.ones(1), right])
    mass /= mass.sum()
    mass.flags.writeable = False
    lost = _beyond(n, high + 1, mean, n * q) + _beyond(n, n - low + 1, n * q, mean)
    return Window(low, mass, min(cut, lost), mean, variance)


def _beyond(n: int, k: int, ones: float, zeros: float) -> float:
    """Return a bound of P(X >= k) where n coins show ``ones`` <= k on average.  *Source:* Chernoff's inequality."""
    if k > n:
        return 0.0
    rest = (n - k) * math.log((n - k) / zeros) if k < n else 0.0
    return 2 * math.exp(-min(735.0, k * math.log(k / ones) + rest))


def two_levels(n: int, p: float, cut: float) -> tuple[float, int, int]:
    """Return (rare, least, many): Bin(n, p) is very likely at least ``many``, and almost surely ``least``.

    It is below ``least`` with probability at most ``cut``, from there to below ``many`` with at most ``rare``.  Of all
    such pairs (1 - rare) (many - least) is largest.
    """
    window = binomial(n, p, 1 - p, cut)
    below = np.append(0.0, np.cumsum(window.mass[:-1]) * (1 + 4e-15 * len(window.mass)))
    best = int(np.argmax(np.arange(len(below)) * (1 - below)))
    return float(below[best]), window.low, window.low + best


def add(first: Window, second: Window) -> Window:
    """Return the law of a sum of two independent counts: every product is positive, so nothing cancels."""
    mean, variance = first.mean + second.mean, first.variance + second.variance
    mass = np.convolve(first.mass, second.mass)
    return Window(first.low + second.low, mass, first.lost + second.lost, mean, variance)


def trimmed(window: Window, cut: float) -> Window:
    """Return a window without the ends that hold at most ``cut`` in all."""
    t = reach(window.variance, cut)
    begin = max(0, math.floor(window.mean - t) - window.low)
    end = min(len(window.mass), math.ceil(window.mean + t) + 1 - window.low)
    if begin == 0 and end == len(window.mass):
        return window
    mass = window.mass[begin:end]
    return Window(window.low + begin, mass, window.lost + cut, window.mean, window.variance)


def noisy_ones(alpha: float, ones: int, zeros: int, coins: int, cut: float) -> Window:
    """Return the number of noisy ones among users with label 1, with label 0, and users who toss a fair coin."""
    variance = alpha * (1 - alpha) * (ones + zeros) + coins / 4
    kept = _many_kept if reach(variance, cut) <= _SHORT else _few_kept
    return kept(alpha, ones, zeros, coins, cut)


def _noisy_ones(alpha: float, ones: int, zeros: int, coins: int, cut: float) -> Window:
    parts = [
        binomial(ones, 1 - alpha, alpha, cut),
        binomial(zeros, alpha, 1 - alpha, cut),
        binomial(coins, 0.5, 0.5, cut),
    ]
    parts.sort(key=lambda part: len(part.mass))
    total = add(add(parts[0], parts[1]), parts[2])
    return total if total.variance < _SMALL else trimmed(total, cut)


# A search for the worst composition asks for the same hundreds of laws at every epsilon that a root tries.
_many_kept, _few_kept = lru_cache(maxsize=512)(_noisy_ones), lru_cache(maxsize=64)(_noisy_ones)


@dataclass(frozen=True, eq=False)
class Halves:
    """The sum R of two independent counts, never written out: one value of its law costs one pass over both.

    ``above``: P(X >= low + i) for i in 0..length, of each.
    """

    first: Window
    second: Window
    above: tuple[Array, Array]

    @property
    def lost(self) -> float:
        """Most that is missing of a tail of R."""
        return self.first.lost + self.second.lost

    def mass(self, s: int) -> float:
        """Return P(R = both lows + s)."""
        a, b = self.first.mass, self.second.mass
        low, high = max(0, s - len(b) + 1), min(len(a) - 1, s)
        return float(a[low : high + 1] @ b[s - high : s - low + 1][::-1]) if low <= high else 0.0

    def tail(self, s: int) -> float:
        """Return P(R >= both lows + s)."""
        a, above = self.first.mass, self.above[1]
        low, high = max(0, s - len(above) + 1), min(len(a), max(0, s))
        part = float(a[low:high] @ above[s - high + 1 : s - low + 1][::-1]) if low < high else 0.0
        return part + float(self.above[0][high] * above[0])

    def turn(self, ratio: float, cut: float) -> int:
        """Return the largest s with P(s) >= ``ratio`` P(s - 1), 0 < ratio < 1: what R's law, log-concave, has."""
        mean = self.first.mean + self.second.mean - self.first.low - self.second.low
        t = reach(self.first.variance + self.second.variance, cut)
        last = len(self.first.mass) + len(self.second.mass) - 2
        low, high = max(0, math.floor(mean - t)), min(last, math.ceil(mean + t)) + 1
        while high - low > 1:
            s = (low + high) // 2
            here = self.mass(s)
            rises = here >= ratio * self.mass(s - 1) if here > 0 else s < mean
            low, high = (s, high) if rises else (low, s)
        return low


@lru_cache(maxsize=4)
def halves(alpha: float, ones: int, zeros: int, cut: float) -> Halves:
    """Return the noisy ones among users with label 1 and with label 0, for crowds too large to write the law out."""
    parts = [
        binomial.__wrapped__(ones, 1 - alpha, alpha, cut),
        binomial.__wrapped__(zeros, alpha, 1 - alpha, cut),
    ]
    parts.sort(key=lambda part: len(part.mass))
    above = [np.append(np.cumsum(part.mass[::-1])[::-1], 0.0) for part in parts]
    return Halves(parts[0], parts[1], (above[0], above[1]))
