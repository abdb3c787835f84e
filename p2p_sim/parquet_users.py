"""Users in Parquet files on a shared path or in an object store, which each shard reads itself."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError, near
from p2p_sim.core.population import MAX_LABELS, MAX_USERS, Population
from p2p_sim.core.population_in_parts import PopulationInParts, rows_of_sizes
from p2p_sim.rundir import parquet_columns

Array = npt.NDArray[Any]

_READ_WHOLE = 256 << 20  # bytes of files of which all is hashed
_END = 8  # bytes at the end of a Parquet file: the length of its footer, and PAR1

ADVICE = (
    "give a path that all machines of the cluster share, or the address of an object store, such as s3://..."
)


def population(place: str | Path, *, label: str = "y", cluster: str | None = None) -> PopulationInParts:
    """Return the users of a Parquet file, or of all those in a folder in the order of their names.

    They are read a part at a time, where they are needed: by the shards themselves.  ``place``: a path, or an address
    of pyarrow's file systems (s3://, gs://, hdfs://).  ``label``: the column of labels, bool or integers from 0;
    ``cluster``: that of clusters, integers, by which the rows must be sorted; None for none.  Raises InputError if it
    cannot be read, and for other columns.
    """
    if not str(place):  # an empty shell variable would be the folder that one stands in
        raise InputError("population = '': name a Parquet file, or a folder of them")
    files = []
    try:
        system, path = system_of(str(place))
        for name in files_at(system, path):
            with opened(system, name) as file:
                _check(name, file.schema_arrow, label, cluster)
                files.append((name, int(file.metadata.num_rows)))
    except OSError as error:
        raise InputError(f"population {str(place)!r} cannot be read ({error}): check the path") from error
    users = sum(rows for _, rows in files)
    if not 1 <= users <= MAX_USERS:
        raise InputError(f"population {str(place)!r} has {users:,} rows: needed are 1 to {MAX_USERS:,}")
    return PopulationInParts(ParquetUsers(whole_address(str(place)), tuple(files), label, cluster))


def contents(place: str | Path) -> dict[str, str]:
    """Return a SHA-256 for each Parquet file at a place, by which a change is noticed: of its size and its footer.

    The footer has the row groups with their places, sizes and extreme values.  Where all files together have at most
    256 MiB, it is of all that is in them.  Raises InputError if they cannot be read.
    """
    try:
        system, path = system_of(str(place))
        sizes = {each.path: int(each.size) for each in system.get_file_info(files_at(system, path))}
        whole = sum(sizes.values()) <= _READ_WHOLE
        return {name: _sha256(system, name, size, whole) for name, size in sizes.items()}
    except OSError as error:
        raise InputError(f"population {str(place)!r} cannot be read ({error}): check the path") from error


def _sha256(system: Any, name: str, size: int, whole: bool) -> str:
    digest = hashlib.sha256(str(size).encode())
    with system.open_input_file(name) as file:
        if not whole:
            file.seek(max(0, size - _END))
            length = int.from_bytes(
                file.read(_END)[:4], "little"
            )  # of the footer, before the last four bytes
            file.seek(max(0, size - _END - length))
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


@dataclass(frozen=True)
class _Look:
    """What is known of some rows: the clusters in their order, how many rows of each, and the largest label."""

    names: Array
    sizes: Array
    greatest: int


@dataclass(frozen=True)
class ParquetUsers:
    """The rows of some Parquet files; ``all_of_them``: what looks at all of them have found."""

    place: str
    files: tuple[tuple[str, int], ...]
    label: str
    cluster: str | None
    all_of_them: _Look | None = None

    @property
    def users(self) -> int:
        """How many users there are."""
        return sum(rows for _, rows in self.files)

    @property
    def known(self) -> bool:
        """Whether all rows were looked at."""
        return self.all_of_them is not None

    @property
    def labels(self) -> int:
        """How many label values there can be."""
        return max(2, self._known().greatest + 1)

    @property
    def sizes(self) -> Array | None:
        """Users in each cluster."""
        return None if self.cluster is None else self._known().sizes

    def part(self, low: int, high: int) -> Population:
        """Read some users."""
        known = self._known()
        labels = self._read(low, high)[self.label]
        labels = labels if labels.dtype == np.bool_ else labels.astype(np.uint8, copy=False)
        members = None if self.cluster is None else rows_of_sizes(known.sizes, low, high, known.names)
        return Population(labels, members)

    def columns(self, _low: int, _high: int) -> None:
        """Nothing: what was read is kept."""

    def head(self, users: int) -> PopulationInParts:
        """Return about the first users as a population of their own, for a plan."""
        name, rows = self.files[0]
        return PopulationInParts(replace(self, files=((name, min(users, rows)),), all_of_them=None))

    def look(self, low: int, high: int) -> _Look:
        """Read some users, and return their clusters and the largest label; raises InputError for other values."""
        columns = self._read(low, high)
        y = columns[self.label]
        least, greatest = (int(y.min()), int(y.max())) if len(y) else (0, 0)
        if least < 0 or greatest >= MAX_LABELS:
            raise InputError(
                f"column {self.label!r} of {self.place!r} holds labels from {least} to {greatest}: labels are integers "
                f"from 0 to at most {MAX_LABELS - 1}"
            )
        nothing = np.zeros(0, np.int64)
        if self.cluster is None or not len(y):
            return _Look(nothing, nothing, greatest)
        names = columns[self.cluster].astype(np.int64, copy=False)
        edges = np.concatenate([[0], np.flatnonzero(np.diff(names)) + 1, [len(names)]])
        return _Look(names[edges[:-1]], np.diff(edges), greatest)

    def looked(self, found: Sequence[_Look]) -> ParquetUsers:
        """Put looks at all rows together; raises InputError unless rows are sorted by cluster."""
        names = np.concatenate([look.names for look in found])
        sizes = np.concatenate([look.sizes for look in found])
        fresh = np.concatenate([[True], np.diff(names) != 0])[: len(names)]
        wrong = np.flatnonzero(np.diff(names) < 0)
        if len(wrong) or (len(names) and int(names[0]) < 0):
            which = int(names[wrong[0] + 1]) if len(wrong) else int(names[0])
            raise InputError(
                f"population {self.place!r}: its rows are not sorted by {self.cluster!r} (cluster {which} comes too "
                "late), or a cluster is below 0: sort it first, for instance by pandas' sort_values"
            )
        together = np.add.reduceat(sizes, np.flatnonzero(fresh)) if len(sizes) else sizes
        greatest = max((look.greatest for look in found), default=0)
        return replace(self, all_of_them=_Look(names[fresh], together, greatest))

    def _known(self) -> _Look:
        if self.all_of_them is None:  # nobody has looked yet: this process does
            found = [self.look(low, high) for low, high in self._pieces()]
            object.__setattr__(self, "all_of_them", self.looked(found).all_of_them)
            assert self.all_of_them is not None
        return self.all_of_them

    def _pieces(self) -> Iterator[tuple[int, int]]:
        ends = itertools.accumulate((rows for _, rows in self.files), initial=0)
        return itertools.pairwise(ends)

    def _read(self, low: int, high: int) -> dict[str, Array]:
        """Read label and cluster of some rows, from the row groups that hold them."""
        names = [self.label] + ([] if self.cluster is None else [self.cluster])
        parts: list[dict[str, Array]] = []
        try:
            system, _ = system_of(self.place)
            for (name, _), (first, end) in zip(self.files, self._pieces(), strict=True):
                if first < max(high, low + 1) and low < end:
                    with opened(system, name) as file:
                        parts += _groups(file, name, names, low - first, high - first)
        except OSError as error:
            raise InputError(
                f"a shard cannot read the population {self.place!r} ({error}): {ADVICE}"
            ) from error
        return parquet_columns.joined(parts)


def _groups(file: Any, name: str, names: list[str], low: int, high: int) -> list[dict[str, Array]]:
    """Read some rows of a file, row group by row group."""
    found, first = [], 0
    for group in range(file.num_row_groups):
        end = first + file.metadata.row_group(group).num_rows
        if first < max(high, low + 1) and low < end:
            table = file.read_row_group(group, columns=names, use_threads=False)
            for key in names:
                if table.column(key).null_count:
                    raise InputError(
                        f"column {key!r} of {name!r} has missing values (nulls): fill them in, or leave these rows out"
                    )
            rows = slice(max(0, low - first), max(0, high - first))
            read = parquet_columns.columns(table, Path(name))
            found.append({key: column[rows].copy() for key, column in read.items()})
        first = end
    return found


def _check(file: str, schema: Any, label: str, cluster: str | None) -> None:
    """Raise InputError unless a file has the columns that are asked for, of types that fit."""
    import pyarrow as pa

    for name in (label, cluster):
        if name is None:
            continue
        if name not in schema.names:
            raise InputError(
                f"population {file!r} has no column {name!r}"
                f"{near(name, schema.names)}; it has {', '.join(schema.names[:20])}"
            )
        kind = schema.field(name).type
        if not (pa.types.is_integer(kind) or (name == label and pa.types.is_boolean(kind))):
            allowed = "bool or integers" if name == label else "integers"
            raise InputError(f"column {name!r} of {file!r} has the type {kind}: needed are {allowed}")


def whole_address(place: str) -> str:
    """Return a place that is the same in every folder: an address as it is, a path from the root on."""
    return place if "://" in place else str(Path(place).expanduser().absolute())


def system_of(place: str) -> tuple[Any, str]:
    """Return the file system of a place, and the path there."""
    from pyarrow import ArrowInvalid, fs

    try:
        found: tuple[Any, str] = fs.FileSystem.from_uri(whole_address(place))
    except ArrowInvalid as error:
        raise InputError(f"population {place!r}: no such kind of place ({error}): {ADVICE}") from error
    return found


def files_at(system: Any, path: str) -> list[str]:
    """Return the Parquet files at a path, those of a folder by name."""
    from pyarrow import fs

    here = system.get_file_info(path)
    if here.type == fs.FileType.NotFound:
        raise FileNotFoundError(f"there is nothing at {path!r}")
    if here.type == fs.FileType.File:
        return [path]
    inside = system.get_file_info(fs.FileSelector(path, recursive=True))
    found = sorted(each.path for each in inside if each.is_file and each.path.endswith(".parquet"))
    if not found:
        raise InputError(f"population {path!r} is a folder without .parquet files: give another")
    return found


def opened(system: Any, name: str, **how: Any) -> Any:
    """Open a Parquet file, ``how``: as pyarrow's ``ParquetFile`` takes it; raises InputError for another file."""
    from pyarrow import ArrowInvalid, parquet

    try:
        return parquet.ParquetFile(system.open_input_file(name), **how)
    except ArrowInvalid as error:
        raise InputError(f"{name!r} is no Parquet file ({error}): give another") from error
