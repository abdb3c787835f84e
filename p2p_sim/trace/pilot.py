"""A run of few users whose trace is written and weighed."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from p2p_sim.backends import local
from p2p_sim.core import groups
from p2p_sim.core.faults import Faults
from p2p_sim.core.level import TraceLevel
from p2p_sim.core.message import USER
from p2p_sim.core.population import Population
from p2p_sim.trace.draft import Draft

USERS = 1024
_PAGE, _ID_PAGE = 40, 67  # bytes that a column of a small file takes beside its values


@dataclass(frozen=True)
class Issue:
    """What was written of one kind and round.

    ``rows``: a cluster; ``ends``: how many of sender and recipient are users; ``ids``: by id column that is stored,
    whether it rises, and the share of ``id_bytes`` that it takes; ``width``: bytes that the other columns of a row
    take; ``cells``: values stored a row.
    """

    rows: float
    ends: int
    ids: Mapping[str, tuple[bool, float]]
    width: float
    cells: int


def weigh(
    protocol: Any, population: Population, size: int, faults: Faults | None
) -> dict[tuple[str, int], Issue]:
    """Run clusters of ``size`` users, about 1024 in all, with the columns of a population; weigh what they send."""
    clusters = max(1, min(USERS, population.users) // size)
    people = _few(population, clusters, size, protocol.graph_over() == "cluster")
    kinds = protocol.messages()
    with tempfile.TemporaryDirectory() as name, Draft(Path(name) / "pilot") as draft:
        target = draft.begin(protocol, "full", people)
        level = TraceLevel("full", target=target)
        files = local.run(protocol, people, 0, trace=level, digest=False, faults=faults).totals.files
        together: dict[tuple[str, int], list[dict[str, Any]]] = {}
        for entry in files:
            together.setdefault((entry["kind"], entry["round"]), []).append(entry)
        return {
            key: _issue(kinds[key[0]], Path(target.path), entries, people)
            for key, entries in together.items()
        }


def id_bytes(rises: bool, rows: float, people: Population) -> float:
    """Return what an id takes: the gap to the last where ids rise, else which one of her cluster, or of all, it is."""
    if rises:
        return (3 + math.log2(max(1.0, people.users / max(rows, 1.0)))) / 8
    together = people.graph is None and people.clusters is not None and people.clusters.order is None
    among = float((people.sizes**2).sum() / people.users) if together else people.users
    return (1 + math.log2(among + 1)) / 8


def _few(population: Population, clusters: int, size: int, apart: bool) -> Population:
    """Return the first users of a population in clusters of consecutive ids, on a graph of the same degree.

    ``apart``: whether the graph must not join clusters.
    """
    users = clusters * size
    x = None if population.x is None else population.x[:users]
    public, secret = (
        {name: column[:users] for name, column in columns.items()}
        for columns in (population.public, population.secret)
    )
    called = np.arange(clusters) * max(1, len(population.sizes) // clusters)  # numbers as large as they are
    members = groups.clusters(np.repeat(called, size))
    people = Population(population.y[:users], members, x, public, secret)
    if population.graph is None or users == 1:
        return people
    ring, rows = size if apart else users, np.arange(users)
    degree = int(population.graph.size.mean())
    steps = range(1, max(2, min(degree // 2, (ring - 1) // 2) + 1))
    edges = [np.column_stack([rows, rows - rows % ring + (rows + step) % ring]) for step in steps]
    return people.with_graph(np.concatenate(edges))


def _issue(message: Any, folder: Path, entries: list[dict[str, Any]], people: Population) -> Issue:
    from pyarrow import parquet

    rows, octets, cells = 0, 0.0, 0
    rises: dict[str, bool] = {}
    taken: dict[str, float] = {}
    for entry in entries:
        rows += entry["rows"]
        meta = parquet.read_metadata(folder / entry["file"])
        chunks = [
            meta.row_group(group).column(i)
            for group in range(meta.num_row_groups)
            for i in range(meta.num_columns)
        ]
        for chunk in chunks:
            name = chunk.path_in_schema.partition(".")[0]
            if name in ("sender", "recipient"):
                rises[name] = rises.get(name, True) and "DELTA_BINARY_PACKED" in chunk.encodings
                taken[name] = taken.get(name, 0) + max(0, chunk.total_compressed_size - _ID_PAGE)
            else:
                octets += max(0, chunk.total_compressed_size - _PAGE)
        cells = max(cells, sum(chunk.num_values for chunk in chunks) // entry["rows"])
    ends = sum(role == USER for role in (message.sender, message.recipient))
    shares = {name: min(1.0, taken[name] / rows / id_bytes(up, rows, people)) for name, up in rises.items()}
    ids = {name: (up, shares[name]) for name, up in rises.items()}
    return Issue(rows / len(people.sizes), ends, ids, octets / rows, cells)
