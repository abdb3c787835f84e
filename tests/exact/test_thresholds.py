"""Probabilities become integer thresholds exactly: checked in Fractions and 80-digit decimals."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from p2p_sim.core import InputError, check_labels, check_range, exact
from tests.exact import oracle

WORD = 1 << 64
FLOATS = (0.0, 5e-324, 2.0**-64, 1e-19, 0.1, 1 / 3, 0.5, math.nextafter(0.5, 1), 0.9, 1 - 2.0**-53, 1.0)


@pytest.mark.parametrize("p", FLOATS)
def test_the_threshold_of_a_float_is_that_of_the_fraction_it_is(p):
    numerator, denominator = p.as_integer_ratio()
    assert exact.threshold("p", p) == numerator * WORD // denominator
    assert exact.threshold("p", np.float64(p)) == exact.threshold("p", Fraction(p)) == exact.threshold("p", p)


def test_thresholds_at_the_ends():
    assert exact.threshold("p", 1) == WORD
    assert exact.threshold("p", 1 - 2.0**-53) == WORD - 2**11
    assert exact.threshold("p", 2.0**-64) == 1
    assert exact.threshold("p", 5e-324) == exact.threshold("p", 0) == 0
    assert exact.threshold("p", Fraction(1, 3)) == 0x5555555555555555
    assert exact.threshold("p", Fraction(WORD - 1, WORD)) == WORD - 1
    assert exact.threshold("p", np.float32(0.1)) == math.floor(Fraction(float(np.float32(0.1))) * WORD)


def test_a_column_has_the_thresholds_of_its_entries():
    bounds, certain = exact.thresholds("p", np.array(FLOATS))
    assert certain.tolist() == [p == 1 for p in FLOATS]
    for p, bound in zip(FLOATS, bounds.tolist(), strict=True):
        assert p == 1 or bound == exact.threshold("p", p)


@pytest.mark.parametrize(
    "p", [-0.1, -5e-324, 1 + 2.0**-52, math.nan, math.inf, True, "0.5", None, Fraction(4, 3)]
)
def test_what_is_not_a_probability_is_refused_by_name(p):
    with pytest.raises(InputError, match=r"theta = .*probability"):
        exact.threshold("theta", p)


@pytest.mark.parametrize("p", [-0.1, 1.5, math.nan, math.inf])
def test_a_column_with_one_bad_entry_is_refused(p):
    with pytest.raises(InputError, match=r"alpha = .*probability"):
        exact.thresholds("alpha", np.array([0.5, p]))


WEIGHTS = (
    [1],
    [1, 1],
    [1, 2, 3],
    [0, 1, 0, 2],
    [0.1, 0.2, 0.7],
    [Fraction(1, 3)] * 3,
    [1e-300, 1],
    [3, 1, 0, 0],
)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_categorical_is_the_first_outcome_whose_cumulative_threshold_is_above_the_word(weights):
    table = exact.cumulative("draw 'd'", weights)
    edges = {0, 1, WORD - 1, WORD - 2, *(int(t) + d for t in table for d in (-1, 0, 1))}
    words = sorted(edge for edge in edges if 0 <= edge < WORD)
    picked = exact.pick(table, np.array(words, np.uint64))
    assert picked.dtype == np.int64
    assert picked.tolist() == [oracle.categorical(word, weights) for word in words]


def test_an_outcome_of_weight_0_is_never_drawn():
    words = np.array([0, WORD // 2, WORD - 1], np.uint64)
    assert exact.pick(exact.cumulative("d", [0, 1, 0]), words).tolist() == [1, 1, 1]


@pytest.mark.parametrize("weights", [[], [0, 0], [1, -1], [-0.5, 2], [math.nan, 1], [math.inf, 1]])
def test_weights_that_make_no_law_are_refused(weights):
    with pytest.raises(InputError, match="draw 'd'"):
        exact.cumulative("draw 'd'", weights)


def test_weights_that_equal_kept_ones_are_refused_if_they_are_no_numbers_and_the_draw_is_named():
    exact.cumulative("draw 'd'", (1,) * 300)
    with pytest.raises(InputError, match=r"^draw 'd': .*needed: finite numbers"):
        exact.cumulative("draw 'd'", (Decimal(1),) * 300)


def test_weights_may_be_a_float32_array():
    assert exact.cumulative("d", np.array([0.25, 0.75], np.float32)).tolist() == [WORD // 4]


@pytest.mark.parametrize("kind", [np.uint8, np.int16, np.int64])
def test_weights_and_scales_may_be_integers_of_numpy(kind):
    first = 100 + np.dtype(kind).itemsize  # weights of its own, which are not kept from another test
    found = exact.cumulative("d", np.array([first, 53, 203 - first], kind))
    assert found.tolist() == [WORD * first // 256, WORD * (first + 53) // 256]
    scale = exact.as_scale("scale", kind(7))
    assert exact.laplace_thresholds(scale)[0].tolist() == exact.laplace_thresholds(Fraction(7))[0].tolist()
    assert type(scale.numerator) is int


@pytest.mark.parametrize("x", [0.0, 1.0, -1.0, 0.1, 5e-324, -700.0, 50.5])
def test_exp_has_60_digits(x):
    with localcontext() as context:
        context.prec = 100
        true = Fraction(Decimal(x).exp())
    assert abs(exact.exp(x) - true) <= true / 10**59
    assert exact.exp(0.0) == 1


@pytest.mark.parametrize(
    "scale", [Fraction(text) for text in ("1/100", "1/45", "1/3", "1", "5/2", "10", "97.25")]
)
def test_laplace_thresholds_equal_an_independent_computation(scale):
    table, least = exact.laplace_thresholds(scale)
    size = -least
    expected = oracle.laplace_tails(scale, list(range(1, size + 2)))
    assert expected[-1] == 0, "the tail is cut where less than one word remains"
    assert all(expected[:-1])
    assert table.tolist() == expected[-2::-1] + [WORD - tail for tail in expected[:-1]]


def test_laplace_thresholds_of_the_largest_scale_by_samples():
    table, least = exact.laplace_thresholds(Fraction(exact.LAPLACE_LIMIT))
    places = [1, 2, 1000, 19_999, 300_000, -least - 1, -least]
    assert oracle.laplace_tails(Fraction(exact.LAPLACE_LIMIT), [*places, -least + 1]) == [
        int(table[-least - j]) for j in places
    ] + [0]
    assert bool((table[1:] >= table[:-1]).all())


def test_laplace_outcomes_at_the_thresholds():
    table, least = exact.laplace_thresholds(Fraction(1))
    middle = int(table[-least])  # P(k <= 0)
    words = np.array([0, int(table[0]) - 1, int(table[0]), middle - 1, middle, WORD - 1], np.uint64)
    assert (exact.pick(table, words) + least).tolist() == [least, least, least + 1, 0, 1, -least]


@pytest.mark.parametrize("scale", [0, -1, exact.LAPLACE_LIMIT + 1])
def test_laplace_scales_out_of_range_are_refused(scale):
    with pytest.raises(InputError, match=f"scale {scale}.*0 < scale <= 20000"):
        exact.laplace_thresholds(Fraction(scale))


def test_check_range_names_parameter_value_and_range():
    check_range("alpha", 0, 0, 0.5)
    check_range("alpha", Fraction(1, 2), 0, 0.5)
    check_range("epsilon", math.inf, 0, math.inf)
    for bad in (-0.1, 0.51, math.nan, True, "0.1", None):
        with pytest.raises(InputError, match=r"alpha = .*\[0, 0.5\]"):
            check_range("alpha", bad, 0, 0.5)
    with pytest.raises(InputError, match=r"theta = 0.*\(0, 1\]"):
        check_range("theta", 0, 0, 1, open_low=True)


def test_check_labels():
    check_labels("labels", 2)
    check_labels("labels", np.int64(256))
    for bad in (1, 257, 2.0, True, "3", None):
        with pytest.raises(InputError, match=r"labels = .*2 to 256"):
            check_labels("labels", bad)
