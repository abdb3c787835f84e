"""Compositions with Laplace noise of two scales: to forty digits, either way around, and never above dp-accounting."""

from __future__ import annotations

import importlib
import math
import warnings
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from p2p_sim.privacy.composition import noise_compositions
from p2p_sim.privacy.composition.compose import compose
from p2p_sim.privacy.composition.laplace_two_scales import LaplaceTwoScales
from p2p_sim.privacy.laws.noise import Gaussian, Laplace
from p2p_sim.privacy.profile import PrivacyProfile
from tests.privacy.composition.composing import ENDLESS, of, rr

pytestmark = pytest.mark.slow


def noisy(width: float) -> PrivacyProfile:
    return of(Laplace(1.0, width))


def by_quadrature(widths: tuple[float, ...], epsilon: Any) -> Any:
    """Delta a run at a time: both atoms, and the integral between the points where what is left bends."""
    if epsilon >= mp.fsum(widths):
        return mp.mpf(0)
    if epsilon <= -mp.fsum(widths):
        return -mp.expm1(epsilon)
    w, rest = mp.mpf(widths[0]), widths[1:]
    if not rest:
        return -mp.expm1((epsilon - w) / 2)
    lattice = [mp.mpf(0)]
    for other in rest:
        lattice = [at + side * mp.mpf(other) for at in lattice for side in (-1, 1)]
    kinks = sorted({at for a in lattice if -w < (at := epsilon - a) < w} | {-w, w})

    def inner(loss: Any) -> Any:
        return mp.exp((loss - w) / 2) / 4 * by_quadrature(rest, epsilon - loss)

    atoms = (by_quadrature(rest, epsilon - w) + mp.exp(-w) * by_quadrature(rest, epsilon + w)) / 2
    return atoms + mp.quad(inner, kinks, method="gauss-legendre")


@pytest.mark.parametrize("widths", [(1.0, 0.37), (0.5, 1.0), (0.01, 3.0), (1.3, 1.3, 0.4), (0.2, 1.1, 1.1)])
def test_forty_digits_by_quadrature(widths: tuple[float, ...]) -> None:
    found = compose([noisy(w) for w in widths])
    assert found.basis == "exact"
    with mp.workdps(40):
        for share in (0.0, 0.23, 0.5, 0.81, 0.97):
            epsilon = share * math.fsum(widths)
            true = by_quadrature(widths, mp.mpf(epsilon))
            low, value, high = found.delta_bracket(epsilon)
            assert low <= true <= high
            assert abs(value / true - 1) < 1e-12
            assert high - low <= 1e-11 * high


def test_with_randomized_response() -> None:
    """The mean over a truth and a lie."""
    found = compose([noisy(1.0), noisy(0.37), rr(0.6)])
    assert found.basis == "exact"
    with mp.workdps(30):
        keep = 1 / (1 + mp.exp(-mp.mpf(0.6)))
        for epsilon in (0.1, 0.9, 1.7):
            truth, lie = (by_quadrature((1.0, 0.37), mp.mpf(epsilon) + by * mp.mpf(0.6)) for by in (-1, 1))
            low, _, high = found.delta_bracket(epsilon)
            assert low <= keep * truth + (1 - keep) * lie <= high


@pytest.mark.parametrize(
    ("one", "two"), [((0.3, 4), (1.0, 9)), ((1.0, 6), (0.5, 7)), ((0.1, 5), (0.3, 5)), ((1e-3, 3), (4.0, 4))]
)
def test_either_way_around(one: tuple[float, int], two: tuple[float, int]) -> None:
    """The mean of one delta over the losses of the other, and the reverse; lattices that meet are among them."""
    first, second = LaplaceTwoScales.of(one, two), LaplaceTwoScales.of(two, one)
    at = np.linspace(-1.0, 0.95 * (one[0] * one[1] + two[0] * two[1]), 19)
    at = np.r_[at, 0.0, one[0], two[0], one[0] + two[0]]
    for (low, value, high), (least, same, most) in zip(
        zip(*first.ends(at, 0.0), strict=True), zip(*second.ends(at, 0.0), strict=True), strict=True
    ):
        assert same == pytest.approx(value, rel=1e-11)
        assert max(low, least) <= min(high, most)


@pytest.mark.parametrize(
    "parts",
    [
        [(noisy(1.0), 5), (of(ENDLESS), 3)],
        [(of(Gaussian(1.0)), 1), (of(ENDLESS), 3)],
        [(noisy(1e-3), 5), (noisy(2.0), 6)],
        [(noisy(1.0), 3), (noisy(0.5), 3)],
        [(noisy(1.0), 3), (noisy(1 + 1e-15), 3)],
        [(noisy(0.1), 5), (of(Gaussian(1.0, 30.0)), 1)],
    ],
)
def test_ordered_and_in_range(parts: list[tuple[PrivacyProfile, int]]) -> None:
    found = compose(parts)
    assert found.basis == "exact"
    deltas = [found.delta(float(e)) for e in np.linspace(0, 8, 13)]
    assert deltas == sorted(deltas, reverse=True)
    assert all(0 <= d <= 1 for d in deltas)
    brackets = [found.epsilon_bracket(d) for d in (1e-300, 1e-20, 1e-6, 0.01, 0.5, 0.999)]
    assert all(low <= value <= high for low, value, high in brackets)
    values = [bracket.value for bracket in brackets]
    assert values == sorted(values, reverse=True)
    assert (values[2] == math.inf) == any(profile.law is ENDLESS for profile, _ in parts)


def test_the_grid_holds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [(noisy(1.0), 8), (noisy(0.3), 12)]
    exact = compose(parts)
    monkeypatch.setattr(noise_compositions, "WORK", 1)
    grid = compose(parts)
    assert (exact.basis, grid.basis) == ("exact", "upper")
    for delta in (1e-2, 1e-6, 1e-12):
        low, _, high = grid.epsilon_bracket(delta)
        assert low <= exact.epsilon(delta) <= high
    assert compose([(noisy(1.0), 2), (noisy(0.3), 2), (noisy(0.1), 2)]).basis == "upper"  # three scales


@pytest.mark.parametrize(
    ("one", "two"),
    [((0.3, 4), (1.0, 20)), ((0.2, 20), (0.1, 30)), ((2.0, 3), (0.01, 3)), ((1.0, 10), (0.5, 10))],
)
def test_never_above_dp_accounting(one: tuple[float, int], two: tuple[float, int]) -> None:
    """And within 1e-3 of it, at its usual step of 1e-4; 1e-11: where both are exact they differ by rounding."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pld = importlib.import_module("dp_accounting.pld.privacy_loss_distribution")
    first, second = (pld.from_laplace_mechanism(1 / w).self_compose(k) for w, k in (one, two))
    theirs, ours = first.compose(second), compose([(of(Laplace(1 / w)), k) for w, k in (one, two)])
    assert ours.basis == "exact"
    for delta in (1e-3, 1e-6, 1e-9):
        their, our = theirs.get_epsilon_for_delta(delta), ours.epsilon_bracket(delta).upper
        assert our <= their * (1 + 1e-11)
        assert their - our <= 1e-3 * their
