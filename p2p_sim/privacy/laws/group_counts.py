"""Counts of noisy bits where the labels of several users change together: exact, by all compositions.

*Source:* ``docs/laws.md``, "Groups".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from p2p_sim.privacy.law import ZERO, Bracket, Law
from p2p_sim.privacy.laws.binomial_tails import Window, binomial, noisy_ones
from p2p_sim.privacy.laws.randomized_response import LocalResponse

Array = npt.NDArray[np.float64]

WORK = 8_000_000
"""Numbers compared at one epsilon up to which a law is offered: seconds for a figure, and 64 MB."""

_CUT = 1e-290
_REPORTS = 1e-20  # probability of the numbers of reports that are left out
_UNIT = 1e-15  # relative error of a probability, for each term of its sum


@dataclass(frozen=True)
class GroupCounts(Law):
    """What a count of ones tells of ``members`` labels among ``size`` honest users who flip with ``alpha``.

    ``theta``: None where all noisy bits are counted (a shuffle); otherwise each user reports with this probability
    the bit of a uniform user, and how many report is seen (Algorithm 2).  Neighbours differ in 1 to ``members``
    labels, whatever the others are.

    *Source:* ``docs/laws.md``, "Groups".  *Assumes:* users follow the protocol.
    """

    alpha: float
    size: int
    members: int
    theta: float | None = None
    closed = False
    symmetric = True
    cases_covered = "all"

    @property
    def work(self) -> int:
        """Numbers that are compared for one figure."""
        numbers = (
            self.size + 1 if self.theta is None else sum(m + 1 for m, _ in _numbers(self.size, self.theta))
        )
        return numbers * (self.size + 1) * self.members

    def directions(self, epsilon: float) -> tuple[Bracket, Bracket]:
        """Return the largest over all compositions, twice: with the names of the labels swapped, each is the other."""
        ratio, total = math.exp(min(epsilon, 700.0)), []
        tables, lost = _tables(self.alpha, self.size, self.theta)
        for moved in range(1, self.members + 1):
            sums = np.zeros((3, self.size + 1 - moved))
            for weight, unit, table in tables:
                had, paid = table[moved:], ratio * table[:-moved]
                gain, slack = had - paid, unit * (had + paid)
                for end, sign in enumerate((-1, 0, 1)):
                    sums[end] += weight * np.maximum(0.0, gain + sign * slack).sum(axis=1)
            total.append(sums.max(axis=1))
        low, value, high = np.max(total, axis=0)
        if value <= 0 and high <= 0:
            return ZERO, ZERO
        found = Bracket(float(low), min(1.0, float(value)), min(1.0, float(high) + lost))
        return found, found

    def pure(self) -> float:
        """Return the largest log ratio: all report a one."""
        return self.pure_bracket().value

    def pure_bracket(self) -> Bracket:
        """Return ``pure`` with certified ends."""
        if self.theta is None:
            return Bracket(*(self.members * end for end in LocalResponse.flipping(self.alpha).pure_bracket()))
        value, error = _all_ones(self.alpha, self.size, self.members)
        return Bracket(max(0.0, value - error), value, value + error)


def _numbers(size: int, theta: float) -> list[tuple[int, float]]:
    """Return (number of reports, its probability)."""
    window = binomial(size, theta, 1 - theta, _REPORTS)
    return [(window.low + i, float(mass)) for i, mass in enumerate(window.mass)]


@lru_cache(maxsize=2)
def _tables(alpha: float, size: int, theta: float | None) -> tuple[list[tuple[float, float, Array]], float]:
    """Return (weight, relative error, law of the ones by how many users have label 1) of what is seen; what is lost."""
    bits = np.stack(
        [_spread(noisy_ones(alpha, ones, size - ones, 0, _CUT), size) for ones in range(size + 1)]
    )
    unit = _UNIT * (size + 8)
    if theta is None:
        return [(1.0, unit, bits)], 0.0
    out = []
    for number, weight in _numbers(size, theta):
        drawn = np.stack(
            [_spread(binomial(number, n / size, 1 - n / size, _CUT), number) for n in range(size + 1)]
        )
        out.append((weight, unit + _UNIT * (number + size + 8), bits @ drawn))
    return out, binomial(size, theta, 1 - theta, _REPORTS).lost


def _spread(window: Window, most: int) -> Array:
    """Return the probabilities of 0, 1, .., ``most``."""
    out = np.zeros(most + 1)
    out[window.low : window.low + len(window.mass)] = window.mass
    return out


@lru_cache(maxsize=16)
def _all_ones(alpha: float, size: int, members: int) -> tuple[float, float]:
    """Return (the largest log ratio of the event that all users report a one, a bound of its error)."""
    from scipy.special import logsumexp

    [(_, unit, bits)], _ = _tables(alpha, size, None)
    with np.errstate(divide="ignore"):
        share = size * np.log(np.arange(size + 1) / size)
        logs = logsumexp(np.log(bits) + share, axis=1)
    with np.errstate(invalid="ignore"):
        ratio = float(np.nanmax(np.concatenate([logs[m:] - logs[:-m] for m in range(1, members + 1)])))
    return ratio, (0.0 if math.isinf(ratio) else 4 * unit * (size + 8))
