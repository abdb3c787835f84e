"""Shuffles in the corners of their parameters, against high precision: nobody lies, all lie, budgets that overflow."""

from __future__ import annotations

import itertools
import math
import time
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp

from p2p_sim import privacy
from p2p_sim.privacy.bounds import shuffle as bounds
from p2p_sim.privacy.law import Bracket
from p2p_sim.privacy.laws import shuffled_bits as laws
from p2p_sim.privacy.laws.binomial_tails import add, binomial, halves
from p2p_sim.privacy.laws.randomized_response import LocalResponse
from p2p_sim.privacy.laws.shuffled_bits import ShuffledBits
from p2p_sim.privacy.laws.shuffled_categories import (
    Blanket,
    every_composition,
    half_sums,
    one_composition,
    shuffled_response,
)
from protocols import EncryptedShuffle, PeerPermutation

DIGITS = 900  # e^744 and e^-744 beside 1, with room


def shuffled(local, size=3, **more):
    return privacy.profile(EncryptedShuffle(local), "learner", cluster_size=size, **more)


def permuted(alpha, size=3, **more):
    return privacy.profile(PeerPermutation(alpha), "learner", cluster_size=size, **more)


def truth(flip: Decimal, size: int, epsilon: float, ones: int | None = None) -> Decimal:
    """delta of the number of ones by its definition, both directions, the worst composition; inside a context."""
    price = Decimal(epsilon).exp()

    def law(count: int) -> list[Decimal]:
        mass = [Decimal(1)]
        for i in range(size):
            p = 1 - flip if i < count else flip
            grown = [Decimal(0)] * (len(mass) + 1)
            for k, m in enumerate(mass):
                grown[k] += m * (1 - p)
                grown[k + 1] += m * p
            mass = grown
        return mass

    found = Decimal(0)
    for count in range(size) if ones is None else [ones]:
        zero, one = law(count), law(count + 1)
        for p, q in ((zero, one), (one, zero)):
            found = max(
                found, sum((max(Decimal(0), a - price * b) for a, b in zip(p, q, strict=True)), Decimal(0))
            )
    return found


def flip_of(local: float) -> Decimal:
    return 1 / (1 + Decimal(local).exp())


def check(found: Bracket, exact: Decimal, width: float = 1e-11) -> None:
    low, value, high = found
    assert Decimal(low) <= exact <= Decimal(high)
    assert low <= value <= high
    assert high - low <= width * high


BUDGETS = [1e-9, 1e-6, 0.001, 0.05, 0.5, 1.0, 3.0, 20.0, 40.0, 300.0, 650.0, 699.0]


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 2, 3, 6])
@pytest.mark.parametrize("local", BUDGETS)
def test_a_budget_given(local: float, size: int) -> None:
    """The bracket holds delta of the very float that is given, and is narrow, up to the budget itself."""
    with localcontext() as context:
        context.prec = DIGITS
        flip = flip_of(local)
        for part in (0.0, 0.3, 0.9, 0.99):
            check(shuffled(local, size).delta_bracket(part * local), truth(flip, size, part * local))
            for ones in {0, size // 2, size - 1}:
                found = shuffled(local, size, composition=ones).delta_bracket(part * local)
                exact = truth(flip, size, part * local, ones)
                if exact > Decimal("1e-200"):
                    check(found, exact, 1e-8)
                else:
                    assert Decimal(found.lower) <= exact <= Decimal(found.upper)


FLIPS = [
    1e-300,
    1e-100,
    1e-17,
    1e-9,
    0.01,
    0.2,
    0.25,
    0.3,
    0.4,
    0.49,
    0.4999999,
    0.5 - 1e-12,
    0.49999999999999994,
]


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 2, 3, 6])
@pytest.mark.parametrize("flip", FLIPS)
def test_a_flip_given(flip: float, size: int) -> None:
    """As for a budget; just below the budget, where what is left is all rounding, the bracket is wider but holds."""
    pure = permuted(flip, size).epsilon(0)
    with localcontext() as context:
        context.prec = DIGITS
        for part, width in ((0.0, 1e-11), (0.3, 1e-11), (0.9, 1e-11), (1 - 1e-9, math.inf)):
            exact = truth(Decimal(flip), size, part * pure)
            check(permuted(flip, size).delta_bracket(part * pure), exact, width)


def test_what_reviewers_found_of_weak_randomizers() -> None:
    assert shuffled(1e-9, 1).delta(0.0) == pytest.approx(5.0e-10, rel=1e-15)
    assert shuffled(0.001, 2).delta(0.0) == pytest.approx(2.5012497914583544e-4, rel=1e-15)
    assert shuffled(0.5, 1).delta(0.45) == pytest.approx(0.030357699807615105, rel=1e-15)
    assert permuted(0.4999999, 1).delta(0.0) == pytest.approx(2.00000000005751e-7, rel=1e-14)
    assert permuted(0.49999999999999994, 1).delta(0.0) == pytest.approx(2.0**-53, rel=1e-13)


