"""Crowds that walks gather: bounds against exact laws of all reports on very small graphs, and their ingredients."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.stats import binom

from p2p_sim import privacy
from p2p_sim.core.groups import Members, neighbours
from p2p_sim.network.topologies import build
from p2p_sim.network.walks import distribution
from p2p_sim.privacy.laws import random_size_shuffle as companies
from p2p_sim.privacy.laws.random_size_shuffle import (
    Ceiling,
    CoinTails,
    certain,
    crowd_size_tails,
    crowded,
    likely,
    places,
)
from p2p_sim.privacy.laws.shuffled_bits import ShuffledBits
from tests.privacy import walking

pytestmark = pytest.mark.slow

RATIOS = (Fraction(1), Fraction(5, 4), Fraction(2))
FLIP = Fraction(1, 4)
GRAPHS = {
    "triangle": (3, [(0, 1), (1, 2), (0, 2)]),
    "path of four": (4, [(0, 1), (1, 2), (2, 3)]),
    "triangle with a tail": (4, [(0, 1), (1, 2), (0, 2), (2, 3)]),
    "all pairs of four": (4, list(itertools.combinations(range(4), 2))),
    "star": (4, [(0, 1), (0, 2), (0, 3)]),
}


def graph_of(name: str) -> Members:
    users, edges = GRAPHS[name]
    return neighbours(np.array(edges), users)


def worst(places: walking.Places, ratio: Fraction) -> Fraction:
    """The largest delta over victims and over the labels of all others, exactly."""
    users, found = len(places), Fraction(0)
    for victim, rest in itertools.product(range(users), itertools.product((0, 1), repeat=users - 1)):
        pair = [
            walking.arrivals(places, walking.randomized([*rest[:victim], bit, *rest[victim:]], FLIP))
            for bit in (0, 1)
        ]
        found = max(found, walking.delta(*pair, ratio))
    return found


@pytest.mark.parametrize("steps", [1, 2, 3, 8])
@pytest.mark.parametrize("name", GRAPHS)
def test_no_bound_is_below_the_exact_law(name: str, steps: int) -> None:
    users, edges = GRAPHS[name]
    law = crowded(crowd_size_tails(graph_of(name), steps)[0], math.log(3))
    exact = walking.walked(walking.near(edges, users), steps)
    for ratio in RATIOS:
        assert law.delta(math.log(ratio)).upper >= float(worst(exact, ratio)) - 1e-15


def test_a_bound_that_forgets_parity_would_be_seen() -> None:
    """The twin: after many steps on a path half of the others are never where the victim's report may be."""
    users, edges = GRAPHS["path of four"]
    exact = float(worst(walking.walked(walking.near(edges, users), 8), RATIOS[0]))
    crowd = crowd_size_tails(graph_of("path of four"), 8)[0]
    assert crowded(np.ones(users), math.log(3)).delta(0.0).upper < exact
    assert exact < crowded(crowd, math.log(3)).delta(0.0).upper


def test_three_labels() -> None:
    users, edges = GRAPHS["triangle"]
    exact = walking.walked(walking.near(edges, users), 3)
    law = crowded(crowd_size_tails(graph_of("triangle"), 3)[0], math.log(2), labels=3)
    for ratio in (Fraction(1), Fraction(3, 2)):
        found = max(
            walking.delta(
                *(walking.arrivals(exact, walking.randomized([own, *rest], FLIP, 3)) for own in pair), ratio
            )
            for rest in itertools.product(range(3), repeat=2)
            for pair in ((0, 1), (0, 2), (1, 2))
        )
        assert law.delta(math.log(ratio)).upper >= float(found) - 1e-15


@pytest.mark.parametrize("name", GRAPHS)
def test_places_are_the_laws_of_all_walks(name: str) -> None:
    users, edges = GRAPHS[name]
    for steps in (0, 1, 4, 40):
        found, error = places(graph_of(name), steps)
        exact = walking.walked(walking.near(edges, users), steps)
        for j, k in itertools.product(range(users), repeat=2):
            assert abs(found[j, k] - float(exact[k][j])) <= (error + 2e-16) * float(exact[k][j])


def test_dense_and_sparse_powers_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = build("regular:6", 60, 1)
    found = []
    for factor in (0.0, math.inf):
        monkeypatch.setattr(companies, "_DENSE", factor)
        found.append(places(graph, 9))
    (sparse, first), (dense, second) = found
    assert not np.array_equal(sparse, dense)
    assert (np.abs(sparse - dense) <= (first + second) * dense).all()
    assert np.allclose(sparse[:, 7], distribution(graph, 7, 9), rtol=first + 1e-15, atol=0)


