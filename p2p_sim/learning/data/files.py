"""A person's own files to tables, by the ending of their name: CSV, TSV, Parquet, npz, IDX, svmlight."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from p2p_sim.core.errors import InputError, near
from p2p_sim.core.population import pandas_index
from p2p_sim.learning.data import cells, delimited, file_contents, images, sources, svmlight
from p2p_sim.learning.data.reading_options import PLAIN, SVMLIGHT_ALONE, TEXT_ALONE, Reading, option
from p2p_sim.learning.data.tables import (
    Array,
    Bools,
    Category,
    Column,
    Gap,
    Table,
    category,
    check_names,
    listing,
    number_category,
    text_category,
)

DENSE_LIMIT = 1 << 28
"""Cells of a sparse file written out: 2 GiB in float64."""

LABEL_NAMES = ("label", "y", "target", "class")


def read(path: Path, reading: Reading = PLAIN) -> Table:
    """Read a file; InputError: missing, empty, damaged, of an unknown kind, with unusable values, or columns named in
    ``reading`` that are not there.
    """
    name = path.name.lower()
    if _SVMLIGHT.search(name):
        _refuse(reading.given(*TEXT_ALONE), "text files of columns", path)
        file_contents.refuse_others(sources.head_of(path), path, "svmlight")
        return _svmlight(path, reading)
    _refuse(reading.given(*SVMLIGHT_ALONE), "svmlight files", path)
    data = sources.unpack(sources.read_file(path), str(path))
    if not data:
        raise InputError(f"{path} is empty; give a file with a header and at least two rows")
    for ending, reader in _READERS.items():
        if re.search(ending, name.removesuffix(".gz")):
            if reader not in (_csv, _tsv):
                _refuse(reading.given(*TEXT_ALONE), "text files of columns", path)
            file_contents.refuse_others(data, path, _CONTENTS.get(reader, "text"))
            return reader(data, path, reading)
    if advice := file_contents.advice_for(Path(name).suffix):
        raise InputError(f"{path} is {advice}")
    ending = (
        f"a file ending in {path.suffix!r} is of no known kind" if path.suffix else "its name has no ending"
    )
    held = file_contents.advice_by_content(data, path)
    raise InputError(
        f"{path}: {ending}; {held}what is read ends in .csv, .tsv, .parquet, .npz, "
        ".svm, .libsvm, .svmlight or IDX (…-images-idx3-ubyte); text and "
        "IDX may end in .gz too"
    )


def _refuse(options: list[str], whose: str, path: Path) -> None:
    """Raise InputError for what was said of a file of another kind."""
    if options:
        raise InputError(f"{option(options[0])} goes with {whose}, which {path} is not: leave it out")


def default_label(table: Table, where: str) -> str:
    """Return the first column called label, y, target or class; InputError lists the columns."""
    lower = {name.lower(): name for name in reversed(table.columns)}
    for name in LABEL_NAMES:
        if name in lower:
            return lower[name]
    raise InputError(
        f"which column of {where} is the label? none is called {', '.join(LABEL_NAMES)}; pass label (on the "
        f"command line --label), one of {listing(table.names)}"
    )


def _csv(data: bytes, path: Path, reading: Reading) -> Table:
    return _delimited(data, path, ",", reading)


def _tsv(data: bytes, path: Path, reading: Reading) -> Table:
    return _delimited(data, path, "\t", reading)


def _delimited(data: bytes, path: Path, usual: str, reading: Reading) -> Table:
    text = delimited.read(data, str(path), usual, reading)
    _check_named(list(text.columns), reading, str(path))
    columns = {name: column for name, column in text.columns.items() if name not in reading.drop}
    return cells.table(columns, str(path), reading, text.read_as)


def _check_named(names: list[str], reading: Reading, what: str) -> None:
    known = set(names)
    for role in ("drop", "numeric", "categorical"):
        for name in getattr(reading, role):
            if name not in known:
                raise InputError(
                    f"{what} has no column {name!r}, named by --{role}"
                    f"{near(name, names)}; its columns are {listing(names)}"
                )


def _parquet(data: bytes, path: Path, reading: Reading) -> Table:
    """Columns of numbers, booleans and text.  What pandas kept as the index of its rows is no feature."""
    import pyarrow
    from pyarrow import parquet

    what = str(path)
    try:
        table = parquet.ParquetFile(pyarrow.BufferReader(data)).read()
    except (pyarrow.ArrowException, OSError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{what} is not a readable Parquet file: {reason}; write it again") from error
    check_names(table.schema.names, what)
    _check_named(table.schema.names, reading, what)
    if not table.num_rows:
        raise InputError(f"{what} has no rows; give at least two, of different labels")
    _refuse_types({each.name: each.type for each in table.schema if each.name not in reading.drop}, what)
    columns, gaps = dict[str, Column](), dict[str, Gap]()
    for name, chunks in zip(table.schema.names, table.columns, strict=True):
        if name not in reading.drop:
            columns[name], gap = arrow_column(chunks.combine_chunks(), name, what, reading)
            gaps |= {} if gap is None else {name: gap}
    index = [name for name in pandas_index(table) if name in columns]
    read_as = tuple(f"{name} numbers the rows (the index of pandas)" for name in index)
    return Table(columns, never_features=frozenset(index), missing=gaps, read_as=read_as)


def _refuse_types(kinds: Mapping[str, Any], what: str) -> None:
    """Refuse columns that are neither numbers nor booleans nor text, all of them at once."""
    from pyarrow import types

    wrong = {name: kind for name, kind in kinds.items() if not usable(kind)}
    if not wrong:
        return
    name, kind = next(iter(wrong.items()))
    more = f" ({listing(list(wrong)[1:], 12)} too)" if len(wrong) > 1 else ""
    if types.is_nested(kind):
        how = "nested columns are not read: make a column of each of its parts"
    elif types.is_temporal(kind):
        how = "make numbers of it, such as days, or text"
    else:
        how = "give numbers, booleans or text"
    raise InputError(
        f"column {name!r} of {what} is of type {kind}{more}; {how}, or leave it out (--drop {','.join(wrong)})"
    )


def usable(kind: Any) -> bool:
    """Return whether columns of an Arrow type are numbers, booleans or text."""
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    text = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    numbers = types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind)
    return bool(text or numbers or types.is_null(kind) or types.is_decimal(kind))


def arrow_column(column: Any, name: str, what: str, reading: Reading) -> tuple[Column, Gap | None]:
    """Return an Arrow array of a usable type as a column, and its gap."""
    from pyarrow import compute, types

    kind, nulls = column.type, np.asarray(column.is_null())
    if types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    gap = Gap(nulls, "null") if nulls.any() else None
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        if name in reading.numeric:
            found = cells.table({name: column.cast("string")}, what, reading)
            return found.columns[name], found.missing.get(name)
        coded = column.dictionary_encode()
        codes = np.asarray(coded.indices.fill_null(0), np.int64)
        return category(codes, coded.dictionary.to_pylist() or [""]), gap
    if types.is_null(kind):
        column = column.cast("float64")
    elif types.is_decimal(kind):
        column = _of_decimals(column, kind)
    filled = compute.fill_null(column, False if types.is_boolean(kind) else 0) if nulls.any() else column
    return _numbers(filled.to_numpy(zero_copy_only=False), nulls, gap, name, what, reading)


def _of_decimals(column: Any, kind: Any) -> Any:
    """Return decimals as whole numbers where they are, so that none is rounded; else as float64."""
    import pyarrow

    for whole in ("int64", "uint64") if kind.scale == 0 else ():
        try:
            return column.cast(whole)
        except pyarrow.ArrowInvalid:
            continue
    return column.cast("float64")


def _numbers(
    values: Array, nulls: Bools, gap: Gap | None, name: str, what: str, reading: Reading
) -> tuple[Column, Gap | None]:
    """Return a column of numbers and its gap, in which what is not a number counts too."""
    if values.dtype.kind == "f":
        absent = np.isnan(values)
        if (absent & ~nulls).any():
            both = absent | nulls
            gap = Gap(both, "null" if nulls[int(np.argmax(both))] else "nan")
            values = np.where(absent, values.dtype.type(0), values)
        infinite = np.isinf(values)
        if infinite.any():
            row = int(np.argmax(infinite))
            raise InputError(
                f"column {name!r} of {what} has {values[row]} in row {row + 1}; numbers must be finite; fill it, drop "
                "the row or the column"
            )
    return (number_category(values) if name in reading.categorical else values), gap


def _block(
    block: Array, names: tuple[str, ...], columns: dict[str, Column], what: str, path: Path, reading: Reading,
    *, never: frozenset[str] = frozenset(),
) -> Table:  # fmt: skip
    """Make a table of a block of features, shape (n, ...), and columns beside it."""
    flat = block.reshape(len(block), -1) if block.size else block.reshape(len(block), 0)
    check_names([*columns, *names], str(path))
    _check_named([*columns, *names], reading, str(path))
    kept = [i for i, name in enumerate(names) if name not in reading.drop]
    if len(kept) < len(names):
        flat, names = flat[:, kept], tuple(names[i] for i in kept)
    columns = {name: column for name, column in columns.items() if name not in reading.drop}
    _check_finite(flat, what, names, path, reading)
    gaps = dict[str, Gap]()
    for name, column in columns.items():
        if isinstance(column, Category):
            if name in reading.numeric:
                raise InputError(
                    f"column {name!r} of {path} is text, first {column.values[0]!r}: leave it out of --numeric"
                )
        else:
            columns[name], gap = _numbers(column, np.zeros(len(column), bool), None, name, str(path), reading)
            gaps |= {} if gap is None else {name: gap}
    table = Table(columns, flat, names, never_features=never, missing=gaps)
    texts = [name for name in table.matrix_names if name in reading.categorical]
    if not texts or table.matrix is None:
        return table
    rest, made = table.without(texts, str(path)), dict[str, Column]()
    for name in texts:
        cells_of = table.matrix[:, table.matrix_names.index(name)]
        made[name], gap = _numbers(cells_of, np.zeros(len(flat), bool), None, name, str(path), reading)
        gaps |= {} if gap is None else {name: gap}
    return replace(rest, columns={**rest.columns, **made}, missing=gaps)


def _npz(data: bytes, path: Path, reading: Reading) -> Table:
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
    names = tuple(f"{name}{i}" for i in range(block[:1].size if block.size else 0))
    never = frozenset(columns)
    return _block(block, names, columns, f"array {name!r}", path, reading, never=never)


def _npz_column(values: Array, name: str, path: Path) -> Column:
    if values.dtype.kind == "U":
        return text_category(values)
    if values.dtype.kind not in "biuf":
        raise InputError(f"{path}: array {name!r} is of type {values.dtype}; give numbers, booleans or text")
    return values


def read_with(path: Path) -> list[Path]:
    """Return the files that are read for a person's own file: it, and the labels beside it where it holds images."""
    beside = _labels_beside(path)
    found = next((other for other in _packed_or_not(beside) if other.is_file()), None)
    return [path] if beside == path or found is None else [path, found]


