"""Compositions on grids and of dominating pairs: certified on both sides, and beside dp-accounting."""

from __future__ import annotations

import importlib
import math
import warnings
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2p_sim.privacy.composition.compose import compose, composed
from p2p_sim.privacy.composition.composed_law import together
from p2p_sim.privacy.composition.dominating_pair import dominated, dominating, laplace
from p2p_sim.privacy.composition.pld_grid import convolve, grid_power, lattice, onto
from p2p_sim.privacy.composition.privacy_loss import Points, points_of, power
from p2p_sim.privacy.law import Law
from p2p_sim.privacy.laws.finite import Atoms
from p2p_sim.privacy.laws.mixtures import Mixture, Scaled, Worst
from p2p_sim.privacy.laws.noise import Gaussian, Laplace
from p2p_sim.privacy.laws.randomized_response import LocalResponse
from p2p_sim.privacy.laws.shuffled_bits import ShuffledBits
from p2p_sim.privacy.mechanisms.peer_to_peer.cluster_reports import ClusterReports
from tests.privacy.composition.composing import ENDLESS, FOUR, Unheard, of, rr, shuffled

pytestmark = pytest.mark.slow

# --- grids: certified on both sides ---


@pytest.mark.parametrize(("law", "times"), [(FOUR, 40), (shuffled(12, 4), 3)])
@pytest.mark.parametrize("size", [300, 2048])
def test_a_grid_holds_the_exact_value(law: Atoms, times: int, size: int) -> None:
    """The same compositions counted by types and on a coarse grid."""
    exact, counted = together([(law, times)])
    assert counted
    one = points_of(np.log(law.q[0]), np.log(law.p[0]))
    up, down = (grid_power(one, times, size, up).points() for up in (True, False))
    for epsilon in np.linspace(0.0, 0.7 * exact.pure(), 30):
        true = exact.directions(float(epsilon))[0]
        assert down.least(float(epsilon)) <= true.upper
        assert true.lower <= up.most(float(epsilon))
        if size == 2048 and true.value > 1e-12:
            assert up.most(float(epsilon)) - down.least(float(epsilon)) < 0.05 * true.value


def test_a_lattice_is_exact() -> None:
    one = points_of(np.log([0.6, 0.1, 0.3]), np.log([0.1, 0.6, 0.3]))
    assert lattice(one.losses) == pytest.approx(math.log(6))
    up, down = (grid_power(one, 500, 16384, up) for up in (True, False))
    assert not up.rounded
    assert not down.rounded
    np.testing.assert_allclose(up.masses, down.masses, rtol=0, atol=0)
    counted, exact = together([(Atoms.of([0.6, 0.1, 0.3], [0.1, 0.6, 0.3]), 500)])
    assert exact
    for epsilon in (400.0, 500.0, 600.0):
        assert up.points().delta(epsilon) == pytest.approx(counted.delta(epsilon).value, rel=1e-9)
    assert lattice(np.array([0.1, 0.1 + 1e-6, 3.0])) is None
    assert lattice(np.zeros(3)) is None


@given(
    losses=st.lists(st.floats(-3, 3), min_size=1, max_size=12),
    weights=st.lists(st.floats(1e-3, 1), min_size=12, max_size=12),
    step=st.floats(0.02, 1.5),
)
@settings(max_examples=150, deadline=None, derandomize=True)
def test_rounding_keeps_its_end(losses: list[float], weights: list[float], step: float) -> None:
    at = np.sort(losses)
    mass = np.array(weights[: len(at)]) / sum(weights[: len(at)])
    points = Points(at, mass)
    up, down = (onto(points, step, up).points() for up in (True, False))
    total = onto(points, step, False).masses.sum()
    assert total == pytest.approx(1.0, rel=1e-12)
    for epsilon in np.linspace(
        -4, 4, 60
    ):  # convex and decreasing in e^-loss: all such functions are mixtures of these
        here = points.delta(float(epsilon))
        assert down.delta(float(epsilon)) <= here * (1 + 1e-9) + 1e-12
        assert here <= up.delta(float(epsilon)) * (1 + 1e-9) + 1e-12


def test_convolution_has_a_relative_error() -> None:
    rng = np.random.default_rng(1)
    one, two = rng.random(9000) * np.exp(-rng.random(9000) * 300), rng.random(500)
    exact = np.convolve(one.astype(np.longdouble), two.astype(np.longdouble))
    assert np.all(np.abs(convolve(one, two) - exact) <= 500 * 2.0**-53 * exact)


