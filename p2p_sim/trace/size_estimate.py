"""How much a trace will hold, before a run: one run of few users is weighed, and grown to all of them."""

from __future__ import annotations

import json
import math
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.backends import local
from p2p_sim.core import groups
from p2p_sim.core.faults import Faults
from p2p_sim.core.groups import Members
from p2p_sim.core.ledger import Count
from p2p_sim.core.message import USER, Message
from p2p_sim.core.population import Population
from p2p_sim.core.protocol import Protocol
from p2p_sim.core.trace_level import TraceLevel
from p2p_sim.rundir import manifest, parquet_columns
from p2p_sim.rundir.address_columns import ADDRESSES, STORED
from p2p_sim.rundir.trace_writer import Draft, Writer

Array = npt.NDArray[Any]

Key = tuple[str, int]

_PAGE = 40  # bytes that a column of a file takes beside its values


@dataclass(frozen=True)
class Issue:
    """Messages of one kind and round.

    ``rows``: how many; ``ends``: how many of sender and recipient are users; ``counted``: how many of those are
    not stored since they count up; ``width``: bytes a row of the columns that are stored; ``cells``: values stored a
    row; ``fixed``: bytes beside them.
    """

    rows: float
    ends: int
    counted: int
    width: float
    cells: int
    fixed: int


def weigh(
    protocol: Protocol, population: Population, clusters: int, size: int, faults: Faults | None
) -> dict[Key, Issue]:
    """Run some clusters of a population, ``size`` users of each, with a full trace, and weigh what is written."""
    people, ids = few(population, clusters, size, protocol.graph_over() == "cluster")
    kinds = protocol.messages()
    with tempfile.TemporaryDirectory() as folder:  # which goes also if the run fails, messages and all
        target = Draft(Path(folder) / "pilot").begin(protocol, "full", people)
        level = TraceLevel("full", target=target)
        files = local.run(protocol, people, 0, trace=level, digest=False, faults=faults).totals.files
        together: dict[Key, list[dict[str, Any]]] = {}
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


