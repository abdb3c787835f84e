"""Missing values: all of them named at once, or their rows left out, or filled."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from p2p_sim.core.errors import InputError
from p2p_sim.learning.data.tables import Array, Bools, Category, Column, Gap, Table, category, take

_SHOWN = 12
FILLED = "(missing)"
"""The category of text that was missing and is imputed."""


def complete(table: Table, how: str, never: Collection[str], where: str) -> tuple[Table, Array | None]:
    """Return a table without gaps, and the rows that were kept, None if all of them were.

    ``how``: refuse, drop (rows with a gap) or impute; the columns ``never`` (label, clusters) are not imputed.
    InputError: a gap that is refused, or no row without one.
    """
    gaps = gaps_of(table, never)
    if not gaps:
        return table, None
    rows = np.logical_or.reduce([gap.rows for gap in gaps.values()])
    if how == "drop":
        kept = np.flatnonzero(~rows)
        if not len(kept):
            raise InputError(
                f"every row of {where} misses a value ({_in_words(gaps)}): drop columns instead (--drop)"
            )
        return _rows(table, kept), kept
    barred = {name: gap for name, gap in gaps.items() if name in never or how == "refuse"}
    if barred:
        raise _refused(barred, rows, how, where, [name for name in barred if name in never])
    columns = {
        name: _filled(column, gaps[name]) if name in gaps else column
        for name, column in table.columns.items()
    }
    return replace(table, columns=columns, matrix=_filled_block(table.matrix), missing={}), None


def gaps_of(table: Table, also: Collection[str] = ()) -> dict[str, Gap]:
    """Return the gaps of all columns that are features, or named in ``also``, and of the block."""
    used = {k: v for k, v in table.missing.items() if k not in table.never_features or k in also}
    matrix = table.matrix
    if matrix is not None and matrix.dtype.kind == "f" and np.isnan(matrix).any():
        for i in np.flatnonzero(np.isnan(matrix).any(axis=0)).tolist():
            used[table.matrix_names[i]] = Gap(np.isnan(matrix[:, i]), "nan")
    return used


def _rows(table: Table, kept: Array) -> Table:
    return replace(
        table, columns={name: take(column, kept) for name, column in table.columns.items()},
        matrix=None if table.matrix is None else table.matrix[kept], missing={},
    )  # fmt: skip


def _filled(column: Column, gap: Gap) -> Column:
    from sklearn.impute import SimpleImputer

    if isinstance(column, Category):
        codes = np.where(gap.rows, len(column.values), column.codes)
        return category(codes, [*column.values, FILLED])
    numbers = column.astype(np.float64)
    numbers[gap.rows] = np.nan
    filled: Array = SimpleImputer(strategy="median", keep_empty_features=True).fit_transform(
        numbers[:, None]
    )[:, 0]
    return filled


def _filled_block(matrix: Array | None) -> Array | None:
    from sklearn.impute import SimpleImputer

    if matrix is None or matrix.dtype.kind != "f" or not np.isnan(matrix).any():
        return matrix
    filled: Array = SimpleImputer(strategy="median", keep_empty_features=True).fit_transform(matrix)
    return filled


def _in_words(gaps: dict[str, Gap]) -> str:
    more = f" and {len(gaps) - _SHOWN} more columns" if len(gaps) > _SHOWN else ""
    return "; ".join(f"column {name!r} has {gap.place}" for name, gap in list(gaps.items())[:_SHOWN]) + more


def _refused(gaps: dict[str, Gap], rows: Bools, how: str, where: str, never: list[str]) -> InputError:
    count = f"{int(rows.sum()):,} of {len(rows):,} rows"
    if how == "impute" or len(never) == len(gaps):
        return InputError(
            f"{where} misses labels or clusters, which are never imputed: {_in_words(gaps)}; fill them, or leave the "
            f"rows out (--missing drop: {count})"
        )
    but = f" but {' and '.join(map(repr, never))}, which labels or clusters are in" if never else ""
    return InputError(
        f"{where} misses values: {_in_words(gaps)}; fill it, leave the rows out (--missing drop: {count}) or the "
        f"columns (--drop), or impute (--missing impute){but}; '?' in a text column makes missing a category"
    )