@pytest.mark.parametrize(
    ("law", "times"),
    [(FOUR, 1000), (FOUR, 10**6), (shuffled(200, 2), 30), (shuffled(200, 2), 10**4), (Laplace(5), 1100)],
)
def test_brackets_are_narrow(law: Law, times: int) -> None:
    found = composed(of(law), times)
    low, value, high = found.epsilon_bracket(1e-6)
    assert found.basis == "upper"
    assert value == high
    assert high - low <= 3e-4 * high
    low, value, high = found.epsilon_bracket(1e-20)
    assert high - low <= 1e-3 * high


def test_mixed_beyond_the_limit() -> None:
    """Three different parts with more products than are counted: the bracket is narrow, and of its subset's side."""
    parts = [(rr(0.1), 30), (rr(0.23), 40), (of(FOUR), 20)]
    found = compose(parts)
    low, _, high = found.epsilon_bracket(1e-6)
    assert found.basis == "upper"
    assert high - low < 1e-3 * high
    assert compose(parts[:2]).epsilon(1e-6) < high
    assert compose(parts[::-1]).epsilon(1e-6) == pytest.approx(high, rel=1e-3)


def test_points_of_many_equal_losses_are_joined() -> None:
    p, q = [0.05] * 10 + [0.5], [0.02] * 10 + [0.8]
    points = points_of(np.log(p), np.log(q))
    assert len(points.losses) == 2
    assert points.masses.sum() == pytest.approx(1)
    assert Counter(np.round(points.masses, 12)) == Counter([0.5, 0.5])


def test_random_atoms_on_coarse_grids() -> None:
    """Many pairs, infinite losses among them, counted by types and rounded again and again: no end is crossed."""
    rng = np.random.default_rng(3)
    for _ in range(60):
        atoms = int(rng.integers(2, 5))
        p, q = rng.dirichlet(np.full(atoms, 1.5)), rng.dirichlet(np.full(atoms, 1.5))
        q[0] *= rng.random() < 0.8
        with np.errstate(divide="ignore"):
            one = points_of(np.log(p), np.log(q / q.sum()))
        times = int(rng.integers(2, 40))
        exact = power(one, times)
        up, down = (grid_power(one, times, int(rng.choice([20, 200])), up).points() for up in (True, False))
        for epsilon in np.r_[-3.0, 0.0, np.quantile(exact.losses, [0.3, 0.7, 0.9, 0.99])]:
            assert down.least(epsilon) <= exact.most(epsilon)
            assert exact.least(epsilon) <= up.most(epsilon)


# --- laws without outcomes ---


def test_gaussians_add_in_squares() -> None:
    found = compose([(of(Gaussian(5.0)), 9), (of(Gaussian(10.0, 2.0)), 16)])
    assert found.basis == "exact"
    assert found.epsilon(1e-6) == pytest.approx(Gaussian(1.0, 1.0).epsilon(1e-6), rel=1e-12)


def test_laplace_ends_hold_the_closed_form() -> None:
    for width in (0.01, 1.0, 30.0, 900.0):
        up, down, law = laplace(width, True), laplace(width, False), Laplace(1.0, width)
        for epsilon in np.linspace(0, 1.01 * width, 37):
            low, value, high = law.delta(float(epsilon)) if epsilon < width else (0.0, 0.0, 0.0)
            assert down.least(float(epsilon)) <= high + 1e-14
            assert low <= up.most(float(epsilon)) + 1e-14
            assert up.most(float(epsilon)) - down.least(float(epsilon)) <= 1e-3 * max(value, 1e-3) * max(
                1, width
            )


@pytest.mark.parametrize(
    "law", [Scaled(0.5, Gaussian(2.0)), Gaussian(0.7), Laplace(0.5), FOUR, ENDLESS, shuffled(30, 3)]
)
def test_dots_are_above_and_below_the_curve(law: Law) -> None:
    above, below = dominating(law, 120), dominated(law, 120)
    for epsilon in np.linspace(0.003, 5, 97):
        true = law.directions(float(epsilon)) if epsilon < law.pure() else None
        for side in range(2):
            here = true[side] if true else None
            assert (here.lower if here else 0.0) <= above[side].most(float(epsilon))
            assert below[side].least(float(epsilon)) <= (here.upper if here else 0.0) + 1e-250
    for side in range(2):
        assert below[side].masses.sum() + below[side].infinite <= 1  # so it is below at negative epsilon, too
        if above[side].infinite > 0:
            continue
        assert above[side].delta(0.2) - below[side].delta(0.2) < 0.02 * max(0.05, above[side].delta(0.2))


def test_a_dominated_gaussian_against_the_closed_form() -> None:
    """The same machinery on what is known exactly, which it isn't used for."""
    law = Gaussian(4.0)
    hidden = Mixture(((1.0, law),))
    found = composed(of(hidden), 25)
    low, _, high = found.epsilon_bracket(1e-6)
    true = Gaussian(0.8).epsilon(1e-6)
    assert found.basis == "upper"
    assert low <= true <= high
    assert high - low < 3e-3 * high


