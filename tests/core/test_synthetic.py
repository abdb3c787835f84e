"""Synthetic users with several labels and with features that carry them."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from p2p_sim import InputError
from p2p_sim.core import Population, exact, synthetic
from tests.exact import oracle

FALSE_ALARM = 1e-6


@pytest.mark.slow
def test_labels_and_features_are_keyed_draws() -> None:
    people = Population.synthetic(users=50, labels=3, shares=[0.5, 0.3, 0.2], features=2, seed=9)
    chance = oracle.Chance(9, "synthetic")
    bounds = [Fraction(0.5), Fraction(0.5) + Fraction(0.3)]
    total = sum(map(Fraction, (0.5, 0.3, 0.2)))
    table, least = exact.gaussian_thresholds(synthetic.STEPS)
    for user, (y, x) in enumerate(zip(people.y.tolist(), people.x.tolist(), strict=True)):
        word = chance.word("label", 0, user)
        assert y == sum(math.floor(bound / total * 2**64) <= word for bound in bounds)
        for feature, value in enumerate(x):
            drawn = sum(int(bound) <= chance.word("feature", feature, user) for bound in table)
            assert value == (2 * (y >> feature & 1) - 1) + (drawn + least) / 256


def test_a_larger_population_begins_with_the_same_users() -> None:
    how: dict[str, Any] = {"labels": 4, "features": 2, "seed": 3}
    small, large = (Population.synthetic(users=n, **how) for n in (10, 2**20 + 11))
    assert np.array_equal(small.y, large.y[:10])
    assert np.array_equal(small.x, large.x[:10])
    more = Population.synthetic(users=10, **how | {"features": 3}).x
    assert np.array_equal(small.x, more[:, :2])
    assert not np.array_equal(small.x, Population.synthetic(users=10, **how | {"seed": 4}).x)


def test_two_labels_are_as_before_whatever_tells_their_shares() -> None:
    plain = Population.synthetic(users=5000, positive=0.25, seed=1)
    assert plain.y.dtype == np.bool_
    assert plain.x is None
    for how in (
        {"shares": [0.75, 0.25]},
        {"positive": 0.25, "features": 3},
        {"labels": 2, "shares": (0.75, 0.25)},
    ):
        assert np.array_equal(Population.synthetic(users=5000, seed=1, **how).y, plain.y)
    half = Population.synthetic(users=5000, seed=1)
    assert half.hash == Population.synthetic(users=5000, positive=0.5, seed=1).hash
    # frozen with the version that knew two labels only
    assert half.hash == "c563231d83b0faba7ceb1fbddcbb6503e5fbb9e3f2a4b431c2e1454349cae93f"
    assert (
        Population.synthetic(users=5000, cluster_size=30, positive=0.25, seed=1).hash
        == "4b58b525815b935ca14cb7d24da2163e3d1b86851ba99ed45447d49321979fcd"
    )


@pytest.mark.parametrize("shares", [None, [0.5, 0.2, 0.2, 0.05, 0.05], [0, 0.25, 0.25, 0.5, 0]])
def test_labels_have_their_shares(shares: Any) -> None:
    counts = np.bincount(Population.synthetic(users=100_000, labels=5, shares=shares, seed=2).y, minlength=5)
    expected = np.array([0.2] * 5 if shares is None else shares) * 100_000
    held = expected > 0
    assert not counts[~held].any()
    assert stats.chisquare(counts[held], expected[held]).pvalue > FALSE_ALARM


def test_the_noise_is_a_discrete_gaussian() -> None:
    table, least = exact.gaussian_thresholds(4)
    bounds = [0, *map(int, table), 2**64]
    weights = {k: math.exp(-k * k / 32) for k in range(-40, 41)}
    for k in range(-15, 16):
        mass = (bounds[k - least + 1] - bounds[k - least]) / 2**64
        assert mass == pytest.approx(weights[k] / sum(weights.values()), rel=1e-12)
    x = Population.synthetic(users=200_000, features=1, seed=5).x[:, 0]
    y = Population.synthetic(users=200_000, seed=5).y
    noise = x - np.where(y, 1, -1)
    assert np.array_equal(noise * 256, np.rint(noise * 256))
    smooth = noise + (np.random.default_rng(1).random(len(noise)) - 0.5) / 256  # the grid away
    assert stats.kstest(smooth, "norm").pvalue > FALSE_ALARM


@pytest.mark.parametrize(
    ("labels", "features", "first", "last"),
    [(2, 3, [-1, -1, -1], [1, 1, 1]), (3, 1, [-2], [2]), (4, 2, [-1, -1], [1, 1]), (5, 2, [-2, -2], [0, 0]),
     (5, 4, [-1, -1, -1, -1], [-1, -1, 1, -1])],
)  # fmt: skip
def test_means_are_those_of_the_digits(labels: int, features: int, first: Any, last: Any) -> None:
    means = synthetic.centres(labels, features)
    assert means.shape == (labels, features)
    assert len(np.unique(means, axis=0)) == labels
    assert (means[0].tolist(), means[-1].tolist()) == (first, last)


@pytest.mark.parametrize(("labels", "features"), [(2, 1), (2, 4), (4, 2), (8, 9), (3, 1)])
def test_a_model_learns_the_label_as_well_as_the_features_allow(labels: int, features: int) -> None:
    """Within 1 % of the best classifier, on the same rows; that one within 4.9 deviations (1e-6) of its law."""
    from sklearn.linear_model import LogisticRegression

    people = Population.synthetic(users=30_000, labels=labels, features=features, seed=4)
    train, test = slice(0, 10_000), slice(10_000, None)
    model = LogisticRegression(max_iter=1000).fit(people.x[train], people.y[train])
    distance = ((people.x[test, None, :] - synthetic.centres(labels, features)) ** 2).sum(axis=2)
    best = (distance.argmin(axis=1) == people.y[test]).mean()
    assert model.score(people.x[test], people.y[test]) > best - 0.01
    if labels in (2, 4, 8):  # every digit is 0 or 1 and has as many features
        digits = labels.bit_length() - 1
        expected = stats.norm.cdf(math.sqrt(features / digits)) ** digits
        assert abs(best - expected) < 4.9 * math.sqrt(expected * (1 - expected) / 20_000)


@pytest.mark.parametrize(
    ("how", "text"),
    [
        ({"labels": 1}, "labels = 1: must be an integer from 2 to 256"),
        ({"labels": 257}, "labels = 257: must be"),
        ({"labels": 2.0}, r"labels = 2\.0: must be"),
        ({"features": -1}, "features = -1: must be an integer from 0 to 10,000"),
        ({"features": 10_001}, "features = 10001: must be"),
        (
            {"labels": 3, "shares": [0.5, 0.5]},
            r"shares = \[0\.5, 0\.5\]: must be a list of 3 probabilities, one a label",
        ),
        ({"labels": 3, "shares": 0.5}, r"shares = 0\.5: must be a list of 3 probabilities"),
        ({"labels": 3, "shares": {0: 0.5, 1: 0.3, 2: 0.2}}, r"shares = \{0.*must be a list of 3 prob"),
        ({"labels": 2, "shares": iter([0.5, 0.5])}, "shares = .*must be a list of 2 probabilities"),
        ({"labels": 3, "shares": "123"}, "shares = '123': must be a list of 3 probabilities"),
        ({"labels": 3, "shares": [0.5, 0.3, 0.3]}, r"shares = .*: sum to 1\.1, must sum to 1"),
        (
            {"labels": 3, "shares": [0.5, 0.7, -0.2]},
            r"share of label 2 = -0\.2: a probability lies from 0 to 1",
        ),
        ({"labels": 3, "shares": [0.5, 0.5, math.nan]}, "share of label 2 = nan"),
        (
            {"labels": 3, "positive": 0.3},
            r"positive = 0\.3: the share of label 1 of two labels; here are 3 labels",
        ),
        ({"positive": 0.3, "shares": [0.7, 0.3]}, r"positive = 0\.3: .*and shares: leave it out"),
    ],
)
def test_what_cannot_be_made_is_refused(how: Any, text: str) -> None:
    with pytest.raises(InputError, match=text):
        Population.synthetic(users=5, **how)