@pytest.mark.parametrize("found", [permuted(0.0, 10), shuffled(math.inf, 10)], ids=["alpha", "epsilon"])
def test_where_nobody_lies_all_is_told(found) -> None:
    assert found.basis == "exact"
    assert found.epsilon(1e-6) == found.epsilon(0) == found.epsilon_bracket(0.5).value == math.inf
    assert found.delta(0.0) == found.delta(700.0) == found.delta(1e9) == found.delta(math.inf) == 1
    assert ShuffledBits(0.0, 10).delta(800.0).lower > 1 - 1e-15
    three = privacy.compose([(permuted(0.0, 4), 3)]).epsilon_bracket(1e-3)
    assert three.value == three.lower == math.inf


@pytest.mark.slow
@pytest.mark.parametrize("local", [700.5, 720.0, 744.0, 746.0, 800.0, 990.0])
def test_budgets_beyond_what_floats_hold(local: float) -> None:
    for found in (
        shuffled(local), privacy.shuffled_response(3, local), privacy.shuffled_response(3, local, 3),
        privacy.profile(EncryptedShuffle(local, labels=3), cluster_size=3),
    ):  # fmt: skip
        assert found.basis == "upper"
        assert found.epsilon(0) == local
        assert found.epsilon(1e-6) == pytest.approx(local, rel=1e-6)
        for epsilon in (0.0, 300.0, local - 19, local - 0.5):
            _, value, high = found.delta_bracket(epsilon)
            assert -math.expm1(epsilon - local) == pytest.approx(value, rel=1e-12)
            with localcontext() as context:
                context.prec = DIGITS
                assert local > 900 or truth(flip_of(local), 3, epsilon) <= Decimal(high)
    law = ShuffledBits.of(3, local)
    assert law.delta(local - 19).value == pytest.approx(1 - math.exp(-19), rel=1e-12)
    assert law.epsilon(1e-6) == pytest.approx(local, rel=1e-6)


def test_alphas_beyond_what_floats_hold() -> None:
    for alpha in (5e-324, 1e-310, 1e-306):
        found = permuted(alpha)
        assert found.basis == "upper"
        assert found.epsilon(0) == LocalResponse.flipping(alpha).epsilon0
        assert found.delta(701.0) == pytest.approx(-math.expm1(701 - found.epsilon(0)), rel=1e-12)


def test_either_side_of_the_budget_from_which_only_the_local_guarantee_is_known() -> None:
    near, far = shuffled(laws.FAR, 50), shuffled(math.nextafter(laws.FAR, 800), 50)
    assert (near.basis, far.basis) == ("exact", "upper")
    assert near.delta(690.0) == pytest.approx(far.delta(690.0), rel=1e-11)
    assert near.epsilon(1e-6) == pytest.approx(far.epsilon(1e-6), rel=1e-11)


def test_tiny_deltas_are_searched_or_bounded() -> None:
    """Below what the last cut leaves out, with few users every composition is computed, with many one bound holds."""
    few = ShuffledBits.of(200, 2.0)
    at = few.epsilon(1e-290)
    assert few.delta(at).value >= max(
        ShuffledBits.of(200, 2.0, composition=i).delta(at).value for i in range(0, 200, 9)
    )
    many = ShuffledBits.of(3000, 1.0)
    at = many.epsilon(1e-288)
    assert 0 < many.delta(at).value < 1e-281
    singles = [
        ShuffledBits.of(3000, 1.0, composition=i).delta(at).value for i in (0, 1, 2, 5, 50, 1500, 2999)
    ]
    assert many.delta(at).upper >= max(singles)


@pytest.mark.parametrize(("labels", "local"), [(3, 40.0), (4, 40.0), (3, 0.3), (5, 7.1), (3, 600.0)])
def test_more_labels_lose_the_budget_and_not_a_hair_more(labels: int, local: float) -> None:
    assert privacy.shuffled_response(3, local, labels).epsilon(0) == local
    assert every_composition(3, local, labels).pure() == local
    assert one_composition(3, local, labels, 1).pure() == local


def test_a_law_not_written_out_is_the_law() -> None:
    for ones, zeros, flip in ((30, 900, 0.1), (0, 700, 0.3), (400, 400, 0.02), (1, 5, 0.4)):
        parts = halves(flip, ones, zeros, 1e-20)
        written = add(binomial(ones, 1 - flip, flip, 1e-20), binomial(zeros, flip, 1 - flip, 1e-20)).mass
        for s in range(-1, len(written) + 1):
            inside = written[s] if 0 <= s < len(written) else 0.0
            assert parts.mass(s) == pytest.approx(inside, rel=1e-12)
            assert parts.tail(s) == pytest.approx(written[max(0, s) :].sum(), rel=1e-12)


