"""Message fields as rows of bytes and back: fixed width, little-endian, in the order of declaration; what is sealed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.core.message import FieldType, field_dtype, field_shape, fixed_point
from p2p_sim.crypto.octets import Octets, as_rows

Array = npt.NDArray[Any]
NO_SIZES: Mapping[str, int] = {}


def width(kinds: Mapping[str, FieldType], sizes: Mapping[str, int] = NO_SIZES) -> int:
    """Return the bytes of one row.

    ``kinds``: ``Message.fields``; ``sizes``: the lengths of vectors that name a parameter.
    """
    return sum(_width(kind, sizes) for kind in kinds.values())


def pack(
    columns: Mapping[str, Any], kinds: Mapping[str, FieldType], sizes: Mapping[str, int] = NO_SIZES
) -> Octets:
    """Pack columns, (n,) or (n, length) a field, into rows uint8 (n, width).

    Raises InputError for missing or further fields, a wrong shape, or values outside the field's type.
    """
    if columns.keys() != kinds.keys():
        raise InputError(f"fields {sorted(columns)} where {sorted(kinds)} are declared")
    arrays = {name: _fitting(name, columns[name], kind, sizes) for name, kind in kinds.items()}
    counts = {name: len(array) for name, array in arrays.items()}
    if len(set(counts.values())) > 1:
        raise InputError(f"fields of different lengths: {counts}")
    count = next(iter(counts.values()), 0)
    rows, at = np.empty((count, width(kinds, sizes)), np.uint8), 0
    for name, kind in kinds.items():
        size = _width(kind, sizes)
        little = np.ascontiguousarray(arrays[name], _little(kind))
        rows[:, at : at + size] = little.reshape(count, size // little.itemsize).view(np.uint8)
        at += size
    return rows


def unpack(
    rows: Octets, kinds: Mapping[str, FieldType], sizes: Mapping[str, int] = NO_SIZES
) -> dict[str, Array]:
    """Return the columns that ``pack`` packed; raises InputError for another width, or a bool that is not 0 or 1."""
    bad = ~valid(rows, kinds, sizes)
    if bad.any():
        raise InputError(
            f"{int(bad.sum())} of {len(bad)} rows hold a bool that is neither 0 nor 1, or a number out of its range"
        )
    columns, at = {}, 0
    for name, kind in kinds.items():
        size = _width(kind, sizes)
        part = np.ascontiguousarray(rows[:, at : at + size])
        shape = (len(rows), *field_shape(kind, dict(sizes)))
        columns[name] = part.view(_little(kind)).astype(field_dtype(kind)).reshape(shape)
        at += size
    return columns


def valid(
    rows: Octets, kinds: Mapping[str, FieldType], sizes: Mapping[str, int] = NO_SIZES
) -> npt.NDArray[np.bool_]:
    """Mark the rows (n,) that ``unpack`` can read.

    Whoever seals can seal anything, and a bool has two values, a fixed-point number has a range.
    """
    rows = as_rows("rows", rows)
    if rows.shape[1] != width(kinds, sizes):
        raise InputError(
            f"rows of {rows.shape[1]} bytes where the fields {list(kinds)} take {width(kinds, sizes)}"
        )
    good, at = np.ones(len(rows), np.bool_), 0
    for kind in kinds.values():
        size = _width(kind, sizes)
        if field_dtype(kind) == np.bool_:
            good &= (rows[:, at : at + size] <= 1).all(axis=1)
        elif (fixed := fixed_point(kind)) is not None:
            multiples = np.ascontiguousarray(rows[:, at : at + size]).view(_little(kind))
            good &= ((multiples >= fixed.least) & (multiples <= fixed.most)).all(axis=1)
        at += size
    return good


def _width(kind: FieldType, sizes: Mapping[str, int]) -> int:
    shape = field_shape(kind, dict(sizes))
    return field_dtype(kind).itemsize * (shape[0] if shape else 1)


def _little(kind: FieldType) -> np.dtype[Any]:
    return field_dtype(kind).newbyteorder("<")


def _fitting(name: str, column: Any, kind: FieldType, sizes: Mapping[str, int]) -> Array:
    array, dtype, shape = np.asarray(column), field_dtype(kind), field_shape(kind, dict(sizes))
    if array.ndim != 1 + len(shape) or array.shape[1:] != shape:
        raise InputError(
            f"field {name!r}: needs the shape (n, {', '.join(map(str, shape))}), not {array.shape}"
        )
    if array.dtype == dtype:
        return array
    low, high = (0, 1) if dtype == np.bool_ else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
    if array.dtype.kind not in "bui" or (
        array.size and not low <= int(array.min()) <= int(array.max()) <= high
    ):
        raise InputError(f"field {name!r}: needs {dtype} in {low} .. {high}, not {array.dtype}")
    return array.astype(dtype)
