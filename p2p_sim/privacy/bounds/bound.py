"""``Bound`` and ``Figure``, what theorems return, and the checks of their arguments."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

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
        present = "none" if not names else " and ".join(names)
        raise InputError(f"{present} given: needs exactly one of {' and '.join(given)}")
    return names[0]


def chances(name: str, values: Any) -> Floats:
    """Return a column of probabilities (n,), n >= 1; raises InputError."""
    column = np.asarray(values, np.float64)
    if column.ndim != 1 or column.size == 0 or not bool(((column >= 0) & (column <= 1)).all()):
        raise InputError(f"{name} = {values!r}: needs a column of at least one number from 0 to 1")
    return column


def laws(name: str, values: Any, slack: float = 1e-9) -> Floats:
    """Return rows (n, k) of probabilities, each summing to 1 within ``slack``; raises InputError naming a row."""
    rows, wanted = np.asarray(values, np.float64), "needs rows of numbers from 0 to 1, each row summing to 1"
    if rows.ndim != 2 or rows.size == 0:
        raise InputError(f"{name} has shape {rows.shape}: {wanted}")
    sums = rows.sum(axis=1)
    for wrong in (~((rows >= 0) & (rows <= 1 + slack)).all(axis=1), ~(np.abs(sums - 1) < slack)):
        if bool(wrong.any()):
            at = int(np.flatnonzero(wrong)[0])
            raise InputError(f"{name}: row {at} is {rows[at].tolist()} and sums to {sums[at]:.9g}: {wanted}")
    return rows


def mean(values: Floats, weights: Any) -> float:
    """Return the mean, weighted if weights (same length, none negative, not all 0) are given; raises InputError."""
    if weights is None:
        return float(values.mean())
    given = np.asarray(weights, np.float64)
    if given.shape != values.shape or not bool((given >= 0).all()) or not 0 < given.sum() < math.inf:
        raise InputError(f"weights = {weights!r}: needs {len(values)} numbers from 0 up, not all 0")
    return float(given @ values / given.sum())


Basis = Literal["exact", "upper", "lower", "claimed"]
"""exact: the value itself; upper, lower: proven bounds; claimed: a theorem as printed, on its authors' word."""


@dataclass(frozen=True)
class Bound:
    """A pair (epsilon, delta) of label differential privacy; neighbours differ in one label, replaced.

    ``epsilon`` is in nats.  Where a condition fails ``holds`` is False, ``why`` names the condition and the
    numbers, and ``epsilon`` is infinite: never a number that looks valid.  Where it holds ``why`` is empty or
    says what to know.  ``parameters`` are those the theorem fixes (alpha, say), for whoever runs the mechanism.
    """

    epsilon: float
    delta: float
    holds: bool
    why: str
    source: str
    basis: Basis
    parameters: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Renyi:
    """A Renyi divergence of order ``order`` > 1 between the outputs for two labels, ``epsilon`` in nats.

    Infinite, with ``holds`` False and the reason, where a condition of the theorem fails.  A basis of "lower"
    means that the true divergence is at least ``epsilon``; then ``epsilon`` is 0 where the theorem is silent.
    """

    epsilon: float
    order: float
    holds: bool
    why: str
    source: str
    basis: Basis
    parameters: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Figure:
    """A figure that is no budget: an advantage, a precision, an excess risk; ``quantity`` says which, in words.

    ``value`` is NaN, ``holds`` False and ``why`` the reason, where a condition of the theorem fails.
    """

    value: float
    quantity: str
    holds: bool
    why: str
    source: str
    basis: Basis
    parameters: Mapping[str, float] = field(default_factory=dict)


def fails(why: str, source: str, basis: Basis, delta: float = 1.0, **parameters: float) -> Bound:
    """Return the bound of a theorem that does not apply: epsilon infinite, holds False, and why."""
    return Bound(math.inf, delta, False, why, source, basis, parameters)
