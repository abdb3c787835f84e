"""Every sampler has its exact law and draws are independent of each other; each beside a broken twin."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

from p2p_sim.core import kernels_numba, kernels_numpy
from p2p_sim.core.columns import Layout, PerMessage
from p2p_sim.core.draw import Draw
from p2p_sim.core.groups import Members
from tests.exact import oracle
from tests.statistical import chi

USERS = 240_000


@pytest.fixture(params=(kernels_numpy, kernels_numba), ids=("numpy", "numba"))
def draw(request):
    return Draw(20_260, "user", range(USERS), request.param)


def law(outcomes):
    """A law by outcome, for tallies of one column."""
    return {(outcome,): p for outcome, p in enumerate(outcomes)}


@pytest.mark.parametrize("p", [0.003, 0.5, Fraction(1, 3), 0.99])
def test_bernoulli(draw, p):
    assert chi.follows(chi.tally(draw.bernoulli("a", p)), law(chi.coin(p)))
    assert not chi.follows(
        chi.tally(draw.bernoulli("b", p)), law(chi.coin(Fraction(p) * 9 / 10 + Fraction(1, 500)))
    )


def test_bernoulli_of_a_column(draw):
    ps = np.resize([0.1, 0.9, 0.5], USERS)
    drawn = draw.bernoulli("a", ps)
    assert all(chi.follows(chi.tally(drawn[i::3]), law(chi.coin(p))) for i, p in enumerate((0.1, 0.9, 0.5)))
    mixed = draw.bernoulli("b", np.roll(ps, 1))
    assert not chi.follows(chi.tally(mixed[0::3]), law(chi.coin(0.1)))


def test_uniform(draw):
    u = draw.uniform("a")
    assert 0 <= u.min() < u.max() < 1
    cells = [Fraction(1, 64)] * 64
    assert chi.follows(chi.tally((u * 64).astype(int)), law(cells))
    assert not chi.follows(chi.tally((u**1.03 * 64).astype(int)), law(cells))


def test_uniform_low_bits(draw):
    low = (draw.uniform("a") * 2.0**53).astype(np.int64) % 16
    assert chi.follows(chi.tally(low), law([Fraction(1, 16)] * 16))


@pytest.mark.parametrize("m", [2, 10, 97])
def test_below(draw, m):
    cells = law([Fraction(1, m)] * m)
    assert chi.follows(chi.tally(draw.below("a", m)), cells)
    by_modulo = draw.below("b", 4 * m + 1) % m  # the classical mistake: too few values for the remainder
    assert not chi.follows(chi.tally(by_modulo), cells)


def test_member(draw):
    groups = Members(np.resize(np.array([0, 1], np.int32), USERS), np.array([0, 3, 7], np.int64), None)
    drawn = draw.member("a", groups)
    assert chi.follows(chi.tally(drawn[0::2]), law([Fraction(1, 3)] * 3))
    assert chi.follows(chi.tally(drawn[1::2] - 3), law([Fraction(1, 4)] * 4))
    assert not chi.follows(chi.tally(drawn), law([Fraction(1, 7)] * 7))


def test_categorical(draw):
    weights = [1, 0, 2, 3.5, 0.25]
    cells = law([Fraction(w) / Fraction(sum(weights)) for w in weights])
    assert chi.follows(chi.tally(draw.categorical("a", weights)), cells)
    assert not chi.follows(chi.tally(draw.categorical("b", [1.1, 0, 2, 3.5, 0.25])), cells)
    assert not chi.follows(chi.tally(draw.categorical("c", [1, 1e-4, 2, 3.5, 0.25])), cells)


def laplace_law(scale):
    """P(k) by outcome, from exact tails."""
    tails = [t for t in oracle.laplace_tails(Fraction(scale), range(1, 60 * int(scale + 1))) if t] + [0]
    side = {j: Fraction(tails[j - 1] - tails[j], oracle.WORD) for j in range(1, len(tails))}
    return {(k * sign,): p for k, p in side.items() for sign in (1, -1)} | {
        (0,): 1 - 2 * Fraction(tails[0], oracle.WORD)
    }


@pytest.mark.parametrize("scale", [0.5, 2, 7.5])
def test_laplace(draw, scale):
    assert chi.follows(chi.tally(draw.laplace("a", scale)), laplace_law(scale))
    assert not chi.follows(chi.tally(draw.laplace("b", scale * 1.05)), laplace_law(scale))


def test_laplace_is_not_rounded_continuous_noise(draw):
    u = draw.uniform("a") - 0.5
    rounded = np.rint(-2 * np.sign(u) * np.log1p(-2 * np.abs(u)))
    assert not chi.follows(chi.tally(rounded), laplace_law(2))
    one_sided = np.abs(draw.laplace("b", 2))
    assert not chi.follows(chi.tally(one_sided), laplace_law(2))


def orders(column, size):
    return chi.tally(*column.data.reshape(-1, size).T)


def test_permutation(draw):
    size, holders = 4, USERS // 4
    some = Draw(draw.seed, "user", range(holders), draw.compute)
    deck = PerMessage(np.zeros(size * holders), Layout(np.arange(holders + 1) * size))
    uniform = dict.fromkeys(permutations(range(size)), Fraction(1, 24))
    assert chi.follows(orders(some.permutation("a", each=deck), size), uniform)

    coarse = some.below("b", 40, each=deck).data.reshape(-1, size)  # ties, always broken by index
    tied = PerMessage(np.argsort(coarse, axis=1, kind="stable").ravel(), deck.layout)
    assert not chi.follows(orders(tied, size), uniform)

    swaps = some.below("c", size, each=deck).data.reshape(-1, size)  # the naive shuffle: swap with any place
    naive = np.tile(np.arange(size), (holders, 1))
    rows = np.arange(holders)
    for i in range(size):
        j = swaps[:, i]
        naive[rows, i], naive[rows, j] = naive[rows, j].copy(), naive[rows, i].copy()
    assert not chi.follows(orders(PerMessage(naive.ravel(), deck.layout), size), uniform)


FAIR = chi.product([Fraction(1, 4)] * 4, [Fraction(1, 4)] * 4)


def test_two_draws_of_a_party_are_independent(draw):
    one, other = draw.below("a", 4), draw.below("b", 4)
    assert chi.follows(chi.tally(one, other), FAIR)
    sticky = np.where(draw.bernoulli("stick", 0.02), one, other)
    assert not chi.follows(chi.tally(one, sticky), FAIR)


def test_a_name_drawn_in_two_steps_is_independent(draw):
    one = draw.below("a", 4)
    draw.advance()
    assert chi.follows(chi.tally(one, draw.below("a", 4)), FAIR)
    assert not chi.follows(chi.tally(one, one), FAIR)


@pytest.mark.parametrize("lag", [1, 2, 3, 4, 8, 1024])
def test_draws_of_different_parties_are_independent(draw, lag):
    one = draw.below("a", 4)
    assert chi.follows(chi.tally(one[:-lag], one[lag:]), FAIR)
    echo = np.where(draw.bernoulli("echo", 0.02), np.roll(one, lag), one)
    assert not chi.follows(chi.tally(echo[lag:], one[:-lag]), FAIR)


def test_items_of_a_party_are_independent_of_each_other_and_of_her_own_draw(draw):
    some = Draw(draw.seed, "user", range(60_000), draw.compute)
    items = some.below("a", 4, times=5).data.reshape(-1, 5)
    for slot in range(1, 5):
        assert chi.follows(chi.tally(items[:, 0], items[:, slot]), FAIR)
    assert chi.follows(chi.tally(items[:-1, 4], items[1:, 0]), FAIR)
    own = Draw(draw.seed, "user", range(60_000), draw.compute).below("a", 4)
    assert chi.follows(chi.tally(own, items[:, 0]), FAIR)
    assert not chi.follows(chi.tally(items[:, 0], np.sort(items[:, :2], axis=1)[:, 0]), FAIR)