@pytest.mark.parametrize("composition", [0, 3, 4000, 15_000])
def test_large_crowds_by_events_are_as_written_out(monkeypatch, composition: int) -> None:
    law = ShuffledBits.of(30_000, 0.7, composition=composition)
    for epsilon in (0.0, 0.005, 0.02, 0.05):
        long = law.directions(epsilon)
        with monkeypatch.context() as patch:
            patch.setattr(laws, "_LONG", 100)
            short = law.directions(epsilon)
        for one, other in zip(long, short, strict=True):
            assert one.value == pytest.approx(other.value, rel=1e-10)
            assert max(one.lower, other.lower) <= min(one.upper, other.upper)


@pytest.mark.slow
@pytest.mark.parametrize("n", [200_001, 1_000_000, 3_000_000, 10**9, 10**10])
def test_any_number_of_users_is_answered_in_seconds(n: int) -> None:
    begun = time.process_time()
    found = privacy.shuffled_response(n, 1.0)
    low, value, high = found.epsilon_bracket(1e-6)
    assert time.process_time() - begun < 15
    assert found.basis == "lower"
    assert 0 < low <= value <= high < 1.1 * value
    clones = bounds.clone_stronger(n, 1.0, 1e-6).epsilon
    assert value <= clones
    assert high <= clones * (1 + 1e-3)
    assert found.delta_bracket(high).upper <= 1e-6 * (1 + 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "local"), [(1, 1.0), (2, 1.0), (17, 0.3), (300, 2.0), (2000, 1.0), (2000, 6.0)]
)
def test_what_is_said_of_wide_crowds_holds_for_small_ones(monkeypatch, n: int, local: float) -> None:
    law = ShuffledBits.of(n, local)
    at = [part * local for part in (0.0, 0.01, 0.05, 0.3, 0.8)]
    exact, wanted = [law.delta(epsilon) for epsilon in at], law.epsilon_bracket(1e-6)
    monkeypatch.setattr(laws, "WIDE", -1.0)
    assert law.wide
    for epsilon, known in zip(at, exact, strict=True):
        low, value, high = law.delta(epsilon)
        assert low <= known.upper
        assert value <= known.value * (1 + 1e-12)
        assert known.lower <= high
        assert known.lower <= law.ceiling(epsilon)
    low, _, high = law.epsilon_bracket(1e-6)
    assert low <= wanted.upper
    assert wanted.lower <= high


def test_bits_against_fractions() -> None:
    """Of flips that are floats, at epsilon = 0, where nothing is rounded but the sums."""
    for size, flip in itertools.product((1, 2, 4, 6), (0.01, 0.25, 0.4, 0.4999999)):
        f = Fraction(flip)
        worst = Fraction(0)
        for ones in range(size):
            mass = [Fraction(1)]
            for i in range(size - 1):
                p = 1 - f if i < ones else f
                mass = [
                    (mass[k] if k < len(mass) else 0) * (1 - p) + (mass[k - 1] if k else 0) * p
                    for k in range(len(mass) + 1)
                ]
            worst = max(worst, (1 - 2 * f) * max(mass))
        low, _, high = ShuffledBits(flip, size).delta(0.0)
        assert Fraction(low) <= worst <= Fraction(high)


@pytest.mark.parametrize(
    "law", [ShuffledBits(0.25, 5), ShuffledBits(0.5, 5), ShuffledBits.of(5, 1.0), ShuffledBits.of(5, 0.0)]
)
def test_far_beyond_the_budget_nothing_is_told(law: ShuffledBits) -> None:
    for epsilon in (709.0, 720.0, 1399.0, 1e15):
        assert law.delta(epsilon).value == 0
        assert law.delta(epsilon).upper <= 1e-280


@pytest.mark.parametrize("view", ["learner", "learner+shuffler"])
def test_who_never_lies_has_no_budget(view: str) -> None:
    """Beyond 1000 nats no random word is a lie, so the view is not 2000-private: it tells the label."""
    found = privacy.profile(EncryptedShuffle(2000.0), view, cluster_size=1)
    assert found.epsilon(1e-6) == math.inf
    assert found.delta(2000.0) == 1.0


def tail_of_half(n: int, least: int) -> Fraction:
    return Fraction(sum(math.comb(n, k) for k in range(max(0, least), n + 1)), 2**n)


