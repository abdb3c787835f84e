"""L-EAU of Gaussians around unit vectors: held to closed forms, 40-digit integrals, and draws."""

from __future__ import annotations

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy.stats import norm

from p2p_sim.core.errors import InputError
from p2p_sim.leakage import eta
from p2p_sim.leakage.gaussian_classes import label_independent_utility


@pytest.mark.parametrize("deviation", [0.3, 1.0, 10**0.5, 10.0, 100.0])
def test_two_labels_have_a_closed_form(deviation: float) -> None:
    found = label_independent_utility(2, deviation)
    assert found.basis == "exact"
    assert found.value == pytest.approx(norm.cdf(1 / (2**0.5 * deviation)), abs=1e-9)


@pytest.mark.parametrize(
    ("labels", "deviation", "told"),
    [
        (2, 1, 0.7602),
        (2, 10, 0.5282),
        (2, 100, 0.5028),
        (100, 1, 0.0824),
        (100, 10, 0.0128),
        (100, 100, 0.0103),
    ],
)
def test_the_values_of_the_paper_s_setting(labels: int, deviation: float, told: float) -> None:
    """Four digits, computed apart from this code; the fourth of .0824 was cut, not rounded."""
    assert abs(label_independent_utility(labels, deviation).value - told) < 1.01e-4


def test_many_labels_agree_with_a_40_digit_integral() -> None:
    with mp.workdps(40):
        exact = mp.quad(lambda u: mp.npdf(u) * mp.ncdf(u + mpf(1) / 2) ** 99, [-12, 0, 3, 12])
    assert label_independent_utility(100, 2.0).value == pytest.approx(float(exact), rel=1e-9)


def test_draws_agree() -> None:
    rng, m, n = np.random.default_rng(5), 7, 40_000
    x = 1.5 * rng.normal(size=(n, m))
    x[np.arange(n), rng.integers(m, size=n)] += 1
    best = eta.of_gaussians(x, np.eye(m), 1.5**2, np.full(m, 1 / m)).rows.max(axis=1)
    error = best.std() / n**0.5
    assert abs(best.mean() - label_independent_utility(m, 1.5).value) < 6 * error
    assert abs(best.mean() - label_independent_utility(m, 1.7).value) > 6 * error


@pytest.mark.parametrize(("labels", "deviation"), [(1, 1.0), (2.5, 1.0), (2, 0.0), (2, float("nan"))])
def test_what_is_no_setting_is_refused(labels: float, deviation: float) -> None:
    with pytest.raises(InputError):
        label_independent_utility(labels, deviation)
