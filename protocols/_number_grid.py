"""Labels that stand for evenly spaced numbers: which numbers, and the label that is nearest to a number."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core import InputError, check_range

FURTHEST = 1e300
"""The largest number, and minus the least: reports may be thousands of times as far off, and must stay finite."""


def check_ends(labels: int, low: float, high: float) -> None:
    """Check the numbers of the first and the last label; raises InputError naming what is wrong."""
    for name, value in (("low", low), ("high", high)):
        if isinstance(value, (float, np.floating)) and not math.isfinite(value):
            raise InputError(f"{name} = {value!r}: must be a finite number")
        check_range(name, value, -FURTHEST, FURTHEST)
    if not low < high:
        raise InputError(f"low = {low!r}, high = {high!r}: low must be below high")
    apart = len(np.unique(grid_numbers(labels, low, high)))
    if apart < labels:
        raise InputError(
            f"low = {low!r}, high = {high!r}: there are only {apart} different numbers for {labels} labels; "
            "give fewer labels, or numbers that are further apart"
        )


def grid_numbers(labels: int, low: float, high: float) -> npt.NDArray[np.float64]:
    """Return the numbers that the labels stand for, shape (labels,), ascending."""
    return numbers_between(np.arange(labels) / (labels - 1), low, high)


def numbers_between(share: npt.NDArray[np.float64], low: float, high: float) -> npt.NDArray[np.float64]:
    """Return the numbers at shares of the way from low to high, of any shape; below 0 and above 1 they are outside."""
    return np.asarray(float(low) * (1 - share) + float(high) * share)


def nearest_labels(numbers: Any, labels: int, low: float, high: float) -> npt.NDArray[np.uint8]:
    """Return the nearest label of each number, shape (n,); raises InputError for numbers beyond low and high."""
    try:
        given = np.asarray(numbers, np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"numbers = {numbers!r:.80}: must be an array of numbers") from error
    outside = ~((given >= low) & (given <= high))
    if outside.any():
        raise InputError(
            f"number {float(given[outside][0])!r}: must be from low = {low!r} to high = {high!r}; "
            "widen them, or clip the numbers"
        )
    steps = (given - float(low)) / (float(high) - float(low)) * (labels - 1)
    return np.rint(steps).astype(np.uint8)
