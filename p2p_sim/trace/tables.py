"""Columns as Arrow tables and Parquet files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

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
            arrays[name] = pa.array(flat, mask=mask)
        else:
            nulls = None if mask is None else pa.array(mask)
            arrays[name] = pa.FixedSizeListArray.from_arrays(flat.ravel(), flat.shape[1], mask=nulls)
    return pa.table(arrays)


def write(path: Path, columns: Mapping[str, Array]) -> None:
    """Write columns of one length."""
    from pyarrow import parquet

    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(arrow(columns), path, compression="zstd")


def read_all(folder: Path) -> dict[str, dict[str, Array]]:
    """Read every file of a folder, by its name."""
    from pyarrow import parquet

    tables = {}
    for file in sorted(folder.glob("*.parquet")) if folder.is_dir() else []:
        table = parquet.read_table(file)
        tables[file.stem] = {name: column(table[name].combine_chunks()) for name in table.column_names}
    return tables


def column(values: Any) -> Array:
    """Turn an Arrow array into a column."""
    import pyarrow as pa

    if pa.types.is_fixed_size_list(values.type):
        flat = values.flatten().to_numpy(zero_copy_only=False)
        return flat.reshape(-1, values.type.list_size)  # type: ignore[no-any-return]
    return values.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def write_apart(folder: Path, name: str, columns: Mapping[str, Array]) -> None:
    """Write columns of one length as ``name.parquet``, otherwise each as ``name/COLUMN.parquet``."""
    if len({len(column) for column in columns.values()}) == 1:
        write(folder / f"{name}.parquet", columns)
        return
    for key, values in columns.items():
        write(folder / name / f"{key}.parquet", {key: values})


def read_apart(folder: Path) -> dict[str, dict[str, Array]]:
    """Read what ``write_apart`` wrote."""
    found = read_all(folder)
    for inner in sorted(folder.iterdir()) if folder.is_dir() else []:
        if inner.is_dir():
            found[inner.name] = {key: columns[key] for key, columns in read_all(inner).items()}
    return found
