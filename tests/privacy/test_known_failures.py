"""Failures seen in other tools' accounting, each with the right behaviour here; more of them beside what they test.

Elsewhere: infinite losses in JSON (cli), calibration (test_calibrate), composition (test_compose), one worst label of
a histogram and Theorem 1 (bounds/test_clustering2022), monotone tiny deltas (test_properties).
"""

from __future__ import annotations

import math
import sys
from fractions import Fraction

import numpy as np
import pytest

from p2p_sim import Population, privacy
from p2p_sim.core.errors import InputError
from p2p_sim.privacy.bounds import shuffle
from protocols import PeerToPeer, RandomizedResponse

VIEWS = ("learner", "user", "learner+user", "learner+3*user", "wire", "learner+wire")


@pytest.mark.parametrize("labels", [2, 3, 5])
def test_the_keep_probability_is_as_documented(labels: int) -> None:
    """A lie is drawn from the other values: keep = e^eps / (e^eps + k - 1), by the program itself."""
    people = Population.from_arrays(y=np.array([0, labels - 1]))
    seen = privacy.enumerate_view(RandomizedResponse(1.3, labels), people)
    kept, said = math.exp(1.3) / (math.exp(1.3) + labels - 1), dict[str, Fraction]()
    for sight, probability in seen.world.items():
        row = next(row for row in sight[0] if row[2] == 0)  # what user 0, whose label is 0, reported
        said[row[-1]] = said.get(row[-1], Fraction(0)) + probability
    assert len(said) == labels
    assert float(max(said.values())) == pytest.approx(kept, rel=1e-12)
    assert float(min(said.values())) == pytest.approx((1 - kept) / (labels - 1), rel=1e-12)
    if labels == 2:
        assert privacy.profile(RandomizedResponse(1.3)).epsilon(0) == pytest.approx(
            math.log(kept / (1 - kept))
        )


@pytest.mark.parametrize("view", VIEWS)
def test_a_delta_near_one_or_above_the_total_variation_gives_zero(view: str) -> None:
    profile = privacy.profile(PeerToPeer(0.1), view, cluster_size=9)
    total = profile.delta(0)
    for delta in (total * (1 + 1e-9), 0.999999, 1 - 1e-16, 1.0):
        assert profile.epsilon(delta) == 0
        assert profile.epsilon_bracket(delta).lower == 0
    assert profile.epsilon(total * 0.99) > 0
    with pytest.raises(InputError, match=r"delta = 3\.0: must be a probability"):
        profile.epsilon(3.0)


@pytest.mark.parametrize("epsilon", [20.0, 300.0, 709.0, 710.0, 1e4, math.inf])
def test_a_large_epsilon_has_a_finite_answer(epsilon: float) -> None:
    for view in VIEWS:
        assert privacy.profile(PeerToPeer(0.1), view, cluster_size=9).delta(epsilon) == 0
        assert 0 < privacy.profile(PeerToPeer(0.0), view, cluster_size=9).delta(epsilon) <= 1
    assert 0 <= privacy.gaussian(0.01).delta(epsilon) <= 1
    assert 0 <= privacy.shuffled_response(50, 800.0).delta(epsilon) <= 1


def test_a_bracket_of_roots_grows() -> None:
    assert privacy.gaussian(0.01).epsilon(1e-6) > 5000
    assert privacy.laplace(0.001).epsilon(1e-6) == pytest.approx(1000, abs=1e-3)
    assert privacy.gaussian(1e6).epsilon(1e-9) < 1e-5


def test_atoms_are_summed_exactly() -> None:
    half = privacy.profile(RandomizedResponse(0.5)).epsilon(1e-6)
    keep = 1 / (1 + math.exp(-0.5))
    assert half == pytest.approx(0.5 + math.log1p(-1e-6 / keep), abs=1e-15)
    assert half < 0.5
    assert privacy.composed(privacy.profile(RandomizedResponse(0.5)), 1).epsilon(1e-6) <= 0.5


@pytest.mark.parametrize("epsilon0", [0.5, 1.6, 3.0, 6.0])
def test_an_upper_bound_is_above_the_exact_value_at_a_hundred_users(epsilon0: float) -> None:
    for delta in (1e-9, 1e-6, 1e-2):
        exact = privacy.shuffled_response(100, epsilon0).epsilon(delta)
        for bound in (shuffle.clone_stronger, shuffle.clone, shuffle.blanket, shuffle.blanket_hoeffding):
            assert bound(100, epsilon0, delta).epsilon >= exact * (1 - 1e-12)


