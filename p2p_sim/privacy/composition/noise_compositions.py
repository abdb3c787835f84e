"""Compositions with Laplace or Gaussian noise: losses as polynomials or on quadrature nodes, a mean over the rest."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt

from p2p_sim.privacy.composition.privacy_loss import Points, product, tidy
from p2p_sim.privacy.law import Bracket, Law

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


SLACK = 1e-60
"""Most that nodes change a delta by."""


def degree(width: float, ratio: float) -> int:
    """Return to which degree, beyond that of its polynomials, nodes must be exact for an error below ``SLACK``.

    ``width``: of a Laplace run; ``ratio``: of the Gaussian, sensitivity / sigma.  On a cell the nodes are wrong by at
    most twice the distance, times the polynomial's integral, of the rest from polynomials.  The rest, e^(width (t - 1))
    times the Gaussian's delta, is entire; with Phi the normal distribution |Phi(x + iv)| <= e^(v^2 / 2) Phi(x), so that
    |delta(x + iv)| <= 2 e^(v^2 / (2 ratio^2)).
    *Source:* distance from polynomials on a Bernstein ellipse: Trefethen 2013, Theorem 8.2.
    """
    grow = 1 + np.geomspace(1e-4, 1e4, 400)  # sums of the half axes of ellipses around the cell
    real, imaginary = (grow + 1 / grow) / 2, width * (grow - 1 / grow) / 2
    most = math.log(2) + (imaginary / ratio) ** 2 / 2 + width * (real - 1) / 2
    most += math.log(4) - np.log(grow - 1) + width  # the polynomials' integrals together are at most e^width
    return math.ceil(float(((most - math.log(SLACK)) / np.log(grow)).min()))


def nodes(laplace: LaplaceRuns, count: int) -> Points:
    """Return the losses of Laplace runs on ``count`` nodes a cell, in either direction.

    *Source:* Fejer's first rule: exact for degrees below ``count``, with positive weights.  *Assumes:* scipy's gammaln,
    and sines, cosines and exponentials, are right to four units in the last place.
    """
    k, width = laplace.runs, laplace.width
    t, rest, weights = fejer(count)
    whole = laplace.cells[:, : (k + 1) // 2]
    along = weights * np.exp(-width * rest)
    masses = along[:, None] * (bernstein(t, rest, k - 1) @ whole)
    places = np.add.outer(2 * t, k - 2.0 - 2 * np.arange(whole.shape[1])) * width
    mirrored = slice(0, k // 2)  # except for the cell in the middle
    back, other = masses[:, mirrored], places[:, mirrored]
    losses = np.r_[places.ravel(), -other.ravel(), width * (k - 2.0 * np.arange(k + 1))]
    found = np.r_[masses.ravel(), (back * np.exp(-other)).ravel(), laplace.atoms]
    return tidy(Points(losses, found, 0.0, laplace.shift, laplace.error + rounding(laplace, count), 0.0))


def rounding(laplace: LaplaceRuns, count: int) -> float:
    """Return the relative error that weights, exponentials and Bernstein polynomials add to a mass on a node."""
    return (8 * count + 12 * math.lgamma(laplace.runs) + 8 * laplace.runs * (1 + laplace.width) + 6000) * _U


def fejer(count: int) -> tuple[Array, Array, Array]:
    """Return nodes t in (0, 1), 1 - t and weights; both t and 1 - t with a small relative error."""
    turn = 2 * np.arange(count) + 1
    t, rest = (np.square(f(turn * (math.pi / (4 * count)))) for f in (np.sin, np.cos))
    m = np.arange(1, count // 2 + 1)
    waves = np.cos(np.multiply.outer(turn, m) % (2 * count) * (math.pi / count))
    return t, rest, (1 - 2 * (waves / (4.0 * m**2 - 1)).sum(axis=1)) / count


def bernstein(t: Array, rest: Array, degree: int) -> Array:
    """Return the Bernstein polynomials at each t, shape (t, degree + 1)."""
    from scipy.special import gammaln

    m = np.arange(degree + 1)
    ways = gammaln(degree + 1.0) - gammaln(m + 1.0) - gammaln(degree - m + 1.0)
    logs = ways + np.multiply.outer(np.log(t), m) + np.multiply.outer(np.log(rest), degree - m)
    return np.asarray(np.exp(logs), np.float64)


@dataclass(frozen=True, eq=False)
class LaplacePair:
    """Laplace runs of two scales; delta is the mean of that of ``one`` over the losses of ``two``.

    Between two bends delta of ``one`` is 1 - e^(loss / 2) times a polynomial, and the density of ``two`` is
    e^(loss / 2) times one: nodes exact for the degree of both, and of a power series of e^(loss / 2) whose rest is
    below ``SLACK``, are as good as exact.  Where rounding moves a bend, it moves delta's epsilon no further.
    """

    one: LaplaceRuns
    two: LaplaceRuns
    rule: tuple[Array, Array, Array, Array]
    """Nodes t, 1 - t, weights; Bernstein polynomials of the density there."""

    @classmethod
    def of(cls, one: tuple[float, int], two: tuple[float, int]) -> Self:
        """Add up the runs of both (width, runs); time grows with the square of the first runs."""
        t, rest, weights = fejer(cls.count(one, two))
        made = LaplaceRuns.of(*one), LaplaceRuns.of(*two)
        return cls(*made, (t, rest, weights, bernstein(t, rest, two[1] - 1)))

    @staticmethod
    def count(one: tuple[float, int], two: tuple[float, int]) -> int:
        """Return how many nodes it takes between two bends, which are at most twice the smaller width apart."""
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
        found = np.array([self._one(float(e), shift) for e in epsilon]).reshape(-1, 3)
        return found[:, 0], found[:, 1], found[:, 2]

    def _one(self, epsilon: float, shift: float) -> tuple[float, float, float]:
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
        return np.concatenate([one for one, _ in found]), np.concatenate([two for _, two in found])

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


WORK = 10**7
"""Limit on (losses listed) * (Laplace runs)^2."""

MOST_LOSSES = 1 << 15
"""Limit on the losses listed."""
_LARGE = 1e15  # nats; beyond there are only infinite losses
_APART = 1e9  # widths further apart: the bends of one are all at one place, up to rounding


class Closed(Protocol):
    """Runs whose delta is known at any epsilon; both directions are alike."""

    def ends(self, epsilon: Array, shift: float) -> tuple[Array, Array, Array]:
        """Return a lower bound of delta, delta and an upper bound at each ``epsilon`` (nats, any sign).

        The bounds hold even if epsilon is off by up to ``shift``.
        """


@dataclass(frozen=True)
class GaussianRun:
    """One run with Gaussian noise; ``ratio``: sensitivity / sigma, above 0."""

    ratio: float

    def ends(self, epsilon: Array, shift: float) -> tuple[Array, Array, Array]:
        """Return the closed form; below 0 it follows from the other direction, which is the same."""
        found = []
        for by, side in ((shift, -1.0), (0.0, 0.0), (-shift, 1.0)):
            at = epsilon + by
            size = np.abs(at)
            value, error = self._ahead(size)
            here = np.clip(value + side * error, 0.0, 1.0)
            found.append(np.where(at < 0, np.exp(-size) * here - np.expm1(-size), here))
        return found[0] * (1 - 8 * _U), found[1], found[2] * (1 + 8 * _U)

    def _ahead(self, epsilon: Array) -> tuple[Array, Array]:
        """Return delta at epsilon >= 0, and how far it may be off."""
        from scipy.special import log_ndtr

        first = log_ndtr(self.ratio / 2 - epsilon / self.ratio)
        second = epsilon + log_ndtr(-self.ratio / 2 - epsilon / self.ratio)
        over = np.exp(first)
        value = -over * np.expm1(np.minimum(0.0, second - first))
        return value, 1e-15 * (2 + np.abs(first) + (epsilon / self.ratio) ** 2) * over


@dataclass(frozen=True, eq=False)
class Shifted(Law):
    """Runs with a delta in closed form, and others with losses listed in both directions.

    ``top``: the pure epsilon; ``slack``: how far delta may be off, losses being listed on quadrature nodes.
    """

    known: Closed
    listed: tuple[Points, Points]
    top: float
    slack: float = 0.0

    def directions(self, epsilon: float) -> tuple[Bracket, Bracket]:
        """Return the mean of the closed form at epsilon less what the others lose."""
        epsilon = min(epsilon, _LARGE)
        first = self._one(self.listed[0], epsilon)
        return first, first if self.listed[1] is self.listed[0] else self._one(self.listed[1], epsilon)

    def pure(self) -> float:
        """Return the sum of the parts' pure epsilons."""
        return self.top

    def one_pair(self) -> Law:
        """Return this law."""
        return self

    def _one(self, points: Points, epsilon: float) -> Bracket:
        size = epsilon + float(np.abs(points.losses).max(initial=0.0))
        ends = self.known.ends(epsilon - points.losses, points.shift + 8 * _U * size)
        low, value, high = (points.infinite + float(end @ points.masses) for end in ends)
        error = points.error + (len(points.losses) + 4) * _U
        low, high = low * (1 - error) - self.slack, high * (1 + error) + points.lost + self.slack
        return Bracket(max(0.0, low), min(1.0, value, high), min(1.0, high))


