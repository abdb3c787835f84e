"""Epsilon of DP-SGD against integrals to thirty digits, closed forms, and worlds where the bound is attained."""

from __future__ import annotations

import math
import sys
from typing import Any

import mpmath
import numpy as np
import pytest

from p2p_sim.core.errors import InputError
from p2p_sim.learning.training.dp_sgd_accounting import (
    ADD_OR_REMOVE,
    NEIGHBOURS,
    REPLACE_ONE,
    calibrate_by_iteration,
    calibrate_poisson,
    epsilon_by_iteration,
    epsilon_poisson,
)
from p2p_sim.learning.training.missing_package import MissingPackageError

pytestmark = pytest.mark.slow

GRID = 1e-3
"""One step's privacy loss is rounded up by at most the accountant's grid."""


def normal(x: Any, mean: Any, noise: Any) -> Any:
    return mpmath.npdf(x, mean, noise)


def gaussian_delta(epsilon: float, noise: float, sensitivity: float = 1.0) -> Any:
    """Balle and Wang 2018, Theorem 8."""
    with mpmath.workdps(40):
        scale, e = mpmath.mpf(noise) / mpmath.mpf(sensitivity), mpmath.mpf(epsilon)
        half = 1 / (2 * scale)
        return mpmath.ncdf(half - e * scale) - mpmath.exp(e) * mpmath.ncdf(-half - e * scale)


def sampled_delta(epsilon: float, noise: float, rate: float, neighbours: str) -> Any:
    """The integral of (P - e^epsilon Q)+ for one step, the larger of both directions."""
    with mpmath.workdps(30):
        s, q, odds = mpmath.mpf(noise), mpmath.mpf(rate), mpmath.exp(mpmath.mpf(epsilon))

        def mixture(x: Any, mean: int) -> Any:
            return (1 - q) * normal(x, 0, s) + q * normal(x, mean, s)

        def plain(x: Any) -> Any:
            return normal(x, 0, s)

        above = (
            (lambda x: mixture(x, 1)),
            (plain if neighbours == ADD_OR_REMOVE else lambda x: mixture(x, -1)),
        )
        found = []
        for one, other, side in ((*above, 1), (*reversed(above), -1)):

            def gap(x: Any, one: Any = one, other: Any = other) -> Any:
                return one(x) - odds * other(x)

            # the ratio is monotone in x, so the positive part is a half-line; bisection finds where it begins
            low, high = mpmath.mpf(-100), mpmath.mpf(100)
            inside = high if side == 1 else low
            if gap(inside) <= 0:
                found.append(mpmath.mpf(0))
                continue
            for _ in range(100):
                middle = (low + high) / 2
                positive = gap(middle) > 0
                low, high = (low, middle) if positive == (side == 1) else (middle, high)
            ends = [low + side * s * k for k in (0, 1, 2, 4, 8, 16)]
            found.append(abs(mpmath.quad(gap, ends)))
        return max(found)


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize(("noise", "steps"), [(0.8, 1), (3.0, 1), (6.0, 16)])
def test_all_rows_in_every_batch_is_one_gaussian(noise: float, steps: int, neighbours: str) -> None:
    """T steps with rate 1 are one Gaussian with noise / sqrt(T); twice the sensitivity if a row is replaced."""
    delta = 1e-5
    found = epsilon_poisson(noise, 1.0, steps, delta, neighbours)
    sensitivity = math.sqrt(steps) * (2 if neighbours == REPLACE_ONE else 1)
    assert gaussian_delta(found, noise, sensitivity) <= delta * (1 + 1e-9)
    assert gaussian_delta(found - GRID, noise, sensitivity) > delta


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize(("noise", "rate"), [(1.0, 0.1), (0.7, 0.01), (2.0, 0.5)])
def test_one_sampled_step_is_its_integral(noise: float, rate: float, neighbours: str) -> None:
    delta = 1e-5
    found = epsilon_poisson(noise, rate, 1, delta, neighbours)
    assert found > 0
    assert sampled_delta(found, noise, rate, neighbours) <= delta * (1 + 1e-9)
    assert sampled_delta(found - GRID, noise, rate, neighbours) > delta