def test_a_sum_and_a_mean_are_not_taken_for_one_another() -> None:
    """Noise on a mean of 50 is noise 50 times as large on the sum."""
    mean, total = privacy.laplace(0.02, 1 / 50), privacy.laplace(1.0, 1.0)
    assert mean.epsilon(1e-6) == pytest.approx(total.epsilon(1e-6), rel=1e-12)
    assert privacy.gaussian(0.02, 1 / 50).epsilon(1e-6) == pytest.approx(privacy.gaussian(1.0).epsilon(1e-6))


def test_a_histogram_moves_by_two_under_replacement() -> None:
    """Two counts, each with Laplace noise of scale 1: epsilon 2 by the law of the two together, not 1."""
    one = privacy.laplace(1.0)
    both = privacy.compose([one, one])
    assert both.epsilon(0) == pytest.approx(2.0)
    assert privacy.laplace(1.0, 2.0).epsilon(0) == 2.0


def test_independent_reports_are_accounted_as_such() -> None:
    """Users report each by a coin of her own, so their number varies; a fixed half would be another figure."""
    n, theta, alpha = 4, 0.5, 0.25
    coins = privacy.profile(PeerToPeer(alpha, theta), "learner+wire", cluster_size=n, channels="encrypted")
    keep = 1 - 2 * alpha
    fixed = 1 - (1 - 1 / n) ** (theta * n)
    assert coins.delta(0) == pytest.approx((1 - (1 - theta / n) ** n) * keep)
    assert coins.delta(0) != pytest.approx(fixed * keep, rel=1e-3)


@pytest.mark.parametrize("epsilon0", [0.1, 0.3, 0.7, 1.0, 2.3])
def test_a_budget_is_not_exceeded_by_the_last_bit(epsilon0: float) -> None:
    for profile in (
        privacy.profile(RandomizedResponse(epsilon0)),
        privacy.profile(RandomizedResponse(epsilon0, 7)),
        privacy.shuffled_response(1, epsilon0),
    ):
        for delta in (0.0, 1e-300, 1e-12):
            assert profile.epsilon(delta) <= epsilon0 * (1 + 1e-15)
            assert profile.epsilon_bracket(delta).upper >= profile.epsilon(delta)


def test_every_figure_names_its_view() -> None:
    for view in VIEWS:
        assert privacy.profile(PeerToPeer(0.1), view, cluster_size=9).view == view
    with pytest.raises(TypeError, match="budget of a local randomizer"):
        privacy.compose([privacy.LocalBudget(1.0), privacy.profile(RandomizedResponse(1.0))])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"alpha": 0.6}, "alpha = 0.6"),
        ({"alpha": math.nan}, "alpha = nan"),
        ({"alpha": -0.1}, "alpha = -0.1"),
        ({"alpha": 0.1, "theta": 0.0}, "theta = 0.0"),
        ({"alpha": 0.1, "theta": 1.01}, "theta = 1.01"),
        ({"alpha": 0.1, "theta": math.nan}, "theta = nan"),
    ],
)
def test_parameters_out_of_range_never_reach_the_accountant(parameters: dict[str, float], told: str) -> None:
    with pytest.raises(InputError, match=told):
        privacy.profile(PeerToPeer(**parameters), cluster_size=9)


@pytest.mark.parametrize("n", [math.nan, math.inf, "9", True, -1])
def test_sizes_that_are_none(n: object) -> None:
    with pytest.raises(InputError, match="cluster_size = "):
        privacy.profile(PeerToPeer(0.1), cluster_size=n)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="composition = "):
        privacy.profile(PeerToPeer(0.1), cluster_size=9, composition=(n, 1.5)[n is True])  # type: ignore[arg-type]


def test_pure_epsilon_of_a_thousand_million_users_comes_without_a_search(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> float:
        raise AssertionError("a search")

    monkeypatch.setattr(sys.modules["p2p_sim.privacy.law"], "root", refuse)
    with pytest.raises(AssertionError, match="a search"):
        privacy.profile(PeerToPeer(0.1, 0.5), cluster_size=30).epsilon(1e-3)
    for view in VIEWS:
        pure = privacy.profile(PeerToPeer(0.1, 0.5), view, cluster_size=10**9).epsilon(0)
        assert 0 < pure <= math.log(9) * (1 + 1e-12)
    assert privacy.profile(PeerToPeer(0.0), cluster_size=10**9).epsilon(0) == math.inf


def test_an_epsilon_of_zero() -> None:
    assert privacy.profile(RandomizedResponse(0.0)).delta(0) == 0
    assert privacy.profile(RandomizedResponse(0.0, 5)).epsilon(0) == 0
    assert (
        privacy.shuffled_response(30, 0.0).epsilon(0) == privacy.shuffled_response(30, 0.0, 3).epsilon(0) == 0
    )
    assert privacy.profile(RandomizedResponse(1.0)).delta(0) == pytest.approx(math.tanh(0.5))
