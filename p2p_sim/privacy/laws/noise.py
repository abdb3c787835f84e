"""A number released with Laplace or Gaussian noise."""

from __future__ import annotations

import math
from dataclasses import dataclass

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