def _labels_beside(path: Path) -> Path:
    return path.with_name(path.name.replace("images", "labels").replace("idx3", "idx1"))


def _packed_or_not(path: Path) -> list[Path]:
    return [path, path.with_name(path.name.removesuffix(".gz")), path.with_name(path.name + ".gz")]


def _idx(data: bytes, path: Path, reading: Reading) -> Table:
    """The images; their labels lie beside them in the file with "labels" for "images" and idx1 for idx3."""
    pixels = images.parse_idx(data, str(path))
    beside = _labels_beside(path)
    if pixels.ndim < 2 or beside == path:
        raise InputError(
            f"{path} holds an array of shape {pixels.shape}; pass the file of images, …-images-idx3-ubyte"
        )
    found = next((other for other in _packed_or_not(beside) if other.is_file()), None)
    if found is None:
        raise InputError(f"the labels of {path} are not beside it; put them into {beside}")
    marks = images.parse_idx(sources.unpack(sources.read_file(found), str(found)), str(found))
    if marks.shape != pixels.shape[:1]:
        raise InputError(
            f"{found} has labels of shape {marks.shape}, {path} has {len(pixels)} images; they must match"
        )
    names = images.pixel_names(pixels.shape[1:]) if pixels.size else ()
    return _block(pixels, names, {"label": marks}, "a pixel", path, reading)


