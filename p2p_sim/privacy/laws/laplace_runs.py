"""Several runs with Laplace noise: their losses exactly, as polynomials between lattice points.

Times e^(-loss/2), the losses of a run are two equal atoms at +-w and a constant density between (w: sensitivity /
scale).  So those of k runs are binomial atoms on the lattice w (k - 2j), and between two of its points a polynomial of
degree k - 1 times e^(loss/2).  Polynomials are kept by their Bernstein coefficients, which are never negative: adding a
run, cutting a cell and integrating then only add and multiply what is not negative, and rounding errors stay relative.
*Source:* Dwork et al. 2006 for a run; degree elevation, integrals and de Casteljau's cut: Farouki 2012.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

MOST_RUNS = 1000
"""Beyond, a grid is quicker: time grows with the cube of the runs."""

WIDEST = 64.0
"""Largest sensitivity / scale, nats."""

_U = 2.0**-53
_BLOCK = 32  # cells that fit a cache
_LOST = 1e-280  # more than all masses that underflow: a run more leaves their sum as it is


@dataclass(frozen=True, eq=False)
class LaplaceRuns:
    """Losses of ``runs`` runs, each of ``width`` (sensitivity / scale, nats); both directions are alike.

    Cell j lies between the lattice points width * (runs - 2j - 2) and width * (runs - 2j).  With t from 0 to 1 along
    it the density under the numerator, by t, is e^(width (t - 1)) times the polynomial of ``cells[:, j]``; kept are
    cells 0 to runs // 2, down to a loss of 0.  ``atoms``: those at width * (runs - 2j), all of them.  ``even``,
    ``odd``: the integrals of the polynomials times e^-width cosh(width t) and e^-width sinh(width t).
    """

    width: float
    runs: int
    atoms: Array
    cells: Array
    even: Array
    odd: Array

    @classmethod
    def of(cls, width: float, runs: int) -> LaplaceRuns:
        """Add up 1 to ``MOST_RUNS`` runs; 0 < ``width`` <= ``WIDEST``."""
        cells, atoms = np.array([[width / 2]]), np.array([0.5, math.exp(-width) / 2])
        for n in range(1, runs):
            cells, atoms = _one_more(cells, atoms, width, n)
        even, odd = _moments(np.array([width]), runs)
        return cls(width, runs, atoms, cells, (even.T @ cells)[0], (odd.T @ cells)[0])

    def ends(self, epsilon: Array, shift: float) -> tuple[Array, Array, Array]:
        """Return delta between certified ends at each ``epsilon`` (nats, any sign), right to ``shift``."""
        shift += self.shift
        low, value, high = (self._delta(epsilon + by) for by in (shift, 0.0, -shift))
        return low * (1 - self.error), value, high * (1 + self.error) + _LOST

    @property
    def error(self) -> float:
        """Return the relative error of a mass or a delta: all roundings, one after the other."""
        k = self.runs
        return (k * (k / 2 + 30) + 4 * k * self.width + 12 * self.width + 1000) * _U

    @property
    def shift(self) -> float:
        """Return how far a loss may be off, nats."""
        return 16 * self.runs * self.width * _U

    def _delta(self, epsilon: Array) -> Array:
        """Return delta of the cells as they are; below 0 it follows from the other direction, which is the same."""
        size = np.abs(epsilon)
        here = np.zeros(len(size))
        inside = size < self.width * self.runs
        here[inside] = self._ahead(size[inside])
        return np.where(epsilon < 0, np.exp(-size) * here - np.expm1(-size), here)

    def _ahead(self, epsilon: Array) -> Array:
        """Return delta for 0 <= epsilon < runs * width: of atoms, of cells above it, and of the cell that holds it."""
        place = (self.runs - epsilon / self.width) / 2  # in cells, from the top
        cell = np.minimum(place.astype(np.int64), self.cells.shape[1] - 1)
        found = self._partial(cell, np.clip(place - cell, 0.0, 1.0))
        j = np.arange(len(self.atoms))
        over = np.maximum(self.width * (self.runs - 2 * j) - epsilon[:, None], 0.0)
        found += np.where(j <= cell[:, None], -np.expm1(-over), 0.0) @ self.atoms
        j = j[: len(self.even)]
        over = np.maximum(self.width * (self.runs - 2 * j - 2) - epsilon[:, None], 0.0)
        whole = j < cell[:, None]
        found += np.where(whole, -np.expm1(-over), 0.0) @ self.even
        found += np.where(whole, 1 + np.exp(-over), 0.0) @ self.odd
        return found

    def _partial(self, cell: npt.NDArray[np.int64], part: Array) -> Array:
        """Return what the upper ``part`` (0 to 1) of a cell adds to delta at its lower end: de Casteljau's cut."""
        cut = upper_part(self.cells[:, cell], part)
        _, odd = _moments(self.width * part, self.runs)
        return np.asarray(2 * part * (cut * odd).sum(axis=0), np.float64)


