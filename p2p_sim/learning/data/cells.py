"""Columns of text cells to columns of numbers or categories: what is a number, what is missing, what a comma means."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from p2p_sim.core.errors import InputError
from p2p_sim.learning.data.reading import Reading
from p2p_sim.learning.data.tables import Array, Category, Column, Gap, Table, category

MISSING = ("", "na", "n/a", "nan", "-nan", "null", "none", "#n/a")
EXACT = 2**53
"""Whole numbers from here on are not all numbers of float64."""

_POWER = r"([eE][+-]?[0-9]+)?$"
_NUMBER = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)" + _POWER
_INFINITE = r"^[+-]?(inf|INF|Inf|infinity|Infinity)$"
_COMMA_DECIMAL = r"^[+-]?([0-9]*|[0-9]{1,3}(\.[0-9]{3})+),[0-9]+" + _POWER
_POINT_GROUPS = r"^[+-]?[0-9]{1,3}(\.[0-9]{3})+$"
_COMMA_GROUPS = r"^[+-]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?$"
_WHOLE = r"^[+-]?[0-9]+$"
_DATE = r"^([0-9]{4}-[0-9]{2}-[0-9]{2}([T ].*)?|[0-9]{1,2}[./][0-9]{1,2}[./][0-9]{2,4})$"


def is_number(text: str) -> bool:
    """Whether a cell is a number in a table: digits of ASCII, a point, an exponent, no underscores."""
    return re.match(_NUMBER, text.strip()) is not None


@dataclass(frozen=True)
class _Cells:
    """A column of text whose blanks are cut: Arrow strings, null where missing; and its gap."""

    name: str
    values: Any
    gap: Gap | None

    def all_match(self, *patterns: str) -> bool:
        """Whether every cell that is there matches one of some patterns, and there is a cell."""
        return self.values.null_count < len(self.values) and self.unlike(*patterns) is None

    def unlike(self, *patterns: str) -> int | None:
        """Return the first row with a cell that matches none of some patterns."""
        from pyarrow import compute

        found = np.asarray(compute.fill_null(compute.match_substring_regex(self.values, "|".join(patterns)), True))
        return None if found.all() else int(np.argmin(found))


def table(columns: Mapping[str, Any], what: str, reading: Reading, read_as: tuple[str, ...] = ()) -> Table:
    """Make a table of columns of text (Arrow strings); columns to drop are gone already.

    A column is numbers if all its cells are, else categories.  What a comma within numbers means is found out from all
    columns together, or given.  InputError: numbers mixed with text, commas that can be read two ways, whole numbers
    that no type here holds exactly.
    """
    found, left = dict[str, Any](), list[_Cells]()
    gaps = dict[str, Gap]()
    for name, cells in columns.items():
        numbers = None if name in reading.categorical or reading.decimal == "," else _numbers(cells)
        if numbers is not None and np.isfinite(numbers).all() and not _inexact(numbers):
            found[name] = numbers
        else:
            left.append(_cut(name, cells))
    mark, marked = _decimal(left, what, reading)
    if mark == "," and reading.decimal is None:  # then 1.500 is no number between 1 and 2
        points = [_cut(name, columns[name]) for name, column in found.items() if column.dtype.kind == "f"]
        left += [cells for cells in points if cells.all_match(_POINT_GROUPS)]
    dates = set[str]()
    for cells in left:
        if _is_text(cells, reading):
            column, gap = _category(cells), cells.gap
            if cells.all_match(_DATE):
                dates.add(cells.name)
        else:
            column, gap = _number_column(cells, what, mark, reading)
        found[cells.name] = column
        if gap is not None:
            gaps[cells.name] = gap
    ordered = {name: found[name] for name in columns}
    return Table(ordered, missing=gaps, read_as=(*read_as, *marked), dates=frozenset(dates))


def _is_text(cells: _Cells, reading: Reading) -> bool:
    """Whether a column is text: it is said so, or no cell of it could be a number."""
    from pyarrow import compute

    if cells.name in reading.categorical or cells.name in reading.numeric:
        return cells.name in reading.categorical
    if cells.values.null_count == len(cells.values):
        return False
    like = "|".join((_NUMBER, _INFINITE, _COMMA_DECIMAL, _COMMA_GROUPS))
    return not compute.any(compute.match_substring_regex(cells.values, like)).as_py()


def _cut(name: str, cells: Any) -> _Cells:
    """Cut blanks and find missing cells."""
    import pyarrow
    from pyarrow import compute

    whole = cells.combine_chunks() if isinstance(cells, pyarrow.ChunkedArray) else cells
    values = compute.utf8_trim_whitespace(whole)
    lower = compute.utf8_lower(values)
    gone = compute.is_in(lower, value_set=pyarrow.array(MISSING, values.type))
    rows = np.asarray(compute.or_kleene(gone, compute.is_null(values)))
    if not rows.any():
        return _Cells(name, values, None)
    first = whole[int(np.argmax(rows))].as_py()
    values = compute.if_else(pyarrow.array(~rows), values, pyarrow.scalar(None, values.type))
    return _Cells(name, values, Gap(rows, "null" if first is None else first.strip()))


def _numbers(cells: Any) -> Array | None:
    """Return a column of plain numbers, whole ones as whole numbers; None if it is not one."""
    import pyarrow

    for kind in (pyarrow.int64(), pyarrow.uint64(), pyarrow.float64()):
        try:
            cast = cells.cast(kind)
        except pyarrow.ArrowInvalid:
            continue
        if not pyarrow.types.is_floating(kind) and _has_letters(cells):
            return None  # Arrow reads 0x1F as a whole number
        numbers: Array = cast.fill_null(0).to_numpy() if cast.null_count else cast.to_numpy()
        return numbers
    return None


def _has_letters(cells: Any) -> bool:
    from pyarrow import compute

    return bool(compute.any(compute.match_substring(cells, "x", ignore_case=True)).as_py())


def _inexact(numbers: Array) -> bool:
    return numbers.dtype.kind == "f" and bool((np.abs(numbers) >= EXACT).any())


def _category(cells: _Cells) -> Category:
    coded = cells.values.dictionary_encode()
    values = [str(value) for value in coded.dictionary.to_pylist()]
    codes: Array = np.asarray(coded.indices.fill_null(0), np.int64)
    return category(codes, values or [""])


def _decimal(left: list[_Cells], what: str, reading: Reading) -> tuple[str, tuple[str, ...]]:
    """Return the mark of decimals, and words for it where it was found out or matters."""
    if reading.decimal is not None:
        return reading.decimal, (f"{_called(reading.decimal)} for decimals",)
    sure = {",": "", ".": ""}
    open_columns = []
    for cells in left:
        if cells.name in reading.categorical or cells.all_match(_NUMBER):
            continue
        decimal = cells.all_match(_COMMA_DECIMAL, _WHOLE)
        groups = cells.all_match(_COMMA_GROUPS, _NUMBER)
        if decimal and groups:
            open_columns.append(cells)
        elif decimal or groups:
            sure["," if decimal else "."] = cells.name
    if all(sure.values()):
        raise InputError(
            f"commas in {what} mark decimals in column {sure[',']!r} and group thousands in column {sure['.']!r}: write "
            "one of them otherwise, or leave it out (--drop)"
        )
    if open_columns and not any(sure.values()):
        first = open_columns[0]
        at = first.unlike(_WHOLE)
        shown = first.values[0 if at is None else at].as_py()
        raise InputError(
            f"column {first.name!r} of {what} holds {shown!r}, which can be read two ways: say --decimal , if it is "
            f"{shown.replace(',', '.')}, --decimal . if it is {shown.replace(',', '')}"
        )
    mark = "," if sure[","] else "."
    return mark, (f"{_called(mark)} for decimals",) if any(sure.values()) else ()


def _called(mark: str) -> str:
    return "a comma" if mark == "," else "a point"


def _number_column(cells: _Cells, what: str, mark: str, reading: Reading) -> tuple[Column, Gap | None]:
    """Return a column of numbers and its gap; InputError: it holds text, or whole numbers that are not exact."""
    from pyarrow import compute

    patterns = _spellings(cells, mark, reading)
    cells = _numbers_alone(cells, patterns) if cells.name in reading.numeric else cells
    _refuse_mixture(cells, what, patterns, mark)
    values = cells.values
    if mark == "," and _COMMA_DECIMAL in patterns:
        if _POINT_GROUPS in patterns:
            values = compute.replace_substring(values, ".", "")
        values = compute.replace_substring(values, ",", ".")
    elif mark == ".":
        values = compute.replace_substring(values, ",", "")
    numbers = _numbers(compute.replace_substring_regex(values, r"^\+", ""))
    assert numbers is not None  # every cell matches a pattern of numbers
    infinite = ~np.isfinite(numbers)
    if infinite.any():
        row = int(np.argmax(infinite))
        raise InputError(
            f"column {cells.name!r} of {what} has {values[row].as_py()!r} in row {row + 1}; numbers must be finite and "
            "at most 1.7e308; fill it, drop the row or the column"
        )
    if _inexact(numbers):
        _check_exact(cells.name, values, numbers, what)
    return numbers, cells.gap


def _spellings(cells: _Cells, mark: str, reading: Reading) -> tuple[str, ...]:
    """Return how numbers of a column may be written."""
    if mark == ".":
        return _NUMBER, _INFINITE, _COMMA_GROUPS
    if reading.decimal is None and cells.all_match(_NUMBER) and not cells.all_match(_POINT_GROUPS):
        return _NUMBER, _INFINITE  # points alone, and none of them groups thousands
    return _COMMA_DECIMAL, _POINT_GROUPS, _WHOLE, r"^[+-]?[0-9]+" + _POWER, _INFINITE


def _numbers_alone(cells: _Cells, patterns: tuple[str, ...]) -> _Cells:
    """Count what is no number as missing, in a column that is said to be of numbers."""
    import pyarrow
    from pyarrow import compute

    good = compute.match_substring_regex(cells.values, "|".join(patterns))
    rows = ~np.asarray(compute.fill_null(good, False))
    if not rows.any():
        return cells
    row = int(np.argmax(rows))
    first = cells.gap.first if cells.gap is not None and cells.gap.rows[row] else cells.values[row].as_py()
    values = compute.if_else(pyarrow.array(~rows), cells.values, pyarrow.scalar(None, cells.values.type))
    return _Cells(cells.name, values, Gap(rows, first))


def _refuse_mixture(cells: _Cells, what: str, patterns: tuple[str, ...], mark: str) -> None:
    row = cells.unlike(*patterns)
    if row is None:
        return
    odd = cells.values[row].as_py()
    start = f"column {cells.name!r} of {what}"
    if re.match(f"{_NUMBER}|{_COMMA_DECIMAL}", odd):
        other = "." if mark == "," else ","
        raise InputError(
            f"{start} has {odd!r} in row {row + 1}, which is no number with {_called(mark)} for decimals: say --decimal "
            f"{other}, or --categorical {cells.name} if it is text"
        )
    plain = next(
        (i for i, value in enumerate(cells.values.to_pylist()) if value and re.match("|".join(patterns), value)), None
    )
    if plain is None:
        raise InputError(f"{start} is text, {odd!r} in row {row + 1}: leave it out of --numeric")
    raise InputError(
        f"{start} mixes types: {cells.values[plain].as_py()!r} in row {plain + 1} is a number, {odd!r} in row {row + 1} "
        f"is text; make every cell a number, or say --categorical {cells.name} (all is text) or --numeric "
        f"{cells.name} (other cells are missing)"
    )


def _check_exact(name: str, values: Any, numbers: Array, what: str) -> None:
    """Refuse whole numbers that float64 would round: two that differ might become one."""
    for row in np.flatnonzero(np.abs(numbers) >= EXACT).tolist():
        text = values[row].as_py()
        if text is not None and re.match(_WHOLE, text) and int(text) != int(numbers[row]):
            raise InputError(
                f"column {name!r} of {what} holds {text} in row {row + 1} beside decimals or beyond 64 bits, which no "
                f"number here holds exactly: say --categorical {name} to take it as text, or --drop {name}"
            )
