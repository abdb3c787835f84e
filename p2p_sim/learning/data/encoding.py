"""Columns to features in float32: numbers as they are, or scaled where float32 would lose them; categories one-hot."""

from __future__ import annotations

import hashlib
from collections.abc import Collection

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.learning.data.tables import Array, Category, Column, Table, listing

ONE_HOT_LIMIT = 64
HASH_COLUMNS = 64
CELL_LIMIT = 1 << 31  # 8 GiB of float32
LOSS = 1e-4
"""Mean rounding error of float32, as a share of a column's mean deviation, above which the column is scaled."""

Floats = npt.NDArray[np.float32]


def features(table: Table, without: Collection[str], where: str) -> tuple[Floats, tuple[str, ...]]:
    """Encode every column but those named in ``without``: x (n, d) float32, and d names.

    Numbers keep their values; where float32 would round away what differs in a column, it is centred and divided by
    its largest deviation first, in float64.  A category of at most 64 values becomes one 0/1 column a value,
    ``column=value``; one of more values becomes 64 columns ``column#00`` to ``column#63``, with a 1 where the SHA-256
    of the value says (its first 8 bytes, little-endian, modulo 64).  InputError: no feature left, a number float32
    cannot hold, or over 2^31 cells.
    """
    matrix, names = _block(table, without)
    columns = {k: v for k, v in table.columns.items() if k not in without and k not in table.never_features}
    width = len(names) + sum(columns_of(column) for column in columns.values())
    if not width:
        raise InputError(
            f"{where} has no feature column beside {listing(sorted(without))}, and a model is trained on features; add "
            "at least one"
        )
    if table.rows * width > CELL_LIMIT:
        raise InputError(
            f"{where} has {table.rows} rows of {width} features, over the {CELL_LIMIT} cells that are held "
            "in memory; drop columns or rows"
        )
    if matrix is not None and not columns and matrix.dtype == np.uint8:
        return matrix.astype(np.float32), names
    x = np.zeros((table.rows, width), np.float32)
    for i in range(0 if matrix is None else len(names)):
        assert matrix is not None
        x[:, i] = _narrow(matrix[:, i], "a feature", where)
    found, at = list(names), len(names)
    for name, column in columns.items():
        if isinstance(column, Category):
            codes, values = _places(name, column)
            x[np.arange(table.rows), at + codes] = 1.0
            found += values
        else:
            x[:, at] = _narrow(column, f"column {name!r}", where)
            found.append(name)
        at = len(found)
    return x, tuple(found)


def columns_of(column: Column) -> int:
    """Return how many features a column becomes."""
    if not isinstance(column, Category):
        return 1
    return len(column.values) if len(column.values) <= ONE_HOT_LIMIT else HASH_COLUMNS


def fits(numbers: Array) -> bool:
    """Whether float32 keeps what differs in a column of numbers, so that it need not be scaled."""
    if numbers.dtype.kind == "b" or numbers.dtype.itemsize == 1 or not len(numbers):
        return True
    near = numbers.astype(np.float32)
    if numbers.dtype.kind == "f" or numbers.dtype.itemsize < 8:
        error, spread = np.abs(numbers - near.astype(np.float64)), numbers
    else:
        spread = _apart(numbers)
        error = np.abs(spread - (near.astype(np.float64) - float(numbers.min())))
    if not error.any():
        return True
    deviation = np.abs(spread - spread.mean(dtype=np.float64)).mean(dtype=np.float64)
    return bool(error.mean() <= LOSS * deviation) or bool((numbers == numbers[0]).all())


def _block(table: Table, without: Collection[str]) -> tuple[Array | None, tuple[str, ...]]:
    if table.matrix is None:
        return None, ()
    keep = [i for i, name in enumerate(table.matrix_names) if name not in without]
    if len(keep) == len(table.matrix_names):
        return table.matrix, table.matrix_names
    return table.matrix[:, keep], tuple(table.matrix_names[i] for i in keep)


def _places(name: str, column: Category) -> tuple[Array, list[str]]:
    """Return the feature in which each row has its 1, and the names of the features."""
    if len(column.values) <= ONE_HOT_LIMIT:
        return column.codes, [f"{name}={value}" for value in column.values]
    # not scikit-learn's FeatureHasher: features made by earlier releases keep their values
    buckets = np.array([_bucket(value) for value in column.values], np.int64)
    return buckets[column.codes], [f"{name}#{i:02d}" for i in range(HASH_COLUMNS)]


def _bucket(value: str) -> int:
    return int.from_bytes(hashlib.sha256(value.encode()).digest()[:8], "little") % HASH_COLUMNS


def _narrow(values: Array, what: str, where: str) -> Floats:
    if values.dtype.kind == "f" and values.size:
        top = float(np.max(np.abs(values)))
        if top > float(np.finfo(np.float32).max):
            raise InputError(f"{where}: {what} holds {top:g}; at most 3.4e38 fits a float32; rescale it")
    if fits(values):
        return values.astype(np.float32)
    # not scikit-learn's scalers: they take a column of 1e-50 for a constant
    spread = _apart(values) if values.dtype.kind in "iu" else values.astype(np.float64)
    spread = spread - spread.mean()
    scaled: Floats = (spread / np.abs(spread).max()).astype(np.float32)
    return scaled


def _apart(whole: Array) -> npt.NDArray[np.float64]:
    """Return how far whole numbers lie above the smallest: exact where float64 would round the numbers themselves."""
    low = whole.min()
    apart: npt.NDArray[np.float64] = (whole.astype(np.uint64) - low.astype(np.uint64)).astype(np.float64)
    return apart
