"""Tables as read, before a label is chosen: number columns, category columns, a block of plain features."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
