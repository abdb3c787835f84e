"""How much a trace will hold, before a run: a run of few users is weighed, and grown to all of them."""

from __future__ import annotations

import contextlib
import json
import math
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.backends import local
from p2p_sim.core import groups
from p2p_sim.core.deliveries import Count
from p2p_sim.core.errors import InputError, ProtocolError
from p2p_sim.core.faults import Faults
from p2p_sim.core.groups import Members
from p2p_sim.core.message import USER
from p2p_sim.core.population import Population
from p2p_sim.core.protocol import Protocol
from p2p_sim.core.trace_level import TraceLevel
from p2p_sim.rundir import manifest, parquet_columns
from p2p_sim.rundir.parquet_columns import ADDRESSES, STORED
from p2p_sim.rundir.trace_writer import Draft, Writer

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
    protocol: Protocol,
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
        users = parquet_columns.column(written.read([name])[name].combine_chunks())
    if (users[1:] >= users[:-1]).all():
        return None
    target = file.with_suffix(".ids")
    stream = parquet_columns.Stream(target, {name: ids[users]}, ADDRESSES)
    stream.write({name: ids[users]})
    stream.close()
    return max(0, int(parquet.read_metadata(target).row_group(0).column(0).total_compressed_size) - _PAGE)


_FEW, _FEW_TOGETHER = 1024, 64
_MORE, _MORE_TOGETHER = 8192, 2048
_QUIET = 16  # messages a user up to which more users are run
_SAMPLE = 2048  # messages that a sample should hold
_LEAST, _BIT = 0.02, 1 / 8  # bytes: what an id takes more where there are twice as many: one bit at most
_BLOCK = 1 << 17  # octets that are compressed together

Key = tuple[str, int]


@dataclass(frozen=True)
class Grown:
    """Messages of one kind and round among all users; ``width``: bytes of each."""

    issue: Issue
    rows: float
    width: float


@dataclass(frozen=True)
class Pilots:
    """Runs of few users of a population."""

    protocol: Protocol
    population: Population
    faults: Faults | None
    _known: dict[tuple[int, int, int | None], dict[Key, Issue]] = field(default_factory=dict)

    def grown(self, sample: int | None = None) -> dict[Key, Grown]:
        """Return what there will be of each kind and round; ``sample``: widths of what is kept of that many users.

        Raises what a run would raise.
        """
        clusters, size = self.plan
        half = (size + 1) // 2
        smaller, fewer = self._less(clusters, half, sample), self._less(clusters // 4, size, sample)
        found = {}
        for key, issue in self._weigh(clusters, size, sample).items():
            power = 1.0
            if key in smaller:
                power = math.log(issue.rows / smaller[key].rows) / math.log(size / half)
            rows = issue.rows / clusters * float(((self.population.sizes / size) ** power).sum())
            found[key] = Grown(issue, rows, self._width(key, issue, smaller, fewer))
        return found

    @cached_property
    def talk(self) -> float:
        """Messages a user, among few."""
        clusters, size = self._clusters(_FEW, _FEW_TOGETHER)
        return sum(issue.rows for issue in self._weigh(clusters, size, None).values()) / (clusters * size)

    @cached_property
    def plan(self) -> tuple[int, int]:
        """How many clusters are run, and how many users of each: more where users send few messages."""
        if self.talk > _QUIET:
            return self._clusters(_FEW, _FEW_TOGETHER)
        return self._clusters(_MORE, _MORE_TOGETHER if len(self.population.sizes) > 1 else _MORE)

    def _clusters(self, users: int, together: int) -> tuple[int, int]:
        sizes = self.population.sizes
        size = min(together, int(np.median(sizes)))
        return max(1, min(users // size, int(np.count_nonzero(sizes >= size)))), size

    def _weigh(self, clusters: int, size: int, sample: int | None) -> dict[Key, Issue]:
        if sample is not None:
            users = clusters * size
            enough = math.ceil(_SAMPLE / max(1.0, self.talk))
            sample = min(users, max(enough, users * sample // self.population.users))
        key = clusters, size, sample
        if key not in self._known:
            self._known[key] = weigh(self.protocol, self.population, *key, self.faults)
        return self._known[key]

    def _less(self, clusters: int, size: int, sample: int | None) -> dict[Key, Issue]:
        """Weigh what fewer users write; nothing where they are not fewer, or clusters must have some size."""
        if (clusters, size) != self.plan and clusters:
            with contextlib.suppress(InputError, ProtocolError):
                return self._weigh(clusters, size, sample)
        return {}

    def _width(self, key: Key, issue: Issue, *less: Mapping[Key, Issue]) -> float:
        """Return what a message takes among all users."""
        clusters, size = self.plan
        sizes, known = self.population.sizes.astype(np.float64), self.population.clusters
        together = float((sizes**2).sum() / sizes.sum())  # of the cluster of a user
        apart = float(len(sizes))
        if known is not None and known.order is None:  # ids of few clusters lie together
            apart = min(apart, max(clusters, _BLOCK * clusters / issue.rows))
        times = math.log2(max(1.0, together / size)), math.log2(apart / clusters)
        width = 0.0
        for name, octets in issue.widths.items():
            before = [pilot[key].widths.get(name, octets) if key in pilot else octets for pilot in less]
            gains = [(octets - few) / doublings for few, doublings in zip(before, (1, 2), strict=True)]
            steps = [min(_BIT, gain) if gain >= _LEAST else 0.0 for gain in gains]
            steps[0] *= name not in issue.spread  # larger clusters have no larger ids than these
            width += octets + sum(step * doublings for step, doublings in zip(steps, times, strict=True))
        return width


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
    pilots, full, cost = Pilots(protocol, population, faults), dict[Key, Grown](), 0.0
    if any(level.keeps for level in wanted):
        full, cost = pilots.grown(), _seconds_a_cell()
    folder = _manifest(protocol, population, full)
    found = []
    for level, text in zip(wanted, levels, strict=True):
        kept: Iterable[Grown] = full.values() if level.keeps else ()
        if level.name == "sample":
            kept = _sampled(pilots, level.sample, full)
        nbytes = folder + sum(grown.rows * grown.width + grown.issue.fixed for grown in kept)
        cells = sum(grown.rows * grown.issue.cells for grown in kept)
        messages = round(sum(grown.rows for grown in kept))
        found.append(Prediction(text, messages, 0 if level.name == "none" else round(nbytes), cells * cost))
    return found


def _sampled(pilots: Pilots, sample: int, full: dict[Key, Grown]) -> list[Grown]:
    """Return what is kept of all messages: those that one of the chosen users sent or received."""
    others = 1 - min(1.0, sample / pilots.population.users)
    return [
        replace(grown, rows=full[key].rows * (1 - others**grown.issue.ends))
        for key, grown in pilots.grown(sample).items()
        if key in full
    ]


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
