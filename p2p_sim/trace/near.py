"""Of a stored population the users whom the replay of one of them needs: those of her cluster.

The file is read row group by row group, so memory does not grow with the population.
"""

from __future__ import annotations

from collections.abc import Mapping
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


def near(folder: Path, told: Mapping[str, str], protocol: Any, user: int) -> Population | None:
    """Return a user's cluster as a part of the population in a run directory; None where everybody may be needed.

    ``told``: the checksums in run.json; without that of the population everybody is read, whom their hash proves.  It
    is checked before.  Raises InputError for a user who is not there.
    """
    from pyarrow import parquet

    far = reach(protocol)
    if people.FILE not in told or (folder / people.GRAPH).is_file() or far is Reach.EVERYBODY:
        return None
    with parquet.ParquetFile(folder / people.FILE) as file:
        sizes = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
        stored = _Stored(file, np.cumsum([0, *sizes]))
        users = int(stored.starts[-1])
        if not 0 <= user < users:
            raise InputError(f"user {user}: users are 0 to {users - 1}")
        if "cluster" in file.schema_arrow.names:
            return _cluster(stored, user)
        if far is Reach.GROUP:
            return None
        y = stored.one("y", user)
        return Population(y, Members(np.zeros(1, np.int32), np.array([0, users]), None), ids=np.array([user]))


class _Stored:
    """A population file; ``starts``: the first row of each row group, and the end."""

    def __init__(self, file: Any, starts: Array):
        self._file, self.starts = file, starts

    def column(self, name: str, group: int) -> Array:
        """Read a column of one row group."""
        table = self._file.read_row_group(group, columns=[name], use_threads=False)
        return tables.columns(table)[name]

    def one(self, name: str, user: int) -> Array:
        """Read the value of one user, shape (1,)."""
        group = int(np.searchsorted(self.starts, user, "right")) - 1
        place = user - int(self.starts[group])
        return self.column(name, group)[place : place + 1].copy()


def _cluster(stored: _Stored, user: int) -> Population:
    """Return the users of her cluster; the table of clusters is that of the whole population."""
    label = stored.one("cluster", user)
    rows: list[Array] = []
    y: list[Array] = []
    counted: list[tuple[Array, Array]] = []
    last, rising = label[:0], True
    for group, start in enumerate(stored.starts[:-1].tolist()):
        labels = stored.column("cluster", group)
        rising &= bool((last <= labels[:1]).all() and (labels[:-1] <= labels[1:]).all())
        last = labels[-1:]
        counted.append(_counted(labels))
        places = np.flatnonzero(labels == label)
        if len(places):
            rows.append(places + start)
            y.append(stored.column("y", group)[places])
    ids = np.concatenate(rows)
    found, sizes = (np.concatenate(parts) for parts in zip(*counted, strict=True))
    by_number = np.argsort(found)  # np.unique would import masked arrays, which takes longer
    found, sizes = found[by_number], sizes[by_number]
    first = np.flatnonzero(np.concatenate([[True], found[1:] != found[:-1]]))
    called, starts = found[first], np.zeros(len(first) + 1, np.int64)
    np.cumsum(np.add.reduceat(sizes, first), out=starts[1:])
    code = int(np.searchsorted(called, label)[0])
    order = None
    if not rising:  # who else is in which cluster is not known, nor asked: zeros take no memory
        order = np.zeros(starts[-1], np.int32)
        order[starts[code] : starts[code + 1]] = ids
    hers = Members(np.full(len(ids), code, np.int32), starts, order, called)
    return Population(np.concatenate(y), hers, ids=ids)


def _counted(labels: Array) -> tuple[Array, Array]:
    """Return the cluster numbers that occur, ascending, and how often each does."""
    if int(labels.max()) <= 4 * len(labels):  # counting is faster than sorting
        counts = np.bincount(labels)
        present = np.flatnonzero(counts)
        return present, counts[present]
    return np.unique(labels, return_counts=True)
