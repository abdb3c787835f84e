"""``population.parquet``: readable by its owner only; read whole, or only the part that some users need."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from p2p_sim.core import groups
from p2p_sim.core.closed_world import Reach, reach
from p2p_sim.core.errors import InputError
from p2p_sim.core.groups import Members
from p2p_sim.core.population import Population
from p2p_sim.core.protocol import Protocol
from p2p_sim.network.adjacency import complete
from p2p_sim.rundir import (
    integrity,
    parquet_columns,
    parquet_schema,
    permissions,
    public_columns,
    regular_files,
)
from p2p_sim.rundir.integrity import guarded
from p2p_sim.rundir.parquet_schema import Fits
from p2p_sim.rundir.public_columns import FEATURES, GROUPS, PUBLIC, ColumnType, Group
from p2p_sim.rundir.run_json import agree
from p2p_sim.rundir.run_record import RunRecord

Array = npt.NDArray[Any]
FILE, GRAPH = "population.parquet", "graph.parquet"
X = "x"
_ROWS = 1 << 20


def write(folder: Path, people: Population) -> None:
    """Write a ``stored`` population in a stream; only the owner may read it: it holds the secret labels."""
    from pyarrow import parquet

    target = folder / FILE
    permissions.create(target, private=True)
    begin = people.piece(0, 0)
    empty = _columns(begin, np.arange(0))
    first = parquet_columns.arrow(empty)
    about = [public_columns.metadata(columns, group) for group, columns in _grouped(begin).items()]
    schema = first.schema.with_metadata({key: value for part in about for key, value in part.items()} or None)
    together = begin.clusters is not None and begin.clusters.order is None
    how = parquet_columns.encodings(empty, ["id", "cluster"] if together else ["id"])
    with parquet.ParquetWriter(target, schema, compression="zstd", **how) as writer:
        for low in range(0, people.users, _ROWS):
            high = min(low + _ROWS, people.users)
            ids = np.arange(low, high) if people.ids is None else people.ids[low:high]
            writer.write_table(parquet_columns.arrow(_columns(people.piece(low, high), ids)))
    if people.graph is not None:
        parquet_columns.write(folder / GRAPH, _graph_columns(people.graph))


def _columns(people: Population, ids: Array) -> dict[str, Array]:
    """Return the stored columns of some users, with their ids."""
    columns = {"id": ids}
    if people.clusters is not None:
        columns["cluster"] = people.clusters.label.astype(np.int64)
    columns["y"] = people.y
    for group, more in _grouped(people).items():
        columns |= public_columns.encoded(more, 0, people.users, group)
    return columns


def _grouped(people: Population) -> dict[Group, Mapping[str, Array]]:
    """Return the public columns, and the features, by the names that they have in the file."""
    return {PUBLIC: people.public, FEATURES: {} if people.x is None else {X: people.x}}


def _graph_columns(graph: Members) -> dict[str, Array]:
    """Return a graph as columns: each pair of neighbours once; for a complete graph, only the group of each user."""
    if graph.complete:
        return {"group": graph.codes}
    near, starts = graph.everybody()
    user = np.repeat(np.arange(len(graph.codes), dtype=np.int32), np.diff(starts))
    return {"user": user[user < near], "neighbour": near[user < near]}


def was_kept(path: Path, expected: str | None) -> bool:
    """Return whether a run was saved with its population (``expected``: its hash), even if the file is gone now."""
    return expected is not None or (path / FILE).is_file()


def read(path: Path, expected: str | None, users: int | None = None) -> Population | None:
    """Read a population; None if the run was saved without.

    ``users``: how many run.json says there are.  Raises InputError if it has another hash, or other columns or rows
    than a population.
    """
    file = path / FILE
    if not was_kept(path, expected):
        return None
    with parquet_of(path, users) as parquet:
        types = _types(file, parquet.schema_arrow)
    columns = parquet_columns.read(file, without="id")  # a row is an id
    more = _decoded(file, types, len(columns["y"]), columns.__getitem__)
    people = Population.from_arrays(y=columns["y"], cluster=columns.get("cluster"), **more)
    if _check_graph(path, people.users):
        edges = parquet_columns.read(path / GRAPH)
        if "group" in edges:
            people = replace(people, graph=complete(people.users, groups.clusters(edges["group"])))
        else:
            people = people.with_graph(np.column_stack([edges["user"], edges["neighbour"]]))
    if people.hash != expected:
        raise InputError(
            f"{str(file)!r} is not the population of this run (its hash differs): restore it, or run again"
        )
    return people


def _types(file: Path, schema: Any) -> dict[Group, dict[str, ColumnType]]:
    """Return the types of further columns; raises InputError where they do not fit."""
    return {group: public_columns.types_in(file, schema, group) for group in GROUPS}


def _decoded(
    file: Path, types: Mapping[Group, Mapping[str, ColumnType]], rows: int, read: Callable[[str], Array]
) -> dict[str, Any]:
    """Return the public columns and features of ``rows`` users, as arguments of a population."""
    public, features = (public_columns.decoded(file, types[group], rows, read, group) for group in GROUPS)
    return {"public": public, "x": features.get(X)}


def stored(people: Population, protocol: Protocol | None) -> Population:
    """Return what of a population a run directory keeps: labels, clusters, public columns and graph.

    Features only for a protocol that says that its users read some (``Protocol.feature_count``), or is not known, as
    that of a run that was loaded; no secret columns.
    """
    read = protocol is None or protocol.feature_count() is not None
    x = people.x if read else None
    return people if x is people.x and not people.secret else replace(people, x=x, secret={})


def near(folder: Path, protocol: Protocol, users: Array) -> Population | None:
    """Read the clusters of some users (ids) from a run directory, as part of its population.

    None if all users may be needed.  Raises InputError for an unknown user.
    """
    far = reach(protocol)
    if (folder / GRAPH).is_file() or far is Reach.EVERYBODY or not len(users):
        return None
    with parquet_of(folder) as file:
        stored = _Stored(file, folder / FILE)
        for user in users.tolist():
            if not 0 <= user < stored.users:
                raise InputError(f"user {user}: users are 0 to {stored.users - 1}")
        if stored.divided:
            return _clusters(stored, users)
        if far is Reach.GROUP:
            return None
        everybody = np.array([0, stored.users])
        nobody_else = Members(np.zeros(len(users), np.int32), everybody, None)
        return Population(stored.values_of("y", users), nobody_else, **stored.further(users), ids=users)


def clusters(folder: Path, users: Array) -> Array | None:
    """Read the cluster numbers of some users (ids) from a run directory; None if there are no clusters."""
    with parquet_of(folder) as file:
        stored = _Stored(file, folder / FILE)
        return stored.values_of("cluster", users) if stored.divided else None


def members(folder: Path, cluster: int) -> Array:
    """Read the ids of the users of a cluster, ascending; empty if there is no such cluster."""
    with parquet_of(folder) as file:
        stored = _Stored(file, folder / FILE)
        found = [np.zeros(0, np.int64)]
        for group, start in enumerate(stored.starts if stored.divided else []):
            found.append(np.flatnonzero(stored.column("cluster", group) == cluster) + start)
        return np.concatenate(found)


def sizes(folder: Path) -> Array | None:
    """Return how many users each cluster has, by its number; None if there are no clusters."""
    with parquet_of(folder) as file:
        stored = _Stored(file, folder / FILE)
        if not stored.divided:
            return None
        counted = [_counted(stored.column("cluster", group)) for group in range(len(stored.starts))]
        return _together(counted)[1]


def parquet_of(folder: Path, users: int | None = None) -> Any:
    """Open the population file of a run directory; raises InputError for other columns, and rows than ``users``."""
    from pyarrow import parquet

    file = regular_files.find(folder, FILE)
    if file is None:
        raise InputError(f"{str(folder / FILE)!r} is missing; restore it, or run the protocol again")
    meta = parquet_schema.footer(file)
    schema = meta.schema.to_arrow_schema()
    labels = parquet_schema.exactly(np.bool_), parquet_schema.exactly(np.uint8)
    label = Fits("bool or uint8", lambda found: any(fits.of(found) for fits in labels))
    wanted = {"id": parquet_schema.exactly(np.int64), "y": label}
    if "cluster" in schema.names:
        wanted["cluster"] = wanted["id"]
    for group, types in _types(file, schema).items():
        wanted |= public_columns.declared(types, group)
    parquet_schema.check_types(file, schema, wanted)
    parquet_schema.check_rows(file, meta, users, "run.json")
    return parquet.ParquetFile(file, metadata=meta)


def _check_graph(folder: Path, users: int) -> bool:
    """Return whether there is a graph; raises InputError if its file has other columns, or rows than users."""
    file = regular_files.find(folder, GRAPH)
    if file is None:
        return False
    meta = parquet_schema.footer(file)
    schema, id_ = meta.schema.to_arrow_schema(), parquet_schema.exactly(np.int32)
    whole = "group" in schema.names
    parquet_schema.check_types(file, schema, {"group": id_} if whole else {"user": id_, "neighbour": id_})
    parquet_schema.check_rows(file, meta, users if whole else None, FILE)
    return True


class _Stored:
    """A population file; ``starts``: the first row of each row group; ``divided``: whether there are clusters."""

    def __init__(self, file: Any, path: Path):
        self._file, self._path = file, path
        sizes = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
        ends = np.cumsum([0, *sizes])
        self.starts, self.users = ends[:-1].tolist(), int(ends[-1])
        self.divided: bool = "cluster" in file.schema_arrow.names

    def column(self, name: str, group: int) -> Array:
        """Read a column of one row group."""
        table = self._file.read_row_group(group, columns=[name], use_threads=False)
        return parquet_columns.columns(table, self._path)[name]

    def values_of(self, name: str, users: Array) -> Array:
        """Read the values of some users."""
        groups = np.searchsorted(self.starts, users, "right") - 1
        found: Array | None = None
        for group in sorted(set(groups.tolist())):
            mine = groups == group
            part = self.column(name, group)[users[mine] - self.starts[group]]
            found = np.zeros((len(users), *part.shape[1:]), part.dtype) if found is None else found
            found[mine] = part
        return np.zeros(0) if found is None else found

    def further(self, users: Array) -> dict[str, Any]:
        """Read the public columns and features of some users, at least one, as arguments of a population."""
        types = _types(self._path, self._file.schema_arrow)
        return _decoded(self._path, types, len(users), lambda name: self.values_of(name, users))


def _clusters(stored: _Stored, users: Array) -> Population:
    """Read all users in the clusters of some users; the table of clusters is that of the whole population."""
    wanted = np.array(sorted(set(stored.values_of("cluster", users).tolist())))
    rows: list[Array] = []
    y: list[Array] = []
    labels_of: list[Array] = []
    counted: list[tuple[Array, Array]] = []
    last, ascending = wanted[:0], True
    for group, start in enumerate(stored.starts):
        labels = stored.column("cluster", group)
        ascending &= bool((last <= labels[:1]).all() and (labels[:-1] <= labels[1:]).all())
        last = labels[-1:]
        counted.append(_counted(labels))
        places = np.flatnonzero(labels == wanted if len(wanted) == 1 else np.isin(labels, wanted))
        if len(places):
            rows.append(places + start)
            y.append(stored.column("y", group)[places])
            labels_of.append(labels[places])
    ids = np.concatenate(rows)
    called, sizes = _together(counted)
    starts = np.zeros(len(called) + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    codes = np.searchsorted(called, np.concatenate(labels_of)).astype(np.int32)
    order = None
    if not ascending:  # who else is in which cluster is not known, nor asked: zeros take no memory
        order = np.zeros(starts[-1], np.int32)
        for code in np.searchsorted(called, wanted).tolist():
            order[starts[code] : starts[code + 1]] = ids[codes == code]
    hers = Members(codes, starts, order, called)
    return Population(np.concatenate(y), hers, **stored.further(ids), ids=ids)


def _together(counted: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Return the cluster numbers of all row groups, ascending, and how often each occurs."""
    found, sizes = (np.concatenate(parts) for parts in zip(*counted, strict=True))
    by_number = np.argsort(found)  # np.unique would import masked arrays, which takes longer
    found, sizes = found[by_number], sizes[by_number]
    first = np.flatnonzero(np.concatenate([[True], found[1:] != found[:-1]]))
    return found[first], np.add.reduceat(sizes, first)


