"""Tables as read, before a label is chosen, and as a matrix: numbers as they are, categories one-hot or hashed."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError

Array = npt.NDArray[Any]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Category:
    """A column of text: row i holds ``values[codes[i]]``; codes (n,); the order of values is meant."""

    codes: npt.NDArray[np.int64]
    values: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.codes)


Column = Array | Category


@dataclass(frozen=True)
class Table:
    """Columns of n rows by name, a feature block (n, d) with its names, and the set's own test rows."""

    columns: dict[str, Column]
    matrix: Array | None = None
    matrix_names: tuple[str, ...] = ()
    test: Bools | None = None
    never_features: frozenset[str] = field(default_factory=frozenset)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.matrix) if self.matrix is not None else len(next(iter(self.columns.values()), ()))


def category(codes: Array, values: Sequence[str], *, ordered: bool = False) -> Category:
    """Make a Category from codes (n,) into values: blanks around values go, equal values merge, and values
    are sorted unless ``ordered`` keeps their order.
    """
    stripped = [value.strip() for value in values]
    kept = list(dict.fromkeys(stripped))
    if not ordered:
        kept.sort()
    position = {value: index for index, value in enumerate(kept)}
    renumber = np.array([position[value] for value in stripped], np.int64)
    return Category(renumber[codes] if len(values) else codes.astype(np.int64), tuple(kept))


def text_category(cells: Iterable[Any]) -> Category:
    """Make a Category from one text a row, values sorted."""
    values, codes = np.unique(np.array([str(cell).strip() for cell in cells], dtype=str), return_inverse=True)
    return Category(codes.astype(np.int64), tuple(str(value) for value in values))


def concatenate(parts: Sequence[Column]) -> Column:
    """Join pieces of one column, all numeric or all categories; values of categories are sorted."""
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate([part for part in parts if isinstance(part, np.ndarray)])
    codes, values = [], list[str]()
    for part in parts:
        if not isinstance(part, Category):
            raise TypeError("one piece is numeric, another text")
        codes.append(part.codes + len(values))
        values.extend(part.values)
    return category(np.concatenate(codes), values)


def number_text(value: float) -> str:
    """Write a number as a class value is written: 5 for 5.0, 0.5 for 0.5."""
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def find(table: Table, name: str, role: str, where: str) -> Column:
    """Return the column called ``name``; InputError lists the columns if there is none."""
    if name in table.columns:
        return table.columns[name]
    if name in table.matrix_names and table.matrix is not None:
        return np.asarray(table.matrix[:, table.matrix_names.index(name)])
    known = listing(list(table.columns) + list(table.matrix_names))
    raise InputError(
        f"{where} has no {role} column {name!r}; its columns are {known}; pass one of these as {role}"
    )


def listing(values: Sequence[str], most: int = 40) -> str:
    """Join values by commas, the first ``most`` of them and how many more there are."""
    shown = ", ".join(repr(value) for value in values[:most])
    return shown if len(values) <= most else f"{shown} and {len(values) - most} more"


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
