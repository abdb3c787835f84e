"""Losses of several runs with Laplace noise of one scale: atoms, and polynomials on the cells between them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

MOST_RUNS = 1000
"""Beyond, a grid is quicker: time grows with the cube of the runs."""

WIDEST = 64.0
"""Largest sensitivity / scale, nats."""

_U = 2.0**-53
_FEW = 100  # epsilons whose ends are computed side by side
_BLOCK = 32  # cells that fit a cache
_LOST = 1e-280  # more than all mass that is lost to underflow: one more run does not multiply it


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
        """Return a lower bound of delta, delta and an upper bound at each ``epsilon`` (nats, any sign).

        The bounds hold even if epsilon is off by up to ``shift``.
        """
        shift += self.shift
        three = [epsilon + by for by in (shift, 0.0, -shift)]
        if len(epsilon) <= _FEW:
            low, value, high = self._delta(np.concatenate(three)).reshape(3, -1)
        else:  # which would need three times the memory
            low, value, high = map(self._delta, three)
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

    Each new cell is made from two neighbours: the run's atoms move the upper one down and the lower one up; its density
    adds, at each place, the part of the upper one that lies below, and the part of the lower one that lies above.
    """
    decay, share = math.exp(-width), width / (2 * n)
    if n % 2:  # one cell below 0: except for the tilt the mirror image of one above
        below = cells[::-1, (n - 3) // 2] * math.exp(-2 * width) if n > 1 else np.zeros(1)
        cells = np.c_[cells, below]
    cells = np.c_[np.zeros(n), cells]
    found = np.empty((n + 1, cells.shape[1] - 1))
    rise = (np.arange(n + 1) / n)[:, None]  # one degree more
    for i in range(0, found.shape[1], _BLOCK):
        more = found[:, i : i + _BLOCK]
        above, cell = cells[:, i : i + more.shape[1]], cells[:, i + 1 : i + 1 + more.shape[1]]
        more[:] = atoms[i : i + more.shape[1]] * (width / 2)
        more[1:] += np.cumsum(above * (share * decay), axis=0)
        more[:-1] += np.cumsum(cell[::-1] * share, axis=0)[::-1]
        both = above * (decay / 2) + cell / 2
        more[1:] += both * rise[1:]
        more[:-1] += both * rise[:0:-1]
    return found, (np.r_[atoms, 0.0] + decay * np.r_[0.0, atoms]) / 2


def _moments(widths: Array, degree: int) -> tuple[Array, Array]:
    """Return the integrals over t in (0, 1) of e^-v cosh(v t) and e^-v sinh(v t) times each Bernstein polynomial.

    Shape (``degree``, widths) for the polynomials of degree ``degree`` - 1, v in ``widths``: power series whose rest is
    below 1e-16 of the first term, as (e v / p)^p falls fast where p > 4 v + 40.
    """
    terms = int(4 * widths.max(initial=0.0)) + 40
    moments, power = _power_moments(degree, terms), np.empty((terms, len(widths)))
    power[0] = np.exp(-widths)
    for p in range(1, terms):
        np.multiply(power[p - 1], widths / p, out=power[p])
    return moments[::2].T @ power[::2], moments[1::2].T @ power[1::2]


@lru_cache(maxsize=8)
def _power_moments(degree: int, terms: int) -> Array:
    """Return the integrals of t^p times each Bernstein polynomial of degree ``degree`` - 1: shape (terms, degree)."""
    m, found = np.arange(degree, dtype=np.float64), np.empty((terms, degree))
    found[0] = 1.0 / degree
    for p in range(terms - 1):
        found[p + 1] = found[p] * (m + p + 1) / (degree + p + 1)
    return found
