"""A random number of reports: delta for every number, by a walk along the border of the best event, and its mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.special import betaln

from p2p_sim.privacy.law import Bracket
from p2p_sim.privacy.laws.binomial_tails import Window, binomial, trimmed
from p2p_sim.privacy.mechanisms.peer_to_peer.urn import Urn, UrnDraws, bit_margin, level_of, margin_error

Array = npt.NDArray[np.float64]

EARLY = 400
"""Numbers of reports up to which a walk begins at 0, where nothing need be computed first."""

_UNIT = 1.2e-16  # rounding of one operation, with some room
_HIGH = 600.0  # nats from which worths are scaled
_FLUSH = 1e-290  # parts of a vector below this are dropped, or they would be slow
_LONG = 1500  # length of a vector from which each is walked alone
_SHARED = 9000  # length from which a product of vectors would be shared by threads, and be slower
_SHEET = 40_000  # numbers in the vectors that are walked together: what a near cache holds


def averages(draws: Sequence[UrnDraws], windows: Sequence[Window], epsilon: float) -> tuple[Array, Array]:
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


def average(draws: UrnDraws, window: Window, epsilon: float) -> tuple[float, float]:
    """Return (delta averaged over the numbers of reports in a window, a bound of its error)."""
    keep, price, scale = worth(draws.urn.alpha, epsilon)
    if keep <= 0:
        return 0.0, _slipped(draws.urn.alpha, epsilon)
    start = _Start(draws, window, epsilon, (keep, price, scale))
    z, p, m, k, g = start.z, start.p, start.m, start.k, start.gain
    q, rough, dot = 1 - p, start.rough, _dot_rows if len(z) < _SHARED else _dot_single
    error, rounding = start.error, start.rounding
    first, factor = g, 1.0
    total, slack = g * start.mass[0], error * start.mass[0]
    for step, mass in enumerate(start.mass[1:], 1):
        gain = dot(z, p) * (factor * start.scale)
        term = dot(z, rough) * (factor * start.scale)
        if gain > 0:
            np.multiply(z, q, z)
            factor *= (m + 1) / (m + 2 - k)
        else:
            gain, term = -gain * ((m - k + 1) / k), term * ((m - k + 1) / k)
            np.multiply(z, p, z)
            factor, k = factor * ((m + 1) / k), k + 1
        m, g, error = m + 1, g + gain, error + term
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


def _dot_rows(first: Array, second: Array) -> float:
    return float(first.dot(second))


def _dot_single(first: Array, second: Array) -> float:
    return float(np.einsum("i,i->", first, second))


class _Start:
    """Where a walk begins: ``m`` reports, the event from ``k`` ones, its worth, and z = ``z`` * ``scale``."""

    def __init__(
        self, draws: UrnDraws, window: Window, epsilon: float, worths: tuple[float, float, float]
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
        gained, paid = keep * draws.ones.mass, (keep + price) * draws.ones.mass
        value[1:] = whole[1:] = gained
        value[:-1] -= paid
        whole[:-1] += paid
        size = np.abs(value)
        small = size < _UNIT * whole
        if small.any():
            value = np.where(small, np.copysign(_UNIT * whole, value), value)
            size = np.abs(value)
        if self.m:
            logs, terms, common = _binomial_logs(self.m, self.k - 1, draws.urn.size, draws.counts)
            top = float(logs.max())
            self.scale = math.exp(top + common)
            self.z = value * np.exp(logs - top)
        else:  # no report shows no one, whatever the urn holds
            terms, self.scale, self.z = 4.0, 1.0, value.copy()
        self.z[np.abs(self.z) < _FLUSH] = 0
        slip = margin_error(draws.urn.alpha) * scale / keep
        self.rounding = 8 * (self.m + 8) * _UNIT
        # By what a part of z may be off: its signs stay, and so does how much its two terms cancelled.
        unit = (2 * len(window.mass) + len(value) + terms) * _UNIT
        each = unit * size + ((len(value) + 8) * _UNIT + slip) * whole
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


def _together(draws: list[UrnDraws], windows: list[Window], epsilon: float) -> Array:
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
        terms = work.sum(1)
        stays = gain > 0
        part = np.where(stays, 1.0, (m - k + 1) / k)
        more, less = (m + 1) / k, (m + 1) / np.maximum(m + 2 - k, 1.0)
        np.multiply(p, np.where(stays, -less, more)[:, None], work)
        work += np.where(stays, less, 0.0)[:, None]
        z *= work
        m, k, g, error = m + 1, k + ~stays, g + np.abs(gain) * part, error + terms * part
        total += weights * g
        slack += weights * (error + rounding * (g - first))
    return np.array([total, slack + total * steps * _UNIT]) / scale


Counts = npt.NDArray[np.int64]

WALK = 120_000_000
"""Work, numbers of reports times counts of ones, up to which a value averages over every number of reports."""

FINE = (
    -9,
    -7.5,
    -6.5,
    -5.7,
    -5,
    -4.4,
    -3.9,
    -3.5,
    *np.arange(-3.2, 3.3, 0.2),
    3.5,
    3.9,
    4.4,
    5,
    5.7,
    6.5,
    7.5,
    9,
)
VAST = 2_000_000  # users beyond which a bound looks at few numbers of reports
MANY, RARE = 1000, 1e-9  # of more numbers of reports, those with this probability in all are bounded
SHORT = 128  # numbers of reports that are as quickly walked
NONE: tuple[float, ...] = ()
ROUGH = (1.0, 4.0)
FEW: tuple[float, ...] = (-3.0, -1.0, 0.0, 1.0, 3.0)
COARSE: tuple[float, ...] = (-6, -3, -2, -1.2, -0.6, 0, 0.6, 1.2, 2, 3, 4, 6)


@dataclass(frozen=True)
class Reports:
    """M ~ Bin(trials, chance) reports drawn from an urn; M is visible, and delta does not decrease with it.

    delta does not decrease with M because the reports can be thinned.  Every M is looked at (``walk``), unless that is
    too much work: then delta is computed at some, ends between neighbours bound the average, and a spline of its
    logarithm gives the value.
    """

    urn: Urn
    trials: int
    chance: float

    def gain(
        self, epsilon: float, cut: float, nodes: tuple[float, ...] = FINE, enough: float = 0.0
    ) -> Bracket:
        """Return delta from label 0 to 1, averaged over M; at most a few times ``cut`` is cut off.

        If it is at most ``enough`` for the most reports, it counts as 0.
        """
        draws, window = self.urn.draws(cut), self.window(cut)
        above = sum(draws.gain(window.last, epsilon)) + window.lost if enough else math.inf
        if above <= enough:
            return Bracket(0.0, 0.0, above)
        most = self.most(epsilon)
        lost = window.lost * max(0.0, bit_margin(self.urn.alpha, epsilon) + margin_error(self.urn.alpha))
        if self.walked(cut) and (nodes is not COARSE or len(window.mass) <= SHORT):
            total, slack, above = self._walked(draws, window, epsilon)
            return Bracket(max(0.0, total - slack), min(total, most), min(total + slack + above + lost, most))
        counts, mass = _counts(self.trials, self.chance, cut, nodes)
        value, error = np.array([draws.gain(int(m), epsilon) for m in counts]).T
        step = counts - counts[0]
        low, high = np.maximum(value - error, 0), value + error
        ends = [np.repeat(low[:-1], np.diff(step)), np.repeat(high[1:], np.diff(step))]
        lower = float(mass[:-1] @ ends[0] + mass[-1] * low[-1])
        upper = min(most, float(mass[1:] @ ends[1] + mass[0] * high[0]) + lost)
        middle = float(mass @ _between(step, value))
        return Bracket(lower, min(upper, max(lower, middle)), upper)

    def greatest(self, epsilon: float, cut: float, enough: float = 0.0, *, walk: bool = True) -> float:
        """Return an upper bound of ``gain``, from ever more numbers of reports until it is at most ``enough``.

        ``walk``: in the end, from all of them.
        """
        draws, most = self.urn.draws(cut), self.most(epsilon)
        known: dict[int, float] = {}
        found = most
        for nodes in (NONE, ROUGH, COARSE) if self.trials <= VAST else (NONE, ROUGH):
            counts, mass = _counts(self.trials, self.chance, cut, nodes)
            if found <= enough or (len(counts) == len(mass) and known):
                break
            ends = counts[1:] if len(counts) > 1 else counts
            known |= {int(m): sum(draws.gain(int(m), epsilon)) for m in ends if int(m) not in known}
            high = np.array([known[int(m)] for m in ends])
            each = np.repeat(high, np.diff(counts)) if len(counts) > 1 else high
            total = mass[-len(each) :] @ each + (mass[0] * high[0] if len(counts) > 1 else 0.0)
            found = min(found, float(total) + self.window(cut).lost)
            if found <= enough or len(mass) <= SHORT:
                break
        if walk and found > enough and len(self.window(cut).mass) > 1 and self.walked(cut):
            found = min(found, self.gain(epsilon, cut).upper)
        return found

    def _walked(self, draws: UrnDraws, window: Window, epsilon: float) -> tuple[float, float, float]:
        """Return (delta, a bound of its error, what the upper end may be above it) from every number of reports.

        Of many numbers of reports, those that hardly ever come are bounded by their neighbours.
        """
        if len(window.mass) <= MANY:
            return *average(draws, window, epsilon), 0.0
        inner = trimmed(window, RARE)
        first, last = inner.low - window.low, inner.low - window.low + len(inner.mass)
        total, slack = average(draws, inner, epsilon)
        above = float(window.mass[:first].sum()) * sum(draws.gain(inner.low, epsilon))
        most = sum(draws.gain(window.last, epsilon))
        return total, slack, above + float(window.mass[last:].sum()) * most

    def window(self, cut: float) -> Window:
        """Return the law of M without ``cut`` of its mass."""
        return binomial(self.trials, self.chance, 1 - self.chance, cut)

    def walked(self, cut: float) -> bool:
        """Whether every number of reports is looked at."""
        return len(self.window(cut).mass) * len(self.urn.draws(cut).ones.mass) <= WALK

    def most(self, epsilon: float) -> float:
        """Return what delta is at most: a report must come, and show the victim's bit."""
        come = -math.expm1(self.trials * math.log1p(-self.chance)) if self.chance < 1 else 1.0
        return (
            come * max(0.0, bit_margin(self.urn.alpha, epsilon) + margin_error(self.urn.alpha)) * (1 + 1e-14)
        )


def _between(step: Counts, value: Array) -> Array:
    """Interpolate between numbers of reports: a cubic in the logarithm where all are positive."""
    at = np.arange(step[-1] + 1)
    if value[0] <= 0:
        return np.interp(at, step, value)
    from scipy.interpolate import CubicSpline

    return np.asarray(np.exp(CubicSpline(step, np.log(value))(at)))


@lru_cache(maxsize=256)
def _counts(trials: int, chance: float, cut: float, nodes: tuple[float, ...]) -> tuple[Counts, Array]:
    """Return (numbers of reports to look at, probabilities of all from the first to the last)."""
    window = binomial(trials, chance, 1 - chance, cut)
    if len(window.mass) <= len(nodes) + 2:
        return np.arange(window.low, window.last + 1, dtype=np.int64), window.mass
    chosen = window.mean + math.sqrt(window.variance) * np.array(nodes)
    inner = np.unique(np.clip(np.round(chosen).astype(np.int64), window.low, window.last))
    return np.unique(np.append(inner, [window.low, window.last])), window.mass
