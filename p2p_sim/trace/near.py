"""Of a stored population the users whom the replay of some needs: those of their clusters.

The file is read row group by row group, so memory does not grow with the population.  Its checksum proves it, which is
checked before.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.core.groups import Members
from p2p_sim.core.population import Population
from p2p_sim.trace import people, tables
from p2p_sim.trace.replay import Reach, reach

Array = npt.NDArray[Any]


def near(folder: Path, protocol: Any, users: Array) -> Population | None:
    """Return the clusters of some users as a part of the population in a run directory.

    None where everybody may be needed.  Raises InputError for a user who is not there.
    """
    far = reach(protocol)
    if (folder / people.GRAPH).is_file() or far is Reach.EVERYBODY or not len(users):
        return None
    with parquet_of(folder) as file:
        stored = _Stored(file)
        for user in users.tolist():
            if not 0 <= user < stored.users:
                raise InputError(f"user {user}: users are 0 to {stored.users - 1}")
        if stored.divided:
            return _clusters(stored, users)
        if far is Reach.GROUP:
            return None
        everybody = np.array([0, stored.users])
        y = stored.some("y", users)
        return Population(y, Members(np.zeros(len(users), np.int32), everybody, None), ids=users)


def clusters(folder: Path, users: Array) -> Array | None:
    """Return the cluster numbers of some users of the population in a run directory; None if there are no clusters."""
    with parquet_of(folder) as file:
        stored = _Stored(file)
        return stored.some("cluster", users) if stored.divided else None


def members(folder: Path, cluster: int) -> Array:
    """Return the ids of the users of a cluster, ascending; none if there is no such cluster."""
    with parquet_of(folder) as file:
        stored = _Stored(file)
        found = [np.zeros(0, np.int64)]
        for group, start in enumerate(stored.starts if stored.divided else []):
            found.append(np.flatnonzero(stored.column("cluster", group) == cluster) + start)
        return np.concatenate(found)


def sizes(folder: Path) -> Array | None:
    """Return how many users each cluster has, by its number; None if there are no clusters."""
    with parquet_of(folder) as file:
        stored = _Stored(file)
        if not stored.divided:
            return None
        counted = [_counted(stored.column("cluster", group)) for group in range(len(stored.starts))]
        return _together(counted)[1]


def parquet_of(folder: Path) -> Any:
    """Open the population file of a run directory."""
    from pyarrow import parquet

    return parquet.ParquetFile(folder / people.FILE)


class _Stored:
    """A population file; ``starts``: the first row of each row group; ``divided``: whether there are clusters."""

    def __init__(self, file: Any):
        self._file = file
        sizes = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
        ends = np.cumsum([0, *sizes])
        self.starts, self.users = ends[:-1].tolist(), int(ends[-1])
        self.divided: bool = "cluster" in file.schema_arrow.names

    def column(self, name: str, group: int) -> Array:
        """Read a column of one row group."""
        table = self._file.read_row_group(group, columns=[name], use_threads=False)
        return tables.columns(table)[name]

    def some(self, name: str, users: Array) -> Array:
        """Read the values of some users."""
        groups = np.searchsorted(self.starts, users, "right") - 1
        found = np.zeros(len(users), self._file.schema_arrow.field(name).type.to_pandas_dtype())
        for group in sorted(set(groups.tolist())):
            mine = groups == group
            found[mine] = self.column(name, group)[users[mine] - self.starts[group]]
        return found


def _clusters(stored: _Stored, users: Array) -> Population:
    """Return everybody in the clusters of some users; the table of clusters is that of the whole population."""
    wanted = np.array(sorted(set(stored.some("cluster", users).tolist())))
    rows: list[Array] = []
    y: list[Array] = []
    labels_of: list[Array] = []
    counted: list[tuple[Array, Array]] = []
    last, rising = wanted[:0], True
    for group, start in enumerate(stored.starts):
        labels = stored.column("cluster", group)
        rising &= bool((last <= labels[:1]).all() and (labels[:-1] <= labels[1:]).all())
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
    if not rising:  # who else is in which cluster is not known, nor asked: zeros take no memory
        order = np.zeros(starts[-1], np.int32)
        for code in np.searchsorted(called, wanted).tolist():
            order[starts[code] : starts[code + 1]] = ids[codes == code]
    hers = Members(codes, starts, order, called)
    return Population(np.concatenate(y), hers, ids=ids)


def _together(counted: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Return the cluster numbers of all row groups, ascending, and how often each occurs in all."""
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
