"""Refusals of what no theorem is about: each names the parameter, its value and what is allowed."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError

Floats = npt.NDArray[np.float64]


def real(name: str, value: Any, least: float, most: float = math.inf, infinite: bool = False) -> float:
    """Return a number from ``least`` to ``most``; raises InputError for anything else, NaN included."""
    number = isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))
    if not number or not least <= float(value) <= most or (math.isinf(value) and not infinite):
        upper = f" to {most:g}" if math.isfinite(most) else (" up, infinity included" if infinite else " up")
        raise InputError(f"{name} = {value!r}: needs a number from {least:g}{upper}")
    return float(value)


def whole(name: str, value: Any, least: int, most: int | None = None) -> int:
    """Return a whole number from ``least`` to ``most``; raises InputError for anything else."""
    number = isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))
    good = number and math.isfinite(value) and float(value).is_integer() and value >= least
    if not good or (most is not None and value > most):
        upper = f" to {most}" if most is not None else " up"
        raise InputError(f"{name} = {value!r}: needs a whole number from {least}{upper}")
    return int(value)


def order(value: Any) -> float:
    """Return the order of a Renyi divergence, finite and above 1; raises InputError."""
    alpha = real("order", value, 1.0)
    if alpha == 1:
        raise InputError("order = 1: needs a finite number above 1")
    return alpha


def one_of(**given: float | None) -> str:
    """Return the name of the only argument given; raises InputError if none or several are."""
    names = [name for name, value in given.items() if value is not None]
    if len(names) != 1:
        told = "none" if not names else " and ".join(names)
        raise InputError(f"{told} given: needs exactly one of {' and '.join(given)}")
    return names[0]


def chances(name: str, values: Any) -> Floats:
    """Return a column of probabilities (n,), n >= 1; raises InputError."""
    column = np.asarray(values, np.float64)
    if column.ndim != 1 or column.size == 0 or not bool(((column >= 0) & (column <= 1)).all()):
        raise InputError(f"{name} = {values!r}: needs a column of at least one number from 0 to 1")
    return column


def laws(name: str, values: Any) -> Floats:
    """Return rows (n, k), each summing to 1 within 1e-9; raises InputError."""
    rows = np.asarray(values, np.float64)
    good = rows.ndim == 2 and rows.size > 0 and bool((rows >= 0).all()) and bool(np.isfinite(rows).all())
    if not good or not bool((np.abs(rows.sum(axis=1) - 1) < 1e-9).all()):
        raise InputError(f"{name} = {values!r}: needs rows of numbers from 0 up, each row summing to 1")
    return rows


def mean(values: Floats, weights: Any) -> float:
    """Return the mean, weighted if weights (same length, none negative, not all 0) are given; raises InputError."""
    if weights is None:
        return float(values.mean())
    given = np.asarray(weights, np.float64)
    if given.shape != values.shape or not bool((given >= 0).all()) or not 0 < given.sum() < math.inf:
        raise InputError(f"weights = {weights!r}: needs {len(values)} numbers from 0 up, not all 0")
    return float(given @ values / given.sum())
