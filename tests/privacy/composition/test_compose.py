"""Compositions against Decimal and Fraction recomputations, enumerated products and reference values; refusals."""

from __future__ import annotations

import itertools
import math
import time
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from p2p_sim import InputError
from p2p_sim.privacy.composition.compose import LocalBudget, compose, composed
from p2p_sim.privacy.law import Law
from p2p_sim.privacy.laws.finite import Atoms, Nothing
from p2p_sim.privacy.laws.mixtures import Mixture, Scaled
from p2p_sim.privacy.laws.noise import Gaussian, Laplace
from p2p_sim.privacy.laws.randomized_response import LocalResponse
from p2p_sim.privacy.laws.shuffled_bits import ShuffledBits
from p2p_sim.privacy.profile import PrivacyProfile, RefusedError
from tests.privacy.composition.composing import ENDLESS, FOUR, of, rr


def product_delta(parts: list[tuple[list[Fraction], list[Fraction]]], odds: Fraction) -> Fraction:
    """The hockey-stick divergence of a product at e^epsilon = odds, outcome by outcome; the larger direction."""
    forward = backward = Fraction(0)
    for outcome in itertools.product(*(zip(p, q, strict=True) for p, q in parts)):
        p, q = math.prod(a for a, _ in outcome), math.prod(b for _, b in outcome)
        forward += max(Fraction(0), q - odds * p)
        backward += max(Fraction(0), p - odds * q)
    return max(forward, backward)


def rr_delta(epsilon0: Fraction, times: int, labels: int, epsilon: Decimal) -> Decimal:
    """40 digits: composed randomized response, truths and lies counted."""
    with localcontext() as context:
        context.prec = 60
        e0 = Decimal(epsilon0.numerator) / epsilon0.denominator
        keep = e0.exp() / (e0.exp() + labels - 1)
        lie = 1 / (e0.exp() + labels - 1)
        total = Decimal(0)
        for a in range(times + 1):
            for b in range(times + 1 - a):
                rest = times - a - b
                if labels == 2 and rest:
                    continue
                ways = Decimal(math.comb(times, a) * math.comb(times - a, b)) * Decimal((labels - 2) ** rest)
                gap = 1 - (epsilon - (a - b) * e0).exp()
                if gap > 0:
                    total += ways * keep**a * lie ** (b + rest) * gap
        return total


# --- reference values and recomputation ---


@pytest.mark.parametrize(
    ("labels", "times", "value"), [(2, 10, 9.9999770658), (2, 50, 47.6494010573), (10, 50, 24.9610279494)]
)
def test_reference_values(labels: int, times: int, value: float) -> None:
    found = composed(rr(1.0, labels), times)
    low, middle, high = found.epsilon_bracket(1e-6)
    assert found.basis == "exact"
    assert round(middle, 10) == value
    assert low <= middle <= high <= middle * (1 + 1e-11)
    assert middle <= low * (1 + 1e-11)
    z = math.exp(1) + labels - 1  # the same from probabilities
    p, q = [math.exp(1) / z, *[1 / z] * (labels - 1)], [1 / z, math.exp(1) / z, *[1 / z] * (labels - 2)]
    assert composed(of(Atoms.of(p, q)), times).epsilon(1e-6) == pytest.approx(middle, rel=1e-12)


@pytest.mark.parametrize(("labels", "times"), [(2, 1), (2, 7), (2, 60), (3, 5), (10, 12)])
@pytest.mark.parametrize("epsilon0", [Fraction(1, 8), Fraction(1), Fraction(5)])
def test_forty_digits(labels: int, times: int, epsilon0: Fraction) -> None:
    found = composed(rr(float(epsilon0), labels), times)
    for share in (0.0, 0.3, 0.72, 0.97):
        epsilon = share * times * float(epsilon0)
        low, middle, high = found.delta_bracket(epsilon)
        true = rr_delta(epsilon0, times, labels, Decimal(epsilon))
        assert Decimal(low) <= true <= Decimal(high)
        assert middle == pytest.approx(float(true), rel=1e-11)
        assert high - low <= 1e-10 * high


PARTS = [
    ([Fraction(1, 2), Fraction(3, 10), Fraction(1, 5)], [Fraction(2, 5), Fraction(1, 5), Fraction(2, 5)]),
    ([Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)]),
    ([Fraction(9, 10), Fraction(1, 10), Fraction(0)], [Fraction(8, 10), Fraction(1, 10), Fraction(1, 10)]),
    ([Fraction(1, 3)] * 3, [Fraction(1, 3)] * 3),
]


