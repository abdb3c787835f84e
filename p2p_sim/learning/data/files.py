"""A person's own files to tables, by the ending of their name: CSV, TSV, Parquet, npz, IDX, svmlight."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from p2p_sim.core.errors import InputError
from p2p_sim.learning.data import images, sources, tabular
from p2p_sim.learning.data.tabular import Array, Column, Table, category, listing, text_category

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
        # Python reads 1_000 and digits of every script as numbers, a table does not
        return float(cell) if cell.isascii() and "_" not in cell else None
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


LABEL_NAMES = ("label", "y", "target", "class")


def read(path: Path) -> Table:
    """Read a file; InputError: missing, empty, damaged, of an unknown kind, or with unusable values."""
    data = sources.unpack(sources.read_file(path), str(path))
    if not data:
        raise InputError(f"{path} is empty; give a file with a header and at least two rows")
    name = path.name.lower().removesuffix(".gz")
    for ending, reader in _READERS.items():
        if re.search(ending, name):
            return reader(data, path)
    raise InputError(
        f"{path}: a file ending in {path.suffix!r} is of no known kind; give .csv, .tsv, .parquet, .npz, "
        ".svm, .libsvm, .svmlight or IDX (…-images-idx3-ubyte); text and IDX may end in .gz too"
    )


def default_label(table: Table, where: str) -> str:
    """Return the first column called label, y, target or class; InputError lists the columns."""
    lower = {name.lower(): name for name in reversed(table.columns)}
    for name in LABEL_NAMES:
        if name in lower:
            return lower[name]
    raise InputError(
        f"which column of {where} is the label? none is called {', '.join(LABEL_NAMES)}; pass label (on the "
        f"command line --label), one of {listing(list(table.columns) + list(table.matrix_names))}"
    )


def _csv(data: bytes, path: Path) -> Table:
    return Table(read_csv(data, str(path), ","))


def _tsv(data: bytes, path: Path) -> Table:
    return Table(read_csv(data, str(path), "\t"))


def _parquet(data: bytes, path: Path) -> Table:
    return Table(read_parquet(data, str(path)))


def _npz(data: bytes, path: Path) -> Table:
    """x (or X), of shape (n, ...), gives the features; an array (n,) can be label or cluster, not feature."""
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (ValueError, TypeError, OSError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise InputError(
            f"{path} is not a readable npz file: {error}; write it with numpy.savez, no objects"
        ) from error
    name = "x" if "x" in arrays else "X"
    if name not in arrays:
        raise InputError(
            f"{path} has no array 'x' or 'X', only {listing(list(arrays))}; name the features so"
        )
    block = arrays.pop(name)
    if block.ndim < 2 or block.dtype.kind not in "biuf":
        raise InputError(
            f"{path}: array {name!r} is {block.dtype} of shape {block.shape}; features are numbers of shape "
            "(n, d)"
        )
    flat = (
        _whole(block.reshape(len(block), -1), f"array {name!r}", path)
        if block.size
        else block.reshape(len(block), 0)
    )
    columns = {
        key: _npz_column(value.ravel(), key, path)
        for key, value in arrays.items()
        if value.size == len(block)
    }
    for key, value in arrays.items():
        if key.lower() in LABEL_NAMES and key not in columns:
            raise InputError(
                f"{path}: array {key!r} has shape {value.shape}; {name!r} has {len(block)} rows; match them"
            )
    names = tuple(f"{name}{i}" for i in range(flat.shape[1]))
    return Table(columns, flat, names, never_features=frozenset(columns))


def _npz_column(values: Array, name: str, path: Path) -> Column:
    if values.dtype.kind == "U":
        return text_category(values)
    if values.dtype.kind not in "biuf":
        raise InputError(f"{path}: array {name!r} is of type {values.dtype}; give numbers, booleans or text")
    return _whole(values, f"array {name!r}", path)


def _idx(data: bytes, path: Path) -> Table:
    """The images; their labels lie beside them in the file with "labels" for "images" and idx1 for idx3."""
    pixels = images.parse_idx(data, str(path))
    beside = path.with_name(path.name.replace("images", "labels").replace("idx3", "idx1"))
    if pixels.ndim < 2 or beside == path:
        raise InputError(
            f"{path} holds an array of shape {pixels.shape}; pass the file of images, …-images-idx3-ubyte"
        )
    others = [
        beside,
        beside.with_name(beside.name.removesuffix(".gz")),
        beside.with_name(beside.name + ".gz"),
    ]
    found = next((other for other in others if other.is_file()), None)
    if found is None:
        raise InputError(f"the labels of {path} are not beside it; put them into {beside}")
    marks = images.parse_idx(sources.unpack(sources.read_file(found), str(found)), str(found))
    if marks.shape != pixels.shape[:1]:
        raise InputError(
            f"{found} has labels of shape {marks.shape}, {path} has {len(pixels)} images; they must match"
        )
    flat = (
        _whole(pixels.reshape(len(pixels), -1), "a pixel", path)
        if pixels.size
        else pixels.reshape(len(pixels), 0)
    )
    return Table({"label": _whole(marks, "a label", found)}, flat, images.pixel_names(pixels.shape[1:]))


def _svmlight(data: bytes, path: Path) -> Table:
    from sklearn.datasets import load_svmlight_file

    try:
        sparse, marks = load_svmlight_file(io.BytesIO(data))
    except (ValueError, IndexError, OverflowError) as error:
        raise InputError(
            f"{path} is not in svmlight format ('label index:value …' a line): {error}; correct it"
        ) from error
    rows, width = sparse.shape
    if rows * width > tabular.CELL_LIMIT:
        raise InputError(
            f"{path} has {rows} rows of {width} features, over {tabular.CELL_LIMIT} cells; cut its features"
        )
    names = tuple(f"f{i}" for i in range(width))
    return Table(
        {"label": _whole(marks, "a label", path)}, _whole(sparse.toarray(), "a feature", path), names
    )


def _whole(values: Array, what: str, path: Path) -> Array:
    wrong = ~np.isfinite(values) if values.dtype.kind == "f" else np.zeros(0, bool)
    if wrong.any():
        at = tuple(int(i[0]) for i in np.nonzero(wrong))
        feature = f", feature {at[1]}" if len(at) > 1 else ""
        raise InputError(
            f"{path}: {what} is {values[at]} in row {at[0] + 1}{feature}; every value must be a number; "
            "fill it"
        )
    return values


_READERS: dict[str, Callable[[bytes, Path], Table]] = {
    r"\.csv$": _csv,
    r"\.(tsv|tab)$": _tsv,
    r"\.(parquet|pq)$": _parquet,
    r"\.npz$": _npz,
    r"[-.]idx\d?(-ubyte)?$": _idx,
    r"\.(svm|svmlight|libsvm)$": _svmlight,
}
