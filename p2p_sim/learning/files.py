"""A person's own files to tables, by the ending of their name: CSV, TSV, Parquet, npz, IDX, svmlight."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from p2p_sim.core.errors import InputError
from p2p_sim.learning import encode, images, sources, tabular
from p2p_sim.learning.table import Array, Column, Table, listing, text_category

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
    return Table(tabular.read_csv(data, str(path), ","))


def _tsv(data: bytes, path: Path) -> Table:
    return Table(tabular.read_csv(data, str(path), "\t"))


def _parquet(data: bytes, path: Path) -> Table:
    return Table(tabular.read_parquet(data, str(path)))


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
    if rows * width > encode.CELL_LIMIT:
        raise InputError(
            f"{path} has {rows} rows of {width} features, over {encode.CELL_LIMIT} cells; cut its features"
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