@pytest.mark.parametrize(
    "counts", [(3, 0, 0, 0), (0, 4, 0, 2), (2, 2, 0, 1), (1, 1, 2, 0), (0, 0, 3, 1), (2, 1, 1, 1)]
)
def test_products_enumerated(counts: tuple[int, ...]) -> None:
    """Mixed and repeated, with infinite losses: the bracket holds the exact fraction."""
    found = compose([(of(Atoms.of(p, q)), n) for (p, q), n in zip(PARTS, counts, strict=True)])
    assert found.basis == "exact"
    listed = [part for part, n in zip(PARTS, counts, strict=True) for _ in range(n)]
    for odds in (Fraction(1), Fraction(9, 8), Fraction(3), Fraction(20)):
        true = product_delta(listed, odds)
        epsilon = math.log(odds)
        low = found.delta_bracket(epsilon * (1 + 1e-15)).lower  # the float epsilon may lie on either side
        assert low <= float(true) * (1 + 1e-15)
        assert float(true) <= found.delta_bracket(epsilon * (1 - 1e-15)).upper
        assert found.delta(epsilon) == pytest.approx(float(true), rel=1e-12, abs=1e-16)


def test_each_direction_is_summed_first() -> None:
    p, q = [Fraction(1, 2), Fraction(1, 2)], [Fraction(9, 10), Fraction(1, 10)]
    back_and_forth = compose([of(Atoms.of(p, q)), of(Atoms.of(q, p))])
    assert back_and_forth.delta(0.0) == pytest.approx(
        float(product_delta([(p, q), (q, p)], Fraction(1))), rel=1e-13
    )
    assert back_and_forth.delta(0.0) < composed(of(Atoms.of(p, q)), 2).delta(0.0)


def test_a_visible_case_is_flattened() -> None:
    """A peer sees the label's noisy bit one time in n: three outcomes, exact; so is a mixture of two."""
    a, n = Fraction(1, 4), Fraction(1, 5)
    p, q = [n * (1 - a), n * a, 1 - n], [n * a, n * (1 - a), 1 - n]
    law = LocalResponse.flipping(0.25)
    for seen in (
        Scaled(0.2, law),
        Mixture(((0.15, law), (0.05, Atoms.of([1 - a, a], [a, 1 - a])), (0.3, Nothing()))),
    ):
        found = composed(of(seen), 3)
        assert found.basis == "exact"
        for odds in (Fraction(1), Fraction(2), Fraction(8)):
            true = float(product_delta([(p, q)] * 3, odds))
            assert found.delta(math.log(odds)) == pytest.approx(true, rel=1e-12)


# --- edges ---


def test_no_run_and_one() -> None:
    none = composed(rr(1.0), 0)
    assert none.basis == "exact"
    assert none.delta(0) == 0
    assert none.epsilon(1e-6) == 0
    assert none.epsilon(0) == 0
    assert composed(of(ShuffledBits(0.25, 50)), 1).epsilon(1e-6) == of(ShuffledBits(0.25, 50)).epsilon(1e-6)
    one = composed(rr(1.3), 1)
    assert one.epsilon(1e-6) == rr(1.3).epsilon(1e-6)
    assert one.basis == "exact"
    assert compose([(rr(1.0), 0), (rr(2.0), 1)]).epsilon(1e-6) == rr(2.0).epsilon(1e-6)


def test_a_million_runs_are_quick() -> None:
    start = time.perf_counter()
    found = composed(rr(0.01), 10**6)
    low, middle, high = found.epsilon_bracket(1e-6)
    assert time.perf_counter() - start < 2
    assert found.basis == "exact"
    assert high - low < 1e-7 * middle
    normal = Gaussian(1 / (0.01 * 1000)).epsilon(1e-6)  # losses +-0.01 a million times: nearly Gaussian
    assert middle == pytest.approx(normal, rel=2e-3)
    most = composed(rr(1e-3), 10**9).epsilon_bracket(1e-6)
    assert most.upper - most.lower < 1e-5 * most.value


@pytest.mark.parametrize("epsilon0", [40.0, 800.0])
def test_a_huge_budget(epsilon0: float) -> None:
    found = composed(rr(epsilon0), 10)
    assert found.epsilon(0) == pytest.approx(10 * epsilon0)
    for delta in (1e-300, 1e-6, 0.5):
        low, middle, high = found.epsilon_bracket(delta)
        with localcontext() as context:
            context.prec = 60  # at this budget only the last step of the losses counts
            true = float(Decimal(10 * epsilon0) + (1 - Decimal(delta)).ln())
        assert middle == pytest.approx(true, rel=1e-12)
        assert low <= middle <= high <= 10 * epsilon0
    assert composed(rr(0.0), 10).epsilon(0) == 0
    assert composed(rr(0.0), 10).delta(0) == 0


