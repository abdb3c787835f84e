"""Instance-based losses against 40 digits, enumeration, and the numbers that refute the printed thresholds."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from p2p_sim.core.errors import InputError
from p2p_sim.leakage import instance_loss as il

KAG14, KDD12 = 0.256, 0.044
within = some.floats(1e-6, 1 - 1e-6)
flips = some.floats(1e-6, 0.49)


def logit(z: mpmath.mpf) -> mpmath.mpf:
    return mpmath.log(z / (1 - z))


def loss(eta: Any, prior: float, flip: float) -> mpmath.mpf:
    """Return nu_bar with 40 digits, as the mean of the log ratios of posterior and prior over label and report."""
    eta, prior, flip = (mpmath.mpf(each) for each in (eta, prior, flip))
    total = mpmath.mpf(0)
    for label, reported in product((0, 1), repeat=2):
        of = {1: eta, 0: 1 - eta}
        keeps = {True: 1 - flip, False: flip}
        after = of[label] * keeps[label == reported] / (of[1 - label] * keeps[label != reported])
        before = prior / (1 - prior) if label else (1 - prior) / prior
        total += of[label] * keeps[label == reported] * mpmath.log(after / before)
    return total


@given(within, within, flips)
def test_expected_losses_are_those_of_bayes(eta: float, prior: float, flip: float) -> None:
    with mpmath.workdps(40):
        expected = loss(eta, prior, flip)
        scale = 1 + abs(logit(mpmath.mpf(eta))) + abs(logit(mpmath.mpf(prior)))
        assert abs(il.nu_bar(eta, prior, flip) - expected) < 1e-13 * scale
        mean = sum(
            (eta if y else 1 - eta) * (1 - flip if y == r else flip) * il.nu(eta, prior, flip, y, r)
            for y, r in product((0, 1), repeat=2)
        )
        assert abs(mean - expected) < 1e-12 * (scale + abs(logit(mpmath.mpf(flip))))


@given(within, flips, some.floats(1e-5, 40))
def test_thresholds_are_the_roots_of_both_branches(prior: float, flip: float, above: float) -> None:
    least = il.least_eta(prior)
    assert min(0.5, prior) - 1e-12 <= least <= max(0.5, prior) + 1e-12
    tau = float(il.nu_bar(least, prior, flip)) + above
    low, high = il.thresholds(tau, prior, flip)
    assert low <= high
    with mpmath.workdps(40):
        for root in (low, high):
            if 1e-12 < root < 1 - 1e-9:
                assert abs(loss(root, prior, flip) - tau) < 1e-7
    inside = np.linspace(low, high, 21)[1:-1]
    assert (il.nu_bar(inside, prior, flip) <= tau).all()
    assert float(il.nu_bar(low * (1 - 1e-6), prior, flip)) > tau - 1e-9
    assert float(il.nu_bar(0.0, prior, flip)) == float(il.nu_bar(1.0, prior, flip)) == math.inf


@pytest.mark.parametrize("prior", [1e-3, KAG14, 0.5, 0.861])
def test_below_the_least_loss_everybody_is_above(prior: float) -> None:
    least = float(il.nu_bar(il.least_eta(prior), prior, 0.1))
    assert il.thresholds(least - 1e-9, prior, 0.1) == (1.0, 0.0)
    eta = np.linspace(0, 1, 2001)
    assert least <= il.nu_bar(eta, prior, 0.1).min() + 1e-12


def test_0_and_1_are_beyond_every_threshold_that_a_float_can_hold() -> None:
    for tau, prior in ((2000.0, 0.5), (1e308, 1e-300)):
        low, high = il.thresholds(tau, prior, 0.01)
        assert 0 < low < 1e-300
        assert 1 - 1e-15 < high < 1


def printed_threshold(tau: float, prior: float, flip: float) -> float:
    """Return t_L of Lemma 1 as printed, with epsilon = e as its authors' numbers have it."""
    root = math.sqrt(math.e)
    power = ((root + 1) / (root - 1) * (tau - float(il.h(flip)))) ** (2 / 3)
    return 1 / (math.exp(power + math.log(prior / (1 - prior))) + 1)


def test_lemma_1_gives_no_upper_bound() -> None:
    """Points between its thresholds, which it does not count, reach 12.93 > tau = 10.5."""
    low = printed_threshold(10.5, 0.5, 0.01)
    just_inside = float(il.nu_bar(low * (1 + 1e-9), 0.5, 0.01))
    assert just_inside == pytest.approx(12.93, abs=0.005)
    assert low < il.thresholds(10.5, 0.5, 0.01).low


def test_lemma_1_gives_no_lower_bound() -> None:
    """It counts points whose loss is 5.49 < tau = 6."""
    low = printed_threshold(6.0, KAG14, 0.01)
    assert low == pytest.approx(0.0931, abs=5e-5)
    assert float(il.nu_bar(low, KAG14, 0.01)) == pytest.approx(5.49, abs=0.005)
    exact = il.thresholds(6.0, KAG14, 0.01)
    assert exact == pytest.approx((0.0593, 0.8029), abs=5e-5)
    assert low > exact.low


