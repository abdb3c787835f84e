"""Users in Parquet files on a shared path or in an object store, which each shard reads itself."""

from __future__ import annotations

import hashlib
import itertools
import re
import typing
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError, StorageError, near
from p2p_sim.core.held_out_rows import HeldOutRows
from p2p_sim.core.population import MAX_LABELS, MAX_USERS, Population
from p2p_sim.core.population_in_parts import PopulationInParts, rows_of_sizes
from p2p_sim.rundir import parquet_columns

Array = npt.NDArray[Any]

_READ_WHOLE = 256 << 20  # bytes of files of which all is hashed
_END = 8  # bytes at the end of a Parquet file: the length of its footer, and PAR1

_RETRY_SECONDS = 30

ADVICE = (
    "give a path that all machines of the cluster share, or the address of an object store, such as s3://..."
)


class LabelRule(typing.Protocol):
    """How the values of a column become labels, where these are not the labels themselves."""

    def check_type(self, kind: Any, where: str) -> None:
        """Raise InputError unless a column of an Arrow type can be read."""

    def read(self, column: Any, where: str) -> tuple[Array, Any]:
        """Return the labels (n,) of an Arrow column, and what it holds; raises InputError for other values."""

    def together(self, seen: Sequence[Any]) -> Any:
        """Return what several parts hold together."""

    def check(self, seen: Any, where: str) -> None:
        """Raise InputError for what no whole table may hold; ``seen``: of all of it."""

    @property
    def described(self) -> dict[str, Any]:
        """Return the label, its classes and what counts as 1, as a run's notes say them."""


def population(
    place: str | Path,
    *,
    label: str = "y",
    cluster: str | None = None,
    rule: LabelRule | None = None,
    test: float | None = None,
    seed: int = 0,
) -> PopulationInParts:
    """Return the users of a Parquet file, or of all those in a folder in the order of their names.

    They are read a part at a time, where they are needed: by the shards themselves.  ``place``: a path, or an address
    of pyarrow's file systems (s3://, gs://, hdfs://).  ``label``: the column of labels, bool or integers from 0, or
    else ``rule`` says what its values mean; ``cluster``: that of clusters, integers, by which the rows must be sorted;
    None for none.  ``test``: a share in (0, 1) of the rows that are no users but test a model, drawn by ``seed``; see
    ``HeldOutRows``.  Raises InputError if it cannot be read, and for other columns.
    """
    if not str(place):  # an empty shell variable would be the folder that one stands in
        raise InputError("population = '': name a Parquet file, or a folder of them")
    if cluster == label:
        raise InputError(
            f"cluster column {cluster!r} is the label too; clusters are public, labels are not: name another"
        )
    files, kinds = [], list[tuple[str, Any]]()
    try:
        system, path = system_of(str(place))
        for name in files_at(system, path):
            with opened(system, name) as file:
                _check(name, file.schema_arrow, label, cluster, rule)
                kinds.append((name, file.schema_arrow.field(label).type))
                check_alike(label, kinds[0], kinds[-1])
                files.append((name, int(file.metadata.num_rows)))
    except OSError as error:
        raise InputError(f"population {str(place)!r} cannot be read ({error}): check the path") from error
    rows = sum(rows for _, rows in files)
    held_out = None if test is None else HeldOutRows(rows, test, seed)
    users = rows if held_out is None else held_out.users
    if not 1 <= users <= MAX_USERS:
        raise InputError(f"population {str(place)!r} has {users:,} users: needed are 1 to {MAX_USERS:,}")
    return PopulationInParts(
        ParquetUsers(whole_address(str(place)), tuple(files), label, cluster, rule, held_out)
    )


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
    """What is known of some users: clusters in their order, users of each, the largest label, and what a rule saw."""

    names: Array
    sizes: Array
    greatest: int
    seen: Any = None


@dataclass(frozen=True)
class _Rows:
    """Some rows of a file, and which of them are users, (n,), None for all; ``where`` they are, in words."""

    batch: Any
    users: Array | None
    where: str

    def users_of(self, column: Array) -> Array:
        """Return those entries of a column that are of users."""
        return column if self.users is None else column[self.users]