def test_infinite_losses() -> None:
    alone = composed(rr(math.inf), 5)
    assert alone.epsilon(1e-6) == math.inf
    assert alone.epsilon(1) == 0
    assert alone.delta(3.0) == 1
    rare = composed(of(Scaled(1e-9, LocalResponse(math.inf))), 100)
    assert rare.delta(5.0) == pytest.approx(1e-7, rel=1e-6)
    assert rare.epsilon(1e-6) == 0
    assert rare.epsilon(1e-8) == math.inf
    mixed = compose([(of(ENDLESS), 4), (rr(1.0), 3)])
    caught = 1 - 0.9**4
    assert mixed.delta(50.0) == pytest.approx(caught, rel=1e-12)
    assert mixed.epsilon(caught / 2) == math.inf
    assert math.isfinite(mixed.epsilon(caught * 1.01))
    big = composed(of(ENDLESS), 500)
    assert big.delta(1.0) == pytest.approx(1.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "law",
    [
        LocalResponse(1.0),
        LocalResponse(0.5, 10),
        FOUR,
        ENDLESS,
        Scaled(0.1, LocalResponse(3.0)),
        Laplace(3.0),
    ],
)
def test_monotone_and_in_range(law: Law) -> None:
    before: list[float] = []
    for times in (1, 2, 5, 11, 150):
        found = composed(of(law), times)
        at = np.linspace(0, 8, 13)
        deltas = [found.delta(float(e)) for e in at]
        assert all(0 <= d <= 1 for d in deltas)
        assert deltas == sorted(deltas, reverse=True)
        assert not before or all(b <= d * (1 + 1e-9) for b, d in zip(before, deltas, strict=True))
        before = deltas
        wanted = (0.0, 1e-300, 1.11e-18, 1.13e-18, 1e-9, 1e-6, 1e-2, 0.5, 0.999, 1.0)
        epsilons = [found.epsilon(d) for d in wanted]
        assert all(a >= b for a, b in itertools.pairwise(epsilons))
        assert epsilons[-1] == 0
        assert min(epsilons) >= 0
        assert epsilons[0] <= times * law.pure() * (1 + 1e-12) if math.isfinite(law.pure()) else True
        for delta in wanted[1:-1]:
            low, middle, high = found.epsilon_bracket(delta)
            assert low <= middle <= high


def test_the_root_is_the_root() -> None:
    for law, times in (
        (LocalResponse(1.0), 20),
        (LocalResponse(1.0), 5000),
        (FOUR, 30),
        (FOUR, 500),
        (Laplace(3.0), 20),
    ):
        found = composed(of(law), times)
        for delta in (1e-12, 1e-6, 1e-2):
            assert found.delta(found.epsilon(delta)) == pytest.approx(delta, rel=1e-8)


# --- names, bases, refusals ---


def test_views_bases_and_sources() -> None:
    with pytest.raises(InputError, match=r"differ.*view='learner\+user'"):
        compose([of(FOUR), of(FOUR, "user")])
    joint = compose([of(FOUR), of(FOUR, "user")], view="learner+user")
    assert joint.view == "learner+user"
    assert joint.epsilon(1e-6) == composed(of(FOUR), 2).epsilon(1e-6)
    assert compose([of(FOUR), of(FOUR, basis="upper")]).basis == "upper"
    assert compose([of(FOUR, basis="upper"), of(FOUR, basis="claimed")]).basis == "claimed"
    assert "3 x a test" in composed(of(FOUR), 3).source
    assert any("own randomness" in text for text in joint.assumes)


@pytest.mark.parametrize("basis", ["lower", "measured"])
def test_what_is_no_guarantee_is_refused(basis: str) -> None:
    with pytest.raises(InputError, match=f"basis '{basis}'"):
        composed(of(FOUR, basis=basis), 2)


def test_a_refused_part_refuses_the_whole() -> None:
    gone = compose([of(FOUR), PrivacyProfile.refused("learner", "graph unknown")])
    assert gone.basis == "refused"
    with pytest.raises(RefusedError, match="graph unknown"):
        gone.epsilon(1e-6)


@pytest.mark.parametrize("times", [-1, 1.5, True, None, "3", math.nan, 10**9 + 1])
def test_bad_times(times: Any) -> None:
    with pytest.raises(InputError, match=r"times = .* whole number from 0"):
        composed(of(FOUR), times)


@pytest.mark.parametrize("parts", [[], FOUR, of(FOUR), [FOUR], [(of(FOUR), 1, 2)], None])
def test_bad_parts(parts: Any) -> None:
    with pytest.raises(InputError, match="part"):
        compose(parts)
    with pytest.raises(InputError, match="method = 'guess'"):
        compose([of(FOUR)], method="guess")  # type: ignore[arg-type]


def test_a_local_budget_is_no_guarantee() -> None:
    assert LocalBudget(1.0) + LocalBudget(0.5) == LocalBudget(1.5)
    for act in (
        lambda: LocalBudget(1.0) + of(FOUR),
        lambda: of(FOUR) + LocalBudget(1.0),  # type: ignore[operator]
        lambda: compose([of(FOUR), LocalBudget(1.0)]),  # type: ignore[list-item]
        lambda: compose([of(FOUR), (LocalBudget(1.0), 3)]),  # type: ignore[list-item]
    ):
        with pytest.raises(TypeError, match=r"LocalBudget\(epsilon=1.0\).*view 'learner'"):
            act()
    with pytest.raises(TypeError, match="don't add up"):
        LocalBudget(1.0) + 2.0
    for bad in (-1, math.nan, "1", True):
        with pytest.raises(InputError, match="local epsilon"):
            LocalBudget(bad)  # type: ignore[arg-type]
