"""Columns of text cells to columns of numbers or categories: what is a number, what is missing, what a comma means."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.learning.data.reading_options import Reading
from p2p_sim.learning.data.tables import Array, Bools, Category, Column, Gap, Table, category

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


def is_date(text: str) -> bool:
    """Whether a cell is a date, with a time or without."""
    return re.match(_DATE, text.strip()) is not None


@dataclass(frozen=True)
class _Cells:
    """A column of text: row i holds ``values[codes[i]]``, blanks cut (Arrow strings), or where codes are -1 nothing."""

    name: str
    values: Any
    codes: npt.NDArray[np.int64]
    gap: Gap | None

    def all_match(self, *patterns: str) -> bool:
        """Whether every cell that is there matches one of some patterns, and there is a cell."""
        return len(self.values) > 0 and bool(self._like(*patterns).all())

    def any_match(self, *patterns: str) -> bool:
        """Whether some cell matches one of some patterns."""
        return bool(self._like(*patterns).any())

    def first(self, *patterns: str, unlike: bool = False) -> int | None:
        """Return the first row with a cell that matches one of some patterns, or that matches none."""
        wanted = np.append(self._like(*patterns) ^ unlike, False)  # the last for codes of -1
        return int(np.argmax(wanted[self.codes])) if wanted.any() else None

    def cell(self, row: int) -> str:
        """Return what is written in a row that is not missing."""
        return str(self.values[self.codes[row]].as_py())

    def without(self, lost: Bools, gap: Gap) -> _Cells:
        """Return the column without some of its values (k,), which are missing now."""
        import pyarrow

        place = np.append(np.where(lost, -1, np.cumsum(~lost) - 1), -1)
        return _Cells(self.name, self.values.filter(pyarrow.array(~lost)), place[self.codes], gap)

    def _like(self, *patterns: str) -> Bools:
        from pyarrow import compute

        found: Bools = np.asarray(compute.match_substring_regex(self.values, "|".join(patterns)), np.bool_)
        return found


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
            found[cells.name], gap = _category(cells), cells.gap
            if cells.all_match(_DATE):
                dates.add(cells.name)
        else:
            found[cells.name], gap = _number_column(cells, what, mark, reading)
        if gap is not None:
            gaps[cells.name] = gap
    ordered = {name: found[name] for name in columns}
    return Table(ordered, missing=gaps, read_as=(*read_as, *marked), dates=frozenset(dates))


def _is_text(cells: _Cells, reading: Reading) -> bool:
    """Whether a column is text: it is said so, or no cell of it could be a number."""
    if cells.name in reading.categorical or cells.name in reading.numeric:
        return cells.name in reading.categorical
    return len(cells.values) > 0 and not cells.any_match(_NUMBER, _INFINITE, _COMMA_DECIMAL, _COMMA_GROUPS)


def _cut(name: str, cells: Any) -> _Cells:
    """Cut blanks and find missing cells, value by value."""
    import pyarrow
    from pyarrow import compute

    coded = (cells.combine_chunks() if isinstance(cells, pyarrow.ChunkedArray) else cells).dictionary_encode()
    values = compute.utf8_trim_whitespace(coded.dictionary)
    codes = np.asarray(coded.indices.fill_null(len(values)), np.int64)
    lower = compute.utf8_lower(values)
    lost: Bools = np.asarray(compute.is_in(lower, value_set=pyarrow.array(MISSING, values.type)), np.bool_)
    rows = np.append(lost, True)[codes]
    if not rows.any():
        return _Cells(name, values, codes, None)
    code = int(codes[np.argmax(rows)])
    gap = Gap(rows, "null" if code == len(values) else values[code].as_py())
    return _Cells(name, values, codes, None).without(lost, gap)


def _numbers(cells: Any) -> Array | None:
    """Return a column of plain numbers, whole ones as whole numbers; None if it is not one."""
    whole = None if len(cells) and "." in (cells[0].as_py() or "") else _cast(cells, "int64")
    if whole is not None:
        return None if _is_hexadecimal(cells) else whole
    numbers = _cast(cells, "float64")
    if numbers is not None and _inexact(numbers):
        longer = _cast(cells, "uint64")
        return numbers if longer is None or _is_hexadecimal(cells) else longer
    return numbers


def _cast(cells: Any, kind: str) -> Array | None:
    import pyarrow

    try:
        numbers: Array = cells.cast(kind).to_numpy(
            **({} if isinstance(cells, pyarrow.ChunkedArray) else _COPIED)
        )
    except pyarrow.ArrowInvalid:
        return None
    return numbers


_COPIED = {"zero_copy_only": False}


def _is_hexadecimal(cells: Any) -> bool:
    """Whether a cell is a number such as 0x1F, which Arrow reads and a table does not hold."""
    from pyarrow import compute

    return any(compute.any(compute.match_substring(cells, letter)).as_py() for letter in "xX")


def _inexact(numbers: Array) -> bool:
    return numbers.dtype.kind == "f" and bool((np.abs(numbers) >= EXACT).any())


def _category(cells: _Cells) -> Category:
    return category(np.maximum(cells.codes, 0), cells.values.to_pylist() or [""])


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
            f"commas in {what} mark decimals in column {sure[',']!r} and group thousands in column {sure['.']!r}: "
            "write one of them otherwise, or leave it out (--drop)"
        )
    if open_columns and not any(sure.values()):
        first = open_columns[0]
        at = first.first(_WHOLE, unlike=True)
        shown = first.cell(0 if at is None else at)
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
    if _COMMA_DECIMAL in patterns:
        values = compute.replace_substring(compute.replace_substring(values, ".", ""), ",", ".")
    else:
        values = compute.replace_substring(values, ",", "")
    numbers = _numbers(compute.replace_substring_regex(values, r"^\+", ""))
    assert numbers is not None  # every cell matches a pattern of numbers
    if len(numbers) and not np.isfinite(numbers).all():
        row = int(np.argmax(np.append(~np.isfinite(numbers), False)[cells.codes]))
        raise InputError(
            f"column {cells.name!r} of {what} has {cells.cell(row)!r} in row {row + 1}; numbers must be finite and "
            "at most 1.7e308; fill it, drop the row or the column"
        )
    if _inexact(numbers):
        _check_exact(cells, values, numbers, what)
    column: Array = np.append(numbers, numbers.dtype.type(0))[cells.codes]
    return column, cells.gap


def _spellings(cells: _Cells, mark: str, reading: Reading) -> tuple[str, ...]:
    """Return how numbers of a column may be written."""
    if mark == ".":
        return _NUMBER, _INFINITE, _COMMA_GROUPS
    if reading.decimal is None and cells.all_match(_NUMBER) and not cells.all_match(_POINT_GROUPS):
        return _NUMBER, _INFINITE  # points alone, and none of them groups thousands
    return _COMMA_DECIMAL, _POINT_GROUPS, _WHOLE, r"^[+-]?[0-9]+" + _POWER, _INFINITE


def _numbers_alone(cells: _Cells, patterns: tuple[str, ...]) -> _Cells:
    """Count what is no number as missing, in a column that is said to be of numbers."""
    row = cells.first(*patterns, unlike=True)
    if row is None:
        return cells
    lost = cells._like(*patterns) ^ True
    rows = np.append(lost, True)[cells.codes]
    earlier = cells.gap is not None and int(np.argmax(cells.gap.rows)) < row
    first = cells.gap.first if earlier and cells.gap is not None else cells.cell(row)
    return cells.without(lost, Gap(rows, first))


def _refuse_mixture(cells: _Cells, what: str, patterns: tuple[str, ...], mark: str) -> None:
    row = cells.first(*patterns, unlike=True)
    if row is None:
        return
    odd, start = cells.cell(row), f"column {cells.name!r} of {what}"
    if re.match(f"{_NUMBER}|{_COMMA_DECIMAL}", odd):
        raise InputError(
            f"{start} has {odd!r} in row {row + 1}, which is no number with {_called(mark)} for decimals: say "
            f"--decimal {'.' if mark == ',' else ','}, or --categorical {cells.name} if it is text"
        )
    plain = cells.first(*patterns)
    number = "" if plain is None else f"{cells.cell(plain)!r} in row {plain + 1} is a number, "
    raise InputError(
        f"{start} mixes types: {number}{odd!r} in row {row + 1} is text; make every cell a number, or say "
        f"--categorical {cells.name} (all is text) or --numeric {cells.name} (other cells are missing)"
    )


def _check_exact(cells: _Cells, values: Any, numbers: Array, what: str) -> None:
    """Refuse whole numbers that float64 would round: two that differ might become one."""
    for code in np.flatnonzero(np.abs(numbers) >= EXACT).tolist():
        text = values[code].as_py()
        if re.match(_WHOLE, text) and int(text) != int(numbers[code]):
            row = int(np.argmax(cells.codes == code)) + 1
            raise InputError(
                f"column {cells.name!r} of {what} holds {text} in row {row} beside decimals or beyond 64 bits, which "
                f"no number here holds exactly: say --categorical {cells.name} to take it as text, or --drop "
                f"{cells.name}"
            )
