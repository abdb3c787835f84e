"""Pilot runs: what a run of few users takes, at two sizes, and how that grows to all of them."""

from __future__ import annotations

import math
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from p2p_sim.core import groups
from p2p_sim.core.ledger import Count
from p2p_sim.core.population import Population
from p2p_sim.core.population_in_parts import PopulationInParts
from p2p_sim.core.protocol import Protocol
from p2p_sim.core.sealing import REAL
from p2p_sim.parquet_users import ParquetUsers
from p2p_sim.run import Run, run
from p2p_sim.trace.size_estimate import few

_LEAST, _MOST = 128, 1 << 17
"""Users of the first pilot, and the most of the last."""

_ENOUGH = 0.15  # seconds of a pilot that tell enough
_LINEAR = 1.1  # power of growth up to which messages count as one for so many users


@dataclass(frozen=True)
class Crowd:
    """The users of a planned run, who need not exist yet.

    ``make``: returns some of them, at least as many as asked for where there are, in whole clusters where it can;
    ``users``: how many there are; ``cluster``: how many are in a typical cluster; ``together``: whether a cluster's
    users have ids in a row.  ``held``: whether they are in memory already; ``apart``: whether shards make or read them
    themselves.  ``every``: the size of each cluster, (c,), where that is known.
    """

    make: Callable[[int], Population]
    users: int
    cluster: int
    together: bool
    held: bool = False
    apart: bool = False
    every: np.ndarray[Any, np.dtype[np.int64]] | None = None

    def sizes(self) -> tuple[Any, Any]:
        """Return the sizes of clusters that occur and how many have each, both (s,); where unknown, all are typical."""
        if self.every is not None:
            return np.unique(self.every, return_counts=True)
        whole, rest = divmod(self.users, self.cluster)
        found = [(self.cluster, whole), *([(rest, 1)] if rest else [])]
        return tuple(np.array(found, np.int64).T)

    @classmethod
    def of(cls, people: Population, protocol: Protocol) -> Crowd:
        """Return the crowd of a whole population."""
        cluster = int(np.median(people.sizes))
        together = people.clusters is None or people.clusters.order is None
        return cls(
            lambda users: _head(people, users, protocol), people.users, cluster, together, held=True,
            every=people.sizes,
        )  # fmt: skip

    @classmethod
    def stored(cls, people: PopulationInParts) -> Crowd:
        """Return the crowd of users in Parquet files, of whom the first are read."""
        origin = people.origin
        assert isinstance(origin, ParquetUsers)

        def make(wanted: int) -> Population:
            some = origin.head(wanted)
            return some.piece(0, some.users)

        sizes = origin.head(_MOST).sizes
        return cls(make, people.users, min(people.users, int(np.median(sizes))), True, apart=True)

    @classmethod
    def synthetic(cls, users: int, cluster_size: int | None, drawn: dict[str, Any]) -> Crowd:
        """Return the crowd of ``Population.synthetic``; ``drawn``: its other arguments."""
        cluster = min(users, cluster_size or users)

        def make(wanted: int) -> Population:
            some = min(users, wanted if wanted <= cluster else wanted // cluster * cluster)
            made = (
                Population.synthetic if drawn.get("features") else PopulationInParts.drawn
            )  # as the run itself does
            return made(users=some, cluster_size=cluster_size, **drawn)

        return cls(make, users, cluster, True, apart=not drawn.get("features"))


def _head(people: Population, users: int, protocol: Protocol) -> Population:
    """Return the first users of a population; of one with a graph some who are joined like all of them."""
    if users >= people.users:
        return people
    if people.graph is not None:
        size = min(users, int(np.median(people.sizes)))
        clusters = max(1, min(users // size, int(np.count_nonzero(people.sizes >= size))))
        return few(people, clusters, size, protocol.graph_over() == "cluster")[0]
    members = None if people.clusters is None else groups.clusters(people.clusters.label[:users])
    x = None if people.x is None else people.x[:users]
    public, secret = (
        {name: column[:users] for name, column in columns.items()}
        for columns in (people.public, people.secret)
    )
    return Population(people.y[:users], members, x, public, secret)


@dataclass(frozen=True)
class Sample:
    """What a run of some users took.

    ``seconds``: of CPU; ``memory``: the most bytes beyond those of an idle process, users and outputs included;
    ``population``, ``outputs``: bytes in memory, and on disk.
    """

    users: int
    counts: dict[tuple[str, int], Count]
    seconds: float
    memory: float
    population: float
    outputs: float
    population_on_disk: float
    outputs_on_disk: float

    @property
    def messages(self) -> int:
        """How many messages were delivered."""
        return sum(count.messages for count in self.counts.values())


@dataclass(frozen=True)
class Growth:
    """Two pilots, and how much more all users send than those of the larger one (``ratio``)."""

    small: Sample
    large: Sample
    ratio: float

    def of(self, name: str) -> float:
        """Return a figure of the pilots, grown to all users: what is fixed stays as it is."""
        least, most = getattr(self.small, name), getattr(self.large, name)
        share = self._share()
        slope = 0.0 if share == 1.0 else max(0.0, (most - least) / (1.0 - share))
        return float(most + slope * (self.ratio - 1.0))

    def _share(self) -> float:
        """Return the load of the small pilot in loads of the large one."""
        if _power(self.small, self.large) > _LINEAR:
            return self.small.messages / self.large.messages
        return self.small.users / self.large.users

    def counts(self) -> dict[tuple[str, int], Count]:
        """Return the messages of all users by kind and round."""
        return {
            key: Count(
                *(round(each * self.ratio) for each in (count.messages, count.travelled, count.nbytes))
            )
            for key, count in self.large.counts.items()
        }


def grown(protocol: Protocol, crowd: Crowd, how: dict[str, Any], saved: bool) -> Growth:
    """Run pilots of a planned run and return how it grows; about 0.6 seconds, more for slow protocols.

    ``how``: digest, faults, crypto, as ``p2p_sim.run`` takes them; ``saved``: whether the population is written.
    Raises what a run would raise.
    """
    least, plain = max(1, protocol.least_users()), crowd.users > 2 * _MOST
    at = min(crowd.users, max(_LEAST, 2 * least))
    while True:
        large = _timed(protocol, crowd.make(at), how, saved, plain)
        if large.seconds >= _ENOUGH:  # the first run of a process also imports and fills caches
            large = min(large, _timed(protocol, crowd.make(at), how, saved, plain), key=_seconds)
        if large.seconds >= _ENOUGH or at >= min(crowd.users, _MOST):
            break
        at = min(2 * at, crowd.users, _MOST)
    half = max(least, large.users // 2)
    small = large
    if half < large.users:
        twice = [_timed(protocol, crowd.make(half), how, saved, plain) for _ in range(2)]
        small = min(twice, key=_seconds)
    block = small.users
    small, large = (
        replace(each, memory=_peak(protocol, crowd, each.users, block, how)) for each in (small, large)
    )
    return Growth(small, large, _ratio(small, large, crowd))


def _seconds(sample: Sample) -> float:
    return sample.seconds


def messages_of(protocol: Protocol, crowd: Crowd, how: dict[str, Any]) -> float:
    """Return about how many messages a run sends, from two runs of the fewest users; raises what a run would raise."""
    at = min(crowd.users, max(_LEAST, 2 * protocol.least_users()))
    small, large = (_bare(protocol, crowd.make(each), how) for each in (at, 2 * at))
    return large.messages * _ratio(small, large, crowd)


def _bare(protocol: Protocol, people: Population, how: dict[str, Any]) -> Sample:
    done = run(protocol, people, seed=0, progress=False, digest=False, **how)
    return Sample(people.users, done.counts, *[0.0] * 6)


def _ratio(small: Sample, large: Sample, crowd: Crowd) -> float:
    """Return how many times as many messages all users send: inside a cluster by a power, then cluster by cluster."""
    power = _power(small, large)
    if large.users >= crowd.cluster or power <= _LINEAR:
        return crowd.users / large.users
    return float((crowd.cluster / large.users) ** power * (crowd.users / crowd.cluster))


def _power(small: Sample, large: Sample) -> float:
    """Return the power of the users with which messages grow between two pilots."""
    if small.users == large.users or not small.messages or not large.messages:
        return 1.0
    return math.log(large.messages / small.messages) / math.log(large.users / small.users)


def _timed(
    protocol: Protocol, people: Population, how: dict[str, Any], saved: bool, plain: bool
) -> Sample:  # fmt: skip
    """Run some users and weigh what that leaves; seconds are those of the run and of writing it.

    ``plain``: see ``_weight``.
    """
    clock = time.perf_counter if how.get("crypto") == REAL else time.process_time  # others compute then
    begun = clock()
    done = run(protocol, people, seed=0, progress=False, costs=True, threads=1, **how)
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "pilot"
        _write(done, target)
        seconds = clock() - begun
        sizes = {
            part: sum(_weight(file, plain) for file in (target / part).rglob("*.parquet"))
            for part in ("outputs", "population")
        }
    columns = [people.y, people.x, *people.public.values(), *people.secret.values()]
    members = [part for part in (people.clusters, people.graph) if part is not None]
    columns += [table for part in members for table in (part.codes, part.starts, part.order, part.labels)]
    outputs = [column for each in done.outputs.values() for column in each.values()]
    return Sample(
        people.users, done.counts, seconds, 0.0, _nbytes(columns), _nbytes(outputs),
        sizes["population"] if saved else 0.0, sizes["outputs"],
    )  # fmt: skip


def _weight(file: Path, plain: bool) -> int:
    """Return the bytes of a Parquet file; ``plain``: without dictionaries of values, as the many rows of a large one.

    Parquet gives a dictionary up at 1 MiB: 131,072 numbers of 8 bytes.
    """
    if not plain:
        return file.stat().st_size
    import pyarrow as pa
    from pyarrow import parquet

    from p2p_sim.rundir import parquet_columns

    table, stream = parquet.read_table(file), pa.BufferOutputStream()
    columns = {name: parquet_columns.column(table[name].combine_chunks()) for name in table.column_names}
    rising = [name for name, values in columns.items() if parquet_columns.rises(values)]
    how = parquet_columns.encodings(columns, rising) | {"use_dictionary": False}
    parquet.write_table(table, stream, compression="zstd", **how)
    return int(stream.tell())


def _write(done: Run, folder: Path) -> None:
    """Write what is large of a run directory, as saving it does."""
    from p2p_sim.rundir import growing_columns, population_file

    for role, columns in done.outputs.items():
        if columns:
            growing_columns.write_apart(folder / "outputs", role, columns)
    if done.population is not None and done.population.ids is None:
        (folder / "population").mkdir(parents=True)
        population_file.write(folder / "population", population_file.stored(done.population, done.source))


def _peak(protocol: Protocol, crowd: Crowd, users: int, block: int, how: dict[str, Any]) -> float:
    """Return the most memory of a run of some users, themselves included, in blocks of a size.

    In blocks of one size, what a block takes while it works does not grow with the users, as in a run of millions.
    """
    before = tracemalloc.is_tracing()
    if not before:
        tracemalloc.start()
    try:
        start = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        done = run(
            protocol, crowd.make(users), seed=0, progress=False, costs=True, threads=1,
            blocks=max(1, users // block), **how,
        )  # fmt: skip
        peak = tracemalloc.get_traced_memory()[1] - start
        del done
    finally:
        if not before:
            tracemalloc.stop()
    return float(peak)


def _nbytes(columns: list[Any]) -> float:
    return float(sum(column.nbytes for column in columns if column is not None))
