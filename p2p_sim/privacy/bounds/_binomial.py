"""Binomial laws in logs, windows that hold nearly all of one, and where a falling curve meets a level."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from p2p_sim.privacy.root_bracket import root_bracket

Floats = npt.NDArray[np.float64]
FLOOR = -1.0e5
"""What stands for ln 0 inside root finding."""


def log_pmf(k: Floats, n: Any, p: float) -> Floats:
    """Return ln Pr[Bin(n, p) = k] for 0 < p < 1 and whole k, n as floats; -inf where k is outside 0..n.

    By Stirling's remainder and the deviance (Loader 2000): no cancellation between large logarithms.
    """
    k, n = np.broadcast_arrays(np.asarray(k, np.float64), np.asarray(n, np.float64))
    out = np.full(k.shape, -np.inf)
    with np.errstate(divide="ignore"):
        out[(k == 0) & (n >= 0)] = (n * np.log1p(-p))[(k == 0) & (n >= 0)]
        out[(k == n) & (n > 0)] = (n * np.log(p))[(k == n) & (n > 0)]
    inner = (k > 0) & (k < n)
    x, m = k[inner], n[inner]
    rest = m - x
    remainder = _stirling(m) - _stirling(x) - _stirling(rest)
    deviance = _deviance(x, m * p) + _deviance(rest, m * (1 - p))
    out[inner] = remainder - deviance + 0.5 * np.log(m / (2 * math.pi * x * rest))
    return out


def _stirling(n: Floats) -> Floats:
    """Return ln n! - ln(sqrt(2 pi n) (n/e)^n), n >= 1."""
    small = special.gammaln(n + 1) - (n + 0.5) * np.log(n) + n - 0.5 * math.log(2 * math.pi)
    square = n * n
    series = (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680) / square) / square) / square) / n
    return np.where(n < 16, small, series)


def _deviance(x: Floats, m: Floats) -> Floats:
    """Return x ln(x/m) + m - x, also for x near m; x > 0, m >= 0."""
    with np.errstate(divide="ignore", over="ignore"):
        far = x * np.log(x / m) + m - x
    v = (x - m) / (x + m)
    total, term = (x - m) * v, 2 * x * v
    for j in range(1, 12):
        term = term * v * v
        total = total + term / (2 * j + 1)
    return np.where(np.abs(v) < 0.1, total, far)


def log_upper_half(a: Floats, c: Floats) -> Floats:
    """Return ln Pr[Bin(c, 1/2) >= a]; -inf where it is below the smallest float."""
    a, c = np.broadcast_arrays(a, c)
    inside = (a > 0) & (a <= c)
    tail = special.betainc(np.where(inside, a, 1.0), np.where(inside, c - a + 1, 1.0), 0.5)
    with np.errstate(divide="ignore"):
        return np.log(np.where(inside, tail, np.where(a <= 0, 1.0, 0.0)))


def window(n: int, p: float, tail: float) -> tuple[int, int]:
    """Return lo, hi with Pr[Bin(n, p) < lo] and Pr[> hi] at most e^-tail each, by Bernstein's inequality."""
    reach = tail / 3 + math.sqrt(tail * tail / 9 + 2 * tail * n * p * (1 - p))
    return max(0, math.floor(n * p - reach)), min(n, math.ceil(n * p + reach))


def nodes(n: int, p: float, tail: float, room: int, most: int) -> tuple[Floats, Floats, float]:
    """Return whole numbers, ln of the weight of each, and ln of the weight of none; ``most`` if ``room`` is short.

    A node carries the law of Bin(n, p) from itself up to the next node: whatever falls in the count is bounded
    from above.  With room every number is a node and only the two tails, at most 2 e^-tail, are left.
    """
    if n == 0 or p <= 0 or p >= 1:
        return np.array([float(n) if p >= 1 else 0.0]), np.zeros(1), -math.inf
    lo, hi = window(n, p, tail)
    step = 1 if hi - lo < room else -(-(hi - lo + 1) // most)
    weights = log_pmf(np.arange(lo, hi + 1, dtype=np.float64), float(n), p)
    starts = np.arange(0, hi - lo + 1, step)
    if step > 1:
        weights = np.logaddexp.reduceat(weights, starts)
    left = math.log(2) - tail if lo > 0 or hi < n else -math.inf
    return lo + starts.astype(np.float64), weights, left


def log_sum(logs: Floats) -> float:
    """Return ln of the sum of exponentials; -inf for none."""
    top = float(logs.max(initial=-np.inf))
    return top if math.isinf(top) else top + math.log(float(np.exp(logs - top).sum()))


def meets(curve: Callable[[float], float], level: float, ceiling: float) -> float:
    """Return the least x in [0, ceiling], rounded up, where a falling curve is at most ``level``.

    The bracket grows from 1e-6 by fours until the curve is below; ``ceiling`` is the answer if it never is.
    """
    if curve(0.0) <= level:
        return 0.0
    low, high = 0.0, min(ceiling, 1e-6)
    while high < ceiling and curve(high) > level:
        low, high = high, min(ceiling, 4 * high)
    if curve(high) > level:
        return ceiling
    root = root_bracket(lambda x: max(curve(x) - level, FLOOR), low, high, 1e-13)[1]
    step = max(1e-13 * root, 1e-300)
    while root < ceiling and curve(root) > level:
        root, step = min(ceiling, root + step), 2 * step
    return root
