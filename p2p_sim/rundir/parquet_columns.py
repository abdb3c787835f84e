"""Columns as Parquet files: how they are encoded, written and read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.rundir import parquet_schema, regular_files

Array = npt.NDArray[Any]


def arrow(columns: Mapping[str, Array], hidden: Mapping[str, Array] | None = None) -> Any:
    """Return columns of one length as an Arrow table; a column of shape (n, k) becomes lists of k.

    ``hidden``: by column, a mask of the rows that are null.
    """
    import pyarrow as pa

    arrays = {}
    for name, column in columns.items():
        flat = np.ascontiguousarray(column)
        mask = None if hidden is None or name not in hidden else np.asarray(hidden[name])
        if flat.ndim == 1:
            arrays[name] = _array(flat) if mask is None else pa.array(flat, mask=mask)
        else:
            nulls = None if mask is None else _array(mask)
            arrays[name] = pa.FixedSizeListArray.from_arrays(_array(flat.ravel()), flat.shape[1], mask=nulls)
    return pa.table(arrays)


def _array(flat: Array) -> Any:
    """Return a column as an Arrow array."""
    import pyarrow as pa

    if flat.dtype.kind not in "buif":
        return pa.array(flat)
    kind = pa.from_numpy_dtype(flat.dtype)
    octets = np.packbits(flat, bitorder="little") if flat.dtype == np.bool_ else flat
    return pa.Array.from_buffers(kind, len(flat), [None, pa.py_buffer(octets)])


def write(path: Path, columns: Mapping[str, Array]) -> None:
    """Write columns of one length."""
    from pyarrow import parquet

    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(arrow(columns), path, **compact(columns))


def compact(columns: Mapping[str, Array]) -> dict[str, Any]:
    """Return Parquet writer options chosen from these values, or the first rows of them."""
    rising = [name for name, values in columns.items() if rises(values)]
    return {"compression": "zstd", **encodings(columns, rising)}


def rises(values: Array) -> bool:
    """Whether a column is of ascending integers, as ids are: differences store these in a tenth of the room."""
    wide = values.ndim == 1 and values.dtype.kind in "iu" and values.itemsize >= 4
    return (
        wide
        and all(  # a part at a time, which holds no column of comparisons
            (values[low + 1 : low + _ROWS + 1] >= values[low : low + _ROWS][: len(values) - low - 1]).all()
            for low in range(0, len(values) - 1, _ROWS)
        )
    )


_ROWS = 1 << 20


def encodings(columns: Mapping[str, Array], rising: Collection[str]) -> dict[str, Any]:
    """Return how Parquet is to store columns of which some rise: these as differences, the others in dictionaries."""
    leaves = [
        name if values.ndim == 1 else f"{name}.list.element"
        for name, values in columns.items()
        if name not in rising
    ]
    return {"use_dictionary": leaves, "column_encoding": dict.fromkeys(rising, "DELTA_BINARY_PACKED")}


def check_name(path: Path) -> None:
    """Raise InputError for a path that Parquet cannot open."""
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{str(path)!r}: the names of Parquet files must be UTF-8, and this one is not: choose another name"
        ) from error


def read(path: Path, without: str | None = None) -> dict[str, Array]:
    """Read all columns of a file, except ``without``.

    Raises InputError for a column with nulls, and where memory is too small.
    """
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        rows, schema = file.metadata.num_rows, file.schema_arrow
        parquet_schema.check_memory(
            path, rows, 2 * parquet_schema.width_of(schema), "read it on a larger machine"
        )
        return columns(file.read([name for name in schema.names if name != without]), path)


def read_all(folder: Path, name: str = ".", only: str | None = None) -> dict[str, dict[str, Array]]:
    """Read every file of a folder (of ``name`` in it), by its name: columns of numbers, bools and text.

    ``only``: the name of the one file to read.  Raises InputError naming a file that is something else, or that
    holds other types.
    """
    found = {}
    for each in regular_files.names_in(folder, name):
        if each.endswith(".parquet") and only in (None, each.removesuffix(".parquet")):
            file = regular_files.find(folder, each if name == "." else f"{name}/{each}")
            assert file is not None  # it was listed just now
            schema = parquet_schema.footer(file).schema.to_arrow_schema()
            parquet_schema.check_types(file, schema, {}, more=parquet_schema.VALUES)
            found[file.stem] = read(file)
    return found


def columns(table: Any, file: Path) -> dict[str, Array]:
    """Turn an Arrow table from a file into columns; raises InputError naming a column that has nulls."""
    return {name: _whole(table[name].combine_chunks(), file, name) for name in table.column_names}


def _whole(values: Any, file: Path, name: str) -> Array:
    import pyarrow as pa

    inner = values.flatten() if pa.types.is_fixed_size_list(values.type) else values
    if values.null_count or inner.null_count:
        raise parquet_schema.damaged(file, f"its column {name!r} has missing values (nulls)")
    return column(values)


def column(values: Any) -> Array:
    """Turn an Arrow array into a column."""
    import pyarrow as pa

    if pa.types.is_fixed_size_list(values.type):
        return column(values.flatten()).reshape(-1, values.type.list_size)
    if pa.types.is_fixed_size_binary(values.type):
        width = values.type.byte_width
        octets = np.frombuffer(values.buffers()[1], np.uint8)
        return octets[values.offset * width : (values.offset + len(values)) * width].reshape(-1, width)
    if values.null_count == 0 and pa.types.is_boolean(values.type):
        octets, end = np.frombuffer(values.buffers()[1], np.uint8), values.offset + len(values)
        return np.unpackbits(octets, count=end, bitorder="little")[values.offset :].view(np.bool_)
    if values.null_count == 0 and (pa.types.is_integer(values.type) or pa.types.is_floating(values.type)):
        return np.from_dlpack(values)
    return values.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


PARTS = "parts"
"""The folder of files that each hold some rows, in the order of their names; ``growing_columns`` writes them."""


def read_apart(root: Path, folder: str, only: str | None = None) -> dict[str, dict[str, Array]]:
    """Read what ``GrowingColumns`` wrote to a folder in ``root``, by name; ``only``: of one name.

    Raises InputError as ``read_all``.
    """
    found = read_all(root, folder, only)
    for name in regular_files.names_in(root, folder):
        if not name.endswith(".parquet") and only in (None, name):
            inner = read_all(root, f"{folder}/{name}")
            found[name] = {key: columns[key] for key, columns in inner.items() if key in columns}
            parts = [columns for _, columns in sorted(read_all(root, f"{folder}/{name}/{PARTS}").items())]
            for key in dict.fromkeys(key for columns in parts for key in columns):
                found[name][key] = np.concatenate([columns[key] for columns in parts if key in columns])
    return found


def parts_of(folder: Path, name: str, names: Sequence[str]) -> Iterator[dict[str, Array]]:
    """Read columns of what ``GrowingColumns`` wrote, row group by row group.

    ``names``: of columns that lie together.
    """
    from pyarrow import parquet

    for path in _files_of(folder, name, names):
        with parquet.ParquetFile(path) as file:
            for group in range(file.num_row_groups if {*names} <= {*file.schema_arrow.names} else 0):
                yield columns(file.read_row_group(group, columns=list(names)), path)


def lie_together(folder: Path, name: str, names: Sequence[str]) -> bool:
    """Whether columns of what ``GrowingColumns`` wrote have one value a row, in the same files."""
    import pyarrow as pa
    from pyarrow import parquet

    found = False
    for path in _files_of(folder, name, names):
        schema = parquet.read_schema(path)
        here = [each for each in names if each in schema.names]
        nested = any(pa.types.is_nested(schema.field(each).type) for each in here)
        if nested or (here and len(here) < len(names)):
            return False
        found |= bool(here)
    return found


def gone(folder: Path, name: str) -> InputError:
    """Return the error that says that what was written is no longer there."""
    return InputError(f"{str(folder)!r} no longer holds what {name!r} returned; {regular_files.RESTORE}")


def _files_of(folder: Path, name: str, names: Sequence[str]) -> list[Path]:
    """Return the files of some columns, perhaps of others too; raises InputError if none is there."""
    inner = folder / name
    paths = [folder / f"{name}.parquet", *(inner / f"{column}.parquet" for column in names)]
    found = [path for path in (*paths, *sorted((inner / PARTS).glob("*.parquet"))) if path.is_file()]
    if not found:
        raise gone(folder, name)
    return found


def stores(values: Array) -> bool:
    """Return whether a column has anything to store: not if its values are vectors of length 0."""
    return values.ndim == 1 or values.shape[1] > 0


def joined(parts: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
    """Put columns of the same names end to end."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


