"""Exact laws of compositions with Laplace or Gaussian noise: a delta in closed form, a mean over all other losses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from p2p_sim.privacy.composition.laplace_runs import MOST_RUNS, WIDEST, LaplaceRuns
from p2p_sim.privacy.composition.laplace_two_scales import LaplaceTwoScales
from p2p_sim.privacy.composition.privacy_loss import Points, product
from p2p_sim.privacy.composition.quadrature_nodes import SLACK, degree, nodes
from p2p_sim.privacy.law import Bracket, Law

Array = npt.NDArray[np.float64]

_U = 2.0**-53

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


def exact_law(parts: list[tuple[Law, int]], listed: tuple[Points, Points], top: float) -> Shifted | None:
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
    points = breakpoints * LaplaceTwoScales.count(few, more[0])
    work = points * few[1] ** 2 + breakpoints * more[0][1] ** 2
    return LaplaceTwoScales.of(few, more[0]) if size * work <= WORK else None


def _once(pair: tuple[Points, Points]) -> tuple[Points, Points]:
    """Return the same points twice where both directions are alike."""
    first, second = ([*vars(points).values()] for points in pair)
    return (pair[0],) * 2 if all(map(np.array_equal, first, second)) else pair
