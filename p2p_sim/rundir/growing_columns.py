"""Columns to which rows are appended block by block, in Parquet files.

The files do not depend on where blocks begin and end, with one exception.  If there are more rows than a row group has,
and columns of equal lengths in the end were not so in each block, they have a file each instead of sharing one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy.typing as npt

from p2p_sim.rundir import parquet_columns
from p2p_sim.rundir.trace_writer import unfinished

Array = npt.NDArray[Any]
Columns = Mapping[str, Array]

_ROWS = 1 << 20
"""Rows of a row group, pyarrow's default: at most so many rows are held, and those of the latest block."""


class GrowingColumns:
    """Columns in a folder: as ``name.parquet`` where they are of equal lengths, otherwise as ``name/COLUMN.parquet``.

    If there are more rows than a row group has, columns share a file only if they were of equal lengths when the first
    row group was full, and in each block after it.
    ``site``: the number of one of several sites that write some rows each, in their order, to
    ``name/parts/00002.parquet`` or ``name/parts/00002-COLUMN.parquet``.  Files have other names until ``close``.
    """

    def __init__(self, folder: Path, name: str, site: int | None = None):
        self._folder, self._name, self._site = folder, name, site
        self._blocks: list[Columns] = []
        self._rows: dict[str, int] = {}
        self._files: dict[tuple[str, ...], _GrowingFile] = {}
        """By the columns they hold; none until a row group is full, or all rows were added."""

    def add(self, columns: Columns) -> None:
        """Append rows to each column: always the same columns, of the same types."""
        if not self._files:
            self._blocks.append(columns)
            for name, column in columns.items():
                self._rows[name] = self._rows.get(name, 0) + len(column)
            if max(self._rows.values()) >= _ROWS:
                self._open_files()
            return
        if (*columns,) in self._files and not _equal_lengths(columns):
            self._split()
        self._to_files(columns)

    def close(self) -> None:
        """Write what is left, and give the files their names."""
        if not self._files:
            self._open_files()
        for file in self._files.values():
            file.close()

    def abandon(self) -> None:
        """Remove what was written; raises nothing."""
        for file in self._files.values():
            file.abandon()

    def _open_files(self) -> None:
        """Open one file if columns are of equal lengths so far, otherwise one a column."""
        names, blocks = list(self._rows), self._blocks
        self._blocks = []
        columns = blocks[0] if len(blocks) == 1 else parquet_columns.joined(blocks)
        for group in [(*names,)] if _equal_lengths(columns) else [(name,) for name in names]:
            self._files[group] = _GrowingFile(self._path(group[0] if len(group) < len(names) else None))
        self._to_files(columns)

    def _to_files(self, columns: Columns) -> None:
        for names, file in self._files.items():
            file.add({name: columns[name] for name in names})

    def _split(self) -> None:
        """Move the columns of the one file to a file each: they are no longer of equal lengths."""
        ((names, shared),) = self._files.items()
        self._files = {(name,): _GrowingFile(self._path(name)) for name in names}
        try:
            for columns in shared.taken_back():
                self._to_files(columns)
        except BaseException:
            shared.abandon()
            raise

    def _path(self, column: str | None) -> Path:
        """Return the path of the file of a column; None: of all columns."""
        if self._site is not None:
            name = f"{self._site:05d}" if column is None else f"{self._site:05d}-{column}"
            return self._folder / self._name / parquet_columns.PARTS / f"{name}.parquet"
        if column is None:
            return self._folder / f"{self._name}.parquet"
        return self._folder / self._name / f"{column}.parquet"


class _GrowingFile:
    """Columns of equal lengths in a file, whose encodings are chosen by the first row group."""

    def __init__(self, path: Path):
        self._path, self._unfinished = path, unfinished(path)
        self._waiting: list[Columns] = []
        self._rows = 0
        self._writer: Any = None

    def add(self, columns: Columns) -> None:
        self._waiting.append(columns)
        self._rows += _length(columns)
        if self._rows >= _ROWS:
            self._flush(self._rows - self._rows % _ROWS)

    def close(self) -> None:
        if self._rows or self._writer is None:  # even a file of no rows is written, for its schema
            self._flush(self._rows)
        self._writer.close()
        self._unfinished.rename(self._path)

    def taken_back(self) -> Iterator[Columns]:
        """Yield all rows that were added, in parts, and remove the file."""
        from pyarrow import parquet

        if self._writer is not None:
            self._writer.close()
            with parquet.ParquetFile(self._unfinished) as file:
                for group in range(file.num_row_groups):
                    yield parquet_columns.columns(file.read_row_group(group), self._unfinished)
            self._unfinished.unlink()
        yield from self._waiting

    def abandon(self) -> None:
        if self._writer is not None:
            with suppress(Exception):  # the caller raises the error that came first
                self._writer.close()
            self._writer.is_open = False  # or it would be closed again when it is garbage-collected
            with suppress(OSError):
                self._unfinished.unlink()

    def _flush(self, rows: int) -> None:
        """Write the first of the waiting rows, row group by row group."""
        columns = self._waiting[0] if len(self._waiting) == 1 else parquet_columns.joined(self._waiting)
        if self._writer is None:
            self._writer = self._opened(_rows_of(columns, 0, _ROWS))
        for low in range(0, max(rows, 1), _ROWS):
            group = _rows_of(columns, low, min(low + _ROWS, rows))
            self._writer.write_table(parquet_columns.arrow(group))
        self._rows -= rows
        self._waiting = (
            [{name: column[rows:].copy() for name, column in columns.items()}] if self._rows else []
        )

    def _opened(self, first: Columns) -> Any:
        from pyarrow import parquet

        self._path.parent.mkdir(parents=True, exist_ok=True)
        schema = parquet_columns.arrow(_rows_of(first, 0, 0)).schema
        how = parquet_columns.compact(first)
        return parquet.ParquetWriter(self._unfinished, schema, **how)


def write_apart(folder: Path, name: str, columns: Columns, site: int | None = None) -> None:
    """Write whole columns in the same form; see ``GrowingColumns``."""
    growing = GrowingColumns(folder, name, site)
    growing.add(columns)
    growing.close()


def _rows_of(columns: Columns, low: int, high: int) -> Columns:
    return {name: column[low:high] for name, column in columns.items()}


def _length(columns: Columns) -> int:
    return len(next(iter(columns.values())))


def _equal_lengths(columns: Columns) -> bool:
    return len({len(column) for column in columns.values()}) == 1
