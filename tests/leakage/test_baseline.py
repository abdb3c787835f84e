"""The best guess without messages: it is not better on the users it is picked by, and intervals allow for the pick."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import binom

from p2p_sim import Population
from p2p_sim.core.random_words import stream, uniform, words
from p2p_sim.leakage import eta as priors
from p2p_sim.leakage import intervals
from p2p_sim.leakage.advantage import Baseline, measured
from p2p_sim.leakage.attack_results import Interval
from p2p_sim.leakage.baseline import without_messages

LIE = 0.25


def coins(name: str, tables: int, users: int) -> np.ndarray:
    return uniform(words(3, stream("test", name, 0), 0, tables * users)).reshape(tables, users)


def baseline_of(y: np.ndarray) -> Baseline:
    people = Population.from_arrays(y=y.astype(bool))
    return without_messages(priors.from_shares(people.y, 2), people, np.eye(2), np.arange(len(y)))


@pytest.mark.parametrize("users", [2, 5, 8])
def test_of_fair_labels_the_baseline_is_worth_a_half_by_enumeration(users):
    """All labels are tried; the label that is more frequent among the same users is worth more than it is."""
    every = [np.array(y) for y in itertools.product((0, 1), repeat=users)]
    assert np.mean([(baseline_of(y).guess == y).mean() for y in every]) == pytest.approx(0.5, abs=1e-12)
    assert np.mean([max(y.mean(), 1 - y.mean()) for y in every]) > 0.5 + 0.3 / users**0.5


@pytest.mark.parametrize(
    ("share", "pick"), [(0.5, "others"), (0.5, "same"), (0.55, "others"), (0.8, "others")]
)
def test_intervals_hold_however_near_the_labels_are(share, pick):
    """Randomized response among 40 users; 1e-9 by the binomial law of tables that are missed, at 95 %.

    A label picked by the same users, in intervals of it alone, has an advantage that is 0.4 / sqrt(40) too small.
    """
    users, tables = 40, 800
    exact = (1 - LIE) - max(share, 1 - share) if share < 1 - LIE else 0.0
    missed, values = 0, []
    labels, lies = coins(f"y{share}", tables, users) < share, coins(f"lie{share}", tables, users) < LIE
    for y, lie in zip(labels, lies, strict=True):
        base = baseline_of(y)
        if pick == "same":
            base = Baseline(np.full(users, int(y.mean() > 0.5)))
        guess = (y ^ lie).astype(int) if share < 1 - LIE else np.ones(users, int)
        row = measured("", guess, base, y.astype(int), np.eye(2), confidence=0.95, source="")
        missed += not row.advantage.lower <= exact <= row.advantage.upper
        values.append(row.advantage.value)
        assert row.advantage.value == pytest.approx(row.utility.value - row.baseline.value)
    off = np.mean(values) - exact
    if pick == "same":
        assert off < -0.05
        return
    assert missed <= binom.isf(1e-9, tables, 0.05)
    assert -6.1 * np.std(values) / tables**0.5 < off < 0.35 / users**0.5


def test_the_least_of_several_lies_in_its_interval():
    """Ten normal means that are alike: without a correction the least upper end is far too often too low."""
    tables, several, missed, plain = 400, 10, 0, 0
    for means in ndtri(np.maximum(coins("several", tables, several), 1e-12)):
        each = [lambda c, v=v: Interval(v - ndtri((1 + c) / 2), v, v + ndtri((1 + c) / 2)) for v in means]
        low, value, high = intervals.of_least(each, 0.9, float(means.min()))
        missed += not low <= 0 <= high
        plain += not low <= 0 <= min(one(0.9).upper for one in each)
        turned = [lambda c, v=v: Interval(-v - ndtri((1 + c) / 2), -v, ndtri((1 + c) / 2) - v) for v in means]
        assert intervals.of_largest(turned, 0.9, -value) == pytest.approx((-high, -value, -low))
    assert missed <= binom.isf(1e-9, tables, 0.1) < plain
