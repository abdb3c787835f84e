"""What the recipient of a message cannot see of where it came from: the set in which its origin hides.

Derived from who received what, never from a protocol's name.  What a sender had received before, and the recipient of
the message did not send herself, is out of her sight.  If the sender is a server, the origin is one of those messages,
whichever; if she is a user, they may have come from anybody who can reach her.  Kinds without fields carry nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.message import USER, Message
from p2p_sim.core.population import Population
from p2p_sim.trace.crowd import Crowd
from p2p_sim.trace.reader import Source
from p2p_sim.trace.replay import closed_world
from p2p_sim.trace.slices import Event, Slice
from p2p_sim.trace.unread import rows_of, some

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Alike:
    """Messages of a kind that have the same values in some fields as the message in question."""

    kind: str
    fields: tuple[str, ...]
    messages: int


@dataclass(frozen=True)
class Hidden:
    """What is out of the recipient's sight.

    ``unseen``: messages by kind that had reached the sender and that the recipient did not send; none: the message
    can only come from what its sender held herself, and from what its recipient had sent her.  ``users``: from how many
    users these may have come, None if that is not known; ``cluster``: the one they are, if they are a cluster.
    ``alike``: of these messages those that share fields with this one.  ``actual``: from how many users they came.
    """

    sender: str
    recipient: str
    unseen: dict[str, int] = field(default_factory=dict)
    users: int | None = 0
    cluster: int | None = None
    alike: tuple[Alike, ...] = ()
    actual: int = 0


def hidden(trace: Source, kinds: Mapping[str, Message], message: Slice, run: Any, program: Any) -> Hidden:
    """Return what the recipient of a message cannot see of where it came from.

    ``message``: a slice of that one; ``run``: whose population is looked at; ``program``: its protocol, if it is known.
    """
    event = next(message.events())
    sender, recipient = event.ends
    if sender == recipient:
        return Hidden(sender, recipient)
    if event.roles[0] == USER:
        return _from_user(trace, kinds, event, run, program)
    return _from_server(trace, kinds, event)


def _from_user(trace: Source, kinds: Mapping[str, Message], event: Event, run: Any, program: Any) -> Hidden:
    """Return what had reached a user, and from whom it may have come."""
    unseen: dict[str, int] = {}
    givers = Crowd()
    for kind, message in kinds.items():
        if message.recipient != USER or not message.fields:
            continue
        columns, _ = trace.rows(kind, user=event.sender)
        mine = (columns["recipient"] == event.sender) & (columns["round"] < event.round)
        mine &= ~_handled(message, columns, event)
        if mine.any():
            unseen[kind] = int(np.count_nonzero(mine))
            givers.add(message.sender, columns["sender"][mine])
    if not unseen:
        return Hidden(*event.ends)
    users, cluster = None, None
    people = None if program is None else some(run, program, np.array([event.sender]))
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
    return Hidden(*event.ends, unseen, users, cluster, actual=givers.users)


def _reach(program: Any, people: Population, row: Array, hops: int) -> Array:
    """Return the rows of those from whom something may have come: on a graph no further than ``hops`` edges."""
    graph = people.graph
    if graph is None or program.graph_over() is None:
        return closed_world(program, people, row)
    inside = row
    for _ in range(hops):
        codes = np.unique(graph.codes[inside])
        inside = np.union1d(inside, replace(graph, codes=codes).everybody()[0])
    return inside


def _hops(trace: Source, kinds: Mapping[str, Message], before: int) -> int:
    """Return in how many rounds users passed something on to users."""
    carried = {kind for kind, m in kinds.items() if m.sender == m.recipient == USER and m.fields}
    return len({round for kind, round in trace.counts if kind in carried and 0 < round < before})


def _from_server(trace: Source, kinds: Mapping[str, Message], event: Event) -> Hidden:
    """Return what had reached a server, and from how many users, also through other servers."""
    unseen: dict[str, int] = {}
    alike: list[Alike] = []
    givers, servers, waiting = Crowd(), {event.roles[0]}, [event.roles[0]]
    for server in waiting:  # grows meanwhile
        for kind, message in kinds.items():
            if message.recipient != server or not message.fields:
                continue
            same = _shared(kinds[event.kind], message, event) if server == event.roles[0] else {}
            counts = _count(trace, message, event, givers, same)
            if counts[0] and server == event.roles[0]:
                unseen[kind] = counts[0]
                names = tuple(same)
                alike += [Alike(kind, names[: i + 1], counts[i + 1]) for i in range(len(names))]
            if counts[0] and message.sender not in (USER, *servers):
                servers.add(message.sender)
                waiting.append(message.sender)
    return (
        Hidden(*event.ends, unseen, givers.users, None, tuple(alike), givers.users)
        if unseen
        else Hidden(*event.ends)
    )


def _count(
    trace: Source, message: Message, event: Event, givers: Crowd, same: Mapping[str, Any]
) -> list[int]:
    """Count messages of a kind that are out of sight, and those alike in one field, in two, ...; note who sent them."""
    counts = [0] * (1 + len(same))
    rounds = [round for kind, round in trace.counts if kind == message.kind and 0 < round < event.round]
    for round in rounds:
        for columns in trace.batches(message.kind, round):
            mask = ~_handled(message, columns, event)
            if message.sender == USER:
                givers.add(USER, columns["sender"][mask])
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
