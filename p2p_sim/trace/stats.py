"""Statistics of a run's messages: by kind, round and role, and how many each user sends and receives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.core.ledger import Count
from p2p_sim.core.message import USER, Message
from p2p_sim.core.protocol import Protocol
from p2p_sim.core.trace_level import TraceLevel
from p2p_sim.rundir.run_directory import opened
from p2p_sim.rundir.run_record import RunRecord
from p2p_sim.rundir.trace_reader import Source
from p2p_sim.trace import query

Array = npt.NDArray[Any]

QUANTILES = (0.25, 0.5, 0.75, 0.99)
_ONE = np.int32(1)


@dataclass(frozen=True)
class Spread:
    """The distribution of a number of messages over users.

    ``none``: how many users have none.  ``quantiles``: for 0.25, 0.5, 0.75 and 0.99, the smallest number that at least
    this share of the users does not exceed.  ``busiest``: the smallest id among the users with ``most``.
    """

    users: int
    none: int
    least: int
    quantiles: tuple[int, ...]
    most: int
    mean: float
    busiest: int


class Tally:
    """Counts by user.  ``size``: the largest id plus one; it grows when a larger id comes."""

    def __init__(self, size: int):
        self.counts = np.zeros(size, np.int32)

    def add(self, ids: Array) -> None:
        """Count one for each id."""
        self._reach(int(ids.max(initial=-1)) + 1)
        np.add.at(self.counts, ids, _ONE)  # of one type with the counts, it is ten times as fast

    def merge(self, other: Tally) -> None:
        """Add the counts of another."""
        self._reach(len(other.counts))
        self.counts[: len(other.counts)] += other.counts

    def _reach(self, size: int) -> None:
        if size > len(self.counts):
            self.counts = np.concatenate([self.counts, np.zeros(size - len(self.counts), np.int32)])

    def spread(self, ids: Array | None) -> Spread | None:
        """Return the distribution of the counts over some users (ids, ascending; None: all).

        None if there are no users.
        """
        counts = self.counts if ids is None else self.counts[ids]
        return None if not len(counts) else _spread(counts, ids)


def _spread(counts: Array, ids: Array | None) -> Spread:
    how_many = np.bincount(counts)  # users, by number of messages
    up_to = np.cumsum(how_many)
    users, most = len(counts), len(how_many) - 1
    busiest = int(counts.argmax())
    return Spread(
        users=users,
        none=int(how_many[0]),
        least=int(np.flatnonzero(how_many)[0]),
        quantiles=tuple(int(np.searchsorted(up_to, _share(q, users))) for q in QUANTILES),
        most=most,
        mean=int(how_many @ np.arange(most + 1)) / users,
        busiest=busiest if ids is None else int(ids[busiest]),
    )


def _share(quantile: float, users: int) -> int:
    """Return how many users are at least that share of all; quantiles are whole percents."""
    return -(-round(100 * quantile) * users // 100)


_WAYS = (("sent", "sender"), ("received", "recipient"))


@dataclass(frozen=True)
class Degree:
    """How many messages users sent or received (``way``), of one kind and round; None means all."""

    way: str
    kind: str | None
    round: int | None
    spread: Spread


@dataclass(frozen=True)
class Stats:
    """Statistics of a run.

    ``counts``: by (kind, round), in causal order; ``roles``: by (role, "sent" or "received"); ``between``: by (kind,
    role of the sender, role of the recipient); ``degrees``: of users, empty where there is no trace; ``notes``: where
    the figures come from and what is missing, in words.
    """

    counts: dict[tuple[str, int], Count]
    roles: dict[tuple[str, str], Count]
    between: dict[tuple[str, str, str], Count]
    degrees: tuple[Degree, ...]
    notes: tuple[str, ...]


def stats(run: RunRecord | str | Path, *, protocol: Protocol | None = None) -> Stats:
    """Return the statistics of a run, in bounded memory.

    ``run``: a ``Run`` or the path of a run directory.  ``protocol``: needed if the run's protocol is not shipped.
    Every run has its counts.  Degrees need the messages: those that were kept (of a sample: of the sampled users), or,
    in runs of up to 1,000,000 users, recomputed ones.  Raises InputError for a folder that is no run directory, and for
    an unknown protocol.
    """
    record = opened(run)
    program = record.source if protocol is None else protocol
    counts: Mapping[tuple[str, int], Count] = record.counts
    degrees: tuple[Degree, ...] = ()
    try:
        trace, kinds, notes = query.trace_for(record, program)
    except InputError as error:
        if program is None or record.trace == "full":
            raise
        kinds, notes = program.messages(), (f"degrees are not known: {error}",)
    else:
        counts = counts or trace.counts  # of a run that was cut off
        degrees, more = _degrees(record, trace, kinds)
        notes += more
    order = {kind: place for place, kind in enumerate(kinds)}
    in_order = sorted((key for key in counts if key[1]), key=lambda key: (key[1], order[key[0]]))
    by_round = {key: counts[key] for key in in_order}  # round 0: a kind that never was sent
    return Stats(by_round, *_by_role(counts, kinds), degrees, notes)


def _by_role(
    counts: Mapping[tuple[str, int], Count], kinds: Mapping[str, Message]
) -> tuple[dict[tuple[str, str], Count], dict[tuple[str, str, str], Count]]:
    """Add counts up, by who sent and who received."""
    ends = {kind: (message.sender, message.recipient) for kind, message in kinds.items()}
    roles = dict.fromkeys(role for pair in ends.values() for role in pair)
    by_role = {(role, way): Count() for role in roles for way, _ in _WAYS}
    between = {(kind, *pair): Count() for kind, pair in ends.items()}
    for (kind, _), count in counts.items():
        sender, recipient = ends[kind]
        between[kind, sender, recipient].add(count)
        by_role[sender, "sent"].add(count)
        by_role[recipient, "received"].add(count)
    return by_role, between


def _degrees(
    run: RunRecord, trace: Source, kinds: Mapping[str, Message]
) -> tuple[tuple[Degree, ...], tuple[str, ...]]:
    """Count the messages of each user, in one pass over the trace."""
    size, ids, notes = _users(run, trace)
    found: list[Degree] = []
    whole = {way: Tally(size) for way, _ in _WAYS}
    for kind, message in kinds.items():
        ways = [(way, end) for way, end in _WAYS if getattr(message, end) == USER]
        rounds = sorted(number for name, number in trace.counts if name == kind and number) if ways else []
        of_kind = {way: Tally(size) for way, _ in ways} if len(rounds) > 1 else {}
        for round in rounds:
            here = {way: Tally(size) for way, _ in ways}
            for columns in trace.batches(kind, round):
                for way, end in ways:
                    here[way].add(columns[end])
            for way, tally in here.items():
                found += _degree(way, kind, round, tally, ids)
                whole[way].merge(tally)
                if of_kind:
                    of_kind[way].merge(tally)
        for way, tally in of_kind.items():
            found += _degree(way, kind, None, tally, ids)
    for way, tally in whole.items():
        found += _degree(way, None, None, tally, ids)
    if size and max(len(tally.counts) for tally in whole.values()) > size:
        notes += (
            "ids go beyond the number of users, as in a run on part of a population: who has no message is not known",
        )
    return tuple(found), notes


def _users(run: RunRecord, trace: Source) -> tuple[int, Array | None, tuple[str, ...]]:
    """Return the largest id plus one, the users whose messages are complete (None: all), and notes."""
    size, people = query.size_of(run), query.census(run)
    level = TraceLevel.parse(trace.manifest["level"])
    if people is None:
        notes = (
            () if size else ("how many users there are was not kept: those above the largest id are missing",)
        )
        return size, _sampled(level, size, None), notes
    return size, _sampled(level, people.users, people.ids), ()


def _sampled(level: TraceLevel, users: int, ids: Array | None) -> Array | None:
    rows = level.watched(users) if users else None
    if rows is None:
        return ids
    return rows if ids is None else np.asarray(ids[rows])


def _degree(way: str, kind: str | None, round: int | None, tally: Tally, ids: Array | None) -> list[Degree]:
    spread = tally.spread(ids)
    return [] if spread is None else [Degree(way, kind, round, spread)]
