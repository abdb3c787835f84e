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
_ROWS = 1 << 20


def write(folder: Path, people: Population) -> None:
    """Write id, cluster and y in a stream; only the owner may read it: it holds the secret labels."""
    import pyarrow as pa
    from pyarrow import parquet

    schema = [("id", pa.int64()), ("y", pa.bool_() if people.y.dtype == np.bool_ else pa.uint8())]
    if people.clusters is not None:
        schema.insert(1, ("cluster", pa.int64()))
    target = folder / "population.parquet"
    os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o600))
    with parquet.ParquetWriter(target, pa.schema(schema), compression="zstd") as writer:
        for low in range(0, people.users, _ROWS):
            high = min(low + _ROWS, people.users)
            ids = np.arange(low, high) if people.ids is None else people.ids[low:high]
            columns = {"id": ids, "y": people.y[low:high]}
            if people.clusters is not None:
                columns["cluster"] = people.clusters.block(low, high).label.astype(np.int64)
            writer.write_table(
                pa.table({name: columns[name] for name, _ in schema}, schema=pa.schema(schema))
            )
    if people.graph is not None:
        tables.write(folder / "graph.parquet", _edges(people.graph))


def _edges(graph: Members) -> dict[str, Array]:
    """Return a graph as columns: each pair of neighbours once; of a complete one, only the group of each user."""
    if graph.complete:
        return {"group": graph.codes}
    near, starts = graph.everybody()
    user = np.repeat(np.arange(len(graph.codes), dtype=np.int32), np.diff(starts))
    return {"user": user[user < near], "neighbour": near[user < near]}


def read(path: Path, expected: str | None) -> Population | None:
    """Read a population, None if there is none; raises InputError unless its hash is the expected one."""
    from pyarrow import parquet

    file = path / "population.parquet"
    if not file.is_file():
        return None
    names = [name for name in parquet.read_schema(file).names if name != "id"]  # a row is an id
    table = parquet.read_table(file, columns=names)
    cluster = tables.column(table["cluster"].combine_chunks()) if "cluster" in table.column_names else None
    people = Population.from_arrays(y=tables.column(table["y"].combine_chunks()), cluster=cluster)
    graph = path / "graph.parquet"
    if graph.is_file():
        edges = parquet.read_table(graph)
        columns = {name: tables.column(edges[name].combine_chunks()) for name in edges.column_names}
        if "group" in columns:
            people = replace(people, graph=complete(people.users, groups.clusters(columns["group"])))
        else:
            people = people.with_graph(np.column_stack([columns["user"], columns["neighbour"]]))
    if people.hash != expected:
        raise InputError(
            f"{str(file)!r} is not the population of this run (another hash): restore it, or run again"
        )
    return people


def stored(people: Population) -> Population:
    """Return what of a population a run directory keeps: labels, clusters and graph, no features."""
    plain = people.x is None and not people.public and not people.secret
    return people if plain else Population(people.y, people.clusters, graph=people.graph, ids=people.ids)
