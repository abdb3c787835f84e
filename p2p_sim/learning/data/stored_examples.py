"""Features and labels in Parquet files, on a shared path or in an object store, read a batch of rows at a time."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim import parquet_users
from p2p_sim.core.errors import InputError, StorageError
from p2p_sim.core.held_out_rows import HeldOutRows
from p2p_sim.parquet_users import LabelRule
from p2p_sim.rundir import parquet_columns

Array = npt.NDArray[Any]

READ, NUMBERS = 1 << 16, 1 << 21
"""So many rows are decoded at a time at most, and so many features: 16 MiB."""

_BUFFER = 1 << 20  # bytes of a column that are read ahead: row groups are never read whole
_EXACT = 2**53  # whole numbers beyond are not all numbers of float64
_LARGEST = float(np.finfo(np.float32).max)
_NAMED = 20


def rows_at_once(width: int) -> int:
    """Return how many rows with so many features are read at a time; it depends on nothing else."""
    return max(1, min(READ, NUMBERS // max(1, width)))


@dataclass(frozen=True)
class StoredExamples:
    """The rows of some Parquet files, in their order: all, or those that are not held out, or are (``tests``).

    ``files``: names and numbers of rows; ``features``: the names of columns; ``labels``: how many label values there
    can be; ``rule``: what the values of labels mean, None: they are labels.
    """

    place: str
    files: tuple[tuple[str, int], ...]
    label: str
    features: tuple[str, ...]
    labels: int
    rule: LabelRule | None = None
    held_out: HeldOutRows | None = None
    tests: bool = False

    @property
    def users(self) -> int:
        """How many rows there are."""
        if self.held_out is None:
            return sum(rows for _, rows in self.files)
        return self.held_out.size if self.tests else self.held_out.users

    @property
    def described(self) -> str:
        """Which rows these are, in words."""
        return f"in {self.place}" if self.held_out is None else self.held_out.described

    @property
    def width(self) -> int:
        """How many features there are."""
        return len(self.features)

    def batches(self, edges: Sequence[int]) -> Iterator[tuple[Array, Array]]:
        """Read the rows between neighbouring ``edges``, from 0 to all: features (n, d), float64, and labels (n,).

        Raises InputError for values that are missing, not finite or no labels, and StorageError for a file that is gone
        or was changed.
        """
        pieces, first = self._pieces(), 0
        held: list[tuple[Array, Array]] = []
        for low, high in itertools.pairwise(edges):
            while first + sum(len(y) for _, y in held) < high:
                held.append(next(pieces))
            x, y = (np.concatenate(parts) for parts in zip(*held, strict=True))
            yield x[: high - low], y[: high - low]
            held, first = [(x[high - low :], y[high - low :])], high

    def spread(self, most: int) -> tuple[Array, Array]:
        """Read at most so many rows, evenly spread over all: features and labels."""
        wanted = np.arange(min(most, self.users)) * self.users // min(most, self.users)
        found, edges = [], [*range(0, self.users, rows_at_once(self.width)), self.users]
        for low, (x, y) in zip(edges, self.batches(edges), strict=False):
            rows = wanted[slice(*np.searchsorted(wanted, (low, low + len(y))))] - low
            found.append((x[rows], y[rows]))
        x, y = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return x, y

    def _pieces(self) -> Iterator[tuple[Array, Array]]:
        from pyarrow import ArrowInvalid

        names, row, most = [*self.features, self.label], 0, rows_at_once(self.width)
        try:
            system, _ = parquet_users.system_of(self.place)
            for name, rows in self.files:
                with parquet_users.opened(system, name, buffer_size=_BUFFER, pre_buffer=False) as file:
                    parquet_users.check_unchanged(name, rows, file, names)
                    begin = row
                    for part in file.iter_batches(most, columns=names, use_threads=False):
                        where = parquet_users.where_of(name, row - begin)
                        for column in names:
                            parquet_users.check_whole(part.column(column), column, name, row - begin)
                        yield self._chosen(row, *self._piece(name, row, part, where))
                        row += part.num_rows
        except (OSError, ArrowInvalid) as error:
            raise StorageError(
                f"examples {self.place!r} cannot be read while a model is trained ({error}): files must stay as they "
                "are until the run is saved; put them back, and go on with --resume"
            ) from error

    def _chosen(self, row: int, x: Array, y: Array) -> tuple[Array, Array]:
        """Return those rows that these are, of rows that begin with ``row`` of all."""
        if self.held_out is None:
            return x, y
        chosen = self.held_out.mask(row, row + len(y))
        chosen = chosen if self.tests else ~chosen
        return x[chosen], y[chosen]

    def _piece(self, name: str, row: int, part: Any, where: str) -> tuple[Array, Array]:
        """Turn some rows of a file, which begin with ``row`` of all, into features and labels; ``where`` they are."""
        x = np.empty((part.num_rows, len(self.features)))
        for place, feature in enumerate(self.features):
            values = parquet_columns.column(part.column(feature))
            _check_numbers(f"column {feature!r} of {name!r}", values, row)
            x[:, place] = values
        return x, self._labels(name, part.column(self.label), where)

    def _labels(self, name: str, column: Any, where: str) -> Array:
        y = parquet_columns.column(column) if self.rule is None else self.rule.read(column, where)[0]
        if len(y) and not 0 <= int(y.min()) <= int(y.max()) < self.labels:
            raise InputError(
                f"column {self.label!r} of {name!r} holds labels from {y.min()} to {y.max()}: those of the protocol "
                f"are integers from 0 to {self.labels - 1}"
            )
        return y.astype(np.uint8)


def _check_numbers(what: str, values: Array, row: int) -> None:
    """Raise InputError for features that are not finite, or that float64 does not keep; ``row``: of the first."""
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        wrong = int(np.argmax(~np.isfinite(values)))
        raise InputError(
            f"{what} is {values[wrong]} in row {row + wrong:,} of all: features are finite numbers; fill it in, or "
            "leave the column out by --drop"
        )
    if values.dtype.kind == "f" and len(values) and (largest := float(np.abs(values).max())) > _LARGEST:
        raise InputError(
            f"{what} holds {largest:g}; at most {_LARGEST:.2g} fits a float32, in which --data keeps features: rescale "
            "it, or leave the column out by --drop"
        )
    whole = values.dtype.kind in "iu" and len(values) > 0
    if whole and max(int(values.max()), -int(values.min())) > _EXACT:
        raise InputError(
            f"{what} holds whole numbers beyond 2^53, which float64 would round: leave it out by --drop if it is an "
            "id, or scale it first"
        )


def of_users(
    place: str,
    *,
    label: str = "y",
    cluster: str | None = None,
    drop: Sequence[str] = (),
    labels: int = 2,
    rule: LabelRule | None = None,
    test: float | None = None,
    seed: int = 0,
) -> StoredExamples:
    """Return the examples of the users of ``parquet_users.population(place)``, row by row.

    Features are all columns but ``label``, ``cluster`` and those of ``drop``: numbers or bools, of the same types in
    all files.  ``labels``: how many label values there can be; ``rule``, ``test``, ``seed``: as ``population`` takes
    them.  Raises InputError for others, and for no feature.
    """
    schemas, rows = _schemas(place)
    first, schema = schemas[0]
    for name in drop:
        if name not in schema.names:
            raise InputError(f"--drop {name}: {first!r} has no such column; it has {_listed(schema.names)}")
        if name in (label, cluster):
            raise InputError(
                f"--drop {name}: it is the column of {'labels' if name == label else 'clusters'}"
            )
    index = [
        each for each in (schema.pandas_metadata or {}).get("index_columns", []) if isinstance(each, str)
    ]
    features = tuple(name for name in schema.names if name not in (label, cluster, *drop, *index))
    if not features:
        raise InputError(
            f"{first!r} has no column of features beside {label!r}: it has {_listed(schema.names)}; leave out --model, "
            "or give files with features"
        )
    found = _checked(place, schemas, rows, label, features, (first, schema), labels, rule)
    return found if test is None else replace(found, held_out=HeldOutRows(sum(rows), test, seed))


def held_out(users: StoredExamples) -> StoredExamples:
    """Return the rows of the same files that are held out to test a model; raises InputError if there are none."""
    if users.held_out is None:
        raise InputError(f"no rows of {users.place!r} are held out: give test, a share of them in (0, 1)")
    return replace(users, tests=True)


def of_test(place: str, like: StoredExamples) -> StoredExamples:
    """Return the test rows at another place: with the columns of ``like``, of the same types; others do not matter.

    Raises InputError for a file without one of them, and for the place of ``like`` itself.
    """
    if parquet_users.whole_address(place) == like.place:
        raise InputError(f"test rows {place!r} are the users themselves: give other rows, who are in no run")
    schemas, rows = _schemas(place)
    system, _ = parquet_users.system_of(like.place)
    with parquet_users.opened(system, like.files[0][0]) as file:
        first = (like.files[0][0], file.schema_arrow)
    return _checked(place, schemas, rows, like.label, like.features, first, like.labels, like.rule)


def _schemas(place: str) -> tuple[list[tuple[str, Any]], list[int]]:
    """Return the schema of each file at a place, by name, and the rows of each."""
    if not place:
        raise InputError("examples = '': name a Parquet file, or a folder of them")
    schemas, rows = [], []
    try:
        system, path = parquet_users.system_of(place)
        for name in parquet_users.files_at(system, path):
            with parquet_users.opened(system, name) as file:
                schemas.append((name, file.schema_arrow))
                rows.append(int(file.metadata.num_rows))
    except OSError as error:
        raise InputError(f"examples {place!r} cannot be read ({error}): check the path") from error
    if not sum(rows):
        raise InputError(f"examples {place!r} have no rows: at least one is needed")
    return schemas, rows


def _checked(
    place: str,
    schemas: list[tuple[str, Any]],
    rows: list[int],
    label: str,
    features: tuple[str, ...],
    like: tuple[str, Any],
    labels: int,
    rule: LabelRule | None,
) -> StoredExamples:
    """Return examples; raises InputError unless every file has the features and the label, of types that fit."""
    import pyarrow as pa

    for name, schema in schemas:
        for column in (label, *features):
            if schema.names.count(column) != 1:
                many = "several columns" if column in schema.names else "no column"
                raise InputError(f"{name!r} has {many} {column!r}; it has {_listed(schema.names)}")
        parquet_users.check_label(name, schema.field(label).type, label, rule)
        parquet_users.check_alike(label, *((n, each.field(label).type) for n, each in (like, (name, schema))))
        for column in features:
            kind, first = schema.field(column).type, like[1].field(column).type
            if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
                raise InputError(
                    f"column {column!r} of {name!r} has the type {kind}: features are numbers; encode it first, or "
                    f"leave it out by --drop {column}"
                )
            if kind != first:
                raise InputError(
                    f"column {column!r} of {name!r} has the type {kind}, and elsewhere {first}: write all files with "
                    "the same types"
                )
    names = tuple((name, each) for (name, _), each in zip(schemas, rows, strict=True))
    return StoredExamples(parquet_users.whole_address(place), names, label, features, labels, rule)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (" and more" if names[_NAMED:] else "")