def _svmlight(path: Path, reading: Reading) -> Table:
    """The features, written out; counted from 1, or from 0 if there is a feature 0."""
    sparse, marks, total = svmlight.gather(path, first=0, sample=reading.sample, hashed=reading.hashed)
    rows, width = sparse.shape
    if reading.hashed is not None:
        read_as = (f"{_of_all(rows, total)}features hashed into {width:,} columns",)
        names = tuple(f"hash{i}" for i in range(width))
        return replace(_block(sparse, names, {"label": marks}, "a feature", path, reading), read_as=read_as)
    if width > 1 and not (sparse.indices == 0).any():
        sparse, width = sparse[:, 1:], width - 1
    if rows * width > DENSE_LIMIT:
        raise InputError(
            f"{path} has {rows:,} rows of {width:,} features, of which {sparse.nnz:,} are not 0: written out they take "
            f"{rows * width * 8 / 2**30:.1f} GiB, at most {DENSE_LIMIT * 8 / 2**30:.0f} GiB are allowed; take some of "
            "the rows (--sample), hash the features into fewer columns (--hashed), or leave rare ones out"
        )
    if (np.isfinite(sparse.data) & (np.abs(sparse.data) >= cells.EXACT)).any():
        raise InputError(
            f"{path} holds a feature of 2^53 or more, where svmlight's numbers are not exact: scale it, or leave it out"
        )
    names = tuple(f"f{i}" for i in range(width))
    table = _block(sparse.toarray(), names, {"label": marks}, "a feature", path, reading)
    return table if rows == total else replace(table, read_as=(_of_all(rows, total).rstrip("; "),))


