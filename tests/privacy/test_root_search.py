"""The search for a root takes the steps of scipy's, bit for bit."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable

import numpy as np
import pytest
from scipy import optimize

from p2p_sim.privacy import law
from p2p_sim.privacy.root_search import toms748

STEEP = {
    "cubic": lambda x: x**3 - 2,
    "flat": lambda x: (x - 0.7) ** 9,
    "exponential": lambda x: math.exp(-x) - 1e-4,
    "logarithm": lambda x: math.log(max(math.exp(-3 * x) - 0.01, 1e-320) / 1e-200) - math.log(1e-6 / 1e-200),
    "step": lambda x: 1.0 if x < 0.3 else -1e-12,
    "cliff": lambda x: 300.0 if x < 1 / 3 else -1 - x,
    "line": lambda x: 1 - x / 7,
    "kink": lambda x: 3.0 - x if x > 2 else 1e6 * (2 - x) + 1,
    "sine": lambda x: math.sin(x / 9) - 0.5,
}


def steps(
    search: Callable[..., float], f: Callable[[float], float], *ends: float, **how: float
) -> list[float]:
    seen: list[float] = []

    def watched(x: float) -> float:
        seen.append(float(x))
        return f(x)

    seen.append(float(search(watched, *ends, **how)))
    return seen


@pytest.mark.parametrize("name", STEEP)
@pytest.mark.parametrize("rtol", [1e-4, 1e-13])
def test_the_steps_are_those_of_scipy(name: str, rtol: float) -> None:
    f, compared = STEEP[name], 0
    ends = np.random.default_rng(7)
    for _ in range(300):
        low, high = sorted(float(ends.uniform(0, 4)) ** 2 for _ in range(2))
        if f(low) * f(high) < 0:
            compared += 1
            how = {"xtol": 1e-300, "rtol": rtol}
            assert steps(toms748, f, low, high, **how) == steps(optimize.toms748, f, low, high, **how)
    assert compared > 10


def test_random_decreasing_functions() -> None:
    chance = np.random.default_rng(3)
    for _ in range(500):
        weights, rates = chance.exponential(size=3), chance.exponential(size=3) * 10 ** chance.uniform(-2, 2)
        goal = float(weights.sum()) * 10 ** chance.uniform(-9, -0.1)

        def f(x: float, weights=weights, rates=rates, goal=goal) -> float:
            return float((weights * np.exp(-rates * x)).sum()) - goal

        low, high = 0.0, 1.0
        while f(high) > 0:
            low, high = high, high * 2
        how = {"xtol": 1e-300, "rtol": 1e-13}
        assert steps(toms748, f, low, high, **how) == steps(optimize.toms748, f, low, high, **how)


def test_ends_that_are_roots_and_functions_without() -> None:
    how = {"xtol": 1e-300, "rtol": 1e-13}
    assert toms748(lambda x: x - 1, 1.0, 2.0, **how) == 1
    assert toms748(lambda x: x - 2, 1.0, 2.0, **how) == 2
    with pytest.raises(ValueError, match="have one sign"):
        toms748(lambda x: x, 1.0, 2.0, **how)
    with pytest.raises(ValueError, match="not a number"):
        toms748(lambda x: math.nan if 1 < x < 2 else x - 1.5, 1.0, 2.0, **how)


def test_laws_do_without_scipy_s() -> None:
    assert vars(law)["toms748"] is toms748
    assert "scipy.optimize" in sys.modules, "of this test"
