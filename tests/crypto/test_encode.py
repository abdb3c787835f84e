"""Fields to bytes and back, for every type of field, and what does not fit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2p_sim import InputError
from p2p_sim.core.fixed_point import FixedPoint
from p2p_sim.core.message import HEADER_BYTES, Bytes, Message, Vector
from p2p_sim.crypto.encode import pack, unpack, valid, width

FIELDS = Message(
    "user",
    "learner",
    "all types",
    flag=bool,
    small=np.int8,
    big=int,
    row=Vector(np.uint32, "dim"),
    key=Bytes(32),
)
KINDS, SIZES = FIELDS.fields, {"dim": 3}


def columns(count: int = 4) -> dict[str, np.ndarray]:
    return {
        "flag": np.arange(count) % 2 == 1,
        "small": (-np.arange(count)).astype(np.int8),
        "big": np.arange(count) - (1 << 40),
        "row": np.arange(3 * count, dtype=np.uint32).reshape(count, 3),
        "key": np.arange(32 * count).astype(np.uint8).reshape(count, 32),
    }


def test_the_width_is_what_a_message_counts():
    assert width(KINDS, SIZES) == FIELDS.nbytes(SIZES) - HEADER_BYTES == 1 + 1 + 8 + 12 + 32


def test_bytes_are_little_endian_in_the_order_of_declaration():
    row = pack(columns(2), KINDS, SIZES)[1]
    assert row[:2].tolist() == [1, 255]
    assert int.from_bytes(row[2:10].tobytes(), "little", signed=True) == 1 - (1 << 40)
    assert row[10:22].tolist() == [3, 0, 0, 0, 4, 0, 0, 0, 5, 0, 0, 0]


@pytest.mark.parametrize("count", [0, 1, 5])
def test_what_is_packed_unpacks(count):
    given_columns = columns(count)
    back = unpack(pack(given_columns, KINDS, SIZES), KINDS, SIZES)
    for name, column in given_columns.items():
        assert back[name].dtype == column.dtype
        assert (back[name] == column).all()
        assert back[name].shape == column.shape


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from([np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]),
    st.data(),
)
def test_every_integer_comes_back(dtype, data):
    limits = np.iinfo(dtype)
    values = data.draw(st.lists(st.integers(int(limits.min), int(limits.max)), min_size=1, max_size=9))
    kinds = {"x": np.dtype(dtype)}
    assert unpack(pack({"x": np.array(values, dtype)}, kinds), kinds)["x"].tolist() == values


def test_other_types_fit_if_their_values_do():
    kinds = {"x": np.dtype(np.uint8), "b": np.dtype(bool)}
    assert pack({"x": np.array([255]), "b": np.array([1])}, kinds).tolist() == [[255, 1]]
    for x, b in [(256, 0), (-1, 0), (0, 2), (0.5, 0)]:
        with pytest.raises(InputError, match=r"field '[xb]': needs"):
            pack({"x": np.array([x]), "b": np.array([b])}, kinds)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"row": np.zeros((4, 2), np.uint32)}, r"field 'row': needs the shape \(n, 3\)"),
        ({"big": np.zeros(3, np.int64)}, "fields of different lengths"),
        ({"more": np.zeros(4)}, "are declared"),
    ],
)
def test_wrong_columns_are_named(change, text):
    with pytest.raises(InputError, match=text):
        pack({**columns(), **change}, KINDS, SIZES)


def test_rows_that_nobody_packed():
    rows = pack(columns(), KINDS, SIZES)
    rows[2, 0] = 7
    assert valid(rows, KINDS, SIZES).tolist() == [True, True, False, True]
    with pytest.raises(InputError, match="1 of 4 rows hold a bool"):
        unpack(rows, KINDS, SIZES)
    steps = Message(
        "user", "learner", "tells", x=FixedPoint(0.5, -1, 100), v=Vector(FixedPoint(0.5, -1, 100), 2)
    ).fields
    packed = pack({"x": np.array([-2, 200, 0, 0]), "v": np.zeros((4, 2), np.int16)}, steps)
    packed[2:, 2] = np.array([201, 0xFD], np.uint8)  # 100.5; and -1.5 in place of 126.5
    packed[3, 3] = 0xFF
    assert valid(packed, steps).tolist() == [True, True, False, False]
    assert unpack(packed[:2], steps)["x"].tolist() == [-2, 200]
    with pytest.raises(InputError, match="rows of 53 bytes"):
        unpack(rows[:, 1:], KINDS, SIZES)