def test_a_crowd_is_a_sum_of_coins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Poisson binomial tails of the worst victim, from fractions."""
    monkeypatch.setattr(companies, "CUT", 0.0)
    users, edges = GRAPHS["triangle with a tail"]
    laws = walking.walked(walking.near(edges, users), 5)
    tails = [Fraction(1)] * users
    for i in range(users):
        coins = [
            min(laws[k][j] / laws[i][j] for j in range(users) if laws[i][j]) for k in range(users) if k != i
        ]
        for m in range(users):
            ways = itertools.product((0, 1), repeat=users - 1)
            chance = sum(
                math.prod((c if head else 1 - c) for c, head in zip(coins, way, strict=True))
                for way in ways
                if sum(way) >= m
            )
            tails[m] = min(tails[m], Fraction(chance))
    found = crowd_size_tails(graph_of("triangle with a tail"), 5)[0]
    assert found == pytest.approx([float(t) for t in tails], rel=1e-12)
    assert all(value <= tail for value, tail in zip(found, tails, strict=True))


@pytest.mark.parametrize(
    ("shape", "steps", "least"), [("regular:6", 6, 15), ("ring:2", 4000, 40), ("scale-free:2", 12, 1)]
)
def test_victims_in_groups_and_the_gap_bound_the_same_from_below(
    shape: str, steps: int, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = build(shape, 120, 1)
    each = crowd_size_tails(graph, steps)[0]
    monkeypatch.setattr(companies, "EACH", 0)
    grouped = crowd_size_tails(graph, steps)[0]
    monkeypatch.setattr(companies, "MOST_USERS", 0)
    gap, how = crowd_size_tails(graph, steps)
    assert "spectral gap" in how
    assert (grouped <= each * (1 + 1e-12)).all()
    assert (gap <= each * (1 + 1e-12)).all()
    assert likely(grouped, 0.5) >= least


def test_a_gap_that_is_far_too_small_is_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It took hours at ten million users of degree 4, to find that 10 steps are too few."""

    def never(_: object) -> float:
        raise AssertionError("the solver was asked")

    graph = build("regular:4", 5000, 1)
    computed = crowd_size_tails(graph, 60)[0]
    assert likely(computed, 0.5) > 0
    monkeypatch.setattr(companies, "spectral_gap", never)
    tails, how = crowd_size_tails(graph, 10)
    assert tails.tolist() == [1.0] + [0.0] * 4999
    assert how.startswith("from the spectral gap, which is below the 0.573")


def test_walks_of_one_parity_hide_among_their_own() -> None:
    """On a bipartite graph a victim is never where half of the others are: the crowd is the other half."""
    tails = crowd_size_tails(build("grid", 36, 1), 400)[0]
    assert likely(tails, 0.5) == 17
    assert tails[18] == 0


def test_users_who_hardly_meet_are_not_hidden() -> None:
    tails = crowd_size_tails(build("ring:2", 101, 1), 3)[0]
    assert tails[0] == 1
    assert crowded(tails, 1.0).delta(0.1).upper == pytest.approx(
        privacy.laws.randomized_response.LocalResponse(1.0).delta(0.1).value
    )


def test_a_crowd_that_is_known_is_a_shuffle() -> None:
    for users in (5, 60):
        law, shuffle = crowded(np.ones(users), 1.0), ShuffledBits.of(users, 1.0)
        for epsilon in (0.0, 0.3):
            assert law.delta(epsilon).value == pytest.approx(shuffle.delta(epsilon).value, rel=1e-9)


def test_groups_of_sizes_are_above_the_mixture_of_all_sizes() -> None:
    tails = binom.sf(np.arange(300) - 1, 299, 0.6)
    law, weights = crowded(tails, 2.0), binom.pmf(np.arange(300), 299, 0.6)
    for epsilon in (0.1, 0.4):
        every = sum(
            w * ShuffledBits.of(m + 1, 2.0).delta(epsilon).value for m, w in enumerate(weights) if w > 1e-15
        )
        assert every <= law.delta(epsilon).upper <= 1.6 * every


@pytest.mark.parametrize(
    ("coins", "heads", "known"), [(4, 0.6, 0), (9, 0.5, 3), (299, 0.6, 0), (40_000, 0.02, 70)]
)
def test_tails_that_are_computed_where_they_are_looked_at_give_the_figures_of_a_table(
    coins: int, heads: float, known: int
) -> None:
    tails = CoinTails(coins, heads, known)
    table = np.asarray(binom.sf(np.arange(len(tails)) + known - 1, coins, heads))
    table[0] = 1.0
    assert [tails[m] for m in range(min(len(table), 400))] == table[:400].tolist()
    for level in (companies.CUT, 1e-6, 0.3, 0.999):
        assert likely(tails, level) == int(np.flatnonzero(1 - table <= level)[-1])
    for epsilon in (0.0, 0.1, 0.4):
        assert crowded(tails, 2.0).delta(epsilon) == crowded(table, 2.0).delta(epsilon)


def test_tails_of_many_coins_against_forty_digits() -> None:
    """The sum of P(n heads) from n = m on, each from the one before."""
    coins = 10_000
    with mpmath.workdps(40):
        odds = mpmath.mpf(0.9) / (1 - mpmath.mpf(0.9))
        for m in (8_800, 9_000, 9_090):
            chance = mpmath.binomial(coins, m) * mpmath.mpf(0.9) ** m * (1 - mpmath.mpf(0.9)) ** (coins - m)
            exact = mpmath.mpf(0)
            for n in range(m, coins + 1):
                exact += chance
                chance *= odds * (coins - n) / (n + 1)
            assert CoinTails(coins, 0.9)[m] == pytest.approx(float(exact), rel=1e-10)


def test_of_a_billion_users_a_few_hundred_tails_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = []
    tail = CoinTails.__getitem__
    monkeypatch.setattr(CoinTails, "__getitem__", lambda self, m: looks.append(m) or tail(self, m))
    users = 10**9
    law = crowded(CoinTails(users - 1, 0.9), 1.0)
    assert len(looks) < 300
    assert law.delta(1e-4).upper < certain_delta(users // 2)


def certain_delta(users: int) -> float:
    """Return delta at 1e-4 where all of some users are in the crowd."""
    return crowded(certain(users - 1), 1.0).delta(1e-4).upper


def test_large_crowds_have_a_certified_bound() -> None:
    law = crowded(np.ones(30_000), 2.0)
    shuffle = ShuffledBits.of(30_000, 2.0)
    epsilon = shuffle.epsilon(1e-6)
    low, value, high = law.delta(epsilon)
    assert low < 1e-12
    assert 1e-6 < value <= high < 1.05e-6
    assert Ceiling(shuffle).pure() == 2.0