def upper_part(cells: Array, part: Array) -> Array:
    """Return the polynomials, one a column, on the upper ``part`` (0 to 1) of their cells: de Casteljau's cut."""
    cut = np.empty_like(cells)
    for last in range(len(cells) - 1, -1, -1):
        cut[last] = cells[last]
        cells = cells[:-1] * part + cells[1:] * (1 - part)
    return cut


def _one_more(cells: Array, atoms: Array, width: float, n: int) -> tuple[Array, Array]:
    """Return cells and atoms of n + 1 runs from those of n.

    From two cells comes one: the run's atoms move the one above down and the one below up; its density brings what of
    the one above is below a place, and what of the one below is above it.
    """
    fade, share = math.exp(-width), width / (2 * n)
    if n % 2:  # one cell below 0: but for the tilt the mirror image of one above
        below = cells[::-1, (n - 3) // 2] * math.exp(-2 * width) if n > 1 else np.zeros(1)
        cells = np.c_[cells, below]
    cells = np.c_[np.zeros(n), cells]
    found = np.empty((n + 1, cells.shape[1] - 1))
    rise = (np.arange(n + 1) / n)[:, None]  # one degree more
    for i in range(0, found.shape[1], _BLOCK):
        more = found[:, i : i + _BLOCK]
        above, cell = cells[:, i : i + more.shape[1]], cells[:, i + 1 : i + 1 + more.shape[1]]
        more[:] = atoms[i : i + more.shape[1]] * (width / 2)
        more[1:] += np.cumsum(above * (share * fade), axis=0)
        more[:-1] += np.cumsum(cell[::-1] * share, axis=0)[::-1]
        both = above * (fade / 2) + cell / 2
        more[1:] += both * rise[1:]
        more[:-1] += both * rise[:0:-1]
    return found, (np.r_[atoms, 0.0] + fade * np.r_[0.0, atoms]) / 2


def _moments(widths: Array, degree: int) -> tuple[Array, Array]:
    """Return the integrals over t in (0, 1) of e^-v cosh(v t) and e^-v sinh(v t) times each Bernstein polynomial.

    Shape (``degree``, widths) for the polynomials of degree ``degree`` - 1, v in ``widths``: power series whose rest is
    below 1e-16 of the first term, as (e v / p)^p falls fast where p > 4 v + 40.
    """
    m = np.arange(degree, dtype=np.float64)[:, None]
    power, moment = np.exp(-widths), np.full((degree, 1), 1.0 / degree)
    sums = [np.zeros((degree, len(widths))) for _ in range(2)]
    for p in range(int(4 * widths.max(initial=0.0)) + 40):
        sums[p % 2] += moment * power
        power = power * widths / (p + 1)
        moment = moment * (m + p + 1) / (degree + p + 1)
    return sums[0], sums[1]
