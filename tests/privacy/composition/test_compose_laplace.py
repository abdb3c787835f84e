"""Compositions with Laplace noise: to forty digits, beside other runs, and never above dp-accounting."""

from __future__ import annotations

import functools
import importlib
import math
import warnings
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from p2p_sim.privacy.composition import noise_compositions
from p2p_sim.privacy.composition.compose import compose, composed
from p2p_sim.privacy.composition.dominating_pair import laplace as dots
from p2p_sim.privacy.composition.laplace_runs import WIDEST, LaplaceRuns
from p2p_sim.privacy.composition.noise_compositions import GaussianRun
from p2p_sim.privacy.composition.pld_grid import grid_power
from p2p_sim.privacy.composition.quadrature_nodes import SLACK, degree, nodes
from p2p_sim.privacy.laws.noise import Gaussian, Laplace
from p2p_sim.privacy.profile import PrivacyProfile
from tests.privacy.composition.composing import FOUR, of, rr

pytestmark = pytest.mark.slow


def noisy(width: float) -> PrivacyProfile:
    return of(Laplace(1.0, width))


def normal(ratio: float) -> PrivacyProfile:
    return of(Gaussian(1.0, ratio))


# --- against mpmath ---


def by_quadrature(width: float, runs: int, epsilon: float) -> Any:
    """Delta from the noise itself, a run at a time: both atoms, and the integral between the kinks of what is left."""
    w = mp.mpf(width)

    @functools.cache
    def delta(k: int, y: Any) -> Any:
        if y >= k * w:
            return mp.mpf(0)
        if y <= -k * w:
            return -mp.expm1(y)
        if k == 1:
            return -mp.expm1((y - w) / 2)
        bends = (y - w * (k - 1 - 2 * j) for j in range(k))
        kinks = sorted({at for at in bends if -w < at < w} | {-w, w})

        def inner(loss: Any) -> Any:
            return mp.exp((loss - w) / 2) / 4 * delta(k - 1, y - loss)

        rest = mp.quad(inner, kinks, method="gauss-legendre")
        return (delta(k - 1, y - w) + mp.exp(-w) * delta(k - 1, y + w)) / 2 + rest

    return delta(runs, mp.mpf(epsilon))


def by_residues(width: float, runs: int, epsilon: float) -> Any:
    """Delta as a sum with signs, needing as many digits as it has terms: the Laplace transform inverted.

    e^((k w - epsilon) / 2) delta(epsilon) has the transform (cosh ws + sinh(ws) / 2s)^k / (s^2 - 1/4) in -epsilon.
    """
    w, y, k = mp.mpf(width), mp.mpf(epsilon), runs
    total = mp.mpf(0)
    for j in range(k):
        x = w * (k - 2 * j) - y
        if x <= 0:
            break
        first = [mp.binomial(k - j - 1, i) * 2**i for i in range(k)]  # of (1 + 2s)^(k-j-1)
        second = [mp.binomial(j - 1, i) * (-2) ** i for i in range(k)]  # of (1 - 2s)^(j-1)
        terms = (
            mp.fsum(first[i] * second[n - i] for i in range(n + 1))
            * x ** (k - 1 - n)
            / mp.factorial(k - 1 - n)
            for n in range(k)
        )
        at = 4 * (-1) ** (j - 1) * mp.fsum(terms) / mp.mpf(4) ** k + (mp.exp(x / 2) if j == 0 else 0)
        total += mp.binomial(k, j) * at
    return total * mp.exp((y - k * w) / 2)


@pytest.mark.parametrize("runs", [1, 2, 3])
@pytest.mark.parametrize("width", [0.01, 0.7, 5.0])
def test_forty_digits_by_quadrature(width: float, runs: int) -> None:
    found = composed(noisy(width), runs)
    assert found.basis == "exact"
    with mp.workdps(40):
        for share in (0.0, 0.29, 0.41, 0.93):
            epsilon = share * runs * width
            true = by_quadrature(width, runs, epsilon)
            assert abs(by_residues(width, runs, epsilon) / true - 1) < 1e-30
            low, value, high = found.delta_bracket(epsilon)
            assert low <= true <= high
            assert abs(value / true - 1) < 1e-12
            assert high - low <= 1e-11 * high


