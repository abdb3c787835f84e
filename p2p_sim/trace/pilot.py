"""A run of few users whose trace is written and weighed."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.backends import local
from p2p_sim.core import groups
from p2p_sim.core.faults import Faults
from p2p_sim.core.groups import Members
from p2p_sim.core.level import TraceLevel
from p2p_sim.core.message import USER
from p2p_sim.core.population import Population
from p2p_sim.trace import tables
from p2p_sim.trace.compact import ADDRESSES, STORED
from p2p_sim.trace.draft import Draft

Array = npt.NDArray[Any]

_PAGE = 40  # bytes that a column of a file takes beside its values


@dataclass(frozen=True)
class Issue:
    """What was written of one kind and round.

    ``rows``: of all clusters; ``ends``: how many of sender and recipient are users; ``widths``: bytes a row of each
    column that is stored; ``spread``: those whose ids are as far apart as among all users; ``cells``: values stored a
    row; ``fixed``: bytes beside them.
    """

    rows: int
    ends: int
    widths: Mapping[str, float]
    spread: frozenset[str]
    cells: int
    fixed: int


def weigh(
    protocol: Any,
    population: Population,
    clusters: int,
    size: int,
    sample: int | None,
    faults: Faults | None,
) -> dict[tuple[str, int], Issue]:
    """Run some clusters of a population, ``size`` users of each; weigh what is kept: of ``sample`` users, or all."""
    people, ids = few(population, clusters, size, protocol.graph_over() == "cluster")
    kinds = protocol.messages()
    name = "full" if sample is None else "sample"
    with tempfile.TemporaryDirectory() as folder:  # which goes also if the run fails, messages and all
        target = Draft(Path(folder) / "pilot").begin(protocol, name, people)
        level = TraceLevel(name, sample or 0, target=target)
        files = local.run(protocol, people, 0, trace=level, digest=False, faults=faults).totals.files
        together: dict[tuple[str, int], list[dict[str, Any]]] = {}
        for entry in files:
            together.setdefault((entry["kind"], entry["round"]), []).append(entry)
        return {
            key: _issue(kinds[key[0]], Path(target.path), entries, ids) for key, entries in together.items()
        }


def few(population: Population, clusters: int, size: int, apart: bool) -> tuple[Population, Array | None]:
    """Return ``size`` users of each of some clusters, in the order that they have, on a graph of the same degree.

    ``apart``: whether the graph must not join clusters.  Returns also ids for them as such users have among all; None
    where neighbours have ids close to each other, as theirs are.
    """
    known = population.clusters
    large = np.flatnonzero(population.sizes >= size)
    codes = large[np.arange(clusters) * len(large) // clusters]
    together = [np.arange(population.users) if known is None else known.rows_of(int(code)) for code in codes]
    chosen = np.concatenate([users[:size] for users in together])  # cluster after cluster
    rows = np.sort(chosen)
    place = np.searchsorted(rows, chosen)
    ids = np.empty(len(rows), np.int64)  # as far apart as those of a whole cluster
    ids[place] = np.concatenate([users[np.arange(size) * len(users) // size] for users in together])
    called = np.empty(len(rows), np.int64)
    names = codes if known is None or known.labels is None else known.labels[codes]  # as large as they are
    called[place] = np.repeat(names, size)
    x = None if population.x is None else population.x[rows]
    public, secret = (
        {name: column[rows] for name, column in columns.items()}
        for columns in (population.public, population.secret)
    )
    people = Population(population.y[rows], groups.clusters(called), x, public, secret)
    if population.graph is None or len(rows) == 1:
        return people, ids
    ring, span = (size, population.sizes.mean()) if apart else (len(rows), population.users)
    near = _distance(population.graph) <= span**0.5
    joined = people.with_graph(place[_rings(len(rows), ring, int(population.graph.size.mean()), near)])
    return joined, None if near else ids


def _distance(graph: Members) -> float:
    """Return how far a neighbour's id is from one's own, in the middle."""
    users = np.linspace(0, len(graph.codes) - 1, 64, dtype=np.int64)
    return float(np.median(np.concatenate([abs(graph.rows_of(int(graph.codes[u])) - u) for u in users])))


def _rings(users: int, ring: int, degree: int, near: bool) -> Array:
    """Return the edges of rings of users, each joined to the nearest (``near``) or to some all around."""
    rows, half = np.arange(users), max(1, (ring - 1) // 2)
    steps = max(1, min(degree // 2, half))
    apart = 1 if near else half // steps
    ends = [rows - rows % ring + (rows + 1 + step * apart) % ring for step in range(steps)]
    return np.concatenate([np.column_stack([rows, end]) for end in ends])


def _issue(message: Any, folder: Path, entries: list[dict[str, Any]], ids: Array | None) -> Issue:
    """Weigh what was written of one kind and round; ``ids``: those that the users have among all, if that matters."""
    from pyarrow import parquet

    spread: set[str] = set()
    users = [end for end in ("sender", "recipient") if getattr(message, end) == USER]
    rows, cells, fixed = sum(entry["rows"] for entry in entries), 0, 0
    taken: dict[str, int] = {}
    for entry in entries:
        meta = parquet.read_metadata(folder / entry["file"])
        chunks = [
            chunk
            for group in range(meta.num_row_groups)
            for i in range(meta.num_columns)
            if entry.get((chunk := meta.row_group(group).column(i)).path_in_schema, STORED) == STORED
        ]
        fixed += entry["bytes"] + len(json.dumps({"files": [entry]}, indent=1))
        for chunk in chunks:
            name = chunk.path_in_schema.partition(".")[0]
            values = max(0, chunk.total_compressed_size - _PAGE)
            fixed -= values
            if name in users and ids is not None:
                weighed = _among_all(folder / entry["file"], name, ids)
                if weighed is not None:
                    spread.add(name)
                    values = weighed
            taken[name] = taken.get(name, 0) + values
        cells = max(cells, sum(chunk.num_values for chunk in chunks) // entry["rows"])
    widths = {name: octets / rows for name, octets in taken.items()}
    return Issue(rows, len(users), widths, frozenset(spread), cells, fixed)


def _among_all(file: Path, name: str, ids: Array) -> int | None:
    """Weigh a column of users with the ids that they have among all; None if it rises, for then differences are stored.

    What is random in an id does not compress: it takes whole bytes, as many as the largest id has.
    """
    from pyarrow import parquet

    with parquet.ParquetFile(file) as written:
        users = tables.column(written.read([name])[name].combine_chunks())
    if (users[1:] >= users[:-1]).all():
        return None
    target = file.with_suffix(".ids")
    stream = tables.Stream(target, {name: ids[users]}, ADDRESSES, {})
    stream.write({name: ids[users]})
    stream.close()
    return max(0, int(parquet.read_metadata(target).row_group(0).column(0).total_compressed_size) - _PAGE)
