"""The cone of a message: what may have influenced it, what it may have influenced, and what hides its origin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.closed_world import closed_world
from p2p_sim.core.errors import InputError
from p2p_sim.core.message import USER, Message
from p2p_sim.core.number_texts import read_digits
from p2p_sim.core.population import Population
from p2p_sim.core.protocol import Protocol
from p2p_sim.rundir.population_file import part_with, rows_of
from p2p_sim.rundir.run_directory import opened
from p2p_sim.rundir.run_record import RunRecord
from p2p_sim.rundir.trace_reader import Source
from p2p_sim.trace import query
from p2p_sim.trace.slices import Event, Slice, in_order

Array = npt.NDArray[Any]


class PartySet:
    """A set of parties.  ``size``: the largest user id plus one, if known; the set grows when a larger id comes."""

    def __init__(self, size: int = 0):
        self._users = np.zeros(size, np.bool_)
        self.servers: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self.servers) or bool(self._users.any())

    @property
    def users(self) -> int:
        """How many users are in it."""
        return int(np.count_nonzero(self._users))

    def ids(self) -> Array:
        """The ids of its users, ascending."""
        return np.flatnonzero(self._users)

    def add(self, role: str, ids: Array) -> None:
        """Add parties of one role."""
        if not len(ids):
            return
        if role != USER:
            self.servers.add(role)
            return
        missing = int(ids.max()) + 1 - len(self._users)
        if missing > 0:
            self._users = np.concatenate([self._users, np.zeros(missing, np.bool_)])
        self._users[ids] = True

    def join(self, other: PartySet) -> None:
        """Add all parties of another set."""
        self.add(USER, other.ids())
        self.servers |= other.servers

    def has(self, role: str, ids: Array) -> Array:
        """Return a mask of the parties of a role who are in it."""
        if role != USER:
            return np.full(len(ids), role in self.servers)
        if not len(self._users):
            return np.zeros(len(ids), np.bool_)
        known = np.minimum(ids, len(self._users) - 1)
        return np.asarray(self._users[known] & (ids == known))

    def may_contain(self, role: str) -> bool:
        """Whether any party of a role is in it."""
        return bool(self._users.any()) if role == USER else role in self.servers


@dataclass(frozen=True)
class SameFields:
    """Messages of a kind that have the same values in some fields as the message in question."""

    kind: str
    fields: tuple[str, ...]
    messages: int


@dataclass(frozen=True)
class Hidden:
    """What the recipient of a message cannot see of its origin.

    ``unseen``: how many messages, by kind, had reached the sender from others than the recipient.  If there are none,
    the message can only come from the sender's own data and from what the recipient had sent.  ``users``: how many
    users these messages may come from, None if unknown; ``cluster``: the cluster that these users are, if they are one.
    ``alike``: how many of these messages share fields with this one.  ``actual``: how many users they really come from.
    """

    sender: str
    recipient: str
    unseen: dict[str, int] = field(default_factory=dict)
    users: int | None = 0
    cluster: int | None = None
    alike: tuple[SameFields, ...] = ()
    actual: int = 0


def origin_hidden(
    trace: Source, kinds: Mapping[str, Message], message: Slice, run: RunRecord, program: Protocol | None
) -> Hidden:
    """Return what the recipient of a message cannot see of its origin.

    ``message``: a slice that holds this one message.  ``run``: gives the population.  ``program``: its protocol, None
    if unknown.
    """
    event = next(message.events())
    sender, recipient = event.ends
    if sender == recipient:
        return Hidden(sender, recipient)
    if event.roles[0] == USER:
        return _from_user(trace, kinds, event, run, program)
    return _from_server(trace, kinds, event)


def _from_user(
    trace: Source, kinds: Mapping[str, Message], event: Event, run: RunRecord, program: Protocol | None
) -> Hidden:
    """Return which messages had reached a user, and from how many users they may have come."""
    unseen: dict[str, int] = {}
    origins = PartySet()
    for kind, message in kinds.items():
        if message.recipient != USER or not message.fields:
            continue
        columns, _ = trace.rows(kind, user=event.sender)
        mine = (columns["recipient"] == event.sender) & (columns["round"] < event.round)
        mine &= ~_handled(message, columns, event)
        if mine.any():
            unseen[kind] = int(np.count_nonzero(mine))
            origins.add(message.sender, columns["sender"][mine])
    if not unseen:
        return Hidden(*event.ends)
    users, cluster = None, None
    people = None if program is None else part_with(run, program, np.array([event.sender]))
    if people is not None and program is not None:
        row = rows_of(people, np.array([event.sender]))
        reach = _reach(program, people, row, _hops(trace, kinds, event.round))
        users, clusters = len(reach), people.clusters
        if (
            clusters is not None
            and int(clusters.size[row[0]]) == users
            and (clusters.codes[reach] == clusters.codes[row]).all()
        ):
            cluster = int(clusters.label[row[0]])
    return Hidden(*event.ends, unseen, users, cluster, actual=origins.users)


def _reach(program: Protocol, people: Population, row: Array, hops: int) -> Array:
    """Return the rows of the users from whom something may have come: on a graph, within ``hops`` edges."""
    graph = people.graph
    if graph is None or program.graph_over() is None:
        return closed_world(program, people, row)
    inside = row
    for _ in range(hops):
        codes = np.unique(graph.codes[inside])
        inside = np.union1d(inside, replace(graph, codes=codes).everybody()[0])
    return inside


def _hops(trace: Source, kinds: Mapping[str, Message], before: int) -> int:
    """Return in how many rounds before this one users sent data to users."""
    carried = {kind for kind, m in kinds.items() if m.sender == m.recipient == USER and m.fields}
    return len({round for kind, round in trace.counts if kind in carried and 0 < round < before})


def _from_server(trace: Source, kinds: Mapping[str, Message], event: Event) -> Hidden:
    """Return which messages had reached a server, and from how many users, also through other servers."""
    unseen: dict[str, int] = {}
    alike: list[SameFields] = []
    origins, servers, waiting = PartySet(), {event.roles[0]}, [event.roles[0]]
    for server in waiting:  # grows meanwhile
        for kind, message in kinds.items():
            if message.recipient != server or not message.fields:
                continue
            same = _shared(kinds[event.kind], message, event) if server == event.roles[0] else {}
            counts = _count(trace, message, event, origins, same)
            if counts[0] and server == event.roles[0]:
                unseen[kind] = counts[0]
                names = tuple(same)
                alike += [SameFields(kind, names[: i + 1], counts[i + 1]) for i in range(len(names))]
            if counts[0] and message.sender not in (USER, *servers):
                servers.add(message.sender)
                waiting.append(message.sender)
    return (
        Hidden(*event.ends, unseen, origins.users, None, tuple(alike), origins.users)
        if unseen
        else Hidden(*event.ends)
    )


def _count(
    trace: Source, message: Message, event: Event, origins: PartySet, same: Mapping[str, Any]
) -> list[int]:
    """Count unseen messages of a kind, and those equal in the first field, the first two, ...; add their senders."""
    counts = [0] * (1 + len(same))
    rounds = [round for kind, round in trace.counts if kind == message.kind and 0 < round < event.round]
    for round in rounds:
        for columns in trace.batches(message.kind, round):
            mask = ~_handled(message, columns, event)
            if message.sender == USER:
                origins.add(USER, columns["sender"][mask])
            counts[0] += int(np.count_nonzero(mask))
            for place, (name, value) in enumerate(same.items()):
                equal = columns[name] == value
                mask &= equal if equal.ndim == 1 else equal.all(axis=1)
                counts[place + 1] += int(np.count_nonzero(mask))
    return counts


def _handled(message: Message, columns: Mapping[str, Array], event: Event) -> Array:
    """Return a mask of the messages to the sender of ``event`` that its recipient sent."""
    role, number = event.roles[1], event.recipient
    if message.sender != role:
        return np.zeros(len(columns["sender"]), np.bool_)
    return np.asarray(columns["sender"] == number)


def _shared(message: Message, other: Message, event: Event) -> dict[str, Any]:
    """Return the fields that a message shares with another kind and its recipient can read, with their values."""
    keys = {key for key in (message.sealed_for, *message.layers) if key is not None}
    if event.fields is None or not keys <= {event.roles[1]}:
        return {}
    return {name: value for name, value in event.fields.items() if name in other.fields}


Columns = dict[str, Array]
_END = {"before": ("recipient", "sender"), "after": ("sender", "recipient")}


@dataclass(frozen=True)
class ConeSide:
    """One side of a cone.

    ``counts``: its messages by (kind, round); ``users``: how many users sent (after: received) at least one of them;
    ``nearest``: messages of the nearest rounds; its ``cut`` counts the others.
    """

    counts: dict[tuple[str, int], int]
    users: int
    nearest: Slice

    @property
    def messages(self) -> int:
        """How many messages."""
        return sum(self.counts.values())


@dataclass(frozen=True)
class Cone:
    """A message, what it may depend on, what it may have led to, and what its recipient cannot see of its origin."""

    message: Slice
    before: ConeSide
    after: ConeSide
    hidden: Hidden
    notes: tuple[str, ...]


def cone(
    run: RunRecord | str | Path, message: str, *, limit: int | None = None, protocol: Protocol | None = None
) -> Cone:
    """Return the cone of a message, in bounded memory.

    ``run``: a ``Run`` or the path of a run directory.  ``message``: its id, ``kind:round:sender:recipient:seq``; a
    server is 0 or its role.  ``limit``: at most so many messages of each kind on either side.  ``protocol``: needed if
    the run's protocol is not shipped.  What the run did not keep is recomputed: all of it in runs of up to 1,000,000
    users, otherwise the closed world of the sender.  Raises InputError for a malformed id, an unknown message, and
    messages that are neither kept nor recomputed.
    """
    record = opened(run)
    program = record.source if protocol is None else protocol
    kinds = query.recorded_trace(record, program)[1]
    address = _read(message, kinds)
    trace, notes = _trace(record, program, kinds, address)
    found = _found(trace, kinds, message, address)
    size = query.size_of(record)
    before, after = (_half(way, trace, kinds, address, size, limit) for way in _END)
    hidden = origin_hidden(trace, kinds, found, record, program)
    return Cone(found, before, after, hidden, notes)


@dataclass(frozen=True)
class Address:
    """Kind, round, sender, recipient and sequence number of a message."""

    kind: str
    round: int
    sender: int
    recipient: int
    seq: int


def _read(text: str, kinds: Mapping[str, Message]) -> Address:
    """Read the id of a message."""
    shape = "KIND:ROUND:SENDER:RECIPIENT:SEQ, such as report:3:17:0:0"
    parts = text.split(":") if isinstance(text, str) else []
    if len(parts) != 5:
        raise InputError(f"message {text!r} is no id: write it as {shape}")
    query.check_kind(dict(kinds), parts[0])
    message = kinds[parts[0]]
    for place, role in ((2, message.sender), (3, message.recipient)):
        if role != USER and parts[place] in (role, "0"):
            parts[place] = "0"
        elif role != USER:
            raise InputError(f"message {text!r}: {parts[0]} goes from {message.sender} to {message.recipient}; "
                             f"write the server {role} as 0")  # fmt: skip
    numbers = [number for number in map(read_digits, parts[1:]) if number is not None]
    if len(numbers) != 4:
        raise InputError(f"message {text!r} is no id: write it as {shape}")
    return Address(parts[0], *numbers)


def _trace(
    run: RunRecord, program: Protocol | None, kinds: Mapping[str, Message], address: Address
) -> tuple[Source, tuple[str, ...]]:
    """Return a trace that holds the cone, as far as possible, and notes."""
    try:
        trace, _, notes = query.trace_for(run, program)
    except InputError:
        if kinds[address.kind].sender != USER or query.census(run) is None:
            raise
        query.check_user(query.census(run), address.sender)
        trace, _, notes = query.trace_for(run, program, address.sender, whole=True)
        notes += ("what it led to is known only among the users who were run again",)
    return trace, notes


def _found(trace: Source, kinds: Mapping[str, Message], text: str, address: Address) -> Slice:
    """Return the message itself; raises InputError if there is none."""
    message = kinds[address.kind]
    users = [
        i
        for i, role in ((address.sender, message.sender), (address.recipient, message.recipient))
        if role == USER
    ]
    columns, _ = trace.rows(address.kind, round=address.round, user=users[0] if users else None)
    mine = np.ones(len(columns["round"]), np.bool_)
    for name in ("sender", "recipient", "seq"):
        mine &= columns[name] == getattr(address, name)
    if not mine.any():
        where = "this run" if trace.missing is None else f"what was kept of this run ({trace.missing})"
        raise InputError(
            f"message {text!r}: there is none in {where}; trace show --json lists the ids of messages"
        )
    return Slice.of(kinds, {address.kind: {name: column[mine][:1] for name, column in columns.items()}})


def _half(
    way: str, trace: Source, kinds: Mapping[str, Message], address: Address, size: int, limit: int | None
) -> ConeSide:
    """Go through the rounds away from the message; the parties reached in one round are followed in the next."""
    near, far = _END[way]
    reached, visited = PartySet(size), PartySet(size)
    start = kinds[address.kind]
    reached.add(getattr(start, far), np.array([getattr(address, far)]))
    counts: dict[tuple[str, int], int] = {}
    nearest = {kind: [trace.rows(kind, limit=0)[0]] for kind in kinds}
    for round in _rounds(way, trace, address.round):
        following = PartySet(size)
        for kind, message in kinds.items():
            if (kind, round) not in trace.counts or not reached.may_contain(getattr(message, near)):
                continue
            for columns in trace.batches(kind, round):
                rows = np.flatnonzero(reached.has(getattr(message, near), columns[near]))
                counts[kind, round] = counts.get((kind, round), 0) + len(rows)
                following.add(getattr(message, far), columns[far][rows])
                here = sum(len(part["round"]) for part in nearest[kind])
                some = rows if limit is None else rows[: limit - here]
                nearest[kind].append({name: column[some] for name, column in columns.items()})
        reached.join(following)
        visited.join(following)
    counts = {key: number for key, number in counts.items() if number}
    total = {kind: sum(number for key, number in counts.items() if key[0] == kind) for kind in kinds}
    found = {kind: in_order(parts) for kind, parts in nearest.items() if total[kind]}
    return ConeSide(counts, visited.users, Slice.of(kinds, found, total))


def _rounds(way: str, trace: Source, start: int) -> list[int]:
    rounds = {number for _, number in trace.counts if number}
    if way == "before":
        return sorted((number for number in rounds if number < start), reverse=True)
    return sorted(number for number in rounds if number > start)
