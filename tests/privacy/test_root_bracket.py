"""Ends close in on a root: against SciPy's solver, in fewer calls, and where curves are steep, flat or broken."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from scipy.optimize import toms748

from p2p_sim.privacy.root_bracket import root_bracket

RTOL = 4e-14
CURVES: dict[str, tuple[Callable[[float], float], float, float]] = {
    "falling": (lambda x: math.exp(-x) - 0.3, 0.0, 10.0),
    "rising": (lambda x: x**3 - 2, 0.0, 5.0),
    "tail": (lambda x: math.log(math.erfc(x) + 1e-300) + 20, 0.0, 20.0),
    "steep": (lambda x: math.atan(50 * (x - 0.7)), 0.0, 3.0),
    "near": (lambda x: math.exp(-3 * x) - math.exp(-6.0001), 1.9, 2.1),
    "small": (lambda x: x * x - 1e-8, 0.0, 1.0),
    "far": (lambda x: math.log(max(x, 1e-320)) - math.log(3e-9), 0.0, 1.0),
}


@pytest.mark.parametrize("name", CURVES)
def test_ends_are_close_and_around_the_root_of_another_solver(name: str) -> None:
    curve, low, high = CURVES[name]
    below, above = root_bracket(curve, low, high, RTOL)
    assert low <= below <= above <= high
    assert above - below <= RTOL * above
    assert curve(below) * curve(above) <= 0
    root = toms748(curve, low, high, xtol=1e-300, rtol=RTOL)
    assert below * (1 - 1e-13) <= root <= above * (1 + 1e-13)


def test_it_asks_less_often_than_the_other_solver() -> None:
    """A curve of privacy may take seconds a point."""
    ours, others = 0, 0
    for curve, low, high in CURVES.values():
        for solve in (root_bracket, toms748):
            seen = set()

            def noted(x: float, curve: Callable[[float], float] = curve, seen: set[float] = seen) -> float:
                seen.add(x)
                return curve(x)

            if solve is root_bracket:
                root_bracket(noted, low, high, RTOL)
                ours += len(seen)
            else:
                toms748(noted, low, high, xtol=1e-300, rtol=RTOL)
                others += len(seen)
    assert ours <= others


def test_steps_plateaus_and_roots_at_an_end() -> None:
    below, above = root_bracket(lambda x: 1.0 if x < 1.7 else -1.0, 0.0, 3.0, RTOL)
    assert below < 1.7 <= above <= below * (1 + 1e-13)
    assert root_bracket(lambda x: x, 0.0, 1.0, RTOL) == (0.0, 0.0)
    assert root_bracket(lambda x: x - 1, 0.0, 1.0, RTOL) == (1.0, 1.0)
    below, above = root_bracket(lambda x: min(1.0, x - 2e-300), 0.0, 1.0, RTOL)
    assert below <= 2e-300 <= above <= 4e-300
    below, above = root_bracket(lambda x: (x - 1.234) ** 9, 0.0, 3.0, RTOL)
    assert below <= 1.234 * (1 + 1e-13)
    assert above >= 1.234 * (1 - 1e-13)


def test_ends_that_are_neighbours_stay() -> None:
    low, high = 1.0, math.nextafter(1.0, 2)
    assert root_bracket(lambda x: x - 1 - 1e-17, low, high, 1e-20) == (low, high)


def test_a_curve_without_a_root_or_without_a_value_is_no_root() -> None:
    with pytest.raises(ArithmeticError, match="no root"):
        root_bracket(lambda x: x + 1, 0.0, 1.0, RTOL)
    with pytest.raises(ArithmeticError, match="nan at"):
        root_bracket(lambda x: math.nan if 0.2 < x < 0.8 else x - 0.5, 0.0, 1.0, RTOL)
    with pytest.raises(ArithmeticError, match="no root"):
        root_bracket(lambda x: math.nan if x == 0 else x, 0.0, 1.0, RTOL)
