"""One reader of numbers in texts, and the places that use it."""

from __future__ import annotations

import math

import pytest

from p2p_sim.cli.options import number, whole
from p2p_sim.cli.parameters import Parameter
from p2p_sim.core.errors import InputError
from p2p_sim.core.faults import Faults
from p2p_sim.core.number_texts import read_digits, read_number, read_whole
from p2p_sim.core.trace_level import TraceLevel
from p2p_sim.network import channels, topologies

NO_NUMBERS = (
    "1_000", "5 ", " 5", "5\n", "\u0665", "\uff15", "0.\u0661", "1e\u0665", "True", "nan", "inf", "-inf", "Infinity",
    "", ".", "e5", "1e", "0x10", "1,5", "--1", "9" * 500,
)  # fmt: skip
TOO_SMALL = ("1e-400", "-1e-400", "0.0001e-330", "1e-99999999999")
TOO_LARGE = ("1e400", "-1e400", "9" * 399, "1e99999999999")


@pytest.mark.parametrize(
    ("text", "value"),
    [("5", 5.0), ("-0.5", -0.5), (".5", 0.5), ("5.", 5.0), ("1e-6", 1e-6), ("1E3", 1000.0), ("0e-999", 0.0)],
)  # fmt: skip
def test_numbers(text, value):
    assert read_number(text) == value


@pytest.mark.parametrize("text", NO_NUMBERS + TOO_SMALL + TOO_LARGE)
def test_no_numbers(text):
    why = "for 0" if text in TOO_SMALL else "for infinity" if text in TOO_LARGE else "must be a number"
    with pytest.raises(ValueError, match=why):
        read_number(text)


def test_infinity_is_a_word_where_it_is_allowed():
    assert read_number("inf", infinite=True) == math.inf
    with pytest.raises(ValueError, match="for infinity"):
        read_number("1e400", infinite=True)


@pytest.mark.parametrize(
    ("text", "value"), [("1e7", 10**7), ("18446744073709551615", 2**64 - 1), ("9007199254740993", 2**53 + 1)]
)  # fmt: skip
def test_whole_numbers_are_exact(text, value):
    assert read_whole(text) == value


@pytest.mark.parametrize("text", [*NO_NUMBERS, *TOO_SMALL, *TOO_LARGE, "1.5", "1e26", "18446744073709551616"])
def test_no_whole_numbers(text):
    with pytest.raises(ValueError, match="must be a whole number"):
        read_whole(text)


@pytest.mark.parametrize("text", ["", "+5", "-5", "5 ", "1_0", "\u0665", "\u00b2", "1e3", "1" * 19])
def test_no_digits(text):
    assert read_digits(text) is None


PLACES = {
    "an option": number,
    "an option of a whole number": whole,
    "a parameter": Parameter("alpha", float, 0.1, "").read,
    "a parameter that is a whole number": Parameter("steps", int, 1, "").read,
    "a fault": lambda text: Faults.parse([f"drop={text}"]),
    "the share of a lie": lambda text: Faults.parse([f"lie=flip:{text}"]),
    "the step of a stop": lambda text: Faults.parse([f"stop=learner:{text}"]),
    "a graph": lambda text: topologies.parse(f"small-world:2,{text}"),
    "a degree": lambda text: topologies.parse(f"regular:{text}"),
    "a channel": lambda text: channels.parse(f"{text}ms,1Mbit"),
    "a trace": lambda text: TraceLevel.parse(f"sample={text}"),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("text", NO_NUMBERS + TOO_SMALL + TOO_LARGE)
def test_every_place_refuses_them(place, text):
    if (place, text) in {("a parameter", "inf")}:  # epsilon = inf: everybody tells the truth
        assert PLACES[place](text) == math.inf
        return
    with pytest.raises((InputError, ValueError), match=r"must|give|allowed"):
        PLACES[place](text)


def test_true_is_no_number():
    for read in (number, whole):
        with pytest.raises(ValueError, match="'True' must be"):
            read(True)


def test_dots_without_digits_are_read_alike():
    assert channels.parse(".5ms,5.Mbit") == channels.parse("0.5ms,5Mbit")
    assert topologies.parse("small-world:2,.5") == topologies.parse("small-world:2,0.5")


@pytest.mark.parametrize("text", ["1e26", "9" * 27, "1_000"])
def test_an_audit_of_so_many_worlds_does_not_start(cli, text):
    done = cli("audit", "peer-to-peer", "--view", "learner", "--cluster-size", "20", "--trials", text)
    assert done.status == 2
    assert "--trials" in done.err


def test_a_power_of_nothing_is_not_computed():
    """Ten to a thousand million would be, for hours."""
    assert read_whole("0e999999999") == 0
