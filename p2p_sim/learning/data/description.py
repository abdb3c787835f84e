"""What was understood of every column of a table: kind, range, missing and distinct values, and what to beware of."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from p2p_sim.learning.data import cells, completion, encoding
from p2p_sim.learning.data.tables import Array, Category, Column, Gap, Table, listing, number_text

ROWS_OF_AN_ID = 20
ROWS_OF_NUMBERS = 200
"""Rows from which whole numbers that are all different are taken for an id, though they do not follow each other."""

NEARLY_EVERY = 0.95
"""Share of rows that have a value of their own from which a column of text or whole numbers looks like an id."""

_SOME = 2000  # rows that rule most columns out
_LONG = 30


@dataclass(frozen=True)
class Described:
    """One column: its kind, range, missing cells, different values, what it becomes, and a warning or nothing."""

    column: str
    kind: str
    range: str
    missing: int
    distinct: int | None
    becomes: str
    warning: str


def describe(table: Table, label: str | None, cluster: str | None) -> list[Described]:
    """Describe every column, in the order of the file; a block of features is one line."""
    gaps = completion.gaps_of(table, table.columns)
    found = [
        _column(name, column, gaps.get(name), table, {label: "label", cluster: "clusters"})
        for name, column in table.columns.items()
    ]
    if table.matrix is not None and table.matrix_names:
        found.append(_block(table, table.matrix, gaps))
    return found


def ids(table: Table, without: Collection[str]) -> list[str]:
    """Return the columns of text, no dates, that have another value in every row, and become features."""
    columns = {
        k: v for k, v in table.columns.items() if k not in {*without, *table.never_features, *table.dates}
    }
    return [
        name
        for name, column in columns.items()
        if isinstance(column, Category) and len(np.unique(column.codes)) == table.rows >= ROWS_OF_AN_ID
    ]


def cautions(table: Table, without: Collection[str]) -> tuple[str, ...]:
    """Return what to beware of in the columns that become features: ids and constants, each with what to do."""
    columns = {k: v for k, v in table.columns.items() if k not in {*without, *table.never_features}}
    numbered = [name for name, v in columns.items() if not isinstance(v, Category) and _numbers_rows(v)]
    found = [
        f"column {name!r} has another value in every row, which makes everybody unique: features are public, and an "
        f"id tells nothing of others; leave it out (--drop {name})"
        for name in (*ids(table, without), *numbered)
    ]
    same = [name for name, v in columns.items() if _constant(v)]
    if same:
        drop = f"(--drop {','.join(same)})"
        found.append(
            f"column {same[0]!r} is the same in every row, and tells nothing: leave it out {drop}"
            if len(same) == 1
            else f"columns {listing(same, 6)} are the same in every row, and tell nothing: leave them out {drop}"
        )
    return tuple(found)


def _constant(column: Column) -> bool:
    values = column.codes if isinstance(column, Category) else column
    return bool((values == values[0]).all())


def _numbers_rows(column: Array) -> bool:
    """Whether whole numbers (n,), another one in every row, are consecutive, or so many that they hardly measure."""
    if len(column) < ROWS_OF_AN_ID or not like_id(column) or len(np.unique(column)) < len(column):
        return False
    return len(column) >= ROWS_OF_NUMBERS or bool(column.max() - column.min() == len(column) - 1)


def like_ids(table: Table, without: Collection[str]) -> list[str]:
    """Return the columns that look like ids and become features: text, no dates, and whole numbers."""
    left_out = {*without, *table.never_features, *table.dates}
    columns = {
        k: v.codes if isinstance(v, Category) else v for k, v in table.columns.items() if k not in left_out
    }
    found = [name for name, column in columns.items() if like_id(column)]
    return found + ([] if table.matrix is None else [table.matrix_names[i] for i in ids_among(table.matrix)])


def ids_among(x: Array) -> list[int]:
    """Return which columns of features (n, d) look like ids, by number."""
    return [j for j in range(x.shape[1]) if like_id(x[:, j])]


def like_id(column: Array) -> bool:
    """Whether numbers (n,) look like ids: whole ones, with a value of its own in nearly every row."""
    some = column[:: max(1, len(column) // _SOME)]
    return len(column) >= ROWS_OF_AN_ID and _own_in_each(some) and _own_in_each(column)


def _own_in_each(column: Array) -> bool:
    if column.dtype.kind == "f" and not bool((column == np.rint(column)).all()):
        return False
    return column.dtype.kind in "iuf" and len(np.unique(column)) >= NEARLY_EVERY * len(column)


def _column(
    name: str, column: Column, gap: Gap | None, table: Table, roles: dict[str | None, str]
) -> Described:
    there = np.ones(len(column), bool) if gap is None else ~gap.rows
    becomes = roles.get(name) or ("nothing" if name in table.never_features else _becomes(column))
    if isinstance(column, Category):
        used = np.unique(column.codes[there])
        values = [column.values[code] for code in used.tolist()]
        kind, spread = (
            "dates" if name in table.dates else "text",
            f"{_short(values[0])} … {_short(values[-1])}" if values else "",
        )
        distinct = len(values)
        texts = all(map(cells.is_number, values)) and bool(values)
    else:
        numbers = column[there]
        kind = {"b": "true or false", "f": "numbers"}.get(column.dtype.kind, "whole numbers")
        spread, texts = _range(numbers), False
        distinct = len(np.unique(numbers))
    warning = (
        "" if becomes in ("label", "clusters", "nothing") else _warning(kind, column, distinct, there, texts)
    )
    return Described(
        name, kind, spread, 0 if gap is None else int(gap.rows.sum()), distinct, becomes, warning
    )


def _warning(kind: str, column: Column, distinct: int, there: Array, texts: bool) -> str:
    if distinct <= 1:
        return "the same in every row: it tells nothing (--drop)"
    if kind == "dates":
        return "dates become categories: make numbers of them, or --drop"
    every = distinct == int(there.sum()) >= ROWS_OF_AN_ID
    if every and kind in ("text", "whole numbers"):
        return "another one in every row: an id makes everybody unique and tells nothing of others (--drop)"
    if not isinstance(column, Category):
        if kind == "whole numbers" and bool((np.abs(column[there].astype(np.float64)) >= cells.EXACT).any()):
            return "so many digits are an id, not an amount (--drop, or --categorical)"
        return "" if encoding.fits(column[there]) else "float32 would lose it: centred and scaled"
    if texts:
        return "text that looks like numbers: --numeric, if it counts or measures"
    if distinct > encoding.ONE_HOT_LIMIT:
        return f"more than {encoding.ONE_HOT_LIMIT} values: some share a feature"
    return ""


def _becomes(column: Column) -> str:
    if not isinstance(column, Category):
        return "1 feature"
    count = encoding.columns_of(column)
    hashed = ", hashed" if len(column.values) > encoding.ONE_HOT_LIMIT else ""
    return f"{count} feature{'s' if count > 1 else ''}{hashed}"


def _block(table: Table, matrix: Array, gaps: dict[str, Gap]) -> Described:
    names = table.matrix_names
    held = [gaps[name] for name in names if name in gaps]
    kind = "numbers" if matrix.dtype.kind == "f" else "whole numbers"
    shown = names[0] if len(names) == 1 else f"{names[0]} … {names[-1]}"
    missing = sum(int(gap.rows.sum()) for gap in held)
    many = "1 feature" if len(names) == 1 else f"{len(names):,} features"
    low, high = (np.nanmin(matrix), np.nanmax(matrix)) if matrix.size > missing else (0, 0)
    constant = int((np.nanmax(matrix, axis=0) == np.nanmin(matrix, axis=0)).sum()) if not missing else 0
    warning = f"{constant:,} of them are the same in every row" if constant else ""
    return Described(shown, kind, f"{_number(low)} to {_number(high)}", missing, None, many, warning)


def _range(numbers: Array) -> str:
    return f"{_number(numbers.min())} to {_number(numbers.max())}" if len(numbers) else ""


def _number(value: np.generic | int) -> str:
    plain = value.item() if isinstance(value, np.generic) else value
    return f"{plain:.9g}" if isinstance(plain, float) and not plain.is_integer() else number_text(plain)


def _short(text: str) -> str:
    return text if len(text) <= _LONG else text[: _LONG - 1] + "…"