def _counted(labels: Array) -> tuple[Array, Array]:
    """Return the cluster numbers that occur, ascending, and how often each does."""
    if int(labels.max()) <= 4 * len(labels):  # counting is faster than sorting
        counts = np.bincount(labels)
        present = np.flatnonzero(counts)
        return present, counts[present]
    return np.unique(labels, return_counts=True)


@dataclass(frozen=True)
class UnreadPopulation:
    """A population in a run directory that has not been read; ``run_json``: run.json as it was when the run was opened.

    Every read raises InputError if a file is missing or was altered.
    """

    folder: Path
    run_json: Mapping[str, Any]
    _near: dict[Any, Population | None] = field(default_factory=dict, repr=False)

    @property
    def users(self) -> int | None:
        """How many users there are."""
        users: int | None = self.run_json["users"]
        return users

    @property
    def proven(self) -> bool:
        """Whether checksums prove the files, so that a part of them can be read.

        Checked before each read, since the folder may have been replaced.
        """
        self._check()
        return FILE in self._checksums

    def whole(self) -> Population | None:
        """Read all users and check their hash; None if the run was saved without its population."""
        self._check()  # also what is not read of the files
        file = self.folder / FILE
        found = guarded(file, lambda: read(self.folder, self.run_json["stored_hash"], self.users))
        if found is not None:
            agree(self.folder, "users", self.users, FILE, found.users)
        return found

    def near(self, protocol: Protocol, users: Array) -> Population | None:
        """Read the clusters of some users (ids); None if all users may be needed.

        Raises InputError for an unknown user.
        """
        if not self.proven:
            return None
        asked = reach(protocol), users.tobytes()
        if asked not in self._near:
            found = guarded(self.folder / FILE, lambda: near(self.folder, protocol, users))
            self._near.clear()  # only the last: one view asks in turn for messages, draws and inputs
            self._near[asked] = found
        return self._near[asked]

    def clusters(self, users: Array) -> Array | None:
        """Read the cluster numbers of some users (ids); None if there are no clusters."""
        return guarded(self.folder / FILE, lambda: clusters(self.folder, users))

    def members(self, cluster: int) -> Array:
        """Read the ids of the users of a cluster, ascending; empty if there is no such cluster."""
        return guarded(self.folder / FILE, lambda: members(self.folder, cluster))

    @functools.cached_property
    def sizes(self) -> Array | None:
        """How many users each cluster has; None if there are no clusters."""
        return guarded(self.folder / FILE, lambda: sizes(self.folder))

    @property
    def _checksums(self) -> Mapping[str, str]:
        checksums: Mapping[str, str] = self.run_json["sha256"]
        return checksums

    def _check(self) -> None:
        for part in (FILE, GRAPH):
            guarded(
                self.folder / part, functools.partial(integrity.check, self.folder, self._checksums, part)
            )


