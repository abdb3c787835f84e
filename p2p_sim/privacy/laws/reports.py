"""A random number of reports: delta averaged over how many come, in few or in all terms."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from p2p_sim.privacy.laws.tails import binomial
from p2p_sim.privacy.laws.urn import Urn
from p2p_sim.privacy.profile import Bracket

Array = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

EVERY = 600
"""Up to this many numbers of reports, each gets its own term in a value; up to 128 in a bound."""

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
NONE: tuple[float, ...] = ()
ROUGH = (1.0, 4.0)
FEW = (-3.0, -1.0, 0.0, 1.0, 3.0)
COARSE = (-6, -3, -2, -1.2, -0.6, 0, 0.6, 1.2, 2, 3, 4, 6)


@dataclass(frozen=True)
class Reports:
    """M ~ Bin(trials, chance) reports drawn from an urn; M is visible, and delta does not decrease with it.

    delta does not decrease with M because the reports can be thinned.  Where M has many values, delta is computed
    at some of them: ends between neighbours bound the average, a spline of its logarithm gives the value.
    """

    urn: Urn
    trials: int
    chance: float

    def gain(self, epsilon: float, cut: float, nodes: tuple[float, ...] = FINE) -> Bracket:
        """Return delta from label 0 to 1, averaged over M; at most a few times ``cut`` is cut off."""
        draws = self.urn.draws(cut)
        counts, mass, lost = _counts(self.trials, self.chance, cut, nodes)
        gains = [draws.gain(int(m), epsilon) for m in counts]
        lost *= max(0.0, 1 - self.urn.flip * (1 + math.exp(min(epsilon, 700))))
        value, error = np.array(gains).T
        if len(mass) == len(counts):
            total, slack = float(mass @ value), float(mass @ error) + lost
            return Bracket(max(0.0, total - slack), total, total + slack)
        step = counts - counts[0]
        low, high = np.maximum(value - error, 0), value + error
        ends = [np.repeat(low[:-1], np.diff(step)), np.repeat(high[1:], np.diff(step))]
        lower = float(mass[:-1] @ ends[0] + mass[-1] * low[-1])
        upper = float(mass[1:] @ ends[1] + mass[0] * high[0]) + lost
        middle = float(mass @ _between(step, value))
        return Bracket(lower, min(upper, max(lower, middle)), upper)

    def greatest(self, epsilon: float, cut: float, enough: float = 0.0) -> float:
        """Return an upper bound of ``gain`` from few numbers of reports; from one, where that is at most ``enough``."""
        draws = self.urn.draws(cut)
        known: dict[int, float] = {}
        found = 1.0
        for nodes in (NONE, ROUGH, COARSE):
            counts, mass, lost = _counts(self.trials, self.chance, cut, nodes)
            ends = counts[1:] if len(counts) > 1 else counts
            known |= {int(m): sum(draws.gain(int(m), epsilon)) for m in ends if int(m) not in known}
            high = np.array([known[int(m)] for m in ends])
            each = np.repeat(high, np.diff(counts)) if len(counts) > 1 else high
            total = mass[-len(each) :] @ each + (mass[0] * high[0] if len(counts) > 1 else 0.0)
            found = min(found, float(total) + lost)
            if found <= enough or len(counts) == len(mass):
                break
        return found


def _between(step: Counts, value: Array) -> Array:
    """Interpolate between numbers of reports: a cubic in the logarithm where all are positive."""
    at = np.arange(step[-1] + 1)
    if value[0] <= 0:
        return np.interp(at, step, value)
    from scipy.interpolate import CubicSpline

    return np.asarray(np.exp(CubicSpline(step, np.log(value))(at)))


@lru_cache(maxsize=256)
def _counts(trials: int, chance: float, cut: float, nodes: tuple[float, ...]) -> tuple[Counts, Array, float]:
    """Return (numbers of reports to look at, probabilities of all from the first to the last, mass outside)."""
    window = binomial(trials, chance, 1 - chance, cut)
    last = window.low + len(window.mass) - 1
    if len(window.mass) <= {FINE: EVERY, COARSE: 128}.get(nodes, len(nodes) + 2):
        return np.arange(window.low, last + 1, dtype=np.int64), window.mass, window.lost
    chosen = window.mean + math.sqrt(window.variance) * np.array(nodes)
    inner = np.unique(np.clip(np.round(chosen).astype(np.int64), window.low, last))
    return np.unique(np.append(inner, [window.low, last])), window.mass, window.lost