def _issue(message: Message, folder: Path, entries: list[dict[str, Any]], ids: Array | None) -> Issue:
    """Weigh what was written of one kind and round; ``ids``: those that the users have among all, if that matters."""
    from pyarrow import parquet

    users = [end for end in ("sender", "recipient") if getattr(message, end) == USER]
    rows, cells, fixed, taken = sum(entry["rows"] for entry in entries), 0, 0, 0
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
            values = max(0, chunk.total_compressed_size - _PAGE)
            fixed -= values
            if chunk.path_in_schema in users and ids is not None:
                values = _among_all(folder / entry["file"], chunk.path_in_schema, ids) or values
            taken += values
        cells = max(cells, sum(chunk.num_values for chunk in chunks) // entry["rows"])
    counted = sum("from" in entries[0][end] for end in users if entries[0][end] != STORED)
    return Issue(rows, len(users), counted, taken / rows, cells, fixed)


def _among_all(file: Path, name: str, ids: Array) -> int | None:
    """Weigh a column of users with the ids that they have among all; None if it rises, for then differences are stored.

    What is random in an id does not compress: it takes whole bytes, as many as the largest id has.
    """
    from pyarrow import parquet

    with parquet.ParquetFile(file) as written:
        users = parquet_columns.column(written.read([name])[name].combine_chunks())
    if (users[1:] >= users[:-1]).all():
        return None
    target = file.with_suffix(".ids")
    stream = parquet_columns.Stream(target, {name: ids[users]}, ADDRESSES)
    stream.write({name: ids[users]})
    stream.close()
    return max(0, int(parquet.read_metadata(target).row_group(0).column(0).total_compressed_size) - _PAGE)


_USERS, _TOGETHER = 2048, 512
"""Most users of the pilot, and of one of its clusters: if all of a cluster write to all, a million messages."""

_BITS = 3  # that what an id rises by takes at least
_SOME = 8  # users of a cluster from which that share says something
_ALL = 0.9  # share of pairs that exchange a message from which everybody is taken to write to everybody


def grown(protocol: Protocol, population: Population, faults: Faults | None) -> dict[Key, Issue]:
    """Return what a full trace will hold of each kind and round, from one run of few users.

    Messages grow with the users, or with the pairs of users in a cluster where everybody writes to everybody.  Raises
    what a run would raise.
    """
    sizes = population.sizes
    size = min(_TOGETHER, int(np.median(sizes)))
    clusters = max(1, min(_USERS // size, int(np.count_nonzero(sizes >= size))))
    found = {}
    for key, issue in weigh(protocol, population, clusters, size, faults).items():
        power = 2 if issue.rows >= _ALL * clusters * size * (size - 1) and size >= _SOME else 1
        rows = issue.rows / clusters * float(((sizes / size) ** power).sum())
        found[key] = replace(issue, rows=rows)
    return found


FACTOR = 3
"""Bytes of a full trace are predicted within this factor, for a run at one site."""

_ROWS = 1 << 16


@dataclass(frozen=True)
class Prediction:
    """What a trace level will keep: messages, bytes on disk, and how many seconds of computing it adds to the run."""

    level: str
    messages: int
    nbytes: int
    seconds: float


def predict(
    protocol: Protocol, population: Population, *levels: str, faults: Faults | None = None
) -> list[Prediction]:
    """Return what each of some trace levels will keep of a run; takes about 0.2 s, more for slow protocols.

    Bytes of a full trace are right within a factor of 3 for a run at one site; what goes from shard to shard takes
    more.  Raises InputError for an unknown level, and what a run would raise.
    """
    wanted = [TraceLevel.parse(level) for level in levels]
    full, cost = dict[Key, Issue](), 0.0
    if any(level.keeps for level in wanted):
        full, cost = grown(protocol, population, faults), _seconds_a_cell()
    folder = _manifest(protocol, population, full)
    found = []
    for level, text in zip(wanted, levels, strict=True):
        kept = list(full.values()) if level.keeps else []
        if level.name == "sample":
            share = min(1.0, level.sample / population.users)
            kept = [each for full_one in kept if (each := _sampled(full_one, share)).rows]
        nbytes = folder + sum(each.rows * each.width + each.fixed for each in kept)
        cells = sum(each.rows * each.cells for each in kept)
        messages = round(sum(each.rows for each in kept))
        found.append(Prediction(text, messages, 0 if level.name == "none" else round(nbytes), cells * cost))
    return found


def _sampled(full: Issue, share: float) -> Issue:
    """Return what is kept of messages if each end that is a user is one of the chosen with probability ``share``.

    Ids that counted up are stored: what they rise by, which takes more bits the fewer of them are kept.
    """
    kept = 1 - (1 - share) ** full.ends  # nothing of what servers send each other
    bits = _BITS - math.log2(kept) if kept else 0.0
    return replace(full, rows=full.rows * kept, width=full.width + full.counted * bits / 8)


def _manifest(protocol: Protocol, population: Population, keys: Iterable[Key]) -> int:
    """Return the bytes of a manifest without files."""
    known = {kind for kind, _ in keys}
    silent = [(kind, 0) for kind in protocol.messages() if kind not in known]
    count = Count(population.users, population.users, population.users)
    begun = manifest.begun(protocol, "full", population.users, "")
    return len(manifest.text_of(manifest.ended(begun, dict.fromkeys([*keys, *silent], count), [])))


def _seconds_a_cell() -> float:
    """Measure what writing one value costs on this machine: half of them ids, half of them bits."""
    ids = (np.arange(_ROWS) * 40503 % 65521).astype(np.int32)
    spent = []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as name:
            writer, before = Writer(Path(name), 0), time.process_time()
            writer.take("label", 1, {"sender": range(_ROWS), "recipient": ids, "seq": 0}, {"y": ids % 2 == 0})
            writer.cut()
            spent.append(time.process_time() - before)
    return min(spent) / (2 * _ROWS)