class PopulationAttribute:
    """The attribute ``population`` of a run: a descriptor that reads an unread population on first access."""

    @overload
    def __get__(self, run: None, owner: type) -> None: ...

    @overload
    def __get__(self, run: object, owner: type) -> Population | None: ...

    def __get__(self, run: object | None, owner: type) -> Population | None:
        """Return the population; of the class None, the default."""
        if run is None:
            return None
        if (left := unread(run)) is not None:
            vars(run)["population"] = left.whole()
        found: Population | None = vars(run)["population"]
        return found

    def __set__(self, run: object, population: Population | UnreadPopulation | None) -> None:
        vars(run)["population"] = population


def unread(run: object) -> UnreadPopulation | None:
    """Return a run's population if it has not been read; None if it has, or if there is none."""
    left = vars(run).get("population")
    return left if isinstance(left, UnreadPopulation) else None


def part_with(run: RunRecord, protocol: Protocol, users: Array) -> Population | None:
    """Return a part of a run's population with at least the clusters of some users (ids); all of it if needed.

    Raises InputError for an unknown user.
    """
    left = unread(run)
    part = None if left is None else left.near(protocol, users)
    return run.population if part is None else part


def rows_of(people: Population, users: Array) -> Array:
    """Return the rows of some users (ids, ascending); raises InputError for an unknown user."""
    if people.ids is None:
        rows, there = users, (users >= 0) & (users < people.users)
    else:
        rows = np.minimum(np.searchsorted(people.ids, users), people.users - 1)
        there = people.ids[rows] == users
    for user in users[~there].tolist():
        people.row(user, f"user {user}")
    return rows
