"""Sums of coins as windows of probabilities whose lost mass is bounded."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Window:
    """Probabilities ``mass`` of ``low``, ``low`` + 1, ...; at most ``lost`` lies outside.

    Every probability has a relative error of at most 1e-16 times the length, plus ``lost``.
    """

    low: int
    mass: Array
    lost: float
    mean: float
    variance: float


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
    return Window(low, mass, 0.0 if (low, high) == (0, n) else cut, mean, variance)


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


@lru_cache(maxsize=64)
def noisy_ones(flip: float, ones: int, zeros: int, coins: int, cut: float) -> Window:
    """Return the number of noisy ones among users with label 1, with label 0, and users who toss a fair coin."""
    parts = [
        binomial(ones, 1 - flip, flip, cut),
        binomial(zeros, flip, 1 - flip, cut),
        binomial(coins, 0.5, 0.5, cut),
    ]
    parts.sort(key=lambda part: len(part.mass))
    return trimmed(add(add(parts[0], parts[1]), parts[2]), cut)