def _of_all(rows: int, total: int) -> str:
    return "" if rows == total else f"{rows:,} of {total:,} rows, drawn at random; "


def _check_finite(block: Array, what: str, names: tuple[str, ...], path: Path, reading: Reading) -> None:
    """Refuse what is no number in a block of features; what is missing is left where it is not refused."""
    if block.dtype.kind != "f":
        return
    wrong = ~np.isfinite(block) if reading.missing == "refuse" else np.isinf(block)
    if wrong.any():
        row, feature = (int(i[0]) for i in np.nonzero(wrong))
        raise InputError(
            f"{path}: {what} is {block[row, feature]} in row {row + 1}, feature {names[feature]!r}; every value must "
            "be a number; fill it, leave the feature out (--drop), or where it is nan say --missing drop or impute"
        )


_READERS: dict[str, Callable[[bytes, Path, Reading], Table]] = {
    r"\.csv$": _csv,
    r"\.(tsv|tab)$": _tsv,
    r"\.(parquet|pq)$": _parquet,
    r"\.npz$": _npz,
    r"[-.]idx\d?(-ubyte)?$": _idx,
}
_CONTENTS: dict[Callable[[bytes, Path, Reading], Table], str] = {
    _parquet: "parquet",
    _npz: "npz",
    _idx: "idx",
}
"""What the files of a reader hold, as ``file_contents`` calls it; others hold text."""

_SVMLIGHT = re.compile(r"\.(svm|svmlight|libsvm)(\.(gz|bz2|xz))?$")
