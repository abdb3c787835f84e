"""The privacy blanket of k-ary randomized response: ln delta(epsilon), by exact sums and by Hoeffding.

A user shows a uniform label with chance gamma = k/(e^e0 + k - 1), else her own.  All who show their own but the victim
are given away; of m uniform-or-victim labels, a equal the one and s - a the other of the victim's two candidates.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy import special

from p2p_sim.privacy.bounds._binomial import Floats, log_pmf, log_sum, nodes, window

CELLS = 60_000
"""Most pairs (m, s) summed; above, values of m are grouped, each group taken at its least."""


def log_blanket(n: int, local: float, k: int, tail: float) -> Callable[[float], float]:
    """Return epsilon -> ln delta for n users and k > 2 labels, 0 < local <= 100; an upper bound, tails included.

    delta = E_m E_s of (gamma/m) E_a[((e0' - 1)(1 + e^eps) a - (e0' - 1) e^eps s - m (e^eps - 1))_+], e0' = e^e0,
    where m - 1 ~ Bin(n-1, gamma), s ~ Bin(m, 2/k), a ~ Bin(s, 1/2).  It falls with m, so nodes bound it.
    """
    blanketed = k / (math.exp(local) + k - 1)
    wide = window(n, 2 * min(1.0, blanketed) / k, tail)
    most = max(16, CELLS // (wide[1] - wide[0] + 1))
    m, weights, left = nodes(n - 1, blanketed, tail, most, most)
    m = m + 1
    low = min(window(int(count), 2 / k, tail)[0] for count in (m[0], m[-1]))
    high = max(window(int(count), 2 / k, tail)[1] for count in (m[0], m[-1]))
    s = np.arange(max(1, low), high + 1, dtype=np.float64)
    log_joint = weights[:, None] + log_pmf(s[None, :], m[:, None], 2 / k)
    keep = log_joint > -tail - math.log(log_joint.size)
    rows, columns = np.nonzero(keep)
    m_cells, s_cells = m[rows], s[columns]
    log_joint = log_joint[keep] - np.log(m_cells)
    beyond = np.logaddexp(left, math.log(5 * k) - tail)  # no pair contributes more than k times its weight

    def curve(epsilon: float) -> float:
        gap = _gap(m_cells, s_cells, local, epsilon)
        rest = math.log1p((k - 1) * math.exp(-local))
        scale = math.log(k) + math.log(-math.expm1(-local)) + epsilon + math.log1p(math.exp(-epsilon)) - rest
        with np.errstate(divide="ignore"):
            return float(np.logaddexp(scale + log_sum(log_joint + np.log(gap)), beyond))

    return curve


def _gap(m: Floats, s: Floats, local: float, epsilon: float) -> Floats:
    """Return E[(t - b)_+] for b ~ Bin(s, 1/2), t = s/(1 + e^eps) - m tanh(eps/2)/(e^e0 - 1)."""
    t = s * special.expit(-epsilon) - m * math.tanh(epsilon / 2) / math.expm1(local)
    last = np.ceil(t) - 1
    inside = (t > 0) & (last < s)
    b = np.where(inside, last, 0.0)
    below = special.betainc(s - b, b + 1, 0.5)
    fewer = below - 0.5 * np.exp(log_pmf(b, s - 1, 0.5))  # Pr[Bin(s-1, 1/2) <= b - 1]
    gap: Floats = np.where(inside, np.maximum(t * below - s / 2 * fewer, 0.0), 0.0)
    return gap


def log_hoeffding(n: int, local: float, k: int) -> Callable[[float], float]:
    """Return epsilon -> ln delta by Hoeffding; local > 0.  Falling: the smallest value up to epsilon.

    With L the privacy loss of one uniform label, E L = -(e^eps - 1) and its range is (e^eps + 1) k (1 - gamma):
    E(sum of m)_+ <= range^2 / (4 mean) e^(-2 m (mean/range)^2), and the sum over m closes.
    """
    rest = math.log1p((k - 1) * math.exp(-local))
    log_gamma = math.log(k) - local - rest
    own = math.exp(math.log(-math.expm1(-local)) - rest)  # 1 - gamma

    def at(x: Floats) -> Floats:
        steep = np.tanh(x / 2) / (k * own)  # mean / range
        log_range = x + np.log1p(np.exp(-x)) + math.log(k * own)
        each = np.exp(log_gamma) * np.expm1(-2 * steep * steep)
        value: Floats = log_range - np.log(4 * steep) - log_gamma - math.log(n) + n * np.log1p(each)
        return value

    grid = np.linspace(0.0, 1.0, 1025)[1:] * local
    lowest = np.minimum.accumulate(at(grid))

    def curve(epsilon: float) -> float:
        if epsilon <= 0:
            return 0.0
        before = int(np.searchsorted(grid, epsilon, side="right"))
        here = float(at(np.array([epsilon]))[0])
        return min(0.0, here, float(lowest[before - 1]) if before else 0.0)

    return curve
