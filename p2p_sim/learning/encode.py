"""Columns to a float32 matrix: numbers as they are, categories one-hot, or hashed if many."""

from __future__ import annotations

import hashlib
from collections.abc import Collection

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.learning.table import Array, Category, Column, Table

ONE_HOT_LIMIT = 64
HASH_COLUMNS = 64
CELL_LIMIT = 1 << 31  # 8 GiB of float32

Floats = npt.NDArray[np.float32]


def features(table: Table, without: Collection[str], where: str) -> tuple[Floats, tuple[str, ...]]:
    """Encode every column but those named in ``without``: x (n, d) float32, raw values, and d names.

    A category of at most 64 values becomes one 0/1 column a value, ``column=value``; one of more values
    becomes 64 columns ``column#00`` to ``column#63``, with a 1 where the SHA-256 of the value says (its first
    8 bytes, little-endian, modulo 64).  InputError: no feature left, a number float32 cannot hold, or over
    2^31 cells.
    """
    matrix, names = _block(table, without)
    columns = {k: v for k, v in table.columns.items() if k not in without and k not in table.never_features}
    width = len(names) + sum(_width(column) for column in columns.values())
    if not width:
        raise InputError(f"{where} has no feature column beside {sorted(without)}; add at least one")
    if table.rows * width > CELL_LIMIT:
        raise InputError(
            f"{where} has {table.rows} rows of {width} features, over the {CELL_LIMIT} cells that are held "
            "in memory; drop columns or rows"
        )
    if matrix is not None and not columns and matrix.dtype == np.uint8:
        return matrix.astype(np.float32), names
    x = np.zeros((table.rows, width), np.float32)
    if matrix is not None:
        x[:, : len(names)] = _narrow(matrix, "a feature", where)
    found, at = list(names), len(names)
    for name, column in columns.items():
        found += _fill(x, at, name, column, where)
        at = len(found)
    return x, tuple(found)


def _block(table: Table, without: Collection[str]) -> tuple[Array | None, tuple[str, ...]]:
    if table.matrix is None:
        return None, ()
    keep = [i for i, name in enumerate(table.matrix_names) if name not in without]
    if len(keep) == len(table.matrix_names):
        return table.matrix, table.matrix_names
    return table.matrix[:, keep], tuple(table.matrix_names[i] for i in keep)


def _width(column: Column) -> int:
    if not isinstance(column, Category):
        return 1
    return len(column.values) if len(column.values) <= ONE_HOT_LIMIT else HASH_COLUMNS


def _fill(x: Floats, at: int, name: str, column: Column, where: str) -> list[str]:
    if not isinstance(column, Category):
        x[:, at] = _narrow(column, f"column {name!r}", where)
        return [name]
    codes, names = column.codes, [f"{name}={value}" for value in column.values]
    if len(column.values) > ONE_HOT_LIMIT:
        codes = np.array([_bucket(value) for value in column.values], np.int64)[codes]
        names = [f"{name}#{i:02d}" for i in range(HASH_COLUMNS)]
    x[np.arange(len(x)), at + codes] = 1
    return names


def _bucket(value: str) -> int:
    return int.from_bytes(hashlib.sha256(value.encode()).digest()[:8], "little") % HASH_COLUMNS


def _narrow(values: Array, what: str, where: str) -> Floats:
    if values.dtype.kind == "f" and values.size:
        top = float(np.max(np.abs(values)))
        if top > float(np.finfo(np.float32).max):
            raise InputError(f"{where}: {what} holds {top:g}; at most 3.4e38 fits a float32; rescale it")
    return values.astype(np.float32)