@pytest.mark.parametrize(
    ("first", "count", "begin", "slope"),
    [(1, 40, 0.0, 0.5), (1, 40, 0.9, 0.99), (7, 60, 2.0, 0.55), (900, 80, 3.0, 0.52), (900, 80, 60.0, 0.5),
     (400, 300, 80.0, 0.5), (1500, 40, 40.0, 0.75), (2000, 3, 1.0, 0.6), (50, 1, 0.0, 0.5), (30, 12, 0.0, 1.0)],
)  # fmt: skip
def test_sums_of_fair_coins_are_right_one_after_the_other(
    first: int, count: int, begin: float, slope: float
) -> None:
    n = np.arange(first, first + count, dtype=np.float64)
    least = np.minimum(n, np.floor(begin + slope * n) + 1)
    equal, tail = half_sums(n, least)
    for one, at, found, above in zip(n, least, equal, tail, strict=True):
        coins, k = int(one), int(at)
        assert found == pytest.approx(math.comb(coins - 1, k - 1) / 2 ** (coins - 1), rel=1e-10)
        assert above == pytest.approx(float(tail_of_half(coins, k)), rel=1e-10)


def test_sums_of_fair_coins_far_out_and_of_many() -> None:
    """Where all is 0 to a float; and at a million coins, against one table of all."""
    n = np.arange(4000.0, 4100.0)
    equal, tail = half_sums(n, n)
    assert (equal < 1e-290).all()
    assert (tail < 1e-290).all()
    n = np.arange(1_000_000.0, 1_000_040.0)
    least = np.floor(0.501 * n) + 1
    equal, tail = half_sums(n, least)
    for i in (0, 17, 39):
        coins, k = int(n[i]), int(least[i])
        one, few = (binomial(count, 0.5, 0.5, 1e-60) for count in (coins, coins - 1))
        assert tail[i] == pytest.approx(math.fsum(one.mass[k - one.low :]), rel=1e-9)
        assert equal[i] == pytest.approx(few.mass[k - 1 - few.low], rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("size", "epsilon0", "labels"), [(400, 1.0, 3), (700, 2.0, 4)])
def test_what_cancels_in_the_blanket_leaves_less_than_is_added(
    size: int, epsilon0: float, labels: int
) -> None:
    """The sum of one crowd beside 50 digits, term by term; the bound is raised by 1e-9 of it."""
    law = Blanket(size, epsilon0, labels)
    window = binomial(size, 2 / labels, 1 - 2 / labels, 1e-30)
    with mp.workdps(50):
        extra = mp.expm1(mp.mpf(epsilon0))
        for epsilon in (1e-3, 0.1, 0.3):
            price, wanted = mp.expm1(mp.mpf(epsilon)), mp.mpf(0)
            for both, mass in enumerate(window.mass, window.low):
                chance, inner = mp.mpf(2) ** -both, mp.mpf(0)
                for ones in range(both, -1, -1):
                    gain = extra * (ones - (1 + price) * (both - ones)) / size - price
                    if gain <= 0:
                        break
                    inner += chance * gain
                    chance = chance * ones / (both - ones + 1)
                wanted += mp.mpf(float(mass)) * inner
            wanted *= labels / (labels - 1 + mp.exp(mp.mpf(epsilon0)))
            assert abs(law._given(size - 1, epsilon) / wanted - 1) < 1e-11


@pytest.mark.parametrize(
    ("size", "epsilon0", "labels"), [(5, 1.0, 3), (12, 0.5, 3), (8, 2.0, 4), (30, 3.0, 3)]
)
def test_the_blanket_is_its_definition(size: int, epsilon0: float, labels: int) -> None:
    """Every number of others who say a random label, and every histogram of two of the labels, in exact terms."""
    for epsilon in (0.0, 0.1, 0.7 * epsilon0):
        extra, scale = math.expm1(epsilon0), math.exp(epsilon)
        uniform = labels / (labels - 1 + math.exp(epsilon0))
        lie = 1 / (labels - 1 + math.exp(epsilon0))
        found = 0.0
        for others in range(size):
            total, share = others + 1, math.comb(size - 1, others) * uniform**others
            share *= (1 - uniform) ** (size - 1 - others)
            for both in range(total + 1):
                mass = math.comb(total, both) * (2 / labels) ** both * (1 - 2 / labels) ** (total - both)
                for ones in range(both + 1):
                    chance = share * mass * math.comb(both, ones) / 2**both
                    ratio = 1 + extra * ones / total - scale * (1 + extra * (both - ones) / total)
                    found += chance * labels * lie * max(0.0, ratio)
        assert Blanket(size, epsilon0, labels).delta(epsilon).upper == pytest.approx(
            found, rel=2e-9, abs=1e-19
        )


def test_several_labels_of_a_million_users_are_quick() -> None:
    """Two incomplete beta functions of each count took a minute and a half; processor time, with room."""
    law = shuffled_response(1_000_000, 1.0, 3).law
    start = time.process_time()
    assert law is not None
    assert law.epsilon_bracket(1e-6).upper == pytest.approx(0.00308, rel=2e-3)
    assert time.process_time() - start < 12