class Stream:
    """A Parquet file written row group by row group; columns of several bytes a row become fixed-size binary values.

    ``like``: columns as they will come, whose first rows choose encodings; ``searched``: integers with the least and
    the greatest of each row group; ``absent``: those of ``searched`` that are null throughout, and not in ``like``.
    """

    def __init__(
        self,
        path: Path,
        like: Mapping[str, Array],
        searched: Sequence[str],
        absent: Collection[str] = (),
    ):
        import pyarrow as pa
        from pyarrow import parquet

        types = {name: pa.int32() for name in searched if name in like or name in absent}
        types |= {name: _packed(values[:1]).type for name, values in like.items()}
        self._schema = pa.schema(types.items())
        encodings = dict.fromkeys(absent, "PLAIN")
        encodings |= {_leaf(name, values): _encoding(values) for name, values in like.items()}
        self._writer = parquet.ParquetWriter(
            path, self._schema, compression="zstd", compression_level=-1, use_dictionary=False,
            column_encoding=encodings, write_statistics=[name for name in searched if name in like],
        )  # fmt: skip

    def write(self, columns: Mapping[str, Array]) -> None:
        """Write a row group."""
        import pyarrow as pa

        rows = len(next(iter(columns.values())))
        arrays = []
        for name, kind in zip(self._schema.names, self._schema.types, strict=True):
            array = _packed(columns[name]) if name in columns else pa.nulls(rows, kind)
            arrays.append(array if array.type == kind else array.cast(kind))
        self._writer.write_table(pa.Table.from_arrays(arrays, schema=self._schema))

    def close(self) -> None:
        """Close the file."""
        self._writer.close()


def _packed(values: Array) -> Any:
    import pyarrow as pa

    flat = np.ascontiguousarray(values)
    if flat.ndim == 1:
        return _array(flat)
    if flat.dtype == np.uint8:
        kind = pa.binary(flat.shape[1])
        return pa.FixedSizeBinaryArray.from_buffers(kind, len(flat), [None, pa.py_buffer(flat)])
    return pa.FixedSizeListArray.from_arrays(_array(flat.ravel()), flat.shape[1])


def _leaf(name: str, values: Array) -> str:
    """Return the Parquet path of the column that holds the values."""
    return name if values.ndim == 1 or values.dtype == np.uint8 else f"{name}.list.element"


def _encoding(values: Array) -> str:
    """Return the encoding of a column: differences if it is sorted, otherwise byte streams, which compress well."""
    if values.dtype == np.bool_ or (values.ndim > 1 and values.dtype == np.uint8):
        return "PLAIN"
    rises = values.ndim == 1 and values.itemsize >= 4 and bool((values[1:] >= values[:-1]).all())
    return "DELTA_BINARY_PACKED" if rises else "BYTE_STREAM_SPLIT"