def exactly(parts: list[tuple[Law, int]], listed: tuple[Points, Points], top: float) -> Shifted | None:
    """Return the exact law of Laplace runs of two scales, or of a Gaussian and any Laplace runs, with listed losses.

    None for other laws, and where it would be too much work.
    """
    noises = [(noise, runs) for law, runs in parts if (noise := law.noise()) is not None]
    laplace = [(noise.ratio, runs) for noise, runs in noises if noise.kind == "laplace"]
    normal = [noise.ratio for noise, runs in noises if noise.kind == "gaussian" and runs == 1]
    if len(laplace) + len(normal) < len(parts) or len(normal) > 1 or len(laplace) + len(normal) == 0:
        return None
    if any(width > WIDEST or runs > MOST_RUNS for width, runs in laplace):
        return None
    listed = _once(listed)
    size = max(len(points.losses) for points in listed)
    if not normal:
        closed = _laplace(laplace, size)
        return None if closed is None else Shifted(closed, listed, top)
    counts = [runs + degree(width, normal[0]) for width, runs in laplace]
    if (
        size * math.prod(runs * (count + 1) for (_, runs), count in zip(laplace, counts, strict=True))
        > MOST_LOSSES
    ):
        return None
    for (width, runs), count in zip(laplace, counts, strict=True):
        more = nodes(LaplaceRuns.of(width, runs), count)
        first = product(listed[0], more)
        listed = first, first if listed[1] is listed[0] else product(listed[1], more)
    return Shifted(GaussianRun(normal[0]), listed, top, SLACK * len(laplace))


def _laplace(parts: list[tuple[float, int]], size: int) -> Closed | None:
    """Return (width, runs) of at most two widths together, None where it is too much beside ``size`` losses."""
    few, *more = sorted(parts, key=lambda part: part[1])
    if size > MOST_LOSSES or len(more) > 1:
        return None
    if not more:
        return LaplaceRuns.of(*few) if size * few[1] ** 2 <= WORK else None
    if few[0] > _APART * more[0][0] or more[0][0] > _APART * few[0]:
        return None
    breakpoints = 2 * (few[1] + more[0][1])
    points = breakpoints * LaplacePair.count(few, more[0])
    work = points * few[1] ** 2 + breakpoints * more[0][1] ** 2
    return LaplacePair.of(few, more[0]) if size * work <= WORK else None


def _once(pair: tuple[Points, Points]) -> tuple[Points, Points]:
    """Return the same points twice where both directions are alike."""
    first, second = ([*vars(points).values()] for points in pair)
    return (pair[0],) * 2 if all(map(np.array_equal, first, second)) else pair
