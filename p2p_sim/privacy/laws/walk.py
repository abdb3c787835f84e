"""delta for every number of reports, by a walk along the border of the best event: one vector a step.

With m reports the best event is {K >= k}.  With one report more it is {K >= k} or {K >= k + 1}, because a one makes
label 1 more likely and a zero less, whatever came before.  Let c(r) be what probability at r ones in the urn is worth,
so that delta is the sum of c(r) P(Bin(m, r/N) >= k), and z(r) = c(r) P(Bin(m, r/N) = k - 1).  Then s = sum of z(r) r/N
is the worth of k - 1 ones followed by a one.  If s > 0 it joins the event, k stays and delta grows by s.  Otherwise k
ones followed by a zero, which is worth s (m - k + 1)/k, leaves the event.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.special import betaln

from p2p_sim.privacy.laws.tails import Window
from p2p_sim.privacy.laws.urn import Draws, bit_margin, level_of, margin_error

Array = npt.NDArray[np.float64]

EARLY = 400
"""Numbers of reports up to which a walk begins at 0, where nothing need be computed first."""

_UNIT = 1.2e-16  # rounding of one operation, with some room
_HIGH = 600.0  # nats from which worths are scaled
_FLUSH = 1e-290  # parts of a vector below this are dropped, or they would be slow
_LONG = 1500  # length of a vector from which each is walked alone
_SHARED = 9000  # length from which a product of vectors would be shared by threads, and be slower
_SHEET = 40_000  # numbers in the vectors that are walked together: what a near cache holds


def averages(draws: Sequence[Draws], windows: Sequence[Window], epsilon: float) -> tuple[Array, Array]:
    """Return (delta averaged over the numbers of reports in a window, a bound of its error) for each pair."""
    out = np.zeros((2, len(draws)))
    order = sorted(
        range(len(draws)), key=lambda i: (len(draws[i].ones.mass), windows[i].low, len(windows[i].mass))
    )
    while order:
        width = len(draws[order[-1]].ones.mass) + 1
        count = 1 if width > _LONG else max(1, _SHEET // width)
        chosen, order = order[-count:], order[:-count]
        if len(chosen) < 4:
            for i in chosen:
                out[:, i] = average(draws[i], windows[i], epsilon)
        else:
            out[:, chosen] = _together([draws[i] for i in chosen], [windows[i] for i in chosen], epsilon)
    return out[0], out[1]


def average(draws: Draws, window: Window, epsilon: float) -> tuple[float, float]:
    """Return (delta averaged over the numbers of reports in a window, a bound of its error)."""
    keep, price, scale = worth(draws.urn.alpha, epsilon)
    if keep <= 0:
        return 0.0, _slipped(draws.urn.alpha, epsilon)
    start = _Start(draws, window, epsilon, (keep, price, scale))
    z, p, m, k, g = start.z, start.p, start.m, start.k, start.gain
    q, rough, dot = 1 - p, start.rough, _dot if len(z) < _SHARED else _dot_alone
    error, rounding = start.error, start.rounding
    first, factor = g, 1.0
    total, slack = g * start.mass[0], error * start.mass[0]
    for step, mass in enumerate(start.mass[1:], 1):
        gain = dot(z, p) * (factor * start.scale)
        grown = dot(z, rough) * (factor * start.scale)
        if gain > 0:
            np.multiply(z, q, z)
            factor *= (m + 1) / (m + 2 - k)
        else:
            gain, grown = -gain * ((m - k + 1) / k), grown * ((m - k + 1) / k)
            np.multiply(z, p, z)
            factor, k = factor * ((m + 1) / k), k + 1
        m, g, error = m + 1, g + gain, error + grown
        total += mass * g
        slack += mass * (error + rounding * (g - first))
        if step % 8 == 0:
            z *= factor
            factor = 1.0
            if step % 64 == 0:
                z[np.abs(z) < _FLUSH] = 0
    return total / scale, (slack + total * len(window.mass) * _UNIT) / scale


def worth(alpha: float, epsilon: float) -> tuple[float, float, float]:
    """Return (what a one more in the urn is worth, what it costs, scale): both times the scale, 1 up to 600 nats.

    They are (1 - a) - a e^epsilon and e^epsilon - 1; of epsilons above 1200 the latter is that of 1200.
    """
    if epsilon <= _HIGH:
        return bit_margin(alpha, epsilon), math.expm1(epsilon), 1.0
    scale = math.exp(_HIGH - min(2 * _HIGH, epsilon))
    return bit_margin(alpha, epsilon) * scale, math.exp(_HIGH), scale


def _slipped(alpha: float, epsilon: float) -> float:
    return margin_error(alpha) if bit_margin(alpha, epsilon) > -margin_error(alpha) else 0.0


def _dot(first: Array, second: Array) -> float:
    return float(first.dot(second))


def _dot_alone(first: Array, second: Array) -> float:
    return float(np.einsum("i,i->", first, second))


class _Start:
    """Where a walk begins: ``m`` reports, the event from ``k`` ones, its worth, and z = ``z`` * ``scale``."""

    def __init__(
        self, draws: Draws, window: Window, epsilon: float, worths: tuple[float, float, float]
    ) -> None:
        keep, price, scale = worths
        early = window.low + len(window.mass) <= EARLY
        self.m = 0 if early else window.low
        self.mass = [0.0] * (window.low * early) + window.mass.tolist()
        self.k, self.gain, self.error = 1, 0.0, keep * draws.ones.lost
        if self.m:
            self.k = draws.best(self.m, level_of(keep / scale, epsilon))
            self.gain, self.error = (part * scale for part in draws.gain(self.m, epsilon))
        self.p = draws.counts / draws.urn.size
        value, whole = np.zeros(len(self.p)), np.zeros(len(self.p))
        value[1:] += keep * draws.ones.mass
        value[:-1] -= (keep + price) * draws.ones.mass
        whole[1:] += keep * draws.ones.mass
        whole[:-1] += (keep + price) * draws.ones.mass
        value = np.where(np.abs(value) < _UNIT * whole, np.copysign(_UNIT * whole, value), value)
        logs, terms, common = _binomial_logs(self.m, self.k - 1, draws.urn.size, draws.counts)
        top = float(logs.max())
        self.scale = math.exp(top + common)
        self.z = value * np.exp(logs - top)
        self.z[np.abs(self.z) < _FLUSH] = 0
        slip = margin_error(draws.urn.alpha) * scale / keep
        self.rounding = 8 * (self.m + 8) * _UNIT
        # By what a part of z may be off: its signs stay, and so does how much its two terms cancelled.
        unit = (2 * len(window.mass) + len(value) + terms) * _UNIT
        each = unit * np.abs(value) + ((len(value) + 8) * _UNIT + slip) * whole
        self.rough = self.p * np.divide(each, value, out=np.zeros_like(value), where=value != 0)


def _binomial_logs(m: int, j: int, size: int, counts: Array) -> tuple[Array, float, float]:
    """Return log P(Bin(m, r/size) = j) less a constant, how large its terms are, and the constant.

    Each term is near 0 where r/size is near j/m, so little is lost.
    """
    off = (counts * m - float(j) * size) / size
    logs, terms, common = np.zeros(len(counts)), 4.0, -math.log(m + 1) - float(betaln(j + 1, m - j + 1))
    for part, share in ((j, off), (m - j, -off)):
        if part:
            with np.errstate(divide="ignore"):
                one = part * np.log1p(share / part)
            logs += one
            terms += float(np.abs(one[np.isfinite(one)]).max(initial=0.0))
            common += part * math.log(part / m)
    return logs, terms, common


def _together(draws: list[Draws], windows: list[Window], epsilon: float) -> Array:
    """Return what ``average`` does for each, walked side by side: shape (2, count)."""
    keep, price, scale = worth(draws[0].urn.alpha, epsilon)
    if keep <= 0:
        return np.repeat([[0.0], [_slipped(draws[0].urn.alpha, epsilon)]], len(draws), 1)
    starts = [_Start(d, w, epsilon, (keep, price, scale)) for d, w in zip(draws, windows, strict=True)]
    width, steps = max(len(s.z) for s in starts), max(len(s.mass) for s in starts)
    z, p, rough = (np.zeros((len(starts), width)) for _ in range(3))
    mass = np.zeros((steps, len(starts)))
    for i, s in enumerate(starts):
        z[i, : len(s.z)], p[i, : len(s.z)], mass[: len(s.mass), i] = s.z * s.scale, s.p, s.mass
        rough[i, : len(s.z)] = s.rough
    m, k, g, error, rounding = (
        np.array([getattr(s, name) for s in starts], np.float64)
        for name in ("m", "k", "gain", "error", "rounding")
    )
    first, total, slack, work = g, mass[0] * g, mass[0] * error, np.empty_like(z)
    for weights in mass[1:]:
        np.multiply(z, p, work)
        gain = work.sum(1)
        np.multiply(z, rough, work)
        grown = work.sum(1)
        stays = gain > 0
        part = np.where(stays, 1.0, (m - k + 1) / k)
        more, less = (m + 1) / k, (m + 1) / np.maximum(m + 2 - k, 1.0)
        np.multiply(p, np.where(stays, -less, more)[:, None], work)
        work += np.where(stays, less, 0.0)[:, None]
        z *= work
        m, k, g, error = m + 1, k + ~stays, g + np.abs(gain) * part, error + grown * part
        total += weights * g
        slack += weights * (error + rounding * (g - first))
    return np.array([total, slack + total * steps * _UNIT]) / scale