@dataclass(frozen=True)
class ParquetUsers:
    """The rows of some Parquet files but those held out; ``all_of_them``: what looks at all of them have found.

    ``rule``: what values of labels mean; None: they are labels.  ``whole``: whether these are all rows there are.
    """

    place: str
    files: tuple[tuple[str, int], ...]
    label: str
    cluster: str | None
    rule: LabelRule | None = None
    held_out: HeldOutRows | None = None
    all_of_them: _Look | None = None
    whole: bool = True

    @property
    def users(self) -> int:
        """How many users there are."""
        return self.rows if self.held_out is None else self.held_out.users

    @property
    def rows(self) -> int:
        """How many rows there are, users and others."""
        return sum(rows for _, rows in self.files)

    @property
    def described(self) -> dict[str, Any]:
        """What a run's notes say of labels and test rows, as of a data set; empty if all rows are users and ready."""
        found = {} if self.rule is None else {"rows": self.rows} | self.rule.described
        if self.held_out is None:
            return found
        return found | {"test_rows": self.held_out.size, "test_rows_are": self.held_out.described}

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
        some = (low, high) if low < high else (0, 1)  # of nobody the type of labels is asked for
        found = [self._labels(rows)[0] for rows in self._rows(*some, (self.label,))]
        labels = np.concatenate(found)[: high - low]
        members = None if self.cluster is None else rows_of_sizes(known.sizes, low, high, known.names)
        return Population(labels, members)

    def columns(self, _low: int, _high: int) -> None:
        """Nothing: what was read is kept."""

    def head(self, users: int) -> PopulationInParts:
        """Return about the first rows as a population of their own, for a plan."""
        few, ends = [], itertools.accumulate((rows for _, rows in self.files), initial=0)
        for (name, rows), first in zip(self.files, ends, strict=False):
            if rows and first < users:
                few.append((name, min(rows, users - first)))
        return PopulationInParts(
            replace(self, files=tuple(few), held_out=None, all_of_them=None, whole=False)
        )

    def look(self, low: int, high: int) -> _Look:
        """Read some users, and return their clusters and the largest label; raises InputError for other values."""
        names = (self.label,) if self.cluster is None else (self.label, self.cluster)
        return self._together([self._look(rows) for rows in self._rows(low, high, names)])

    def looked(self, found: Sequence[_Look]) -> ParquetUsers:
        """Put looks at all users together; raises InputError unless rows are sorted by cluster."""
        all_of_them = self._together(found)
        names, sizes = all_of_them.names, all_of_them.sizes
        if self.rule is not None and self.whole:
            self.rule.check(all_of_them.seen, repr(self.place))
        fresh = np.concatenate([[True], np.diff(names) != 0])[: len(names)]
        wrong = np.flatnonzero(np.diff(names) < 0)
        if len(wrong):
            raise InputError(
                f"population {self.place!r}: its rows are not sorted by {self.cluster!r} (cluster "
                f"{int(names[wrong[0] + 1])} comes after {int(names[wrong[0]])}): sort it first, for instance by "
                "pandas' sort_values"
            )
        together = np.add.reduceat(sizes, np.flatnonzero(fresh)) if len(sizes) else sizes
        return replace(self, all_of_them=_Look(names[fresh], together, all_of_them.greatest))

    def _look(self, rows: _Rows) -> _Look:
        y, seen = self._labels(rows)
        least, greatest = (int(y.min()), int(y.max())) if len(y) else (0, 0)
        if least < 0 or greatest >= MAX_LABELS:
            raise InputError(
                f"column {self.label!r} of {self.place!r} holds labels from {least} to {greatest}: labels are integers "
                f"from 0 to at most {MAX_LABELS - 1}; {SAY}"
            )
        if self.cluster is None or not len(y):
            return _Look(_NOTHING, _NOTHING, greatest, seen)
        names = rows.users_of(parquet_columns.column(rows.batch.column(self.cluster)))
        if not 0 <= int(names.min()) <= int(names.max()) < 1 << 63:
            wrong = names.min() if names.min() < 0 else names.max()
            raise InputError(
                f"column {self.cluster!r} of {rows.where} holds cluster {wrong}: clusters are integers from 0 to "
                "2^63 - 1 (gaps are fine): number them anew, in the order of the rows"
            )
        edges = np.concatenate([[0], np.flatnonzero(np.diff(names)) + 1, [len(names)]])
        return _Look(names[edges[:-1]].astype(np.int64), np.diff(edges), greatest, seen)

    def _together(self, found: Sequence[_Look]) -> _Look:
        """Put looks at neighbouring users end to end."""
        names = np.concatenate([_NOTHING, *(look.names for look in found)])
        sizes = np.concatenate([_NOTHING, *(look.sizes for look in found)])
        seen = None if self.rule is None else self.rule.together([look.seen for look in found])
        return _Look(names, sizes, max((look.greatest for look in found), default=0), seen)

    def _labels(self, rows: _Rows) -> tuple[Array, Any]:
        """Return the labels of the users among some rows, and what a rule saw in all of them."""
        column = rows.batch.column(self.label)
        if self.rule is not None:
            y, seen = self.rule.read(column, rows.where)
            return rows.users_of(y), seen
        y = rows.users_of(parquet_columns.column(column))
        fits = y.dtype == np.bool_ or not len(y) or 0 <= y.min() <= y.max() < MAX_LABELS
        return (y.astype(np.uint8) if fits and y.dtype != np.bool_ else y), None

    def _known(self) -> _Look:
        if self.all_of_them is None:  # nobody has looked yet: this process does
            object.__setattr__(self, "all_of_them", self.looked([self.look(0, self.users)]).all_of_them)
            assert self.all_of_them is not None
        return self.all_of_them

    def _rows(self, low: int, high: int, names: Sequence[str]) -> Iterator[_Rows]:
        """Read columns of some users, and of rows held out among them, some at a time."""
        if self.held_out is not None:
            low, high = self.held_out.rows_of(low, high)
        ends = itertools.accumulate((rows for _, rows in self.files), initial=0)
        try:
            system, _ = system_of(self.place)
            for (name, count), (first, end) in zip(self.files, itertools.pairwise(ends), strict=True):
                if first < high and low < end:
                    yield from self._of_file(system, (name, count), names, (low, high), first)
        except OSError as error:
            raise StorageError(
                f"population {self.place!r} cannot be read now ({error}): if a file was moved, put it back; if "
                f"another machine's shard does not see it, {ADVICE}"
            ) from error

    def _of_file(
        self, system: Any, of: tuple[str, int], names: Sequence[str], rows: tuple[int, int], first: int
    ) -> Iterator[_Rows]:
        """Read the rows ``rows[0] .. rows[1] - 1`` that are in a file whose first row is ``first``."""
        name, count = of
        with opened(system, name) as file:
            if self.whole:
                check_unchanged(name, count, file, names)
            for row, batch in _batches(file, name, names, rows[0] - first, rows[1] - first):
                begin, end = first + row, first + row + batch.num_rows
                users = None if self.held_out is None else ~self.held_out.mask(begin, end)
                yield _Rows(batch, users, where_of(name, row))


