"""Laws of a number released with noise: Laplace, Gaussian, discrete Laplace, or divided discrete Laplace shares.

*Source:* ``docs/laws.md``, "A sum with noise".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.privacy.law import ZERO, AdditiveNoise, Bracket, Law


@dataclass(frozen=True)
class Laplace(Law):
    """A sum released with Laplace noise of scale ``scale`` > 0; one label moves it by ``sensitivity`` >= 0.

    Both in the units of the sum.  delta(epsilon) = 1 - e^((epsilon - sensitivity/scale)/2).
    Raises InputError for parameters out of range.

    *Source:* Dwork, McSherry, Nissim, Smith 2006; the hockey-stick divergence integrated.  *Assumes:* continuous noise.
    """

    scale: float
    sensitivity: float = 1.0
    cases_covered = "all"
    symmetric = True

    def __post_init__(self) -> None:
        _check("scale", self.scale, "sensitivity", self.sensitivity)

    def directions(self, epsilon: float) -> tuple[Bracket, Bracket]:
        """Return the closed form twice: the noise is symmetric."""
        gap = epsilon - self.pure()
        both = Bracket.around(-math.expm1(gap / 2), 1e-15 * (1 + self.pure())) if gap < 0 else ZERO
        return both, both

    def pure(self) -> float:
        """Return sensitivity / scale."""
        return self.sensitivity / self.scale

    def one_pair(self) -> Law:
        """Return this law."""
        return self

    def noise(self) -> AdditiveNoise:
        """Return the noise, by sensitivity / scale."""
        return AdditiveNoise("laplace", self.sensitivity / self.scale)

    def epsilon(self, delta: float) -> float:
        """Return sensitivity/scale + 2 ln(1 - delta), at least 0."""
        return max(0.0, self.pure() + 2 * math.log1p(-delta))


@dataclass(frozen=True)
class Gaussian(Law):
    """A sum released with Gaussian noise of standard deviation ``sigma`` > 0; one label moves it by ``sensitivity``.

    Both in the units of the sum (not of a mean).  Raises InputError for parameters out of range.

    *Source:* Balle and Wang 2018, Theorem 8.  *Assumes:* continuous noise.
    """

    sigma: float
    sensitivity: float = 1.0
    cases_covered = "all"
    symmetric = True

    def __post_init__(self) -> None:
        _check("sigma", self.sigma, "sensitivity", self.sensitivity)

    def directions(self, epsilon: float) -> tuple[Bracket, Bracket]:
        """Return the closed form twice: the noise is symmetric."""
        from scipy.special import log_ndtr

        shift = self.sensitivity / self.sigma
        if shift == 0:
            return ZERO, ZERO
        first = float(log_ndtr(shift / 2 - epsilon / shift))
        second = epsilon + float(log_ndtr(-shift / 2 - epsilon / shift))
        if math.isinf(first):
            return ZERO, ZERO
        value = -math.exp(first) * math.expm1(min(0.0, second - first))
        error = 1e-15 * (2 + abs(first) + abs(epsilon / shift) ** 2) * math.exp(first)
        return Bracket.around(value, error), Bracket.around(value, error)

    def pure(self) -> float:
        """Return infinity, or 0 where a label moves nothing."""
        return math.inf if self.sensitivity > 0 else 0.0

    def one_pair(self) -> Law:
        """Return this law."""
        return self

    def noise(self) -> AdditiveNoise:
        """Return the noise, by sensitivity / sigma."""
        return AdditiveNoise("gaussian", self.sensitivity / self.sigma)


def _check(name: str, width: float, other: str, sensitivity: float) -> None:
    if not 0 < width < math.inf:
        raise InputError(f"{name} = {width!r}: must be a finite number above 0")
    if not 0 <= sensitivity < math.inf:
        raise InputError(f"{other} = {sensitivity!r}: must be a finite number, at least 0")


Array = npt.NDArray[np.float64]

LONGEST = 20_000
"""Most entries of a table; finer noise has no numeric law here."""

MOST_LISTED = 1 << 20
"""Steps a label up to which the losses of discrete Laplace noise are listed."""

_CUT = 1e-40  # of each Polya variable, the mass beyond the table
_U = 2.0**-53


@dataclass(frozen=True)
class DiscreteLaplace(Law):
    """A sum with noise P(j) proportional to e^(-|j| epsilon / steps), which one label moves by ``steps`` >= 1.

    ``epsilon`` > 0, in nats: the pure epsilon.  The loss is epsilon where the noise is at most 0, and falls by two
    steps' worth a step, so that there are ``steps`` + 1 of them; up to ``MOST_LISTED`` are listed, and composed as
    they are.  *Source:* Ghosh, Roughgarden, Sundararajan 2009; the hockey-stick divergence, summed.
    *Assumes:* noise whose tails were not cut; a draw cuts them at 2^-64.
    """

    epsilon0: float
    steps: int = 1
    cases_covered = "all"
    symmetric = True

    def directions(self, epsilon: float) -> tuple[Bracket, Bracket]:
        """Return the sum over noise below half a label, twice: the noise is symmetric."""
        rate = self.epsilon0 / self.steps
        gap = self.epsilon0 - epsilon
        if gap <= 0:
            return ZERO, ZERO
        inner = np.arange(1, min(self.steps, math.ceil(gap / rate / 2) + 1), dtype=np.float64)
        gains = -np.expm1(-np.maximum(gap - 2 * rate * inner, 0.0)) * np.exp(-rate * inner)
        total = -math.expm1(-gap) - math.expm1(-rate) * float(gains.sum())
        value = total / (1 + math.exp(-rate))
        both = Bracket.around(value, 1e-15 * (4 + self.epsilon0) * value + 1e-15 * self.epsilon0)
        return both, both

    def pure(self) -> float:
        """Return epsilon of the noise."""
        return self.epsilon0

    def one_pair(self) -> Law:
        """Return this law."""
        return self

    def outcomes(self) -> tuple[list[float], list[float]] | None:
        """Return noise at most 0, each number below ``steps``, and the rest: the losses of a sum with label 0 and 1."""
        if self.steps > MOST_LISTED:
            return None
        rate = self.epsilon0 / self.steps
        each = math.log(-math.expm1(-rate)) - math.log1p(math.exp(-rate))
        end = -math.log1p(math.exp(-rate))
        first = [end, *(each - rate * j for j in range(1, self.steps)), end - self.epsilon0]
        return first, first[::-1]


@dataclass(frozen=True)
class NoiseShares(Law):
    """As ``DiscreteLaplace``, with the sum of ``parts`` of the noise: the difference of two Polya(parts) variables.

    ``parts`` > 0: 1 is the whole noise, less is short of it, more is to spare.  Numeric, with certified ends: tails cut
    at 1e-40, and rounding.  *Source:* Goryczka and Xiong 2017; the hockey-stick divergence, summed.
    """

    epsilon0: float
    steps: int
    parts: float
    cases_covered = "all"
    symmetric = True

    def directions(self, epsilon: float) -> tuple[Bracket, Bracket]:
        """Sum the positive parts, twice: the noise is symmetric."""
        mass, lost, error = table(self.epsilon0 / self.steps, self.parts)
        over = np.concatenate([mass, np.zeros(self.steps)])
        moved = np.concatenate([np.zeros(self.steps), mass])
        with np.errstate(divide="ignore"):
            under = np.exp(np.minimum(epsilon + np.log(moved), 700.0))
        gain = np.where(over > under, over - under, 0.0)
        slack = (error + 4 * _U * (1 + epsilon)) * float(np.where(gain > 0, over + under, 0.0).sum())
        far = lost * math.exp(min(epsilon, 700.0))
        value = float(gain.sum())
        both = Bracket(max(0.0, value - slack - far), min(1.0, value), min(1.0, value + slack + lost))
        return both, both

    def pure(self) -> float:
        """Return the largest log ratio: that of the noise's tails, or of its peak where the noise is short."""
        if self.parts >= 1:
            return self.epsilon0
        mass, _, error = table(self.epsilon0 / self.steps, self.parts)
        half = mass[len(mass) // 2 :]
        seen = half[: max(1, len(half) // 2)]
        then = half[self.steps : self.steps + len(seen)]
        ratios = np.log(seen[: len(then)]) - np.log(then)
        return max(self.epsilon0, float(ratios.max(initial=0.0)) + 2 * error)

    def one_pair(self) -> Law:
        """Return this law."""
        return self


def fits(rate: float, parts: float, steps: int) -> bool:
    """Whether the table of such noise is short enough; ``rate``: epsilon a step."""
    return _length(rate, parts) + steps <= LONGEST


@lru_cache(maxsize=32)
def table(rate: float, parts: float) -> tuple[Array, float, float]:
    """Return P(noise = j), j = -J .. J, the mass beyond at most, and the relative error of each entry at most."""
    count = _length(rate, parts)
    q, j = math.exp(-rate), np.arange(count - 1, dtype=np.float64)
    one = np.concatenate([[1.0], np.cumprod(q * (parts + j) / (j + 1))])
    one *= (-math.expm1(-rate)) ** parts
    mass = np.correlate(one, one, "full")
    mass = (mass + mass[::-1]) / 2
    mass.flags.writeable = False
    return (
        mass,
        2 * _beyond(float(one[-1]), q, parts, count),
        8 * _U * (count + 8 + parts * (1 + abs(math.log(rate)))),
    )


def _length(rate: float, parts: float) -> int:
    """Return how many entries leave at most 1e-40 of a Polya(parts) variable beyond; stops above ``LONGEST``."""
    q, log, j = math.exp(-rate), parts * math.log(-math.expm1(-rate)), 0
    while j <= LONGEST:
        j += 1
        log += math.log(q) + math.log((parts + j - 1) / j) if q > 0 else -math.inf
        if log < math.log(_CUT) and _beyond(math.exp(log), q, parts, j + 1) < _CUT:
            break
    return max(j + 1, 3)


def _beyond(last: float, q: float, parts: float, count: int) -> float:
    """Bound the mass from ``count`` on by a geometric series; ``last``: the probability of count - 1."""
    ratio = q * max(1.0, (parts + count - 1) / count)
    return last * ratio / (1 - ratio) if ratio < 1 else math.inf
