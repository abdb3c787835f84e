"""The test of frequencies itself: it accepts the law, rejects another, and raises no more alarms than stated."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from tests.statistical import chi


def sample(law, trials, seed):
    return np.random.Generator(np.random.Philox(seed)).multinomial(trials, law)


def test_a_sample_of_the_law_is_accepted_and_of_another_rejected():
    law, other = [0.1, 0.2, 0.7], [0.11, 0.2, 0.69]
    for seed in range(20):
        assert chi.follows(sample(law, 100_000, seed), law)
        assert not chi.follows(sample(other, 100_000, seed), law)


def test_the_alarm_rate_is_the_stated_one(monkeypatch):
    monkeypatch.setattr(chi, "FALSE_ALARM", 0.01)
    law = [0.05, 0.15, 0.3, 0.5]
    alarms = sum(not chi.follows(sample(law, 20_000, seed), law) for seed in range(2000))
    low, high = stats.binom.ppf([1e-9, 1 - 1e-9], 2000, 0.01)
    assert low <= alarms <= high


def test_impossible_outcomes_are_rejected_and_rare_ones_pooled():
    assert not chi.follows([1000, 1], [1, 0])
    assert not chi.follows({"a": 500, "c": 1}, {"a": Fraction(1, 2), "b": Fraction(1, 2)})
    assert (
        chi.follows([99_990, 10], [Fraction(9999, 10_000), Fraction(1, 10_000)]) is False
    )  # one pool is no test
    assert chi.follows([49_995, 49_995, 10], [0.49995, 0.49995, 0.0001])


def test_a_law_must_sum_to_1_and_have_enough_trials():
    with pytest.raises(AssertionError, match="sums to 1"):
        chi.follows([500, 500], [0.5, 0.4])
    with pytest.raises(AssertionError, match="too few trials"):
        chi.follows([10, 10], [0.5, 0.5])


def test_laws_are_exact():
    assert chi.product(chi.coin(Fraction(1, 3)), [Fraction(1)]) == {
        (0, 0): Fraction(2, 3),
        (1, 0): Fraction(1, 3),
    }
    assert chi.binomial(2, Fraction(1, 4)) == [Fraction(9, 16), Fraction(6, 16), Fraction(1, 16)]
    assert chi.tally([1, 1, 0], [5, 5, 2]) == {(0, 2): 1, (1, 5): 2}