_NOTHING = np.zeros(0, np.int64)
_BATCH = 1 << 18  # rows that are decoded at a time
SAY = (
    "say what its values mean, --positive A,B (those that count as 1) or --classes A,B,C (all, in the order of "
    "their numbers)"
)


def where_of(file: str, row: int) -> str:
    """Return in words where some rows are that begin with one of a file's rows, counted from 0."""
    return repr(file) if not row else f"{file!r}, row {row + 1:,} or later,"


def _batches(file: Any, name: str, names: Sequence[str], low: int, high: int) -> Iterator[tuple[int, Any]]:
    """Read columns of the rows ``low .. high - 1`` of a file, from the row groups that hold them, some at a time."""
    end = 0
    for group in range(file.num_row_groups):
        first, end = end, end + file.metadata.row_group(group).num_rows
        if first >= high or low >= end:
            continue
        for batch in file.iter_batches(_BATCH, row_groups=[group], columns=list(names), use_threads=False):
            for key in names:
                check_whole(batch.column(key), key, name, first)
            begin, stop = max(0, low - first), min(batch.num_rows, high - first)
            if begin < stop:
                yield first + begin, batch.slice(begin, stop - begin)
            first += batch.num_rows


def check_unchanged(name: str, rows: int, file: Any, names: Sequence[str]) -> None:
    """Raise StorageError unless an open file has as many rows as when a run began, and the columns that are read."""
    now, here = int(file.metadata.num_rows), set(file.schema_arrow.names)
    missing = [each for each in names if each not in here]
    if now == rows and not missing:
        return
    how = f"it has no column {missing[0]!r}" if missing else f"it has {now:,} rows, and had {rows:,}"
    raise StorageError(
        f"{name!r} was changed while the run was under way: {how}; put it back, and go on with --resume"
    )


def _check(file: str, schema: Any, label: str, cluster: str | None, rule: LabelRule | None) -> None:
    """Raise InputError unless a file has the columns that are asked for, of types that fit."""
    import pyarrow as pa

    for name in (label, cluster):
        if name is not None and schema.names.count(name) > 1:
            raise InputError(f"population {file!r} has several columns {name!r}: give each a name of its own")
        if name is not None and name not in schema.names:
            raise InputError(
                f"population {file!r} has no column {name!r}"
                f"{near(name, schema.names)}; it has {', '.join(schema.names[:20])}"
            )
    check_label(file, schema.field(label).type, label, rule)
    kind = None if cluster is None else schema.field(cluster).type
    if kind is not None and not pa.types.is_integer(kind):
        raise InputError(
            f"column {cluster!r} of {file!r} has the type {kind}, and clusters are integers by which rows are sorted: "
            "number them first, for instance by pandas' factorize, and sort by the numbers"
        )


def check_whole(values: Any, column: str, file: str, row: int) -> None:
    """Raise InputError if an Arrow array has nulls, naming the first; it begins with a row of a file, from 0."""
    if not values.null_count:
        return
    first = row + int(np.argmax(np.asarray(values.is_null()))) + 1
    raise InputError(
        f"column {column!r} of {file!r} has missing values (nulls, the first in row {first:,} of it; --missing is for "
        "--data): fill them in, or leave these rows out"
    )


