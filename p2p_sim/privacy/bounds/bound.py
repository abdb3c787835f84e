"""What a theorem says once its numbers are in: the value, whether its conditions hold, and whose word it is."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

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
