"""Named data sets from OpenML: a pinned data id, and content checked against what is known of it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from p2p_sim.core.errors import InputError
from p2p_sim.learning.labels import present
from p2p_sim.learning.named import UNUSED, Named, OpenML
from p2p_sim.learning.readers import images_table, parts_table
from p2p_sim.learning.sources import VARIABLE
from p2p_sim.learning.table import Array, Category, Column, Table, number_text, text_category


def fetch(named: Named, copy: OpenML) -> Table:
    """Fetch a named set from OpenML (scikit-learn keeps a copy in its cache) and check it.

    Checked: scikit-learn holds the file to the MD5 that OpenML states; then rows of each class, part by part,
    and where it is known the sum over the rows of their SHA-256.  InputError: no network, or not the pinned
    data.
    """
    from sklearn.datasets import fetch_openml

    pictures = bool(named.shape)
    try:
        bunch = fetch_openml(data_id=copy.id, as_frame=not pictures, parser="auto")
    except (OSError, ValueError) as error:  # URLError and timeouts are OSErrors; OpenMLError is a ValueError
        raise InputError(
            f"{named.name} is not in the folder of {VARIABLE} and could not be fetched from OpenML "
            f"{copy.id} ({copy.title}): {error}; set {VARIABLE} to a folder that has it, or pass a file of "
            "your own"
        ) from error
    return _pictures(named, copy, bunch) if pictures else _columns(named, copy, bunch)


def content_sum(rows: Iterable[bytes]) -> str:
    """Sum the first 8 bytes (little-endian) of each row's SHA-256 modulo 2^64, in hex: free of row order."""
    total = sum(int.from_bytes(hashlib.sha256(row).digest()[:8], "little") for row in rows)
    return f"{total % 2**64:016x}"


def image_rows(pixels: Array, codes: Array) -> Iterator[bytes]:
    """Yield each image as bytes: its pixels, then its class."""
    for row, code in zip(np.ascontiguousarray(pixels, np.uint8), codes.tolist(), strict=True):
        yield row.tobytes() + bytes([code])


def table_rows(columns: dict[str, Column]) -> Iterator[bytes]:
    """Yield each row as text: its cells in the order of the columns, joined by commas, 5 for 5.0."""
    texts = []
    for column in columns.values():
        codes, values = (column.codes, column.values) if isinstance(column, Category) else present(column)
        texts.append([values[code] for code in codes.tolist()])
    for cells in zip(*texts, strict=True):
        yield ",".join(cells).encode()


def _pictures(named: Named, copy: OpenML, bunch: Any) -> Table:
    pixels = np.asarray(bunch.data)
    if pixels.shape != (named.rows, named.width):
        raise _differs(named, copy, f"it has shape {pixels.shape}, not {(named.rows, named.width)}")
    try:
        pixels, codes = pixels.astype(np.uint8), np.array([int(float(value)) for value in bunch.target])
    except ValueError as error:
        raise _differs(named, copy, str(error)) from error
    if named.kind == "cifar":  # there, all red values come first, then green, then blue
        pixels = pixels.reshape(-1, 3, 32 * 32).transpose(0, 2, 1).reshape(len(pixels), -1)
    order, test = _order(named, copy, codes)
    pixels, codes = pixels[order], codes[order]
    if copy.content is not None and content_sum(image_rows(pixels, codes)) != copy.content:
        raise _differs(named, copy, "its content has another checksum")
    return images_table(named, pixels, codes, test)


def _columns(named: Named, copy: OpenML, bunch: Any) -> Table:
    frame = bunch.data.drop(columns=[name for name in bunch.data.columns if str(name).lower() == "id"])
    cells = [frame.iloc[:, i] for i in range(frame.shape[1])] + [bunch.target]
    if len(cells) != len(named.columns):
        raise _differs(named, copy, f"it has {len(cells)} columns, not {len(named.columns)}")
    columns = dict[str, Column]()
    for name, series in zip(named.columns, cells, strict=True):
        if name in UNUSED:
            continue
        try:
            columns[name] = _series(series, name in named.numeric)
        except ValueError as error:
            raise _differs(named, copy, f"column {name!r}: {error}") from error
    if copy.content is not None and content_sum(table_rows(columns)) != copy.content:
        raise _differs(named, copy, "its content has another checksum")
    label = columns[named.label]
    assert isinstance(label, Category)
    codes = np.array([_place(named, copy, value) for value in label.values])[label.codes]
    order, test = _order(named, copy, codes)
    ordered = {name: _take(column, order) for name, column in columns.items()}
    if test is None or len(named.counts) == 1:
        return Table(ordered, test=None)
    train = {name: _take(column, np.flatnonzero(~test)) for name, column in ordered.items()}
    return parts_table(
        named, [train, {name: _take(column, np.flatnonzero(test)) for name, column in ordered.items()}]
    )


def _order(named: Named, copy: OpenML, codes: Array) -> tuple[Array, Array | None]:
    """Return row order (train first) and test rows; None for them if the parts are mixed."""
    every = np.arange(len(codes))
    size = len(named.values)
    counts = np.bincount(codes, minlength=size)
    if counts.tolist() != np.sum(named.counts, axis=0).tolist():
        raise _differs(named, copy, f"its classes have {counts.tolist()} rows")
    if len(named.counts) == 1:
        return every, None
    first, second = (sum(part) for part in named.counts)
    if np.bincount(codes[:first], minlength=size).tolist() == list(named.counts[0]):
        return every, every >= first
    if np.bincount(codes[:second], minlength=size).tolist() == list(
        named.counts[1]
    ):  # the test part comes first
        return np.roll(every, -second), every >= first
    return every, None


def _series(series: Any, numeric: bool) -> Column:
    if numeric:
        numbers: Array = np.asarray(series.astype("float64"))
        if not np.isfinite(numbers).all():
            raise ValueError("it has missing numbers")
        return numbers
    cells = series.astype(object)
    cells = cells.where(cells.notna(), "?")
    return text_category(_cell(cell) for cell in cells)


def _cell(cell: Any) -> str:
    return number_text(cell) if isinstance(cell, int | float) else str(cell)


def _take(column: Column, rows: Array) -> Column:
    return Category(column.codes[rows], column.values) if isinstance(column, Category) else column[rows]


def _place(named: Named, copy: OpenML, value: str) -> int:
    if value not in named.values:
        raise _differs(named, copy, f"its label has the value {value!r}")
    return named.values.index(value)


def _differs(named: Named, copy: OpenML, how: str) -> InputError:
    return InputError(
        f"OpenML {copy.id} ({copy.title}) is not the {named.name} this version of p2p-sim pins: {how}; "
        f"remove it from scikit-learn's cache (~/scikit_learn_data) and fetch again, or set {VARIABLE} to a "
        "folder that has it"
    )
