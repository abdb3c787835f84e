"""A person's own CSV and Parquet tables to columns: all cells numbers, or all text, none missing."""

from __future__ import annotations

from typing import Any

import numpy as np

from p2p_sim.core.errors import InputError
from p2p_sim.learning.table import Array, Column, category, listing

_MISSING = frozenset({"", "na", "n/a", "nan", "-nan", "null", "none", "#n/a"})


def read_csv(data: bytes, what: str, delimiter: str) -> dict[str, Column]:
    """Read delimited text with a header line: a column is numbers if all its cells are, else text.

    InputError: no header, unequal lines, not UTF-8, names missing or twice, a missing value, numbers mixed
    with text. Rows are counted from 1, the header apart.
    """
    import pyarrow
    from pyarrow import csv

    split = csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    as_text = {"strings_can_be_null": False, "quoted_strings_can_be_null": False}
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        header = csv.open_csv(pyarrow.BufferReader(data), parse_options=split).schema.names
        _check_header(header, what)
        types = {name: pyarrow.string() for name in header}
        options = csv.ConvertOptions(column_types=types, **as_text)
        table = csv.read_csv(pyarrow.BufferReader(data), parse_options=split, convert_options=options)
    except pyarrow.ArrowInvalid as error:
        raise InputError(
            f"{what} is not a readable table: {_line(error)}; every line needs the header's columns, in UTF-8"
        ) from error
    if not table.num_rows:
        raise InputError(f"{what} has a header and no rows; give at least two rows, of different labels")
    return {name: _text_column(table[name].combine_chunks(), name, what) for name in header}


def read_parquet(data: bytes, what: str) -> dict[str, Column]:
    """Read a Parquet table of numbers, booleans, text; InputError: damaged, other types, missing values."""
    import pyarrow
    from pyarrow import parquet

    try:
        table = parquet.read_table(pyarrow.BufferReader(data))
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"{what} is not a readable Parquet file: {_line(error)}; write it again") from error
    _check_names(table.schema.names, what)
    if not table.num_rows:
        raise InputError(f"{what} has no rows; give at least two, of different labels")
    return {name: _arrow_column(table[name].combine_chunks(), name, what) for name in table.schema.names}


def _check_header(header: list[str], what: str) -> None:
    _check_names(header, what)
    if all(_number(name) is not None for name in header):
        raise InputError(
            f"{what} starts with {listing(header, 5)}, which looks like a row; put a line of column names "
            "first"
        )


def _check_names(names: list[str], what: str) -> None:
    for index, name in enumerate(names):
        if not name.strip():
            raise InputError(
                f"column {index + 1} of {what} has no name; name it, or remove it if it only numbers the rows"
            )
        if name in names[:index]:
            raise InputError(f"{what} has two columns called {name!r}; rename one of them")


def _text_column(cells: Any, name: str, what: str) -> Column:
    import pyarrow

    try:
        return _finite(cells.cast(pyarrow.float64()).to_numpy(zero_copy_only=False), name, what)
    except pyarrow.ArrowInvalid:  # some cell is not a plain number: look at the values one by one
        coded = cells.dictionary_encode()
    values: list[str] = coded.dictionary.to_pylist()
    codes: Array = np.asarray(coded.indices)
    numbers = [_number(value) for value in values]
    for code, value in enumerate(values):
        if value.strip().lower() in _MISSING:
            raise _missing(name, what, _row(codes, code), value)
    are_text = [number is None for number in numbers]
    if all(are_text):
        return category(codes, values)
    if any(are_text):
        odd, plain = are_text.index(True), are_text.index(False)
        raise InputError(
            f"column {name!r} of {what} mixes types: {values[plain]!r} in row {_row(codes, plain)} is a "
            f"number, {values[odd]!r} in row {_row(codes, odd)} is text; make every cell a number, or every "
            "cell text"
        )
    return _finite(np.array(numbers, np.float64)[codes], name, what)


def _arrow_column(cells: Any, name: str, what: str) -> Column:
    from pyarrow import types

    if cells.null_count:
        raise _missing(name, what, int(np.argmax(np.asarray(cells.is_null()))) + 1, "null")
    kind = cells.type
    if types.is_dictionary(kind):
        cells, kind = cells.cast(kind.value_type), kind.value_type
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        coded = cells.dictionary_encode()
        return category(np.asarray(coded.indices), coded.dictionary.to_pylist())
    if types.is_decimal(kind):
        cells = cells.cast("float64")
    elif not (types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind)):
        raise InputError(
            f"column {name!r} of {what} is of type {kind}; give numbers, booleans or text, or drop it"
        )
    return _finite(cells.to_numpy(zero_copy_only=False), name, what)


def _finite(numbers: Array, name: str, what: str) -> Array:
    if numbers.dtype.kind == "f" and not np.isfinite(numbers).all():
        row = int(np.argmax(~np.isfinite(numbers)))
        raise _missing(name, what, row + 1, str(numbers[row]))
    return numbers


def _line(error: Exception) -> str:
    return " ".join(str(error).split())


def _number(cell: str) -> float | None:
    try:
        return None if "_" in cell else float(cell)  # Python reads 1_000 as a number, a table does not
    except ValueError:
        return None


def _row(codes: Array, code: int) -> int:
    return int(np.argmax(codes == code)) + 1


def _missing(name: str, what: str, row: int, value: str) -> InputError:
    return InputError(
        f"column {name!r} of {what} has {value!r} in row {row}; every cell must hold a value (numbers must "
        "be finite); fill it, drop the row or the column, or write '?' in a text column to make missing a "
        "category"
    )