@pytest.mark.parametrize(
    ("width", "runs"), [(1.0, 4), (0.3, 8), (5.0, 12), (0.01, 30), (WIDEST, 9), (1.0, 61), (1e-6, 7)]
)
def test_forty_digits_by_residues(width: float, runs: int) -> None:
    found = composed(noisy(width), runs)
    with mp.workdps(60 + 2 * runs + int(runs * width)):
        for share in (0.0, 0.1, 1 / 3, 0.62, 0.9, 0.999):
            epsilon = share * runs * width
            true = by_residues(width, runs, epsilon)
            low, value, high = found.delta_bracket(epsilon)
            assert low <= true <= high
            assert abs(value / true - 1) < 1e-12
        for delta in (1e-3, 1e-12):
            low, value, high = found.epsilon_bracket(delta)
            assert high - low <= 1e-11 * high
            if value > 0:
                assert by_residues(width, runs, high) <= delta <= by_residues(width, runs, low)


def test_beyond_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many runs, or too wide, go on a grid, whose value is above."""
    exact = composed(noisy(0.05), 200)
    monkeypatch.setattr(noise_compositions, "MOST_RUNS", 199)
    beyond = composed(noisy(0.05), 200)
    assert (exact.basis, beyond.basis) == ("exact", "upper")
    for delta in (1e-3, 1e-6, 1e-12):
        low, value, high = exact.epsilon_bracket(delta)
        assert high - low <= 1e-10 * high
        assert value < beyond.epsilon(delta) < value * (1 + 1e-4)
    assert composed(noisy(2 * WIDEST), 3).basis == "upper"


@pytest.mark.parametrize(("width", "runs"), [(0.2, 20), (3.0, 7), (1.0, 150)])
def test_the_grid_holds_it(width: float, runs: int) -> None:
    """A different way to add up, rounded in different ways."""
    exact = composed(noisy(width), runs)
    up, down = (grid_power(dots(width, up), runs, 4096, up).points() for up in (True, False))
    for epsilon in np.linspace(0.0, 0.9 * width * runs, 23):
        low, _, high = exact.delta_bracket(float(epsilon))
        assert down.least(float(epsilon)) <= high
        assert low <= up.most(float(epsilon))


# --- beside other runs ---


def test_with_randomized_response() -> None:
    """The mean over truths and lies, from the residues."""
    found = compose([(rr(0.4), 2), (noisy(0.7), 3)])
    assert found.basis == "exact"
    with mp.workdps(60):
        keep = 1 / (1 + mp.exp(-mp.mpf(0.4)))
        for epsilon in (0.0, 0.5, 1.3, 2.2, 2.8):
            true = mp.mpf(0)
            for lies in range(3):
                at = mp.mpf(epsilon) - (2 - 2 * lies) * mp.mpf(0.4)
                here = by_residues(0.7, 3, abs(at)) if abs(at) < 3 * mp.mpf(0.7) else mp.mpf(0)
                here = here if at >= 0 else -mp.expm1(at) + mp.exp(at) * here
                true += mp.binomial(2, lies) * keep ** (2 - lies) * (1 - keep) ** lies * here
            low, value, high = found.delta_bracket(epsilon)
            assert low <= true <= high
            assert abs(value / true - 1) < 1e-12


def gaussian_delta(ratio: Any, y: Any) -> Any:
    return mp.ncdf(ratio / 2 - y / ratio) - mp.exp(y) * mp.ncdf(-ratio / 2 - y / ratio)


@pytest.mark.parametrize(("width", "ratio"), [(1.3, 0.4), (0.1, 1.0), (2.0, 0.2)])
def test_with_a_gaussian(width: float, ratio: float) -> None:
    found = compose([(noisy(width), 1), (normal(ratio), 1)])
    assert found.basis == "exact"
    with mp.workdps(40):
        w, r = mp.mpf(width), mp.mpf(ratio)
        for epsilon in (0.0, 0.3, 1.0, 2.0):

            def inner(loss: Any, y: float = epsilon) -> Any:
                return mp.exp((loss - w) / 2) / 4 * gaussian_delta(r, y - loss)

            true = mp.quad(inner, mp.linspace(-w, w, 9))
            true += (gaussian_delta(r, epsilon - w) + mp.exp(-w) * gaussian_delta(r, epsilon + w)) / 2
            low, value, high = found.delta_bracket(epsilon)
            assert low <= true <= high
            assert abs(value / true - 1) < 1e-11


def test_nodes_are_as_good_as_exact() -> None:
    """More nodes than it takes, cut apart elsewhere, give the same; far fewer don't."""
    runs, ratio = LaplaceRuns.of(0.8, 6), 0.5
    count = 6 + degree(0.8, ratio)
    at = np.linspace(0.0, 6.0, 13)

    def deltas(count: int) -> np.ndarray[Any, Any]:
        points = nodes(runs, count)
        normal = GaussianRun(ratio)
        return np.array([float(normal.ends(e - points.losses, 0.0)[1] @ points.masses) for e in at])

    assert np.all(np.abs(deltas(count) / deltas(count + 29) - 1) < 1e-13)
    assert nodes(runs, count).masses.sum() == pytest.approx(1, abs=1e-13)
    assert np.any(np.abs(deltas(6) / deltas(count) - 1) > 1e-9)
    assert SLACK < 1e-50