@pytest.mark.parametrize("law", [ShuffledBits(0.25, 12), ClusterReports(0.2, 0.7, 6)])
def test_a_worst_case_is_dominated(law: Law) -> None:
    found = composed(of(law), 6)
    low, value, high = found.epsilon_bracket(1e-5)
    assert found.basis == "upper"
    assert value == high
    assert low < high < 1.1 * low
    if isinstance(law, ShuffledBits):
        alone = [composed(of(shuffled(12, ones)), 6).epsilon(1e-5) for ones in range(12)]
        assert low <= max(alone) <= high


def test_the_same_case_in_every_run() -> None:
    two = Atoms(np.array([[0.5, 0.5], [0.9, 0.1]]), np.array([[0.6, 0.4], [0.95, 0.05]]))
    exact = composed(of(two), 10, same_case=True)
    free = composed(of(two), 10)
    alone = [composed(of(Atoms(two.p[i : i + 1], two.q[i : i + 1])), 10).epsilon(1e-4) for i in range(2)]
    assert exact.basis == "exact"
    assert free.basis == "upper"
    assert exact.epsilon(1e-4) == pytest.approx(max(alone), rel=1e-12)
    assert free.epsilon(1e-4) >= max(alone)
    clusters = Worst((LocalResponse(0.5), LocalResponse(1.0)))
    assert composed(of(clusters), 10, same_case=True).epsilon(1e-4) == composed(rr(1.0), 10).epsilon(1e-4)
    assert Unheard().one_pair() is None


def test_basic_composition() -> None:
    parts = [(rr(1.0), 4), (of(FOUR), 3)]
    basic, better = compose(parts, method="basic"), compose(parts)
    assert basic.basis == "upper"
    assert basic.epsilon(0) == better.epsilon(0)
    for delta in (1e-2, 1e-6, 1e-12):
        assert basic.epsilon(delta) >= better.epsilon(delta) >= basic.epsilon_bracket(delta).lower
    shares = basic.law.parts  # type: ignore[union-attr]
    assert sum(n * share for _, n, share in shares) == pytest.approx(1)
    at = 3.0
    total = sum(n * law.delta(at * share).value for law, n, share in shares)
    assert basic.delta(at) == pytest.approx(min(1, total), rel=1e-9)


# --- dp-accounting ---


def _their(make: Any, times: int, delta: float) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(make().self_compose(times).get_epsilon_for_delta(delta))


@pytest.fixture(scope="module")
def pld() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module("dp_accounting.pld.privacy_loss_distribution")


@pytest.mark.parametrize("delta", [1e-3, 1e-6])
@pytest.mark.parametrize(
    ("epsilon0", "labels", "times"), [(1.0, 2, 10), (1.0, 10, 50), (0.25, 3, 200), (2.0, 2, 30)]
)
def test_response_against_dp_accounting(
    pld: Any, epsilon0: float, labels: int, times: int, delta: float
) -> None:
    any_value = labels / (math.exp(epsilon0) + labels - 1)  # they replace the label by a uniform one

    def make() -> Any:
        return pld.from_randomized_response(any_value, labels, value_discretization_interval=1e-4)

    ours, theirs = (
        composed(rr(epsilon0, labels), times).epsilon_bracket(delta).upper,
        _their(make, times, delta),
    )
    assert ours <= theirs * (1 + 1e-9)
    assert theirs - ours <= 1e-3 * ours


def _made(pld: Any, law: Law) -> Any:
    """Their distribution of one run, at their default step of 1e-4."""
    if isinstance(law, Gaussian):
        return pld.from_gaussian_mechanism(law.sigma)
    assert isinstance(law, Atoms)
    p, q = ({i: math.log(v) for i, v in enumerate(side[0])} for side in (law.p, law.q))
    return pld.from_two_probability_mass_functions(p, q, symmetric=False)


@pytest.mark.parametrize(
    ("law", "times"), [(Gaussian(5.0), 20), (FOUR, 100), (FOUR, 1000), (shuffled(100, 2), 50)]
)
def test_laws_against_dp_accounting(pld: Any, law: Law, times: int) -> None:
    """Never above their pessimistic value (1e-9: float rounding), and within 1e-3 of it."""
    ours = composed(of(law), times).epsilon_bracket(1e-6)
    theirs = _their(lambda: _made(pld, law), times, 1e-6)
    assert ours.upper <= theirs * (1 + 1e-9)
    assert theirs - ours.upper <= 1e-3 * ours.upper
