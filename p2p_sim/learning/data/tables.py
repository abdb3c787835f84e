"""Tables as read, before a label is chosen: columns of numbers or of categories, with what is missing in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError, near

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
class Gap:
    """Missing cells of a column: which rows (n,), and how the first of them is written."""

    rows: Bools
    first: str

    @property
    def place(self) -> str:
        """What stands in the first of these rows, counted from 1, and how many more there are."""
        more = int(self.rows.sum()) - 1
        rest = f" and {more:,} more" if more else ""
        return f"{self.first!r} in row {int(np.argmax(self.rows)) + 1}{rest}"


@dataclass(frozen=True)
class Table:
    """Columns of n rows by name, a feature block (n, d) with its names, and the set's own test rows.

    ``missing``: gaps by column, where any value stands in (of the block: NaN).  ``read_as``: what was understood of the
    file as a whole.  ``dates``: columns of text that are dates.
    """

    columns: dict[str, Column]
    matrix: Array | None = None
    matrix_names: tuple[str, ...] = ()
    test: Bools | None = None
    never_features: frozenset[str] = field(default_factory=frozenset)
    missing: Mapping[str, Gap] = field(default_factory=dict)
    read_as: tuple[str, ...] = ()
    dates: frozenset[str] = frozenset()

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.matrix) if self.matrix is not None else len(next(iter(self.columns.values()), ()))

    @property
    def names(self) -> list[str]:
        """The names of all columns, those of the block last."""
        return [*self.columns, *self.matrix_names]

    def without(self, names: Sequence[str], where: str) -> Table:
        """Return the table without some columns; InputError: one is not there."""
        for name in names:
            find(self, name, "dropped", where)
        gone = set(names)
        keep = [i for i, name in enumerate(self.matrix_names) if name not in gone]
        matrix = (
            self.matrix if self.matrix is None or not gone & {*self.matrix_names} else self.matrix[:, keep]
        )
        return replace(
            self, columns={k: v for k, v in self.columns.items() if k not in gone}, matrix=matrix,
            matrix_names=tuple(self.matrix_names[i] for i in keep),
            missing={k: v for k, v in self.missing.items() if k not in gone},
        )  # fmt: skip


def take(column: Column, rows: Array) -> Column:
    """Return some rows of a column: numbers of rows, or which of them (n,)."""
    return Category(column.codes[rows], column.values) if isinstance(column, Category) else column[rows]


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


def number_category(numbers: Array) -> Category:
    """Make a Category of a column of numbers, each written as a class value is, in the order of numbers."""
    values, codes = np.unique(numbers, return_inverse=True)
    return Category(codes.astype(np.int64), tuple(number_text(value) for value in values.tolist()))


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
    return str(int(value)) if isinstance(value, int) or value.is_integer() else repr(value)


def find(table: Table, name: str, role: str, where: str) -> Column:
    """Return the column called ``name``; InputError lists the columns if there is none."""
    if name in table.columns:
        return table.columns[name]
    if name in table.matrix_names and table.matrix is not None:
        return np.asarray(table.matrix[:, table.matrix_names.index(name)])
    raise InputError(
        f"{where} has no {role} column {name!r}"
        f"{near(name, table.names)}; its columns are {listing(table.names)}; pass one of these as {role}"
    )


def listing(values: Sequence[str], most: int = 40) -> str:
    """Join values by commas, the first ``most`` of them and how many more there are."""
    shown = ", ".join(repr(value) for value in values[:most])
    return shown if len(values) <= most else f"{shown} and {len(values) - most:,} more"


def check_names(names: Sequence[str], what: str) -> None:
    """Check that every column has a name of its own; raises InputError."""
    seen = set[str]()
    for index, name in enumerate(names):
        if not name.strip():
            raise InputError(
                f"column {index + 1} of {what} has no name; name it, or remove it if it only numbers the rows"
            )
        if name in seen:
            raise InputError(f"{what} has two columns called {name!r}; rename one of them")
        seen.add(name)
