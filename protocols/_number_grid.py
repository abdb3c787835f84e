"""Labels that stand for evenly spaced numbers: which numbers, and the label that is nearest to a number."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core import InputError


def check_ends(low: float, high: float) -> None:
    """Check the numbers of the first and the last label; raises InputError naming what is wrong."""
    for name, value in (("low", low), ("high", high)):
        if not math.isfinite(value):
            raise InputError(f"{name} = {value!r}: must be a finite number")
    if not low < high or math.isinf(high - low):
        raise InputError(f"low = {low!r}, high = {high!r}: low must be below high, not infinitely")


def grid_numbers(labels: int, low: float, high: float) -> npt.NDArray[np.float64]:
    """Return the numbers that the labels stand for, shape (labels,), ascending."""
    share = np.arange(labels) / (labels - 1)
    return np.asarray(low * (1 - share) + high * share)


def nearest_labels(numbers: Any, labels: int, low: float, high: float) -> npt.NDArray[np.uint8]:
    """Return the nearest label of each number, shape (n,); raises InputError for numbers beyond low and high."""
    given = np.asarray(numbers, np.float64)
    outside = ~((given >= low) & (given <= high))
    if outside.any():
        raise InputError(
            f"number {float(given[outside][0])!r}: must be from low = {low!r} to high = {high!r}; "
            "widen them, or clip the numbers"
        )
    steps = (given - low) / (high - low) * (labels - 1)
    return np.rint(steps).astype(np.uint8)