def test_the_integral_is_the_closed_form_where_there_is_one() -> None:
    for neighbours, sensitivity in ((ADD_OR_REMOVE, 1.0), (REPLACE_ONE, 2.0)):
        exact = gaussian_delta(0.4, 1.5, sensitivity)
        assert sampled_delta(0.4, 1.5, 1.0, neighbours) == pytest.approx(float(exact), rel=1e-12)


def test_composition_lies_between_a_step_and_renyi() -> None:
    """More than one step, and no more than the accountant of Renyi divergences, which is coarser."""
    dp = pytest.importorskip("dp_accounting")
    rdp = pytest.importorskip("dp_accounting.rdp")
    coarse = rdp.RdpAccountant()
    coarse.compose(dp.PoissonSampledDpEvent(0.02, dp.GaussianDpEvent(2.0)), 100)
    found = epsilon_poisson(2.0, 0.02, 100, 1e-5)
    assert epsilon_poisson(2.0, 0.02, 1, 1e-5) < found <= coarse.get_epsilon(1e-5)
    assert found > 0.5 * coarse.get_epsilon(1e-5)


def test_replacing_costs_exactly_twice_the_noise_with_rate_1_and_less_with_sampling() -> None:
    one, two = (calibrate_poisson(1.0, 1e-5, 1.0, 10, kind) for kind in (ADD_OR_REMOVE, REPLACE_ONE))
    assert two == pytest.approx(2 * one, rel=2e-4)  # both to 1e-4
    one, two = (calibrate_poisson(1.0, 1e-5, 0.02, 100, kind) for kind in (ADD_OR_REMOVE, REPLACE_ONE))
    assert one < two < 2 * one


@pytest.mark.parametrize(("epsilon", "rate", "steps"), [(0.3, 0.02, 200), (1.0, 1.0, 50), (3.0, 0.05, 10)])
def test_calibrated_noise_keeps_epsilon_and_less_does_not(epsilon: float, rate: float, steps: int) -> None:
    noise = calibrate_poisson(epsilon, 1e-5, rate, steps)
    assert epsilon_poisson(noise, rate, steps, 1e-5) <= epsilon
    assert epsilon_poisson(noise * (1 - 2e-4), rate, steps, 1e-5) > epsilon


# --- by iteration ---


@pytest.mark.parametrize(("batches", "passes"), [(10, 1), (10, 5), (1, 3)])
def test_by_iteration_is_attained_by_linear_losses_in_the_first_batch(batches: int, passes: int) -> None:
    """There the last iterate is a Gaussian: shifted by 2 clips each pass, with the noise of every step.

    Its Renyi divergence is the bound's, so epsilon is that of the conversion, no less than Balle and Wang's.
    """
    noise, delta = 4.0, 1e-5
    found = epsilon_by_iteration(noise, batches, passes, delta, share=1 / batches)
    shift, spread = 2.0 * passes, noise * math.sqrt(batches * passes)
    assert gaussian_delta(found, spread, shift) <= delta
    with mpmath.workdps(40):  # Canonne, Kamath and Steinke 2020, Proposition 12, at the best of many orders
        c = mpmath.mpf(shift) ** 2 / (2 * mpmath.mpf(spread) ** 2)
        best = min(
            c * a + mpmath.log((a - 1) / a) - (mpmath.log(delta) + mpmath.log(a)) / (a - 1)
            for a in (1 + mpmath.mpf(10) ** (mpmath.mpf(k) / 50) for k in range(-100, 200))
        )
    assert found <= best
    assert found == pytest.approx(float(best), rel=1e-3)


def test_later_batches_are_worse_and_the_last_has_one_noise_alone() -> None:
    found = [epsilon_by_iteration(3.0, 20, 2, 1e-5, share) for share in (0.05, 0.5, 0.95, 1.0)]
    assert found == sorted(found)
    assert len(set(found)) == 4
    single = epsilon_by_iteration(3.0, 1, 1, 1e-5)
    assert epsilon_by_iteration(3.0, 20, 1, 1e-5) == single
    assert gaussian_delta(single, 3.0, 2.0) <= 1e-5


