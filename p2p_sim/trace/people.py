"""The population of a run directory: id, cluster and label of each user, readable by the owner alone."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core import groups
from p2p_sim.core.errors import InputError
from p2p_sim.core.groups import Members
from p2p_sim.core.population import Population
from p2p_sim.network.adjacency import complete
from p2p_sim.trace import tables

Array = npt.NDArray[Any]
FILE, GRAPH = "population.parquet", "graph.parquet"
_ROWS = 1 << 20


def write(folder: Path, people: Population) -> None:
    """Write id, cluster and y in a stream; only the owner may read it: it holds the secret labels."""
    from pyarrow import parquet

    target = folder / FILE
    os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o600))
    first = tables.arrow(_columns(people, 0, 0))
    with parquet.ParquetWriter(target, first.schema, compression="zstd") as writer:
        for low in range(0, people.users, _ROWS):
            writer.write_table(tables.arrow(_columns(people, low, min(low + _ROWS, people.users))))
    if people.graph is not None:
        tables.write(folder / GRAPH, _edges(people.graph))


def _columns(people: Population, low: int, high: int) -> dict[str, Array]:
    """Return what is stored of some users."""
    columns = {"id": np.arange(low, high) if people.ids is None else people.ids[low:high]}
    if people.clusters is not None:
        columns["cluster"] = people.clusters.block(low, high).label.astype(np.int64)
    return columns | {"y": people.y[low:high]}


def _edges(graph: Members) -> dict[str, Array]:
    """Return a graph as columns: each pair of neighbours once; of a complete one, only the group of each user."""
    if graph.complete:
        return {"group": graph.codes}
    near, starts = graph.everybody()
    user = np.repeat(np.arange(len(graph.codes), dtype=np.int32), np.diff(starts))
    return {"user": user[user < near], "neighbour": near[user < near]}


def was_kept(path: Path, expected: str | None) -> bool:
    """Whether a run directory was written with its population, of the expected hash, though it may be gone since."""
    return expected is not None or (path / FILE).is_file()


def read(path: Path, expected: str | None) -> Population | None:
    """Read a population, None if the run was saved without; raises InputError unless its hash is the expected one."""
    file = path / FILE
    if not was_kept(path, expected):
        return None
    if not file.is_file():
        raise InputError(f"{str(file)!r} is missing; restore it, or run the protocol again")
    columns = tables.read(file, without="id")  # a row is an id
    people = Population.from_arrays(y=columns["y"], cluster=columns.get("cluster"))
    if (path / GRAPH).is_file():
        edges = tables.read(path / GRAPH)
        if "group" in edges:
            people = replace(people, graph=complete(people.users, groups.clusters(edges["group"])))
        else:
            people = people.with_graph(np.column_stack([edges["user"], edges["neighbour"]]))
    if people.hash != expected:
        raise InputError(
            f"{str(file)!r} is not the population of this run (another hash): restore it, or run again"
        )
    return people


def stored(people: Population) -> Population:
    """Return what of a population a run directory keeps: labels, clusters and graph, no features."""
    plain = people.x is None and not people.public and not people.secret
    return people if plain else Population(people.y, people.clusters, graph=people.graph, ids=people.ids)
