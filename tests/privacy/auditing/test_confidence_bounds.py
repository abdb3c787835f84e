"""Confidence bounds: against exact binomial sums, their coverage, their symmetry and their limits."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from p2p_sim.core.errors import InputError
from p2p_sim.privacy.auditing import confidence_bounds
from p2p_sim.privacy.auditing.confidence_bounds import Hits, count, delta_lower, epsilon_lower

FALSE_ALARM = 1e-9


def at_least(hits: int, trials: int, p: float) -> Fraction:
    """P(X >= hits) of a binomial, exactly."""
    chance = Fraction(p)
    terms = (math.comb(trials, k) * chance**k * (1 - chance) ** (trials - k) for k in range(hits, trials + 1))
    return sum(terms, Fraction(0))


@pytest.mark.parametrize("trials", [1, 2, 7, 40])
@pytest.mark.parametrize("error", [0.2, 0.025, 1e-6])
def test_bounds_solve_the_exact_binomial_sums(trials, error):
    hits = np.arange(trials + 1)
    low, high = confidence_bounds.lower(hits, trials, error), confidence_bounds.upper(hits, trials, error)
    assert low[0] == 0
    assert high[-1] == 1
    for k in range(1, trials + 1):
        tail = at_least(k, trials, low[k])
        assert error * (1 - 1e-9) <= tail <= error, "the bound is outward, by a hair only"
        reversed_tail = at_least(
            k, trials, 1 - Fraction(high[trials - k])
        )  # misses are hits of the complement
        assert reversed_tail <= error * (1 + 1e-9)
        assert at_least(k, trials, 1 - Fraction(high[trials - k]) + Fraction(1, 10**9)) > error * (1 - 1e-9)


@pytest.mark.parametrize(
    ("hits", "trials"), [(1, 10**6), (333_333, 10**6), (999_900, 10**6), (5 * 10**8, 10**9)]
)
def test_bounds_of_many_trials_against_the_tails_of_scipy(hits, trials):
    error = 1e-4
    low, high = (
        float(confidence_bounds.lower(hits, trials, error)),
        float(confidence_bounds.upper(hits, trials, error)),
    )
    assert stats.binom.sf(hits - 1, trials, low) == pytest.approx(error, rel=1e-4)
    assert stats.binom.cdf(hits, trials, high) == pytest.approx(error, rel=1e-4)
    assert low < hits / trials < high


def test_bounds_at_no_and_all_hits_are_closed_forms():
    assert float(confidence_bounds.lower(50, 50, 0.01)) == pytest.approx(0.01 ** (1 / 50), rel=1e-10)
    assert float(confidence_bounds.upper(0, 50, 0.01)) == pytest.approx(1 - 0.01 ** (1 / 50), rel=1e-10)
    assert float(confidence_bounds.upper(0, 10**9, 1e-30)) == pytest.approx(30 * math.log(10) / 1e9, rel=1e-6)


def test_counting_uses_closed_ends_and_takes_infinite_scores():
    hits = count([0, 1, -math.inf, 1], [1, 2, math.inf], [1.0, math.inf])
    assert hits.above_a.tolist() == [2, 0]
    assert hits.above_b.tolist() == [3, 1]
    assert hits.below_a.tolist() == [4, 4]
    assert hits.below_b.tolist() == [1, 3]
    assert (hits.trials_a, hits.trials_b) == (4, 3)
    assert count([0, 1], [1, 2], [1.0], [0.0]).below_a.tolist() == [1]


def test_batches_add_up():
    scores = np.random.default_rng(1).normal(size=(2, 100))
    cuts = [-1.0, 0.0, 1.0]
    whole = count(*scores, cuts)
    parts = count(*scores[:, :37], cuts) + count(*scores[:, 37:], cuts)
    assert all(np.array_equal(getattr(whole, name), getattr(parts, name)) for name in vars(whole))
    with pytest.raises(InputError, match="same thresholds"):
        whole + count(*scores, [0.0])


def test_null_scores_give_zero_in_both_directions():
    constant = np.zeros(10_000)
    hits = count(constant, constant, [-1.0, 0.0, 1.0])
    assert epsilon_lower(hits, 0.0, 0.95).value == 0
    assert delta_lower(hits, 0.0, 0.95).value == 0


def test_a_perfect_attack_reaches_the_cap_and_no_more():
    for n in (1, 10, 1000, 10**6):
        hits = Hits([0] * 3, [n] * 3, [n] * 3, [0] * 3, n, n)
        found = epsilon_lower(hits, 1e-6, 0.95)
        cap = confidence_bounds.cap_epsilon(n, 1e-6, 3, 0.95)
        assert math.isfinite(found.value)
        assert found.value == pytest.approx(cap, rel=1e-9)
        assert found.value <= cap
        assert delta_lower(hits, 0.5, 0.95).value == pytest.approx(
            confidence_bounds.cap_delta(n, 0.5, 3, 0.95), rel=1e-9
        )


def test_the_cap_of_unequal_directions_counts_their_events():
    hits = Hits([0] * 3, [100] * 3, [100], [0], 100, 100)
    found = epsilon_lower(hits, 0.0, 0.95).value
    assert found == pytest.approx(confidence_bounds.cap_epsilon(100, 0.0, hits.events / 2, 0.95), rel=1e-9)
    assert found > confidence_bounds.cap_epsilon(100, 0.0, 3, 0.95)


def test_swapped_worlds_give_the_same_bounds():
    generator = np.random.default_rng(2)
    a, b = generator.normal(size=3000), generator.normal(0.7, 1.2, size=2000)
    above, below = np.array([0.5, 1.5]), np.array([-1.0, 0.0])
    hits, swapped = count(a, b, above, below), count(-b, -a, -below, -above)
    assert all(np.array_equal(getattr(hits.swapped(), name), getattr(swapped, name)) for name in vars(hits))
    for delta in (0.0, 0.01):
        first, second = epsilon_lower(hits, delta, 0.9), epsilon_lower(swapped, delta, 0.9)
        assert first.value == second.value > 0
        assert {first.direction, second.direction} == {"above", "below"}
    assert delta_lower(hits, 0.1, 0.9).value == delta_lower(swapped, 0.1, 0.9).value > 0


def test_the_event_that_gave_the_bound_is_named():
    hits = Hits([500, 400], [510, 900], [500], [490], 1000, 1000)
    found = epsilon_lower(hits, 0.0, 0.95)
    assert found[1:] == ("above", 1, 900, 400)
    error = 0.05 / 6  # three events, two bounds each
    low, high = confidence_bounds.lower(900, 1000, error), confidence_bounds.upper(400, 1000, error)
    assert found.value == pytest.approx(math.log(low / high), rel=1e-9)
    assert delta_lower(hits, 0.3, 0.95).value == pytest.approx(low - math.exp(0.3) * high, rel=1e-9)


def test_more_thresholds_and_more_confidence_cost():
    once = Hits([10], [60], [90], [40], 100, 100)
    thrice = Hits([10] * 3, [60] * 3, [90] * 3, [40] * 3, 100, 100)
    assert 0 < epsilon_lower(thrice, 0.0, 0.95).value < epsilon_lower(once, 0.0, 0.95).value
    bounds = [epsilon_lower(once, 0.0, c).value for c in (0.5, 0.9, 0.99, 1 - 1e-9, 1 - 1e-15)]
    assert bounds == sorted(bounds, reverse=True)
    assert delta_lower(once, 0.2, 0.99).value < delta_lower(once, 0.2, 0.5).value


def test_delta_at_large_epsilon_is_stable():
    perfect = Hits([0], [10**6], [10**6], [0], 10**6, 10**6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values = [delta_lower(perfect, e, 0.95).value for e in (0.0, 5.0, 11.0, 50.0, 1000.0)]
    assert values == sorted(values, reverse=True)
    assert values[0] > 0.9999
    assert values[-1] == 0


@pytest.mark.slow
@pytest.mark.parametrize(("p", "q"), [(0.3, 0.3), (0.6, 0.5), (0.02, 0.005)])
def test_bounds_exceed_the_truth_no_more_often_than_stated(p, q):
    """2000 audits of four dependent events: how many exceed the truth is a binomial of at most the stated rate."""
    generator, trials, repeats, confidence = np.random.default_rng(3), 500, 2000, 0.8
    cuts = np.array(
        [0.25, 0.5, 0.75, 1.0]
    )  # P(score >= t): p or q times a share, so every ratio is p/q or less
    wrong_epsilon = wrong_delta = 0
    for _ in range(repeats):
        a, b = (
            np.where(generator.random(trials) < chance, generator.choice(cuts, trials), 0.0)
            for chance in (q, p)
        )
        hits = count(a, b, cuts)
        wrong_epsilon += epsilon_lower(hits, 0.0, confidence).value > math.log(p / q)
        wrong_delta += delta_lower(hits, 0.0, confidence).value > p - q
    most = stats.binom.isf(FALSE_ALARM, repeats, 1 - confidence)
    assert wrong_epsilon <= most
    assert wrong_delta <= most


@pytest.mark.slow
def test_choosing_thresholds_on_the_counted_trials_would_exceed_the_stated_rate():
    """The broken twin: the best of all cuts, as if it had been the only one."""
    generator, trials, repeats, confidence = np.random.default_rng(4), 2000, 150, 0.5
    error, wrong = (1 - confidence) / 2, 0
    for _ in range(repeats):
        a, b = generator.random((2, trials))
        hits = count(a, b, np.concatenate([a, b]))
        low, high = (
            confidence_bounds.lower(hits.above_b, trials, error),
            confidence_bounds.upper(hits.above_a, trials, error),
        )
        wrong += bool((low > high).any())
    assert wrong > stats.binom.isf(FALSE_ALARM, repeats, 1 - confidence)


@pytest.mark.parametrize("claim", [0.1, 1.0, 5.0, 12.0])
def test_trials_for_a_claim_are_the_least(claim):
    n = confidence_bounds.trials_for_epsilon(claim, 1e-5, 4, 0.95)
    assert (
        confidence_bounds.cap_epsilon(n, 1e-5, 4, 0.95)
        > claim
        >= confidence_bounds.cap_epsilon(n - 1, 1e-5, 4, 0.95)
    )
    m = confidence_bounds.trials_for_delta(0.9, claim, 4, 0.95)
    assert (
        confidence_bounds.cap_delta(m, claim, 4, 0.95)
        > 0.9
        >= confidence_bounds.cap_delta(m - 1, claim, 4, 0.95)
    )


def test_claims_that_no_trials_can_exceed():
    assert confidence_bounds.trials_for_epsilon(100.0, 0.0, 4, 0.95) is None
    assert confidence_bounds.trials_for_delta(1.0, 0.0, 4, 0.95) is None


def test_trials_to_measure_reach_the_target_and_fewer_do_not():
    p, q, target = 0.73, 0.27, 0.9
    n = confidence_bounds.trials_to_measure(p, q, 0.0, target, 2, 0.95)
    for trials, reached in ((n, True), (int(n * 0.98), False)):
        assert (confidence_bounds.expected_epsilon(p, q, 0.0, trials, 0.95, 2) >= target) is reached
    whole = Hits([round(q * n)] * 2, [round(p * n)] * 2, [0] * 2, [0] * 2, n, n)
    assert epsilon_lower(whole, 0.0, 0.95).value == pytest.approx(target, rel=1e-3)
    m = confidence_bounds.trials_to_measure_delta(p, q, 0.2, 0.3, 2, 0.95)
    assert (
        confidence_bounds.expected_delta(p, q, 0.2, m, 0.95, 2)
        >= 0.3
        > confidence_bounds.expected_delta(p, q, 0.2, m // 2, 0.95, 2)
    )


def test_targets_beyond_the_truth_are_never_measured():
    assert confidence_bounds.trials_to_measure(0.73, 0.27, 0.0, math.log(0.73 / 0.27), 1, 0.95) is None
    assert confidence_bounds.trials_to_measure(0.3, 0.3, 0.0, 0.0, 1, 0.95) is None
    assert confidence_bounds.trials_to_measure_delta(0.5, 0.5, 0.0, 0.1, 1, 0.95) is None
    assert confidence_bounds.trials_to_measure_delta(0.4, 0.0, 1.0, 0.4, 1, 0.95) is None
    assert confidence_bounds.trials_to_measure(0.4, 0.0, 0.0, 5.0, 1, 0.95) is not None


GOOD = Hits([1], [2], [3], [4], 10, 10)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: epsilon_lower(GOOD, 0.0, 1.0), "confidence = 1.0"),
        (lambda: epsilon_lower(GOOD, 0.0, math.nan), "confidence = nan"),
        (lambda: epsilon_lower(GOOD, 1.0, 0.9), "delta = 1.0"),
        (lambda: delta_lower(GOOD, -0.1, 0.9), "epsilon = -0.1"),
        (lambda: delta_lower(GOOD, math.inf, 0.9), "epsilon = inf"),
        (lambda: confidence_bounds.lower(11, 10, 0.1), "hits = 11: must be from 0 to the 10 trials"),
        (lambda: confidence_bounds.upper(0.5, 10, 0.1), "hits = 0.5: must be whole"),
        (lambda: confidence_bounds.lower(0, 0, 0.1), "trials = 0: must be a whole number, at least 1"),
        (lambda: confidence_bounds.lower(0, 10, 0), "error = 0"),
        (lambda: replace(GOOD, above_a=[-1]), "above_a = -1"),
        (lambda: replace(GOOD, above_a=[1, 2]), "as many in both worlds"),
        (lambda: Hits([], [], [], [], 1, 1), "at least one in all"),
        (lambda: count([math.nan], [0.0], [0.0]), "scores_a: NaN"),
        (lambda: count([0.0], [], [0.0]), "scores_b: no scores"),
        (lambda: confidence_bounds.cap_epsilon(10, 0.0, 0, 0.9), "thresholds = 0"),
        (lambda: confidence_bounds.cap_epsilon(10, 0.0, 1.3, 0.9), "thresholds = 1.3"),
        (lambda: confidence_bounds.trials_to_measure(1.5, 0.1, 0.0, 1.0, 1, 0.9), "p = 1.5"),
        (lambda: confidence_bounds.trials_to_measure(0.5, -0.1, 0.0, 1.0, 1, 0.9), "q = -0.1"),
    ],
)
def test_bad_input_is_named(call, text):
    with pytest.raises(InputError, match=text):
        call()
