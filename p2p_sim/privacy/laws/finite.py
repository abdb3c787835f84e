"""Laws with finitely many outcomes: no information, one pair of distributions, or the worst of several pairs.

*Source:* ``docs/laws.md``, "Finitely many outcomes".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.privacy.law import ZERO, Bracket, Law

Array = npt.NDArray[np.float64]


BLIND = "no message that this view can read depends on a label"
"""The source of the law ``Nothing`` of a view that reads nothing."""

_UNIT = 2.0**-53  # one unit in the last place, as a share


@dataclass(frozen=True)
class Nothing(Law):
    """The view does not depend on the label."""

    cases_covered = "all"
    symmetric = True

    def directions(self, epsilon: float) -> tuple[Bracket, Bracket]:  # noqa: ARG002
        """Return 0 in both directions."""
        return ZERO, ZERO

    def pure(self) -> float:
        """Return 0."""
        return 0.0

    def one_pair(self) -> Law:
        """Return this law."""
        return self

    def outcomes(self) -> tuple[list[float], list[float]]:
        """Return the one outcome, which is certain."""
        return [0.0], [0.0]


@dataclass(frozen=True, eq=False)
class Atoms(Law):
    """Finitely many outcomes, with their probabilities under label 0 (``p``) and label 1 (``q``).

    Shape (a,), or (cases, a) for the worst of several pairs; each row sums to 1.  *Source:* the hockey-stick
    divergence, summed outcome by outcome.  *Assumes:* each probability is right to four units in the last place.
    """

    p: Array
    q: Array

    @classmethod
    def of(cls, p: Sequence[Fraction | float], q: Sequence[Fraction | float]) -> Atoms:
        """Make atoms from fractions or floats; raises InputError unless both are distributions of one length."""
        first, second = (np.array([float(v) for v in side], np.float64) for side in (p, q))
        for name, side, mass in (("p", p, first), ("q", q, second)):
            total = float(sum(side)) if isinstance(side[0], Fraction) else math.fsum(mass)
            if len(p) != len(q) or not np.all(mass >= 0) or not abs(total - 1) < 1e-9:
                raise InputError(
                    f"{name}: {len(mass)} atoms of total {total}: give probabilities that sum to 1"
                )
        return cls(first[None], second[None])

    def directions(self, epsilon: float) -> tuple[Bracket, Bracket]:
        """Sum the positive parts; the worst row of each direction."""
        return excess(self.q, self.p, epsilon), excess(self.p, self.q, epsilon)

    def pure(self) -> float:
        """Return the largest log ratio."""
        if np.any((self.p > 0) != (self.q > 0)):
            return math.inf
        support = self.p > 0
        return float(np.abs(np.log(self.p[support]) - np.log(self.q[support])).max())

    def pure_bracket(self) -> Bracket:
        """Return the largest log ratio, between ends that allow for probabilities and logarithms that are rounded."""
        value = self.pure()
        if value in (0.0, math.inf):
            return Bracket(value, value, value)
        support = self.p > 0
        first, second = np.log(self.p[support]), np.log(self.q[support])
        # four units in the last place of each probability, two of its logarithm
        wrong = _UNIT * (8 + 2 * np.abs(first) + 2 * np.abs(second))
        ratio = np.abs(first - second)
        return Bracket(float((ratio - wrong).max()), value, float((ratio + wrong).max()))

    def alternatives(self) -> tuple[Law, ...]:
        """Return the pairs, each as a law of its own."""
        if len(self.p) == 1:
            return (self,)
        return tuple(Atoms(self.p[i : i + 1], self.q[i : i + 1]) for i in range(len(self.p)))

    def one_pair(self) -> Law:
        """Return the pair that is worst where the worst of all has a delta of 1e-6, in either direction."""
        if len(self.p) == 1:
            return self
        x = math.exp(min(self.epsilon(1e-6), 700.0))
        ways = [np.maximum(a - x * b, 0.0).sum(-1) for a, b in ((self.q, self.p), (self.p, self.q))]
        at = int(np.maximum(*ways).argmax())
        return Atoms(self.p[at : at + 1], self.q[at : at + 1])

    def outcomes(self) -> tuple[list[float], list[float]] | None:
        """Return the outcomes of the pair, None if there are several pairs."""
        if len(self.p) > 1:
            return None
        p, q = ([math.log(v) if v > 0 else -math.inf for v in side[0]] for side in (self.p, self.q))
        return p, q


def excess(over: Array, under: Array, epsilon: float, error: float = 2e-15) -> Bracket:
    """Return the sum of the positive parts of ``over`` - e^epsilon ``under``, of the worst of their rows.

    ``error``: what each probability may be wrong by, as a share of it, and what the sum rounds away.
    """
    if epsilon > 700:
        value = float(np.where(under == 0, over, 0.0).sum(-1).max())
        return Bracket(value, value, min(1.0, value + 1e-290))
    scaled = math.exp(epsilon) * under
    gain = np.maximum(over - scaled, 0.0)
    sums = gain.sum(-1)
    slack = np.where(gain > 0, over + scaled, 0.0).sum(-1) * error
    best = int(sums.argmax())
    return Bracket(
        max(0.0, float((sums - slack).max())),
        min(1.0, float(sums[best])),
        min(1.0, float((sums + slack).max())),
    )
