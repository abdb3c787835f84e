"""The law of one label released by randomized response.

*Source:* ``docs/laws.md``, "Randomized response".
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from p2p_sim.core.errors import InputError
from p2p_sim.privacy.law import Bracket, Law

_ROUNDED = 1e-15


@dataclass(frozen=True)
class LocalResponse(Law):
    """Randomized response over ``labels`` values with local budget ``epsilon0`` >= 0 (nats, may be infinite).

    delta(epsilon) = keep (1 - e^(epsilon - epsilon0)), keep = 1 / (1 + (labels - 1) e^-epsilon0), in both
    directions and for every pair of labels.  Raises InputError for parameters out of range.

    *Source:* Warner 1965; Kairouz, Oh, Viswanath 2014.  *Assumes:* the label is said once.
    """

    epsilon0: float
    labels: int = 2
    cases_covered = "all"
    symmetric = True

    def __post_init__(self) -> None:
        if not self.epsilon0 >= 0:
            raise InputError(f"epsilon0 = {self.epsilon0!r}: must be a number, at least 0")

    @classmethod
    def flipping(cls, alpha: float) -> LocalResponse:
        """Return the binary law that flips with probability ``alpha`` in [0, 1/2]."""
        return cls(local_epsilon(alpha))

    @classmethod
    def replacing(cls, alpha: float, labels: int) -> LocalResponse:
        """Return the law that says one of the other labels with probability ``alpha`` in [0, (labels - 1)/labels]."""
        return cls(local_epsilon(alpha, labels), labels)

    @property
    def keep(self) -> float:
        """Probability that the label is said as it is."""
        return 1 / (1 + (self.labels - 1) * math.exp(-self.epsilon0))

    def directions(self, epsilon: float) -> tuple[Bracket, Bracket]:
        """Return the closed form twice."""
        if epsilon >= self.epsilon0:
            return Bracket(0.0, 0.0, 0.0), Bracket(0.0, 0.0, 0.0)
        value = -self.keep * math.expm1(epsilon - self.epsilon0)
        error = 2e-15 * value + 4e-16 * self.epsilon0 * self.keep if math.isfinite(self.epsilon0) else 0.0
        return Bracket.around(value, error), Bracket.around(value, error)

    def pure(self) -> float:
        """Return the local budget."""
        return self.epsilon0

    def pure_bracket(self) -> Bracket:
        """Return the local budget, rounded outward: it may be the logarithm of what a flip really is."""
        return Bracket(self.epsilon0 * (1 - _ROUNDED), self.epsilon0, self.epsilon0 * (1 + _ROUNDED))

    def one_pair(self) -> Law:
        """Return this law: every pair of labels is alike."""
        return self

    def outcomes(self) -> tuple[list[float], list[float]]:
        """Return the two labels, and all others together."""
        keep = -math.log1p((self.labels - 1) * math.exp(-self.epsilon0))
        other = [keep + math.log(self.labels - 2) - self.epsilon0] if self.labels > 2 else []
        return [keep, keep - self.epsilon0, *other], [keep - self.epsilon0, keep, *other]

    def response(self) -> tuple[float, int]:
        """Return the local budget and the number of labels."""
        return self.epsilon0, self.labels

    def epsilon(self, delta: float) -> float:
        """Return epsilon0 + ln(1 - delta / keep), at least 0."""
        if delta >= self.keep:
            return 0.0
        return max(0.0, self.epsilon0 + math.log1p(-delta / self.keep))

    def epsilon_bracket(self, delta: float) -> Bracket:
        """Return the closed form, rounded outward."""
        value = self.epsilon(delta)
        if value == 0 or math.isinf(value):
            return Bracket(value, value, value)
        error = 1e-15 * (self.epsilon0 + 2 + delta / (self.keep - delta))
        return Bracket(max(0.0, value - error), value, min(self.epsilon0, value + error))


def local_epsilon(alpha: float, labels: int = 2) -> float:
    """Return ln((1 - alpha)(labels - 1)/alpha), what it protects to say another label with probability alpha.

    ``alpha``: in [0, (labels - 1)/labels], each other label as likely; of two labels, a flip.  Infinite at 0.  Raises
    InputError outside.
    """
    if labels > 2:
        return _replaced(alpha, labels)
    if not 0 <= alpha <= 0.5:
        raise InputError(
            f"flip = {alpha!r}: must be a number in [0, 1/2]; beyond, swap the names of the labels"
        )
    if alpha == 0:
        return math.inf
    return 2 * math.atanh(1 - 2 * alpha) if alpha > 0.2 else math.log1p(-alpha) - math.log(alpha)


def _replaced(alpha: float, labels: int) -> float:
    most = (labels - 1) / labels
    if not 0 <= alpha <= most:
        raise InputError(
            f"alpha = {alpha!r}: must be a number in [0, {most:g}]; beyond, the own label is the rarest"
        )
    if alpha == 0 or alpha == most:
        return 0.0 if alpha else math.inf
    above = ((labels - 1) - labels * alpha) / alpha  # by how much the ratio is above 1, where that is little
    return max(0.0, math.log1p(above)) if above < 1 else math.log1p(-alpha) + math.log((labels - 1) / alpha)