def test_the_mean_loss_is_jeffreys_and_two_terms() -> None:
    eta, weights = np.array([0.02, 0.3, 0.8, 0.999]), np.array([0.4, 0.3, 0.2, 0.1])
    prior = float(eta @ weights)
    for flip in (0.001, 0.2):
        with mpmath.workdps(40):
            expected = sum(w * loss(e, prior, flip) for e, w in zip(eta, weights, strict=True))
        assert il.mean_loss(eta, flip, weights) == pytest.approx(float(expected), abs=1e-12)
    assert il.jeffreys([0.0, 0.5]) == math.inf
    assert il.jeffreys([0.0, 0.5], [0.0, 1.0]) == 0


def test_markov_bounds_what_is_above_and_says_where_it_cannot() -> None:
    rng = np.random.default_rng(0)
    for prior_seed in range(20):
        eta = np.random.default_rng(prior_seed).beta(0.5, 1 + prior_seed / 4, 500)
        prior, flip = float(eta.mean()), float(rng.uniform(0.001, 0.4))
        mean = il.mean_loss(eta, flip)
        values = il.nu_bar(eta, prior, flip)
        for tau in np.linspace(values.min(), values.max(), 9)[1:]:
            found = il.markov(float(tau), mean, prior, flip)
            assert (values >= tau).mean() <= found.value + 1e-12
    assert float(il.nu_bar(0.7, 0.9, 0.4)) == pytest.approx(
        -0.4589, abs=5e-5
    )  # why Markov's as printed fails
    silent = il.markov(-5.0, 2.0, 0.5, 0.1)
    assert not silent.holds
    assert "everybody" in silent.why


def expit(u: float) -> float:
    return 1 / (1 + math.exp(-u))


@pytest.mark.parametrize(
    ("prior", "low_column", "high_column", "expected"),
    [(KAG14, 5.28, 3.20, (8.86, 11.17)), (KDD12, 27.63, 0.57, (29.15, 31.46))],
)
def test_table_2_of_pitfalls_follows_from_its_own_columns(
    prior: float, low_column: float, high_column: float, expected: tuple[float, float]
) -> None:
    found = [il.nu_max(expit(-low_column), expit(high_column), prior, flip) for flip in (0.01, 0.001)]
    assert found == pytest.approx(expected, abs=0.005)


def test_table_2_from_its_intervals_and_its_clipped_zero() -> None:
    prior = (KAG14, KAG14)
    for flip, expected in ((0.01, (8.84, 9.55)), (0.001, (11.15, 11.87))):
        found = il.nu_max_between((0.01, 0.02), (0.96, 0.98), prior, flip)
        assert found == pytest.approx(expected, abs=0.005)
    assert math.log(1e12) == pytest.approx(27.63, abs=0.005)  # what stands there for an empirical zero
    assert il.nu_max(0.0, 0.64, KDD12, 0.01) == math.inf
    assert il.nu_max_between((0.0, 0.005), (0.62, 0.67), (KDD12, KDD12), 0.01)[1] == math.inf


@given(some.lists(within, min_size=6, max_size=6), flips)
def test_the_largest_loss_lies_between_its_ends(ends: list[float], flip: float) -> None:
    a, b, c, d = sorted(ends[:4])
    priors = (min(ends[4:]), max(ends[4:]))
    low, high = il.nu_max_between((a, b), (c, d), priors, flip)
    for smallest, largest, prior in product(
        (a, (a + b) / 2, b), (c, (c + d) / 2, d), np.linspace(*priors, 5)
    ):
        found = il.nu_max(smallest, largest, float(np.clip(prior, smallest, largest)), flip)
        if priors[0] <= np.clip(prior, smallest, largest) <= priors[1]:  # a mean of eta lies within its range
            assert low - 1e-9 <= found <= high + 1e-9


@given(some.floats(1e-3, 30))
def test_the_flip_for_a_loss_is_the_least(wanted: float) -> None:
    flip = il.flip_for_loss(wanted)
    assert float(il.h(flip)) <= wanted
    assert float(il.h(flip * (1 - 1e-6))) > wanted


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (
            lambda: il.nu_bar([0.2, 1.2], 0.5, 0.1),
            r"eta is .*1\.2.* among 2: needs probabilities from 0 to 1",
        ),
        (lambda: il.nu_bar([math.nan], 0.5, 0.1), "eta is .*nan"),
        (lambda: il.nu_bar([], 0.5, 0.1), "eta is empty"),
        (lambda: il.nu_bar(0.3, 0.0, 0.1), "p_plus = 0: needs a number above 0 and below 1"),
        (lambda: il.thresholds(3.0, 1.0, 0.1), "p_plus = 1"),
        (lambda: il.nu_bar(0.3, 0.5, 0.5), "flip = 0.5: needs a number above 0 and below 1/2"),
        (lambda: il.nu_bar(0.3, 0.5, 0.0), "flip = 0"),
        (lambda: il.nu_bar(0.3, 0.5, 0.7), "flip = 0.7"),
        (lambda: il.thresholds(math.nan, 0.5, 0.1), "tau = nan"),
        (lambda: il.nu(0.3, 0.5, 0.1, 2, 0), "label = 2"),
        (lambda: il.nu_max(0.6, 0.5, 0.5, 0.1), "smallest = 0.6 is above largest"),
        (lambda: il.markov(1.0, -3.0, 0.5, 0.1), "expected = -3"),
        (lambda: il.flip_for_loss(0.0), "loss = 0.0"),
    ],
)
def test_bad_input_is_named(call: Callable[[], Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        call()
