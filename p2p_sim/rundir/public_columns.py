"""Public columns, and features, of a population as columns of ``population.parquet``: equal bits, types and shapes.

Numbers, times and text are stored as such, all other types of numpy as their octets.  The file's metadata hold the
type and the shape of each column, so that what is read is what was written.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.rundir.parquet_schema import MOST_COLUMNS, Fits, exactly

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Group:
    """Columns of a kind: the prefix of their names in the file, the key of their types in its metadata, their word."""

    prefix: str
    about: bytes
    word: str


PUBLIC = Group("public/", b"p2p-sim.public", "public column")
FEATURES = Group("features/", b"p2p-sim.features", "features")
GROUPS = (PUBLIC, FEATURES)

_KINDS = "biufcmMSUV"
_DO = "restore it, or run the protocol again"


@dataclass(frozen=True)
class ColumnType:
    """What one row of a column is: ``shape`` values of a ``dtype``."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    @property
    def width(self) -> int:
        """How many values a row has."""
        return math.prod(self.shape)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to store."""
        return self.width * self.dtype.itemsize == 0

    @property
    def stored(self) -> np.dtype[Any] | None:
        """The numbers that are stored; None for text."""
        if self.dtype.kind == "U":
            return None
        if self.dtype.kind in "mM":
            return np.dtype(np.int64)
        plain = self.dtype.kind in "biu" or (self.dtype.kind == "f" and self.dtype.itemsize in (4, 8))
        return self.dtype.newbyteorder("=") if plain else np.dtype(np.uint8)

    def encode(self, rows: Array) -> Array:
        """Return rows as they are stored, of shape (n,) or (n, k)."""
        kind, flat = self.stored, np.ascontiguousarray(rows)
        native = flat.astype(self.dtype.newbyteorder("="), copy=False)
        if kind is None or kind == native.dtype:
            return native.reshape(self.stored_shape(len(rows)))
        octets = native if kind == np.int64 else flat  # of what is no number, as it lies in memory
        return octets.reshape(-1).view(kind).reshape(self.stored_shape(len(rows)))

    def decode(self, found: Array) -> Array:
        """Return stored rows as they were; raises ValueError for others."""
        rows, kind = len(found), self.stored
        shape = self.stored_shape(rows)
        if found.shape != shape or found.dtype != (np.dtype(object) if kind is None else kind):
            raise ValueError(f"holds {found.dtype} of shape {found.shape}")
        if kind is None:
            text = found.astype(str) if rows else found.astype(self.dtype)
            if text.dtype.itemsize > self.dtype.itemsize:
                raise ValueError("holds a longer text")
            return text.astype(self.dtype).reshape(rows, *self.shape)
        values = np.ascontiguousarray(found)
        if kind == self.dtype.newbyteorder("="):
            return values.astype(self.dtype, copy=False).reshape(rows, *self.shape)
        if kind == np.int64:
            native = values.reshape(-1).view(self.dtype.newbyteorder("="))
            return native.astype(self.dtype, copy=False).reshape(rows, *self.shape)
        return values.reshape(-1).view(self.dtype).reshape(rows, *self.shape)

    def stored_shape(self, rows: int) -> tuple[int, ...]:
        """Return the shape of what is stored of so many rows: a list a row where it is not a single value."""
        octets = self.stored == np.uint8 and self.dtype != np.uint8
        return (
            (rows, self.width * (self.dtype.itemsize if octets else 1)) if self.shape or octets else (rows,)
        )


def type_of(column: Array) -> ColumnType:
    """Return what one row of a column is."""
    return ColumnType(column.dtype, column.shape[1:])


def check(columns: Mapping[str, Array]) -> None:
    """Check that public columns can be stored; raises InputError naming one that cannot."""
    if len(columns) > MOST_COLUMNS - 3:  # id, cluster and y
        raise InputError(
            f"{len(columns):,} public columns: a run directory keeps at most {MOST_COLUMNS - 3:,}; put numbers of a "
            "kind into one column of several values a user"
        )
    for name, column in columns.items():
        if not isinstance(name, str):
            raise InputError(f"public column {name!r}: a name is text; give {str(name)!r}")
        what = f"public column {name!r}"
        if not _encodable(np.array([name])):
            raise InputError(f"{what}: its name cannot be written in UTF-8; choose another")
        if column.dtype.hasobject or column.dtype.kind not in _KINDS or column.dtype.names is not None:
            raise InputError(
                f"{what} has type {column.dtype}, which a run directory does not keep: give numbers, times or "
                "fixed-width text, of records one column a field"
            )
        if column.dtype.kind == "U" and not _encodable(column):
            raise InputError(f"{what} holds text that cannot be written in UTF-8: mend it, or give numbers")


def _encodable(text: Array) -> bool:
    """Whether text is Unicode without lone surrogates."""
    flat = np.ascontiguousarray(text).astype(text.dtype.newbyteorder("="), copy=False).reshape(-1)
    codes = flat.view(np.uint32) if text.dtype.itemsize else np.zeros(0, np.uint32)
    return not bool(((codes >= 0xD800) & (codes < 0xE000)).any())


def encoded(columns: Mapping[str, Array], low: int, high: int, group: Group = PUBLIC) -> dict[str, Array]:
    """Return some rows of public columns, checked, as they are stored, by their names in the file."""
    types = {name: type_of(column) for name, column in columns.items()}
    return {
        group.prefix + name: kind.encode(columns[name][low:high])
        for name, kind in types.items()
        if not kind.empty
    }


def metadata(columns: Mapping[str, Array], group: Group = PUBLIC) -> dict[bytes, bytes]:
    """Return what a file tells of its public columns; nothing where there are none."""
    declared = {
        name: {"dtype": kind.dtype.str, "shape": list(kind.shape)}
        for name, kind in ((name, type_of(column)) for name, column in columns.items())
    }
    return {group.about: json.dumps(declared).encode()} if declared else {}


def types_in(file: Path, schema: Any, group: Group = PUBLIC) -> dict[str, ColumnType]:
    """Return the public columns of a population file by name; earlier versions wrote none.

    ``schema``: its Arrow schema.  Raises InputError naming the file, and the column, where they do not fit.
    """
    raw = (schema.metadata or {}).get(group.about)
    there = {name.removeprefix(group.prefix) for name in schema.names if name.startswith(group.prefix)}
    try:
        declared = {} if raw is None else dict(json.loads(raw).items())
    except (ValueError, AttributeError) as error:
        raise InputError(
            f"{str(file)!r} is damaged: what it tells of its {group.word}s cannot be read ({error}); {_DO}"
        ) from error
    found = {name: _declared_type(file, name, entry, group) for name, entry in declared.items()}
    wanted = {name for name, kind in found.items() if not kind.empty}
    for name in sorted(there ^ wanted):
        why = "is missing" if name in wanted else "is there, and nothing tells its type"
        raise InputError(f"{str(file)!r} is damaged: {group.word} {name!r} {why}; {_DO}")
    return found


def declared(types: Mapping[str, ColumnType], group: Group = PUBLIC) -> dict[str, Fits]:
    """Return what Arrow types the stored columns of a population file have, by their names in it."""
    return {
        group.prefix + name: exactly(kind.stored, next(iter(kind.stored_shape(0)[1:]), None), octets=False)
        for name, kind in types.items()
        if not kind.empty
    }


def _declared_type(file: Path, name: str, entry: Any, group: Group) -> ColumnType:
    try:
        dtype, shape = np.dtype(entry["dtype"]), tuple(entry["shape"])
        if dtype.kind not in _KINDS or not all(type(size) is int and size >= 0 for size in shape):
            raise ValueError(f"{entry['dtype']} of shape {entry['shape']}")
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(
            f"{str(file)!r} is damaged: the type of {group.word} {name!r} is none ({error}); {_DO}"
        ) from error
    return ColumnType(dtype, shape)


def decoded(
    file: Path,
    types: Mapping[str, ColumnType],
    rows: int,
    read: Callable[[str], Array],
    group: Group = PUBLIC,
) -> dict[str, Array]:
    """Return public columns of ``rows`` users; ``read``: returns what is stored of one, by its name in the file.

    Raises InputError naming the file and a column that holds something else than it should.
    """
    columns = {}
    for name, kind in types.items():
        try:
            columns[name] = (
                np.zeros((rows, *kind.shape), kind.dtype)
                if kind.empty
                else kind.decode(read(group.prefix + name))
            )
        except ValueError as error:
            raise InputError(
                f"{str(file)!r} is damaged: {group.word} {name!r} should hold {kind.dtype} of shape "
                f"{(rows, *kind.shape)}, and {error}; {_DO}"
            ) from error
    return columns
