"""Numbers of pages: powers of ten, units, and what is no number."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from p2p_sim.report import figure_text

UNITS = {"s": Fraction(1), "ms": Fraction(1, 10**3), "µs": Fraction(1, 10**6), "ns": Fraction(1, 10**9)}
RAISED = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-", strict=True))


def value_of(text):
    """Read a number as a person would."""
    if text == "∞":
        return math.inf
    head, _, power = text.rpartition("10") if any(c in RAISED for c in text) else (text, "", "")
    exponent = int("".join(RAISED[c] for c in power) or 0)
    return float(head.removesuffix(" × ") or 1) * 10.0**exponent


@pytest.mark.parametrize(
    "value", [0.0, 1e-6, 4.8359e-7, 1.111e-13, 0.70254, 2.0, 123456.0, 3.2e300, math.inf]
)
def test_a_number_in_four_digits(value):
    text = figure_text.number(value)
    assert value_of(text) == pytest.approx(value, rel=5e-4)
    assert "e" not in text
    assert len(text.partition(" ")[0].replace(".", "").lstrip("0")) <= 4 or value > 1e4


def test_ends_that_differ_are_both_told():
    exact = {"basis": "exact"}
    assert figure_text.epsilon({"lower": 0.1, "epsilon": 0.2, "upper": math.inf} | exact) == "0.1 to ∞"
    assert figure_text.epsilon({"lower": 1e-7, "epsilon": 1e-7, "upper": 1e-7} | exact) == "10⁻⁷"


def test_only_numbers_are_set():
    assert (
        figure_text.typeset("code 99d367e31905, infer, file 1e, 2.5e-03")
        == "code 99d367e31905, infer, file 1e, 2.5 × 10⁻³"
    )


@pytest.mark.parametrize(
    "value", [1e-9, 4.2e-7, 6.208e-4, 0.0099996, 0.32, 0.9996, 10.6, 99.94, 99.96, 12345.6]
)
def test_seconds_have_the_unit_that_suits(value):
    number, unit = figure_text.seconds(value).split()
    shown = float(number.replace(",", ""))
    assert float(shown * UNITS[unit]) == pytest.approx(value, rel=5e-3)
    assert 1 <= shown < 1000 or unit == "s"


def test_no_seconds_and_sizes():
    assert (figure_text.seconds(0.0), figure_text.seconds(math.inf)) == ("0 s", "inf s")
    assert [figure_text.size(n) for n in (0, 49.7, 1430, 71_636, 33_927_721)] == [
        "0 B",
        "50 B",
        "1.43 kB",
        "71.6 kB",
        "33.9 MB",
    ]


def test_cells():
    assert [figure_text.cell(v) for v in (None, True, 1234567, 1e-6, figure_text.Number("5 B"))] == [
        "",
        "yes",
        "1,234,567",
        "10⁻⁶",
        "5 B",
    ]
