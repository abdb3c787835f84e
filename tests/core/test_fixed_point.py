"""Floats in messages: declared ranges, rounding, exact sums, what is refused, and equal bits in any blocks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import p2p_sim
from p2p_sim import InputError
from p2p_sim.core import FixedPoint, Message, Party, Protocol, ProtocolError, Rounds, Vector
from p2p_sim.core.columns import Layout, PerMessage
from tests.tiny import everywhere, people

GRID = FixedPoint(resolution=2**-16, low=-8, high=8)
TENTHS = FixedPoint(resolution=0.1, low=-1, high=1)
X = np.random.default_rng(3).normal(size=(12, 3))


@dataclass(frozen=True)
class Scores(Protocol):
    """Features go to a peer and back, in tenths, and then with their sum to the learner, sealed."""

    dim: int = 3

    feature = Message("user", "user", "sends a feature", x=TENTHS)
    back = Message("user", "user", "returns it", x=TENTHS)
    report = Message("user", "learner", "reports", sealed_for="learner", total=GRID, row=Vector(GRID, "dim"))

    def user(self, me: Party) -> Rounds:
        received = yield self.feature(to=me.draw.member("peer", me.cluster), x=np.clip(me.x[:, 0], -1, 1))
        returned = yield self.back.reply(received, x=received.x)
        yield self.report(total=returned.x.sum() + received.x.sum(), row=me.x)

    def learner(self, me: Party) -> Rounds:
        reports = yield self.report.receive()
        return {"total": reports.total.sum(), "mean": reports.total.sum() / reports.count}


@pytest.mark.parametrize(
    ("how", "dtype"),
    [
        ((1, 0, 127), "int8"), ((1, 0, 128), "uint8"), ((1, -1, 127), "int8"), ((1, -1, 128), "int16"),
        ((1, 0, 40_000), "uint16"), ((2**-16, -8, 8), "int32"), ((1, 0, 2**32 - 1), "uint32"),
        ((2**-40, -1, 1), "int64"), ((0.1, -1, 1), "int8"), ((0.25, -1.5, 2), "int8"),
    ],
)  # fmt: skip
def test_the_narrowest_integer_that_holds_the_range_travels(how: Any, dtype: str) -> None:
    assert FixedPoint(*how).dtype == dtype
    kind = Message("user", "learner", "tells", x=FixedPoint(*how), v=Vector(FixedPoint(*how), 3))
    assert kind.nbytes({}) == 16 + 4 * np.dtype(dtype).itemsize


@pytest.mark.parametrize(
    ("how", "text"),
    [
        ((0, -1, 1), r"resolution = 0\.0: must be above 0"),
        ((-0.5, -1, 1), r"resolution = -0\.5: must be above 0"),
        ((math.nan, -1, 1), "resolution = nan: must be a finite number"),
        (("1", -1, 1), "resolution = '1': must be a finite number"),
        ((1, -math.inf, 1), "low = -inf: must be a finite number"),
        ((1, True, 2), "low = True: must be a finite number"),
        ((1, 1, 1), r"low = 1\.0, high = 1\.0: low must be below high"),
        ((0.5, -1, 1.2), r"high = 1\.2: must be a multiple of the resolution 0\.5; the nearest is 1\.0"),
        ((2**-50, -1, 2), r"high = 2\.0 is more than 2\^50 times the resolution .* coarser resolution or a narrower"),
        ((1e-300, -1e300, 1), r"low = -1e\+300 is more than 2\^50 times"),
    ],
)  # fmt: skip
def test_bad_ranges_are_refused(how: Any, text: str) -> None:
    with pytest.raises(InputError, match=text):
        FixedPoint(*how)


@st.composite
def fields(draw: Any) -> FixedPoint:
    resolution = draw(st.one_of(st.integers(-60, 20).map(lambda e: 2.0**e), st.floats(1e-9, 1e6)))
    ends = draw(st.lists(st.integers(-(2**49), 2**49), min_size=2, max_size=2, unique=True))
    return FixedPoint(resolution, *(end * resolution for end in sorted(ends)))


@settings(max_examples=300, deadline=None)
@given(fields(), st.data())
def test_every_multiple_comes_back_as_itself(field: FixedPoint, data: Any) -> None:
    multiples = np.array(data.draw(st.lists(st.integers(field.least, field.most), min_size=1, max_size=9)))
    sent = field.encoded(field.decoded(multiples), "here")
    assert sent.dtype == field.dtype
    assert sent.tolist() == multiples.tolist()


@settings(max_examples=300, deadline=None)
@given(st.integers(-40, 20), st.data())
def test_a_number_becomes_the_nearest_multiple_and_a_tie_the_even_one(exponent: int, data: Any) -> None:
    resolution = 2.0**exponent
    field = FixedPoint(resolution, -(2**40) * resolution, 2**40 * resolution)
    ties = st.integers(-(2**40), 2**40 - 1).map(lambda m: (m + 0.5) * resolution)
    value = data.draw(st.one_of(st.floats(field.low, field.high), ties))
    nearest = round(Fraction(value) / Fraction(resolution))  # of two the even one
    assert field.encoded(np.array([value]), "here").tolist() == [nearest]
    assert Fraction(field.decoded(np.array([nearest])).item()) == nearest * Fraction(resolution)


@settings(max_examples=200, deadline=None)
@given(fields(), st.data())
def test_other_resolutions_round_to_within_half_a_step(field: FixedPoint, data: Any) -> None:
    value = data.draw(st.floats(field.low, field.high))
    (read,) = field.decoded(field.encoded(np.array([value]), "here")).tolist()
    slack = 2.0**-52 * max(abs(value), abs(read))  # of a quotient and a product as floats
    assert abs(Fraction(read) - Fraction(value)) <= Fraction(field.resolution) / 2 + Fraction(slack)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (math.nan, r"holds nan; allowed are -8\.0 to 8\.0: send a number in its place"),
        (math.inf, "holds inf; allowed"),
        (-math.inf, "holds -inf; allowed"),
        (8 + 2**-16, r"holds 8\.0000152.*; allowed .* wider range, or send np\.clip\(values, -8\.0, 8\.0\)"),
        (1e308, r"holds 1e\+308; allowed"),
        (9, "holds 9; allowed"),
        (1j, "has type complex128; declared is FixedPoint"),
        (Fraction(1, 2), "has type object; declared is FixedPoint"),
        (np.longdouble(1), "has type .*; declared is FixedPoint"),
        ("1", "has type <U1; declared is FixedPoint"),
    ],
)
def test_a_number_outside_is_refused_with_what_is_allowed(value: Any, text: str) -> None:
    @dataclass(frozen=True)
    class Sends(Protocol):
        report = Message("user", "learner", "reports", score=GRID)

        def user(self, me: Party) -> Rounds:
            column = np.full(me.size, value)
            column[me.id % 5 != 2] = 0
            yield self.report(score=column)

        def learner(self, me: Party) -> Rounds:
            yield self.report.receive()

    with pytest.raises(ProtocolError, match=rf"role 'user', step 0, message 'report', field 'score' {text}"):
        p2p_sim.run(Sends(), people(), seed=1)


def test_integers_bool_and_narrow_floats_are_numbers_too() -> None:
    for column in (
        np.array([True, False]),
        np.array([1, 0], np.uint8),
        np.array([1, 0], np.float16),
        [1.0, 0],
    ):
        assert GRID.encoded(np.asarray(column), "here").tolist() == [2**16, 0]


@pytest.mark.parametrize("given_type", [float, np.float32, FixedPoint, Vector(np.float64, 2)])
def test_the_error_for_undeclared_floats_shows_how_to_declare_them(given_type: Any) -> None:
    with pytest.raises(
        ProtocolError, match=r"floats as fixed point, FixedPoint\(resolution=2\*\*-16, low=-8"
    ):
        Message("user", "learner", "tells", x=given_type)


def test_equal_bits_in_any_number_of_blocks_and_under_real_seals() -> None:
    finished = everywhere(Scores(), people(x=X))
    rounded = np.rint(np.clip(X[:, 0], -1, 1) / 0.1)
    assert finished.outputs["learner"]["total"].item() == pytest.approx(
        2 * rounded.sum() * 0.1, abs=12 * 2**-16
    )
    plain = p2p_sim.run(Scores(), people(x=X), seed=5)
    sealed = p2p_sim.run(Scores(), people(x=X), seed=5, crypto="real")
    assert plain.digest == sealed.digest == finished.totals.digest


def test_sums_are_those_of_the_integers_whatever_the_order() -> None:
    field = FixedPoint(2.0**-40, -64, 64)
    rng = np.random.default_rng(1)
    multiples = rng.integers(field.least, field.most + 1, 5000)
    columns = [
        PerMessage(rng.permutation(multiples), Layout(np.array([0, 5000])), None, None, field) for _ in (1, 2)
    ]
    exact = float(Fraction(int(multiples.sum())) * Fraction(2) ** -40)
    assert [column.sum().tolist() for column in columns] == [[exact], [exact]]
    assert columns[0].first(0.0).tolist() == columns[0].data[:1].tolist()
    positive = columns[0].where(columns[0] > 0)
    assert positive.sum().item() == float(Fraction(int(multiples[multiples > 0].sum())) * Fraction(2) ** -40)


def test_a_sum_that_may_overflow_is_refused_whatever_the_values() -> None:
    field = FixedPoint(2.0**-40, -1024, 1024)
    few = PerMessage(np.zeros(2**13 - 1, np.int64), Layout(np.array([0, 2**13 - 1])), None, None, field)
    many = PerMessage(np.zeros(2**13, np.int64), Layout(np.array([0, 2**13])), None, None, field)
    assert few.sum().tolist() == [0.0]
    with pytest.raises(ProtocolError, match=r"sum of 8,192 numbers, each up to 2\^50 .* coarser resolution"):
        many.sum()


def test_columns_of_an_inbox_are_read_only_and_floats_are_no_places() -> None:
    column = PerMessage(np.array([1, 2], np.int32), Layout(None, 2), None, None, GRID)
    with pytest.raises(ValueError, match="read-only"):
        column.data[0] = 1
    with pytest.raises(ProtocolError, match="places are integers, of type float64"):
        column.look_up(np.arange(3))
    assert (column * 2 + 1).data.tolist() == [1 + 2 * 2**-16, 1 + 4 * 2**-16]


def relayed(second: Any) -> Any:
    @dataclass(frozen=True)
    class Relayed(Protocol):
        first = Message("user", "relay", "sends", sealed_for="learner", score=GRID)
        second_ = Message("relay", "learner", "forwards", sealed_for="learner", score=second)

        def user(self, me: Party) -> Rounds:
            yield self.first(score=me.y * 0.5)

        def relay(self, me: Party) -> Rounds:
            got = yield self.first.receive()
            with pytest.raises(ProtocolError, match="sealed for 'learner'"):
                got.score.sum()
            yield self.second_(score=got.score)

        def learner(self, me: Party) -> Rounds:
            return (yield self.second_.receive()).columns()

    return Relayed()


@pytest.mark.parametrize("crypto", ["modelled", "real"])
def test_sealed_numbers_are_forwarded_unchanged(crypto: str) -> None:
    run = p2p_sim.run(relayed(GRID), people(), seed=1, crypto=crypto)
    assert sorted(run.output("learner")["score"].tolist()) == sorted(0.5 * people().y)


@pytest.mark.parametrize("other", [FixedPoint(2**-16, -9, 9), FixedPoint(2**-15, -8, 8), np.int32])
def test_sealed_numbers_keep_their_declaration(other: Any) -> None:
    with pytest.raises(ProtocolError, match="all fields in their order and of their types"):
        p2p_sim.run(relayed(other), people(), seed=1)


def test_two_fields_of_the_same_numbers_are_equal_and_hashable() -> None:
    assert FixedPoint(2**-16, -8, 8.0) == GRID
    assert len({GRID, FixedPoint(2**-16, -8, 8), TENTHS}) == 2
    assert repr(GRID) == "FixedPoint(resolution=1.52587890625e-05, low=-8.0, high=8.0)"


@pytest.mark.parametrize("kind", [GRID, np.int64])
def test_masked_entries_are_refused_in_every_field(kind: Any) -> None:
    @dataclass(frozen=True)
    class Masked(Protocol):
        report = Message("user", "learner", "reports", score=kind)

        def user(self, me: Party) -> Rounds:
            yield self.report(score=np.ma.array(np.ones(me.size, np.int64), mask=me.id == 2))

        def learner(self, me: Party) -> Rounds:
            yield self.report.receive()

    with pytest.raises(ProtocolError, match=r"field 'score' has masked entries.*value\.filled"):
        p2p_sim.run(Masked(), people(), seed=0)
