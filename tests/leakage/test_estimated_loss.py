"""Losses of people in a table: intervals that hold as often as they say, and what their printed forms get wrong."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import mpmath
import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from p2p_sim.core.errors import InputError
from p2p_sim.leakage import estimated_loss, instance_loss
from p2p_sim.leakage.attack_results import Interval
from p2p_sim.leakage.estimated_loss import EstimatedLoss, Smoothness, of_rows, of_shares
from p2p_sim.privacy.auditing import confidence_bounds

Floats = npt.NDArray[np.float64]
STEEP = Smoothness(1.0, 0.7)
"""Of ``eta``: people are uniform on [0, 1], so a ball up to a distance r has at least the measure r."""


def eta(x: Floats) -> Floats:
    """Return a known P(y = 1 | x) of slope 0.7 at most."""
    return 0.02 + np.minimum(0.7 * x, 0.35)


PRIOR = 0.02 + 0.7 * 0.5**2 / 2 + 0.35 * 0.5
LARGEST = instance_loss.nu_max(0.02, 0.37, PRIOR, 0.05)


def drawn(seed: int, n: int = 1200, k: int = 100, confidence: float = 0.8) -> EstimatedLoss:
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=n)
    y = (rng.uniform(size=n) < eta(x)).astype(int)
    return of_rows(x[:, None], y, k, smoothness=STEEP, confidence=confidence)


def true_share(tau: float, flip: float) -> float:
    """Return J(tau): people uniform on [0, 1], eta rising up to x = 1/2."""
    low, high = instance_loss.thresholds(tau, PRIOR, flip)
    below = min(max((low - 0.02) / 0.7, 0.0), 0.5)
    return below + (1 - (high - 0.02) / 0.7 if high < 0.37 else 0.0)


def test_intervals_hold_where_eta_is_smooth() -> None:
    """30 data sets at 80 %: more misses than the limit would come by chance once in 1e9."""
    tau, flip, trials = 3.4, 0.05, 30
    truth, limit = true_share(tau, flip), stats.binom.isf(1e-9, trials, 0.2)
    assert 0.02 < truth < 0.5
    found = [drawn(seed, n=800, k=80) for seed in range(trials)]
    shares = [each.above(tau, flip) for each in found]
    assert sum(not each.lower <= truth <= each.upper for each in shares) <= limit
    largest = [each.nu_max(flip) for each in found]
    assert sum(not each.lower <= LARGEST <= each.upper for each in largest) <= limit
    assert sum(not each.prior.lower <= PRIOR <= each.prior.upper for each in found) <= limit


GROUPS = np.array([0.005, 0.1, 0.3, 0.5, 0.98])


def test_intervals_hold_where_eta_jumps_and_shares_alone_do_not() -> None:
    """Five groups of people, and a tau that one of them just exceeds: whether its share does is chance."""
    flip, trials = 0.05, 60
    limit, prior = stats.binom.isf(1e-9, trials, 0.2), float(GROUPS.mean())
    losses = instance_loss.nu_bar(GROUPS, prior, flip)
    tau = float(instance_loss.nu_bar(0.101, prior, flip))
    truth = float((losses > tau).mean())
    assert truth == 0.6  # 0.005, 0.1 and 0.98
    missed = {"interval": 0, "largest": 0, "flip": 0, "share": 0}
    for seed in range(trials):
        rng = np.random.default_rng(seed)
        group = rng.integers(0, 5, 1500)
        y = (rng.uniform(size=1500) < GROUPS[group]).astype(int)
        ones, many = np.bincount(group, y), np.bincount(group)  # a group's people are all at distance 0
        shares = (ones[group] - y) / (many[group] - 1)
        found = of_shares(shares, int(y.sum()), 200, confidence=0.8)
        if seed == 0:
            assert shares == pytest.approx(of_rows(np.eye(5)[group], y, 200).shares, abs=1e-12)
        share, largest = found.above(tau, flip), found.nu_max(flip)
        assert 0.1 < share.lower < share.upper < 0.9  # it says something
        missed["interval"] += not share.lower <= truth <= share.upper
        missed["largest"] += (
            not largest.lower <= instance_loss.nu_max(0.005, 0.98, prior, flip) <= largest.upper
        )
        flip_found = found.flip_for(0.45, tau).upper  # with which at most two groups may be above
        assert flip_found is not None
        missed["flip"] += (instance_loss.nu_bar(GROUPS, prior, flip_found) > tau).mean() > 0.45
        hits = round(share.value * found.n)  # the broken twin takes shares of neighbours for eta
        low, high = (float(f(hits, found.n, 0.1)) for f in (confidence_bounds.lower, confidence_bounds.upper))
        missed["share"] += not low <= truth <= high
    assert max(missed["interval"], missed["largest"], missed["flip"]) <= limit < missed["share"]


def test_all_people_are_inside_at_once() -> None:
    for seed in range(10):
        rng = np.random.default_rng(seed)
        x = rng.uniform(size=1200)
        y = (rng.uniform(size=1200) < eta(x)).astype(int)
        found = of_rows(x[:, None], y, 100, smoothness=STEEP, confidence=0.999)
        assert (found.eta_low <= eta(x)).all()
        assert (eta(x) <= found.eta_high).all()


def twice(n: int = 20_000, k: int = 10_000) -> EstimatedLoss:
    """Return the counterexample to Theorem 2 of Pitfalls 2021: eta is 0.1 or 0.9, half each, measured well."""
    return of_shares(np.repeat([0.1, 0.9], n // 2), n // 2, k)


def test_theorem_2_fails_even_with_exact_thresholds() -> None:
    """All of J is there, and its "upper bound" is 0.0051: points must be further than 2 c beyond the thresholds."""
    n, k, delta, flip, tau = 10**6, 10**4, 0.01, 0.01, 6.2
    low, high = instance_loss.thresholds(tau, 0.5, flip)
    c = math.sqrt(2 * math.log(6 * n / delta) / k)
    counted = sum(each - 2 * c > high or each + 2 * c < low for each in (0.1, 0.9))
    printed = counted + math.sqrt(math.log(6 / delta) / (2 * n)) + delta / 3
    assert printed == pytest.approx(0.0051, abs=5e-5)
    assert (instance_loss.nu_bar([0.1, 0.9], 0.5, flip) > tau).all()
    found = twice().above(tau, flip)
    assert found.upper == 1
    assert found.value == 1
    assert twice().above(5.5, flip).lower > 0.99


def test_counts_are_those_of_the_exact_thresholds() -> None:
    found, flip = drawn(3), 0.05
    ends = (found.prior.lower, found.prior.upper)
    for tau in (2.9, 3.2, 3.6, 4.5):
        above = np.zeros(found.n, bool)
        surely = np.ones(found.n, bool)
        for prior in ends:
            low, high = instance_loss.thresholds(tau, prior, flip)
            above |= (found.eta_low < low) | (found.eta_high > high)
            surely &= (found.eta_high < low) | (found.eta_low > high)
        error = 0.2 / 8
        share = found.above(tau, flip)
        assert share.upper == confidence_bounds.upper(int(above.sum()), found.n, error)
        assert share.lower == confidence_bounds.lower(int(surely.sum()), found.n, error)


def test_curves_fall_and_keep_their_order() -> None:
    found = drawn(1)
    curve = [found.above(tau, 0.05) for tau in np.linspace(*estimated_loss.ends(found, 0.05), 50)]
    for each in curve:
        assert each.lower <= each.value <= each.upper
    for one, other in pairwise(curve):
        assert one.lower >= other.lower
        assert one.value >= other.value
        assert one.upper >= other.upper


@pytest.mark.parametrize("share", [0.0, 0.003, 0.31, 1.0])
def test_intervals_of_eta_match_40_digits(share: float) -> None:
    """Chernoff's bound, and never wider than Hoeffding's."""
    k, error = 700, 1e-7
    low, high = estimated_loss.around(np.array([share]), k, error)
    for end in (float(low[0]), float(high[0])):
        if 0 < end < 1:
            with mpmath.workdps(40):
                a, b = mpmath.mpf(share), mpmath.mpf(end)
                apart = (a * mpmath.log(a / b) if a else 0) + (
                    (1 - a) * mpmath.log((1 - a) / (1 - b)) if a < 1 else 0
                )
            assert float(k * apart) == pytest.approx(math.log(2 / error), rel=1e-9)
    wide = math.sqrt(math.log(2 / error) / (2 * k))
    assert share - wide <= low[0] <= share <= high[0] <= share + wide
    assert (low[0] == 0) == (share == 0)
    assert (high[0] == 1) == (share == 1)


def test_chernoff_holds_for_labels_of_different_chances_and_partial_neighbours() -> None:
    """By enumeration of 2^9 labels, two of which count by a half each."""
    chances = np.array([0.1, 0.2, 0.05, 0.4, 0.3, 0.1, 0.9, 0.02, 0.5])
    weights = np.array([1.0] * 7 + [0.5, 0.5]) / 8
    labels = np.array([[i >> j & 1 for j in range(9)] for i in range(512)])
    masses = np.where(labels, chances, 1 - chances).prod(axis=1)
    truth = float(weights @ chances)
    for error in (0.5, 0.1, 0.01):
        low, high = estimated_loss.around(labels @ weights, 8, error)
        assert masses[(low > truth) | (high < truth)].sum() <= error


def test_balls_are_order_statistics() -> None:
    with mpmath.workdps(40):
        found = estimated_loss.ball(1000, 30, 1e-4)
        tail = 1 - mpmath.betainc(30, 970, 0, found, regularized=True)
    assert float(tail) == pytest.approx(1e-4, rel=1e-8)
    measured = np.sort(np.random.default_rng(0).uniform(size=(4000, 99)), axis=1)[:, 9]
    above = int((measured > estimated_loss.ball(100, 10, 0.2)).sum())
    assert stats.binomtest(above, 4000, 0.2).pvalue > 1e-9


@pytest.mark.parametrize("constant", [0.0, 0.5])
def test_the_sharper_intervals_are_no_wider_than_the_radius_of_the_paper(constant: float) -> None:
    n, k, smooth = 50_000, 1000, Smoothness(0.5, constant)
    shares = np.linspace(0, 1, n)
    found = of_shares(shares, n // 2, k, smoothness=smooth)
    c = estimated_loss.radius(n, k, 0.01, smooth)
    assert (found.eta_high - shares <= c).all()
    assert (shares - found.eta_low <= c).all()
    assert estimated_loss.radius(n, k, 0.01, Smoothness()) < c or constant == 0  # the bias adds
    assert estimated_loss.radius(n, 20, 0.01, smooth) == math.inf


def test_theorem_1_has_its_condition() -> None:
    found = estimated_loss.theorem1(10_000, 500, 0.01, Smoothness(1.0, 0.2))
    assert found.value == pytest.approx(math.sqrt(math.log(4e6) / 1000) + 0.4 * 0.1)
    short = estimated_loss.theorem1(10_000, 40, 0.01, Smoothness())
    assert not short.holds
    assert "8 ln(2/delta)" in short.why


def test_an_empirical_zero_is_no_measurement() -> None:
    """No neighbour of a person has the label: her eta may still be up to 1.3 %, or 0, and her loss without limit."""
    shares = np.concatenate([np.zeros(500), np.full(1500, 0.2)])
    found = of_shares(shares, 300, 1000)
    assert found.alike == 500
    assert found.smallest.lower == found.smallest.value == 0
    assert 0.005 < found.smallest.upper < 0.02
    largest = found.nu_max(0.01)
    assert math.isfinite(largest.lower)
    assert largest.value == largest.upper == math.inf
    assert found.above(100.0, 0.01).value == 0.25


def test_the_flip_for_a_promise_keeps_it_and_is_the_least() -> None:
    found = drawn(4, n=3000, k=300)
    for share, tau in ((0.3, 3.0), (0.6, 1.5)):
        flip = found.flip_for(share, tau)
        assert flip.upper is not None
        assert flip.estimate is not None
        assert flip.estimate <= flip.upper
        assert found.above(tau, flip.upper).upper <= share
        assert found.above(tau, flip.upper * 0.999).upper > share
        assert found.above(tau, flip.estimate).value <= share
        assert found.above(tau, flip.estimate * 0.999).value > share


def test_where_no_flip_keeps_a_promise_the_reason_is_told() -> None:
    shares = np.concatenate([np.zeros(500), np.full(1500, 0.2)])
    told = of_shares(shares, 300, 1000).flip_for(0.05, 6.0)
    assert told.upper is told.estimate is None
    assert "without limit" in told.why
    few = of_shares(np.full(50, 0.2), 10, 20).flip_for(0.01, 6.0)
    assert few.upper is None
    assert few.estimate is not None
    assert "50 rows are too few" in few.why
    assert "nats, and no flip" in of_shares(np.full(2000, 0.9), 400, 1000).flip_for(0.05, 0.5).why


def test_the_prior_is_an_interval_of_its_own() -> None:
    found = of_shares(np.full(1000, 0.3), 300, 100)
    assert found.prior == Interval(
        float(stats.beta.ppf(0.00125, 300, 701)) * (1 - 1e-12),
        0.3,
        float(stats.beta.isf(0.00125, 301, 700)) * (1 + 1e-12),
    )


ROWS = np.arange(30.0)[:, None]


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: of_rows(ROWS, np.arange(30) % 2, 30), "k = 30: must be a whole number from 1 to 29"),
        (lambda: of_rows(ROWS, np.arange(30) % 3, 5), "labels other than 0 and 1"),
        (lambda: of_rows(ROWS, np.zeros(30, int), 5), "all 30 people have the label 0"),
        (lambda: of_rows(ROWS, np.arange(30) % 2, 5, confidence=1.0), "confidence = 1.0"),
        (lambda: of_shares([0.1, 1.1], 1, 1), "eta is .*1.1"),
        (lambda: of_shares([0.1, 0.2], 1, 2), "k = 2: needs a whole number from 1 to 1"),
        (lambda: of_shares([0.1, 0.2], 3, 1), "positives = 3"),
        (lambda: Smoothness(0.0, 1.0), "smoothness exponent = 0"),
        (lambda: Smoothness(1.5, 1.0), "smoothness exponent = 1.5"),
        (lambda: Smoothness(1.0, -1.0), "smoothness constant = -1.0"),
        (lambda: Smoothness(1.0, math.inf), "smoothness constant = inf"),
        (lambda: twice().above(math.nan, 0.1), "tau = nan"),
        (lambda: twice().above(3.0, 0.5), "flip = 0.5"),
        (lambda: twice().nu_max(0.0), "flip = 0"),
        (lambda: twice().flip_for(0.0, 6.0), "share = 0"),
        (lambda: estimated_loss.radius(100, 101, 0.01, Smoothness()), "k = 101"),
        (lambda: estimated_loss.theorem1(100, 50, 0.0, Smoothness()), "delta = 0.0"),
    ],
)  # fmt: skip
def test_bad_input_is_named(call: Callable[[], Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        call()
