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
from p2p_sim.trace.compact import STORED
from p2p_sim.trace.draft import Draft

Array = npt.NDArray[Any]

_PAGE = 40  # bytes that a column of a file takes beside its values


@dataclass(frozen=True)
class Issue:
    """What was written of one kind and round.

    ``rows``: of all clusters; ``ends``: how many of sender and recipient are users; ``widths``: bytes a row of each
    column that is stored; ``cells``: values stored a row; ``fixed``: bytes beside them.
    """

    rows: int
    ends: int
    widths: Mapping[str, float]
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
    people = few(population, clusters, size, protocol.graph_over() == "cluster")
    kinds = protocol.messages()
    name = "full" if sample is None else "sample"
    with tempfile.TemporaryDirectory() as folder:  # which goes also if the run fails, messages and all
        target = Draft(Path(folder) / "pilot").begin(protocol, name, people)
        level = TraceLevel(name, sample or 0, target=target)
        files = local.run(protocol, people, 0, trace=level, digest=False, faults=faults).totals.files
        together: dict[tuple[str, int], list[dict[str, Any]]] = {}
        for entry in files:
            together.setdefault((entry["kind"], entry["round"]), []).append(entry)
        return {key: _issue(kinds[key[0]], Path(target.path), entries) for key, entries in together.items()}


def few(population: Population, clusters: int, size: int, apart: bool) -> Population:
    """Return ``size`` users of each of some clusters, in the order that they have, on a graph of the same degree.

    ``apart``: whether the graph must not join clusters.
    """
    known = population.clusters
    large = np.flatnonzero(population.sizes >= size)
    codes = large[np.arange(clusters) * len(large) // clusters]
    together = [np.arange(size) if known is None else known.rows_of(int(code))[:size] for code in codes]
    chosen = np.concatenate(together)  # cluster after cluster
    rows = np.sort(chosen)
    place = np.searchsorted(rows, chosen)
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
        return people
    ring, span = (size, population.sizes.mean()) if apart else (len(rows), population.users)
    near = _distance(population.graph) <= span**0.5
    return people.with_graph(place[_rings(len(rows), ring, int(population.graph.size.mean()), near)])


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


def _issue(message: Any, folder: Path, entries: list[dict[str, Any]]) -> Issue:
    from pyarrow import parquet

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
            taken[name] = taken.get(name, 0) + values
            fixed -= values
        cells = max(cells, sum(chunk.num_values for chunk in chunks) // entry["rows"])
    ends = sum(role == USER for role in (message.sender, message.recipient))
    return Issue(rows, ends, {name: octets / rows for name, octets in taken.items()}, cells, fixed)
