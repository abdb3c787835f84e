"""Roots between two ends, by Chandrupatla's method.

scipy.optimize has it, too, but takes 0.2 s of CPU to import.

*Source:* T. R. Chandrupatla, A new hybrid quadratic/bisection algorithm for finding the zero of a nonlinear function
without using derivatives, Advances in Engineering Software 28 (1997).
"""

from __future__ import annotations

import math
from collections.abc import Callable

_SMALLEST = 1e-300
"""As wide as two ends around 0 may stay."""


def root_bracket(f: Callable[[float], float], low: float, high: float, rtol: float) -> tuple[float, float]:
    """Return ends within ``low`` and ``high`` between which f changes its sign, or at one of which it is 0.

    f has opposite signs at ``low`` and ``high``, or is 0 at one.  What is returned is at most ``rtol`` wide,
    as a part of the larger end.  f is called at both ends, then by inverse quadratic interpolation where the last three
    points say that it is safe, else in the middle.  Raises ArithmeticError where f is nan, or of one sign at both ends.
    """
    a, b = low, high
    f_a, f_b = f(a), f(b)
    if not (f_a <= 0 <= f_b or f_b <= 0 <= f_a):
        raise ArithmeticError(f"a curve is {f_a!r} at {low!r} and {f_b!r} at {high!r}: it has no root there")
    c, f_c, t = a, f_a, 0.5
    while f_a != 0 != f_b:
        width, most = abs(b - a), max(_SMALLEST, rtol * max(abs(a), abs(b)))
        if width <= most:
            break
        at_least = 0.5 * most / width  # of the way: so that ends close in from both sides
        x = a + min(max(t, at_least), 1 - at_least) * (b - a)
        if x in (a, b):  # beside each other
            break
        f_x = f(x)
        if math.isnan(f_x):
            raise ArithmeticError(f"a curve is nan at {x!r}")
        if (f_x > 0) == (f_a > 0) and f_x != 0:
            c, f_c = a, f_a
        else:
            (c, f_c), (b, f_b) = (b, f_b), (a, f_a)
        a, f_a = x, f_x
        t = _step(a, b, c, f_a, f_b, f_c)
    if f_a == 0 or f_b == 0:
        return (a, a) if f_a == 0 else (b, b)
    return min(a, b), max(a, b)


def _step(a: float, b: float, c: float, f_a: float, f_b: float, f_c: float) -> float:
    """Return how far to go from a, the last point, towards b, beyond the root; c is the point before."""
    if f_b == f_c or f_a in (f_c, f_b):
        return 0.5
    along, up = (a - b) / (c - b), (f_a - f_b) / (f_c - f_b)
    if up * up < along and (1 - up) * (1 - up) < 1 - along:
        t = f_a / (f_b - f_a) * (f_c / (f_b - f_c)) + (c - a) / (b - a) * (f_a / (f_c - f_a)) * (
            f_b / (f_c - f_b)
        )
        return t if math.isfinite(t) else 0.5
    return 0.5