def check_label(file: str, kind: Any, label: str, rule: LabelRule | None) -> None:
    """Raise InputError unless a file's column of labels has an Arrow type that can be read."""
    import pyarrow as pa

    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    if not (
        pa.types.is_primitive(plain) or is_text(kind) or pa.types.is_decimal(plain)
    ) or pa.types.is_temporal(plain):
        raise InputError(
            f"label {label!r} of {file!r} has the type {kind}: write it as text or integers first, of dates for "
            f"instance the year; then {SAY}"
        )
    if rule is not None:
        rule.check_type(kind, repr(file))
    elif not (pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        raise InputError(
            f"column {label!r} of {file!r} has the type {kind}: needed are bool or integers from 0; for other labels "
            f"{SAY}"
        )


def is_text(kind: Any) -> bool:
    """Whether columns of an Arrow type hold text."""
    import pyarrow as pa

    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(
        pa.types.is_string(plain) or pa.types.is_large_string(plain) or pa.types.is_string_view(plain)
    )


def check_alike(label: str, one: tuple[str, Any], other: tuple[str, Any]) -> None:
    """Raise InputError if labels are text in one of two files and not in the other: no value of one is in both.

    ``one``, ``other``: a name, and the Arrow type of the labels there.
    """
    if is_text(one[1]) != is_text(other[1]):
        raise InputError(
            f"label {label!r} is {one[1]} in {one[0]!r} and {other[1]} in {other[0]!r}, so the same values would mean "
            "different labels: write all files with the same type"
        )


_SECRET = re.compile(r"key|secret|token|password|credential|signature", re.IGNORECASE)


def check_address(place: str) -> None:
    """Raise InputError, which does not repeat them, for an address with credentials: a run notes where users are."""
    kind, is_address, rest = place.partition("://")
    before, _, query = rest.partition("?")
    named = any(_SECRET.search(each.partition("=")[0]) for each in query.split("&"))
    if is_address and (":" in before.rpartition("@")[0] or named):
        raise InputError(
            f"the address {kind}://... holds credentials, which would stand in the run's folder, in its log and in "
            "errors: leave them out, and set environment variables instead (for s3:// AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY)"
        )


def whole_address(place: str) -> str:
    """Return a place that is the same in every folder: an address as it is, a path from the root on.

    Raises InputError for an address with credentials.
    """
    check_address(place)
    return place if "://" in place else str(Path(place).expanduser().absolute())


def system_of(place: str) -> tuple[Any, str]:
    """Return the file system of a place, and the path there."""
    from pyarrow import ArrowInvalid, fs

    try:
        found: tuple[Any, str] = fs.FileSystem.from_uri(_patient(whole_address(place)))
    except ArrowInvalid as error:
        raise InputError(f"population {place!r}: no such kind of place ({error}): {ADVICE}") from error
    return found


def _patient(address: str) -> str:
    """Return an address with how long a store is asked again: Google's is for 15 minutes, deaf to Ctrl-C."""
    if not address.startswith(("gs://", "gcs://")) or "retry_limit_seconds=" in address:
        return address
    return f"{address}{'&' if '?' in address else '?'}retry_limit_seconds={_RETRY_SECONDS}"


def files_at(system: Any, path: str) -> list[str]:
    """Return the Parquet files at a path, those of a folder by name.

    Those in its folders are among them, and names that begin with . or _ are not, of files and of folders.
    """
    from pyarrow import fs

    here = system.get_file_info(path)
    if here.type == fs.FileType.NotFound:
        raise FileNotFoundError(f"there is nothing at {path!r}")
    if here.type == fs.FileType.File:
        return [path]
    inside = system.get_file_info(fs.FileSelector(path, recursive=True))
    files = [each.path for each in inside if each.is_file and each.path.endswith(".parquet")]
    found = sorted(each for each in files if not _is_aside(each[len(here.path) :]))
    if not found:
        aside = f" but {len(files)} whose names, or folders', begin with . or _" if files else ""
        raise InputError(f"population {path!r} is a folder without .parquet files{aside}: give another")
    return found


def _is_aside(path: str) -> bool:
    """Whether a path in a folder is not of its table: unfinished or hidden, as Spark, Hive and Arrow have it."""
    return any(part.startswith((".", "_")) for part in path.split("/"))


def opened(system: Any, name: str, **how: Any) -> Any:
    """Open a Parquet file, ``how``: as pyarrow's ``ParquetFile`` takes it; raises InputError for another file."""
    from pyarrow import ArrowInvalid, parquet

    try:
        return parquet.ParquetFile(system.open_input_file(name), **how)
    except ArrowInvalid as error:
        raise InputError(f"{name!r} is no Parquet file ({error}): give another") from error
