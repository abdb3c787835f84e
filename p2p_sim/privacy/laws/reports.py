"""A random number of reports: delta averaged over how many come."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from p2p_sim.privacy.law import Bracket
from p2p_sim.privacy.laws.tails import Window, binomial, trimmed
from p2p_sim.privacy.laws.urn import Draws, Urn, bit_margin, margin_error
from p2p_sim.privacy.laws.walk import average

Array = npt.NDArray[np.float64]
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

    def _walked(self, draws: Draws, window: Window, epsilon: float) -> tuple[float, float, float]:
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
