"""The composition of runs with Laplace noise of two scales, without a grid: exact but for rounding.

Of one scale: ``laplace_runs``.  Of more than two there is none; ``composed_law`` takes a grid then.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from p2p_sim.privacy.composition.laplace_runs import LaplaceRuns, upper_part
from p2p_sim.privacy.composition.quadrature_nodes import SLACK, bernstein, fejer, rounding

Array = npt.NDArray[np.float64]

_U = 2.0**-53


@dataclass(frozen=True, eq=False)
class LaplaceTwoScales:
    """Laplace runs of two scales; delta is the mean of the delta of ``one`` over the losses of ``two``.

    A bend is a loss at which either of them changes its formula.  Between two bends the delta of ``one`` is
    1 - e^(loss / 2) times a polynomial, and the density of ``two`` is e^(loss / 2) times a polynomial.  So the integral
    is taken by quadrature, with nodes enough for the degrees of both polynomials and of a power series of
    e^(loss / 2) up to a rest below ``SLACK``.  Where rounding moves a bend, it moves delta's epsilon no further.
    """

    one: LaplaceRuns
    two: LaplaceRuns
    rule: tuple[Array, Array, Array, Array]
    """Nodes t, 1 - t, weights; Bernstein polynomials of the density there."""

    @classmethod
    def of(cls, one: tuple[float, int], two: tuple[float, int]) -> Self:
        """Compose runs of both, each as (width, runs).

        Time is about (both runs together)^2 times the square of the runs of ``one``: put the fewer runs first.
        """
        t, rest, weights = fejer(cls.count(one, two))
        made = LaplaceRuns.of(*one), LaplaceRuns.of(*two)
        return cls(*made, (t, rest, weights, bernstein(t, rest, two[1] - 1)))

    @staticmethod
    def count(one: tuple[float, int], two: tuple[float, int]) -> int:
        """Return how many nodes are enough between two bends, which are at most twice the smaller width apart."""
        half, q = min(one[0], two[0]) / 2, 1
        while (q + 1) * math.log(half) + half + two[0] - q * math.log(2) - math.lgamma(q + 2) > math.log(
            SLACK
        ):
            q += 1
        return one[1] + two[1] + q

    def ends(self, epsilon: Array, shift: float) -> tuple[Array, Array, Array]:
        """Return a lower bound of delta, delta and an upper bound at each ``epsilon`` (nats, any sign).

        The bounds hold even if epsilon is off by up to ``shift``.
        """
        found = np.array([self._ends_at(float(e), shift) for e in epsilon]).reshape(-1, 3)
        return found[:, 0], found[:, 1], found[:, 2]

    def _ends_at(self, epsilon: float, shift: float) -> tuple[float, float, float]:
        near = 16 * _U * (abs(epsilon) + self.one.width * self.one.runs + self.two.width * self.two.runs)
        shift += self.two.shift + 4 * near
        losses, masses = self._points(epsilon, near)
        error = (
            self.two.error + rounding(self.two, len(self.rule[0])) + (len(losses) + 8 * self.two.runs) * _U
        )
        low, value, high = (float(end @ masses) for end in self.one.ends(epsilon - losses, shift))
        return max(0.0, low * (1 - error) - SLACK), value, high * (1 + error) + SLACK

    def _points(self, epsilon: float, near: float) -> tuple[Array, Array]:
        """Return the losses of ``two`` and their masses: atoms, and nodes between the bends, on either side of 0.

        Bends closer than ``near`` to the end of a cell are taken to be there.
        """
        k, width = self.two.runs, self.two.width
        lattice = width * (k - 2.0 * np.arange(k + 1))
        breakpoints = epsilon - self.one.width * (self.one.runs - 2.0 * np.arange(self.one.runs + 1))
        breakpoints = breakpoints[np.abs(np.subtract.outer(breakpoints, lattice)).min(axis=1) > near]
        found = [(lattice, self.two.atoms)]
        for side in (1.0, -1.0):
            cuts = np.unique(
                np.r_[0.0, lattice[lattice > 0], side * breakpoints[np.abs(breakpoints) < width * k]]
            )
            losses, masses = self._between(cuts[cuts >= 0])
            found.append((side * losses, masses * np.exp(-losses) if side < 0 else masses))
        return np.concatenate([at for at, _ in found]), np.concatenate([mass for _, mass in found])

    def _between(self, cuts: Array) -> tuple[Array, Array]:
        """Return nodes between neighbouring ``cuts`` (losses from 0 up), and their masses."""
        k, width = self.two.runs, self.two.width
        t, rest, weights, polynomials = self.rule
        cell = ((k - (cuts[:-1] + cuts[1:]) / (2 * width)) / 2).astype(np.int64)
        start = width * (k - 2.0 * cell - 2)
        low, high = (np.clip((ends - start) / (2 * width), 0.0, 1.0) for ends in (cuts[:-1], cuts[1:]))
        inner = upper_part(self.two.cells[:, cell], 1 - low)
        inner = upper_part(inner[::-1], (high - low) / np.maximum(1 - low, _U))[::-1]
        places = np.multiply.outer(rest, low) + np.multiply.outer(t, high)
        masses = weights[:, None] * (high - low) * np.exp(width * (places - 1)) * (polynomials @ inner)
        return (start + 2 * width * places).ravel(), masses.ravel()
