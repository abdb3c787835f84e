"""Curves of delta(epsilon): where to evaluate them, and their points as a table.

Both axes of a curve matter: points are close where it is steep, and nowhere far apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.privacy.law import Bracket, Law

Array = npt.NDArray[np.float64]

LEAST = 1e-12
"""Where curves end: smaller deltas are taken for 0."""

_FIRST = 7  # of them evenly over the curve
_NARROW = 1e-3  # parts of the curve's length that are not divided further
_FLAT = 0.5  # what the whole length counts beside the whole height, when the widest gap is looked for


def points(law: Law, most: int = 60) -> tuple[Array, Array]:
    """Return epsilons and the law's deltas, at least ``LEAST``: shape (points,) each, ``most`` of them or fewer.

    Every delta is evaluated, at the composition that is worst there.  Points are denser where the curve is steep.
    """
    drawn = law.with_floor(LEAST / 10)

    def delta(epsilon: float) -> float:
        return max(LEAST, drawn.delta(epsilon).value if epsilon < drawn.pure() else 0.0)

    end = _end(law.pure(), delta)
    grid = [float(share) * end for share in np.linspace(0, 1, _FIRST)] if end else [0.0]
    points = [(epsilon, delta(epsilon)) for epsilon in grid]
    while len(points) < most:
        gaps = [_gap(*pair, end) for pair in pairwise(points)]
        if max(gaps, default=0.0) <= 0:
            break
        widest = gaps.index(max(gaps))
        middle = (points[widest][0] + points[widest + 1][0]) / 2
        points.insert(widest + 1, (middle, delta(middle)))
    found = np.array(points)
    return found[:, 0], found[:, 1]


def _gap(one: tuple[float, float], two: tuple[float, float], end: float) -> float:
    """Return how much of a curve lies between two points, by height and by length; 0 if it is too narrow."""
    width = (two[0] - one[0]) / end
    return math.log(one[1] / two[1]) / math.log(1 / LEAST) + _FLAT * width if width > _NARROW else 0.0


def _end(pure: float, delta: Callable[[float], float]) -> float:
    """Return the epsilon where delta reaches ``LEAST``, up to 1 % too large; 10 if it never does."""
    low, high = 0.0, pure
    if math.isinf(high):
        high = next((2.0**k for k in range(-20, 20) if delta(2.0**k) <= LEAST), 0.0)
        if not high:
            return 10.0
    elif delta(high * (1 - 1e-11)) > LEAST:
        return high
    while high - low > 0.01 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if delta(middle) > LEAST else (low, middle)
    return high


def frame(values: Sequence[tuple[float, Bracket]], view: str, basis: str) -> Any:
    """Return (epsilon, bracket of delta) as a pandas DataFrame, with the columns of ``PrivacyProfile.curve``."""
    import pandas

    rows = [(epsilon, delta.lower, delta.value, delta.upper) for epsilon, delta in values]
    table = np.array(rows, np.float64).reshape(len(rows), 4)
    found = pandas.DataFrame(table, columns=["epsilon_nats", "delta_lower", "delta", "delta_upper"])
    return found.assign(basis=basis, view=view)
