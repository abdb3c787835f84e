"""What an audit's numbers may be; every error names the thing, its value and what is allowed."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError


def number(name: str, value: Any, low: float, high: float, *, closed: bool = False) -> float:
    """Return a finite number in [low, high), or in [low, high] if ``closed``; raises InputError otherwise."""
    fits = not isinstance(value, bool) and isinstance(value, Real) and math.isfinite(value)
    if not fits or not (low <= value < high or (closed and value == high)):
        raise InputError(
            f"{name} = {value!r}: must be a number in [{low:g}, {high:g}{']' if closed else ')'}"
        )
    return float(value)


def probability(name: str, value: Any) -> float:
    """Return a number in (0, 1); raises InputError otherwise."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < 1:
        raise InputError(f"{name} = {value!r}: must be a number in (0, 1)")
    return float(value)


def whole(name: str, value: Any) -> int:
    """Return a whole number of at least 1; raises InputError otherwise."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < 1:
        raise InputError(f"{name} = {value!r}: must be a whole number, at least 1")
    return int(value)


def counted(name: str, hits: Any, trials: Any) -> npt.NDArray[np.int64]:
    """Return hits as whole numbers from 0 to ``trials``; raises InputError otherwise."""
    most, found = whole("trials", trials), np.asarray(hits)
    if found.dtype.kind not in "iu" and found.size:
        raise InputError(f"{name} = {hits!r}: must be whole numbers from 0 to the {most:,} trials")
    wrong = (found < 0) | (found > most)
    if wrong.any():
        raise InputError(f"{name} = {found[wrong][0]}: must be from 0 to the {most:,} trials")
    return found.astype(np.int64)
