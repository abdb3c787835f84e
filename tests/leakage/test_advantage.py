"""Advantages by enumeration, by integration and by simulation, and their intervals."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr

from p2p_sim import InputError
from p2p_sim.core.random_words import stream, uniform, words
from p2p_sim.leakage import intervals
from p2p_sim.leakage.advantage import (
    Baseline,
    by_enumeration,
    decide,
    integrated,
    measured,
    utility_matrix,
)
from p2p_sim.leakage.eta import of_gaussians
from p2p_sim.learning.training.keyed_noise import gaussian
from p2p_sim.privacy.bounds import attacks2023, unified2023


def chance(name: str, *shape: int) -> np.ndarray:
    return uniform(words(11, stream("test", name, 0), 0, math.prod(shape))).reshape(shape)


def laws(name: str, *shape: int) -> np.ndarray:
    parts = -np.log1p(-chance(name, *shape))
    return parts / parts.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 3.0])
def test_randomized_response_is_theorem_3_7(epsilon):
    ones = chance("eta", 500)
    lie = 1 / (1 + math.exp(epsilon))
    channel = [[1 - lie, lie], [lie, 1 - lie]]
    found = by_enumeration(np.stack([1 - ones, ones], axis=1), channel)
    eau, without, advantage = integrated(found)
    assert advantage == pytest.approx(unified2023.rr_advantage(ones, epsilon).value, abs=1e-14)
    assert eau - without == pytest.approx(advantage, abs=1e-14)
    assert without == pytest.approx(
        attacks2023.label_independent_utility(np.stack([1 - ones, ones], 1)).value
    )
    weights = chance("weights", 500)
    third = unified2023.rr_advantage(ones, epsilon, weights).value
    assert integrated(found, weights)[2] == pytest.approx(third, abs=1e-14)


@pytest.mark.parametrize("case", range(6))
def test_enumeration_is_the_best_of_all_decisions(case):
    """Every function from outcomes to guesses is tried."""
    k, m = 2 + case % 2, 2 + case % 3
    eta, channel = laws(f"eta{case}", 4, k), laws(f"channel{case}", k, m)
    utility = chance(f"utility{case}", k, k)
    found = by_enumeration(eta, channel, utility)
    for row, p in enumerate(eta):
        every = [
            sum(p[y] * channel[y, o] * utility[guess[o], y] for y in range(k) for o in range(m))
            for guess in itertools.product(range(k), repeat=m)
        ]
        assert found.with_messages[row] == pytest.approx(max(every), abs=1e-14)
        blind = max(sum(p[y] * utility[g, y] for y in range(k)) for g in range(k))
        assert found.without[row] == pytest.approx(blind, abs=1e-14)


@given(st.integers(0, 10**6), st.integers(2, 4), st.integers(2, 5))
def test_no_channel_beats_theorem_2(seed, k, m):
    """With delta the largest total variation between two labels, at epsilon = 0."""
    eta, channel = laws(f"e{seed}", 8, k), laws(f"c{seed}", k, m)
    delta = max(np.abs(p - q).sum() / 2 for p, q in itertools.combinations(channel, 2))
    plain = integrated(by_enumeration(eta, channel))[2]
    assert plain <= attacks2023.theorem2_zero_one(0.0, delta, eta).value + 1e-12
    weighted = utility_matrix("weighted", eta.mean(axis=0))
    gained = integrated(by_enumeration(eta, channel, weighted))[2]
    assert gained <= attacks2023.theorem2(0.0, delta, attacks2023.mean_supremum(eta, weighted)).value + 1e-12


def figure1(labels: int, variance: float, draws: int, name: str) -> tuple[float, float]:
    """L-EAU of Attacks 2023, Figure 1, and its standard error, over ``draws`` users."""
    dimensions = 100
    y = (chance(name, draws) * labels).astype(int)
    centres = np.eye(labels, dimensions)
    noise = gaussian(5, stream("test", name, 1), (draws, labels))  # the other features say nothing
    x = centres[y][:, :labels] + math.sqrt(variance) * noise
    eta = of_gaussians(x, centres[:, :labels], variance, [1 / labels] * labels)
    best = by_enumeration(eta.rows, np.ones((labels, 1))).without
    return float(best.mean()), float(best.std() / math.sqrt(draws))


@pytest.mark.parametrize(
    ("labels", "variance", "printed"),
    [
        (2, 1.0, 0.7602), (2, 100.0, 0.5282), (2, 10_000.0, 0.5028),
        (100, 1.0, 0.0824), (100, 100.0, 0.0128), (100, 10_000.0, 0.0103),
        (2, 10.0, 0.588), (100, 10.0, 0.021),
    ],
)  # fmt: skip
def test_figure_1_of_attacks_2023(labels, variance, printed):
    """sigma in {1, 10, 100} under sigma^2 I, and what is new under sigma I: laws.md, Attacks 2023."""
    value, error = figure1(labels, variance, 40_000 if labels == 2 else 6_000, f"{labels}/{variance}")
    digits = len(str(printed).split(".")[1])
    assert abs(value - printed) <= 3 * error + 0.5 * 10**-digits
    if labels == 2:
        exact = float(ndtr(1 / math.sqrt(2 * variance)))
        assert abs(value - exact) <= 3 * error
        assert exact == pytest.approx(printed, abs=0.5 * 10**-digits)


def test_integration_over_a_known_eta_is_exact():
    """Two Gaussians again: L-EAU by a quadrature of the difference of the two features, not by draws."""
    at = np.linspace(-12, 12, 200_001)[:, None]  # of x_1 - x_2, which is normal around +-1 with variance 2
    density = np.exp(-((at[:, 0] - 1) ** 2) / 4) + np.exp(-((at[:, 0] + 1) ** 2) / 4)
    eta = of_gaussians(at, np.array([[1.0], [-1.0]]), 2.0, [0.5, 0.5])
    without = integrated(by_enumeration(eta.rows, np.ones((2, 1))), density)[1]
    assert without == pytest.approx(float(ndtr(1 / math.sqrt(2))), abs=1e-9)


def covered(groups: int, size: int, grouped: bool, case: str) -> float:
    """How often the interval of the mean has the true mean 0.3 in it, of 600 data sets."""
    hits, data = 0, 600
    shared, own = chance(case, data, groups), chance(f"{case} own", data, groups, size)
    for i in range(data):
        # three of four users of a group share their value, so that groups matter
        copied = np.arange(size) % 4 < 3
        values = np.where(copied, shared[i][:, None] < 0.3, own[i] < 0.3).astype(float).reshape(-1)
        labels = np.repeat(np.arange(groups), size) if grouped else None
        low, _, high = intervals.of_mean(values, 0.95, 1.0, labels)
        hits += low <= 0.3 <= high
    return hits / data


def test_intervals_over_groups_cover_and_others_do_not():
    """600 data sets: fewer than 92 % covered has probability 2e-3 if 95 % are; without groups half are missed."""
    assert covered(50, 20, True, "grouped") > 0.92
    assert covered(50, 20, False, "ignored") < 0.75


def test_an_interval_is_never_empty():
    low, value, high = intervals.of_mean(np.zeros(1000), 0.95, 1.0)
    assert low < value == 0.0 < high < 0.01
    assert intervals.of_mean(np.ones(1), 0.95, 1.0) == (-1.0, 1.0, 1.0)
    assert intervals.of_share(0, 10, 0.95).lower == 0.0


def test_ratios_cover():
    hits = 0
    for i in range(400):
        u = chance(f"ratio{i}", 300)
        low, _, high = intervals.of_ratio((u < 0.6).astype(float), (u < 0.4).astype(float), 0.95, 1.0)
        hits += low <= 1.5 <= high
    assert hits / 400 > 0.91
    assert math.isnan(intervals.of_ratio(np.ones(3), np.zeros(3), 0.95, 1.0).value)


def test_pairs_are_sharper_than_two_samples():
    """A guess that is right for one user in a hundred more: the chance of labels hides it, but not on pairs."""
    y = (chance("y", 10_000) < 0.4).astype(np.int64)
    baseline = Baseline(np.zeros(10_000, np.int64))
    guess = np.where(np.arange(10_000) % 40 == 0, y, 0)
    row = measured("some", guess, baseline, y, np.eye(2), confidence=0.95, source="")
    assert row.advantage.lower > 0
    assert row.utility.lower < row.baseline.upper
    assert row.advantage.value == pytest.approx(row.utility.value - row.baseline.value)
    worse = measured(
        "some", guess, Baseline(baseline.guess, regret=0.1), y, np.eye(2), confidence=0.95, source=""
    )
    assert worse.advantage.lower == pytest.approx(row.advantage.lower - 0.1)
    assert worse.baseline.upper == pytest.approx(row.baseline.upper + 0.1)
    assert worse.ratio.lower < row.ratio.lower
    most = measured(
        "some", guess, Baseline(baseline.guess, regret=0.9), y, np.eye(2), confidence=0.95, source=""
    )
    assert most.baseline.upper == 1  # nobody guesses more than all


def test_weighted_utility():
    table = utility_matrix("weighted", np.array([0.8, 0.2, 0.0]))
    assert np.diag(table).tolist() == [0.625, 2.5, 0.0]
    rows = np.array([[0.75, 0.25, 0.0]])
    assert decide(rows, np.eye(3)).tolist() == [0]
    assert decide(rows, table).tolist() == [1]
    blind = by_enumeration(
        np.array([[0.8, 0.2]]), np.ones((2, 1)), utility_matrix("weighted", np.array([0.8, 0.2]))
    )
    assert blind.without[0] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: utility_matrix("other", np.array([0.5, 0.5])), "utility = 'other'"),
        (lambda: utility_matrix("weighted", np.array([1.0, 0.0])), "only one label"),
        (lambda: attacks2023.checked_utility([[1, -1], [0, 1]], 2), "utility = -1.0"),
        (lambda: attacks2023.checked_utility([[1, np.inf], [0, 1]], 2), "utility = inf"),
        (lambda: attacks2023.checked_utility(np.eye(3), 2), "shape (3, 3)"),
        (lambda: attacks2023.checked_utility([["a", 1], [0, 1]], 2), "utility of type list: needs 2 by 2"),
        (lambda: by_enumeration([[0.5, 0.6]], np.eye(2)), "sums to 1.1"),
        (lambda: by_enumeration([[0.5, 0.5]], np.eye(3)), "channel of shape (3, 3)"),
        (lambda: by_enumeration([[0.5, 0.5]], [[0.5, 0.4], [0, 1]]), "channel"),
        (lambda: integrated(by_enumeration([[0.5, 0.5]], np.eye(2)), [-1]), "weights"),
        (lambda: of_gaussians(np.zeros((2, 3)), np.zeros((2, 2)), 1.0, [0.5, 0.5]), "centres (2, 2)"),
        (lambda: of_gaussians(np.zeros((2, 2)), np.zeros((2, 2)), 0.0, [0.5, 0.5]), "variance = 0.0"),
    ],
)  # fmt: skip
def test_bad_input_is_named(call, told):
    with pytest.raises(InputError) as error:
        call()
    assert told in str(error.value)


def test_a_ratio_of_utilities_is_never_below_0() -> None:
    low, value, _ = intervals.of_ratio(np.array([1.0, 0, 0, 0]), np.array([0, 1.0, 1, 0]), 0.95, 1.0)
    assert (low, value) == (0.0, 0.5)
