"""Sums of many privacy losses on a grid: nonnegative masses, convolved without FFT; rounded up, or rounded down.

Powers are made by squaring.  Whenever a grid has grown too long its step doubles, so the step follows the standard
deviation of the sum; rounding costs only the second order of the step where masses are smooth.  Why each operation
keeps its end: see ``privacy_loss``.

*Source:* ``docs/laws.md``, "Composition".
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from p2p_sim.privacy.composition.privacy_loss import TYPES, Points, power, types

Array = npt.NDArray[np.float64]

_U = 2.0**-53
_LOW, _HIGH = 1e-22, 1e-110  # masses cut off a grid's ends, to whichever side keeps its end
_WHOLE = 4096  # grids up to this length are not cut
_BLOCK = 4096  # longer inner products go to several threads, which costs more than it gives


@dataclass(frozen=True, eq=False)
class Grid:
    """Losses step * (low + i) with masses; ``up``: every operation keeps an upper end, otherwise a lower end."""

    step: float
    low: int
    masses: Array
    up: bool
    infinite: float = 0.0
    shift: float = 0.0
    error: float = 0.0
    lost: float = 0.0
    rounded: bool = False
    """Whether losses were moved: if not, the grid is exact except for float rounding and what was cut off its ends."""

    def points(self) -> Points:
        """Return the grid as losses with masses."""
        losses = np.asarray(self.step * (self.low + np.arange(len(self.masses))), np.float64)
        keep = self.masses > 0
        return Points(losses[keep], self.masses[keep], self.infinite, self.shift, self.error, self.lost)


def onto(points: Points, step: float, up: bool) -> Grid:
    """Put losses on the multiples of ``step`` (nats, above 0).

    Up: a loss between two grid points is shared between them so that the mean of e^(-loss) stays.  Down: losses
    are rounded down, and some up, as long as those above that were rounded down pay for it: that draws together.
    """
    if not len(points.losses):
        return Grid(step, 0, np.zeros(1), up, points.infinite, 0.0, points.error, points.lost)
    exact = points.losses / step
    nearest = np.rint(exact)
    snap = np.abs(exact - nearest) <= 16 * _U * np.maximum(np.abs(exact), 1) + points.shift / step
    cell = np.where(snap, nearest, np.floor(exact)).astype(np.int64)
    above = np.where(snap, 0.0, np.maximum(points.losses - cell * step, 0.0))
    low = int(cell.min())
    at, size = cell - low, int(cell.max()) - low + 2
    if up:
        higher = points.masses * np.minimum(1.0, np.expm1(-above) / math.expm1(-step))
    else:
        rise = _sums(at, np.where(snap, 0.0, points.masses * np.exp(-above) * -np.expm1(above - step)), size)
        fall = _sums(at, points.masses * -np.expm1(-above), size)
        higher = np.where(snap, 0.0, points.masses * _risen(rise, fall, step)[at])
    masses = _sums(at, points.masses - higher, size) + _sums(at + 1, higher, size)
    most = int(np.bincount(at).max())
    shift = 2 * points.shift + 64 * _U * float(np.abs(points.losses).max())
    moved = bool(np.any(~snap))
    error = points.error + (2 * most + 8) * _U
    return Grid(step, low, masses, up, points.infinite, shift, error, points.lost, moved)


def _sums(at: npt.NDArray[np.int64], weights: Array, size: int) -> Array:
    return np.asarray(np.bincount(at, weights, size), np.float64)


def _risen(rise: Array, fall: Array, step: float) -> Array:
    """Return which share of each cell is rounded up: as much as cells above, rounded down, have paid for.

    ``rise``: what rounding up the whole cell takes off the mean of e^(-loss); ``fall``: what rounding it down adds;
    both times e^(cell * step).  From the top down, so every payment moves two losses towards each other.
    """
    shares, bank, decay = np.zeros(len(rise)), 0.0, math.exp(-step)
    costs, gains = rise.tolist(), fall.tolist()
    for i in range(len(rise) - 1, -1, -1):
        bank *= decay
        cost = costs[i]
        if cost > 0:
            share = min(1.0, bank * (1 - 1e-12) / cost)
            bank = max(0.0, bank * (1 - 1e-14) - cost) if share == 1 else 0.0
            bank += (1 - share) * gains[i]
            shares[i] = share
    return shares


def times(one: Grid, two: Grid, size: int) -> Grid:
    """Return the sum of two independent losses, on a grid of at most ``size`` points where it must be rounded."""
    step = min(one.step, two.step)
    span = one.step * len(one.masses) + two.step * len(two.masses)
    while span > 2 * size * step:
        step *= 2
    one, two = (g if g.step == step else _regrid(g, step) for g in (one, two))
    masses = convolve(one.masses, two.masses)
    infinite = one.infinite + two.infinite - one.infinite * two.infinite
    error = one.error + two.error + one.error * two.error
    error += (min(len(one.masses), len(two.masses)) + 4) * _U * (1 + error)
    lost, rounded = one.lost + two.lost, one.rounded or two.rounded
    shift = one.shift + two.shift
    total = Grid(step, one.low + two.low, masses, one.up, infinite, shift, error, lost, rounded)
    total = _trimmed(total)
    while len(total.masses) > size:
        total = _regrid(total, total.step * 2)
    return total


def _regrid(grid: Grid, step: float) -> Grid:
    points = grid.points()
    moved = onto(replace(points, shift=0.0), step, grid.up)
    return replace(moved, shift=moved.shift + grid.shift, rounded=grid.rounded or moved.rounded)


def convolve(one: Array, two: Array) -> Array:
    """Return the convolution by plain sums of products: no mass is off by more than a relative length * 2^-53."""
    long, short = (one, two) if len(one) >= len(two) else (two, one)
    out = np.zeros(len(long) + len(short) - 1)
    for start in range(0, len(short), _BLOCK):
        piece = short[start : start + _BLOCK]
        out[start : start + len(long) + len(piece) - 1] += np.convolve(long, piece)
    return out


def _trimmed(grid: Grid) -> Grid:
    """Cut both ends of a long grid."""
    if len(grid.masses) <= _WHOLE:
        return grid
    first, remaining, infinite = _cut(grid.masses, grid.up)
    infinite = min(1.0, grid.infinite + infinite * (1 + grid.error))
    return replace(grid, low=grid.low + first, masses=remaining, infinite=infinite, error=grid.error + 8 * _U)


def _cut(masses: Array, up: bool) -> tuple[int, Array, float]:
    """Return (first kept, masses kept, mass moved to infinity): an upper end moves up, a lower drops or moves down."""
    first = int(np.searchsorted(np.cumsum(masses), _LOW, "right"))
    last = len(masses) - int(np.searchsorted(np.cumsum(masses[::-1]), _HIGH, "right"))
    if last - first < 2:
        return 0, masses, 0.0
    remaining, below, over = masses[first:last].copy(), masses[:first].sum(), float(masses[last:].sum())
    if up:
        remaining[0] += below
        return first, remaining, over * (1 + 1e-12)
    remaining[-1] += over * (1 - 1e-12)
    return first, remaining, 0.0


def lattice(losses: Array) -> float | None:
    """Return the step of which all losses are multiples up to rounding, at most 4096 of it apart, or None."""
    sizes = np.abs(losses)
    top = float(sizes.max(initial=0.0))
    sizes = sizes[sizes > 1e-13 * top]
    if not len(sizes):
        return None
    least = float(sizes.min())
    for part in range(1, 9):
        ratio = losses * (part / least)
        whole = np.rint(ratio)
        if np.ptp(whole) <= 4096 and np.all(np.abs(ratio - whole) <= 1e-14 * (1 + np.abs(whole))):
            return float(top / np.abs(whole).max())
    return None


def grid_power(points: Points, count: int, size: int, up: bool, *, closely: bool = True) -> Grid:
    """Return the loss of ``count`` >= 1 independent runs on a grid of about ``size`` points at most.

    ``closely``: whether the first runs are counted before they are put on the grid, which costs more.
    """
    step, block = lattice(points.losses), 1
    if step is None and closely:
        while types(len(points.losses), 2 * block) <= TYPES // 4 and 2 * block <= count:
            block *= 2
    rest = count % block
    base = on_grid(power(points, block), step, size, up)
    total = _powered(base, count // block, size)
    return times(total, on_grid(power(points, rest), step, size, up), size) if rest else total


def on_grid(points: Points, step: float | None, size: int, up: bool) -> Grid:
    """Put losses on multiples of ``step``, or of one that takes about ``size`` points."""
    if step is None:
        first, remaining, infinite = _cut(points.masses, up)
        losses = points.losses[first : first + len(remaining)]
        points = replace(
            points, losses=losses, masses=remaining, infinite=min(1.0, points.infinite + infinite)
        )
        step = (float(np.ptp(points.losses)) if len(points.losses) else 0.0) / size or 1.0
    return onto(points, step, up)


def _powered(base: Grid, count: int, size: int) -> Grid:
    total: Grid | None = None
    while True:
        if count & 1:
            total = base if total is None else times(total, base, size)
        count >>= 1
        if not count:
            assert total is not None
            return total
        base = times(base, base, size)