def test_by_iteration_is_the_papers_tutorial() -> None:
    """The coefficient of TensorFlow Privacy's tutorial: 100 batches, five passes, half of the rows."""
    coefficient = 2 / 2.5**2 * (4 / 100 + 1 / 51)
    orders = [2 + k / 10 for k in range(181)] + [20 + k for k in range(81)]
    classic = min(coefficient * a + math.log(1e5) / (a - 1) for a in orders)  # Mironov 2017, as of 2019
    found = epsilon_by_iteration(2.5, 100, 5, 1e-5, share=0.5)
    assert 0.8 * classic < found < classic


def test_noise_by_iteration_keeps_epsilon_and_less_does_not() -> None:
    noise = calibrate_by_iteration(0.5, 1e-5, 50, 4, 0.5)
    assert epsilon_by_iteration(noise, 50, 4, 1e-5, 0.5) <= 0.5
    assert epsilon_by_iteration(noise * (1 - 2e-4), 50, 4, 1e-5, 0.5) > 0.5


# --- errors ---


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"rate": 0.0}, "rate = 0.0"),
        ({"rate": 1.5}, "rate = 1.5"),
        ({"steps": 0}, "steps = 0"),
        ({"steps": 2.5}, "steps = 2.5"),
        ({"delta": 0.0}, "delta = 0.0"),
        ({"delta": 1.0}, "delta = 1.0"),
        ({"noise_multiplier": 0.0}, "noise_multiplier = 0.0"),
        ({"noise_multiplier": math.nan}, "noise_multiplier = nan"),
        ({"neighbours": "other"}, "neighbours = 'other': must be one of 'add-or-remove', 'replace-one'"),
    ],
)
def test_arguments_out_of_range(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told.replace("(", r"\(")):
        epsilon_poisson(**{"noise_multiplier": 1.0, "rate": 0.1, "steps": 5, "delta": 1e-5} | wrong)


def test_targets_out_of_range() -> None:
    with pytest.raises(InputError, match="epsilon = 0"):
        calibrate_poisson(0, 1e-5, 0.1, 5)
    with pytest.raises(InputError, match="epsilon = inf"):
        calibrate_by_iteration(math.inf, 1e-5, 10, 5)
    with pytest.raises(InputError, match="share = 0"):
        epsilon_by_iteration(1.0, 10, 1, 1e-5, share=0)
    with pytest.raises(InputError, match="batches = 0"):
        epsilon_by_iteration(1.0, 0, 1, 1e-5)


def test_without_dp_accounting_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'dp-accounting>=0.5'"):
        epsilon_poisson(1.0, 0.1, 5, 1e-5)
    assert epsilon_by_iteration(1.0, 10, 1, 1e-5) > 0  # needs none


def test_small_integers_of_numpy_do_not_overflow() -> None:
    """20 * 20 is 144 as eight bits."""
    plain = epsilon_by_iteration(20.0, 10, 3, 1e-5)
    assert epsilon_by_iteration(np.uint8(20), np.uint8(10), np.uint8(3), 1e-5) == plain


def test_epsilon_is_infinite_where_cut_tails_would_show_rows() -> None:
    assert epsilon_by_iteration(0.39, 10, 3, 1e-5) == math.inf
    assert epsilon_by_iteration(0.4, 10, 3, 1e-5) < math.inf
    assert calibrate_by_iteration(100.0, 0.5, 100, 1, 0.1) == 0.4
    pytest.importorskip("dp_accounting")
    for neighbours, least in (("add-or-remove", 0.2), ("replace-one", 0.4)):
        assert epsilon_poisson(0.99 * least, 0.1, 2, 1e-5, neighbours) == math.inf
        assert epsilon_poisson(least, 0.1, 2, 1e-5, neighbours) < math.inf
        assert calibrate_poisson(100.0, 1e-3, 0.1, 2, neighbours) == least