def test_all_together() -> None:
    """Laplace noise of two scales, Gaussian noise and randomized response; each part adds to the loss."""
    parts = [(noisy(0.5), 2), (noisy(0.3), 1), (rr(0.3), 1), (normal(0.5), 2)]
    found = compose(parts)
    assert found.basis == "exact"
    for delta in (1e-3, 1e-9):
        low, value, high = found.epsilon_bracket(delta)
        assert high - low < 1e-10 * high
        assert value == pytest.approx(compose(parts[::-1]).epsilon(delta), rel=1e-12)
        assert all(value > compose(parts[:i] + parts[i + 1 :]).epsilon(delta) for i in range(4))
    for other in ([(noisy(1.0), 40), (noisy(0.3), 40)], [(noisy(1.0), 3), (of(FOUR), 300)]):
        low, value, high = compose(other).epsilon_bracket(1e-6)
        assert low < value == high < 1.001 * low


# --- dp-accounting, at its usual step of 1e-4 ---

ROUNDING = 1e-11  # where both are exact they differ by rounding


@pytest.fixture(scope="module")
def pld() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module("dp_accounting.pld.privacy_loss_distribution")


def check(ours: PrivacyProfile, theirs: Any) -> None:
    """Ours is never above theirs, and within 1e-3.  Not at 1e-12, where theirs falls below the truth by its FFT."""
    for delta in (1e-3, 1e-6, 1e-9):
        their, our = theirs.get_epsilon_for_delta(delta), ours.epsilon_bracket(delta).upper
        assert our <= their * (1 + ROUNDING)
        assert their - our <= 1e-3 * their


@pytest.mark.parametrize(
    ("width", "runs"),
    [(w, k) for w in (0.01, 1.0, 5.0) for k in (1, 3, 50)]
    + [(w, k) for w in (0.1, 2.5) for k in (2, 10, 200)]
    + [(0.01, 500), (0.2, 400)],
)
def test_laplace_is_never_above(pld: Any, width: float, runs: int) -> None:
    theirs = pld.from_laplace_mechanism(1 / width).self_compose(runs)
    check(composed(of(Laplace(1 / width)), runs), theirs)


@pytest.mark.parametrize(("sigma", "runs"), [(0.5, 3), (1.0, 1), (5.0, 20), (20.0, 100)])
def test_gaussian_is_never_above(pld: Any, sigma: float, runs: int) -> None:
    check(composed(of(Gaussian(sigma)), runs), pld.from_gaussian_mechanism(sigma).self_compose(runs))


def responses(pld: Any, epsilon0: float, labels: int) -> Any:
    return pld.from_randomized_response(labels / (math.exp(epsilon0) + labels - 1), labels)


@pytest.mark.parametrize(
    ("epsilon0", "labels", "runs"), [(1.0, 2, 1), (1.0, 2, 10), (0.5, 3, 200), (4.0, 10, 20), (1.0, 10, 50)]
)
def test_response_is_never_above(pld: Any, epsilon0: float, labels: int, runs: int) -> None:
    check(composed(rr(epsilon0, labels), runs), responses(pld, epsilon0, labels).self_compose(runs))


@pytest.mark.parametrize(
    ("width", "runs", "sigma", "more", "epsilon0", "answers"),
    [
        (1.0, 20, 5.0, 4, 0, 0),
        (0.1, 50, 10.0, 20, 0, 0),
        (1.0, 5, 1.0, 1, 0, 0),
        (1.0, 20, 0, 0, 0.5, 10),
        (0, 0, 5.0, 4, 1.0, 20),
        (0.1, 100, 0, 0, 1.0, 3),
        (2.0, 4, 2.0, 3, 1.0, 5),
    ],
)
def test_mixed_is_never_above(
    pld: Any, width: float, runs: int, sigma: float, more: int, epsilon0: float, answers: int
) -> None:
    parts: list[tuple[PrivacyProfile, int]] = []
    theirs = pld.identity()
    if runs:
        parts.append((of(Laplace(1 / width)), runs))
        theirs = theirs.compose(pld.from_laplace_mechanism(1 / width).self_compose(runs))
    if more:
        parts.append((of(Gaussian(sigma)), more))
        theirs = theirs.compose(pld.from_gaussian_mechanism(sigma).self_compose(more))
    if answers:
        parts.append((rr(epsilon0), answers))
        theirs = theirs.compose(responses(pld, epsilon0, 2).self_compose(answers))
    check(compose(parts), theirs)
