"""The least noise: against closed forms and 40 digits, for one release and for many."""

from __future__ import annotations

import math
import re

import mpmath as mp
import pytest

from p2p_sim import privacy
from p2p_sim.core.errors import InputError


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 1e-3), (5.0, 1e-12), (0.0, 0.1)])
def test_sigma_of_a_gaussian(epsilon: float, delta: float) -> None:
    found = privacy.calibrate_noise(privacy.gaussian, epsilon=epsilon, delta=delta, sensitivity=2.0)
    mp.mp.dps = 40

    def exact(sigma: mp.mpf) -> mp.mpf:
        a = 2 / mp.mpf(sigma)
        return mp.ncdf(a / 2 - epsilon / a) - mp.exp(epsilon) * mp.ncdf(-a / 2 - epsilon / a)

    assert exact(found.scale) <= delta
    assert exact(found.scale * (1 - 1e-8)) > delta
    assert found.achieved.lower <= found.achieved.value <= found.achieved.upper <= epsilon
    assert 0 <= found.slack < 1e-6


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
def test_scale_of_laplace_noise_without_delta(epsilon: float) -> None:
    found = privacy.calibrate_noise(privacy.laplace, epsilon=epsilon, delta=0.0, sensitivity=3.0)
    assert found.scale == pytest.approx(3 / epsilon, rel=1e-8)
    assert found.scale >= 3 / epsilon * (1 - 1e-15)


def test_many_releases_need_what_their_composition_says() -> None:
    one = privacy.calibrate_noise(privacy.gaussian, epsilon=1.0, delta=1e-6)
    many = privacy.calibrate_noise(privacy.gaussian, epsilon=1.0, delta=1e-6, times=16)
    assert many.scale == pytest.approx(4 * one.scale, rel=1e-8)
    laplace = privacy.calibrate_noise(privacy.laplace, epsilon=1.0, delta=1e-6, times=16)
    together = privacy.composed(privacy.laplace(laplace.scale), 16)
    assert (
        together.delta_bracket(1.0).upper
        <= 1e-6
        < privacy.composed(privacy.laplace(laplace.scale * (1 - 1e-6)), 16).delta(1.0)
    )


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"epsilon": 1.0, "delta": 0.0}, "no noise keeps epsilon = 1 at delta = 0: allow more; Gaussian"),
        ({"epsilon": 0.0, "delta": 0.0}, "no noise keeps epsilon = 0"),
        ({"epsilon": math.nan, "delta": 0.1}, "epsilon = nan: must be a number, at least 0"),
        ({"epsilon": 1.0, "delta": 1.0}, "delta = 1.0: must be a number, at least 0 and below 1"),
        ({"epsilon": 1.0, "delta": 0.1, "sensitivity": 0.0}, "sensitivity = 0"),
        ({"epsilon": 1.0, "delta": 0.1, "times": 0}, "times = 0"),
    ],
)
def test_bad_input(given: dict[str, float], text: str) -> None:
    with pytest.raises(InputError, match=re.escape(text)):
        privacy.calibrate_noise(privacy.gaussian, **given)  # type: ignore[arg-type]
