"""Messages as Chrome trace JSON, which ui.perfetto.dev and chrome://tracing open.

Time is logical: a round takes a fixed number of microseconds.  A role is a process and a party is a thread.  A round in
which a party sends or receives is a slice: it sends in the first half and receives in the second.  A message is an
arrow.  One slice over all rounds names the run and what was left out, since Perfetto shows that nowhere else.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.message import USER
from p2p_sim.render import graphml, text_labels
from p2p_sim.render.message_table import MessageTable, tabulate
from p2p_sim.trace.slices import Slice, party

Array = npt.NDArray[Any]
_AT_ONCE = 4096  # messages whose places and times are Python's numbers at once
_HALF = 1000
"""Microseconds of half a round; more if a party has more messages in it."""


def perfetto(part: Slice, title: str, notes: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the messages as a JSON document in pieces, one trace event a line.

    No more than some columns of numbers is held beside the slice: as Python's values, a million messages would take
    gigabytes.
    """
    table = tabulate(part)
    threads = _Threads.of(part, table)
    sides = [_Side.of(table, threads, column) for column in (table.sender, table.recipient)]
    half = max([_HALF, *(int(side.of_all.max()) for side in sides if len(table))])
    about = {"run": text_labels.clean(title, 400), "time": f"logical: a round is {_round(half)} microseconds"}
    about |= {"notes": text_labels.clean("; ".join(notes), 2000)} if notes else {}
    yield f'{{"displayTimeUnit": "ms", "otherData": {json.dumps(about)}, "traceEvents": [\n'
    lines = chain(
        _names(threads),
        _about(about, table.round, len(threads.declared), half),
        _rounds(table, threads, sides, half),
        _messages(part, table, threads, sides, half),
    )
    separator = ""
    for line in lines:
        yield separator + json.dumps(line)
        separator = ",\n"
    yield "\n]}\n"


_DOES = ("sends", "receives")


def _round(half: int) -> int:
    return 2 * half + 4


@dataclass(frozen=True)
class _Threads:
    """The parties, each a thread: first ``users``, by id, then ``servers`` in the order of ``declared`` roles."""

    users: Array
    servers: tuple[str, ...]
    declared: tuple[str, ...]

    @classmethod
    def of(cls, part: Slice, table: MessageTable) -> _Threads:
        """Return those of a slice and its table."""
        declared = tuple(dict.fromkeys([USER, *(role for ends in part.roles.values() for role in ends)]))
        numbers = np.unique(np.concatenate([table.sender, table.recipient]))
        return cls(numbers[numbers >= 0], tuple(sorted(table.servers, key=declared.index)), declared)

    def __len__(self) -> int:
        return len(self.users) + len(self.servers)

    def place(self, table: MessageTable, column: Array) -> Array:
        """Return the place of each party of a column."""
        servers = [len(self.users) + self.servers.index(role) for role in table.servers]
        return np.where(
            column >= 0, np.searchsorted(self.users, column), np.array([0, *servers])[np.maximum(-column, 0)]
        )

    def name(self, place: int) -> str:
        """Return the name of a party."""
        users = len(self.users)
        return party(USER, int(self.users[place])) if place < users else self.servers[place - users]

    def ids(self, place: int) -> dict[str, int]:
        """Return the process and the thread of a party, whose numbers are unique."""
        role = USER if place < len(self.users) else self.servers[place - len(self.users)]
        return {"pid": 2 + self.declared.index(role), "tid": len(self.declared) + 3 + place}


@dataclass(frozen=True)
class _Side:
    """Who sends, or who receives: of each message the ``place`` of the party among the threads, how many of its
    messages of that round come ``before``, and how many it has ``of_all``.
    """

    place: Array
    before: Array
    of_all: Array

    @classmethod
    def of(cls, table: MessageTable, threads: _Threads, column: Array) -> _Side:
        """Return one side of a table; ``column``: its senders or recipients."""
        place = threads.place(table, column)
        order = np.lexsort((place, table.round))  # stable: equal ones stay in the order of the messages
        new = np.ones(len(order), np.bool_)
        new[1:] = np.any([one[order][1:] != one[order][:-1] for one in (place, table.round)], axis=0)
        first = np.flatnonzero(new)
        sizes = np.diff(np.append(first, len(order)))
        before, of_all = np.zeros(len(order), np.int64), np.zeros(len(order), np.int64)
        before[order] = np.arange(len(order)) - np.repeat(first, sizes)
        of_all[order] = np.repeat(sizes, sizes)
        return cls(place, before, of_all)

    def span(self, round: Array, start: int, half: int) -> tuple[Array, Array]:
        """Return when each message's slice begins and how long it is."""
        low, high = (half * (self.before + i) // self.of_all for i in (0, 1))
        return round * _round(half) + start + low, high - low


def _rows(*columns: Array) -> Iterator[tuple[int, ...]]:
    """Yield the rows of columns as Python's numbers, which are not all held at once."""
    for low in range(0, len(columns[0]), _AT_ONCE):
        yield from zip(*(column[low : low + _AT_ONCE].tolist() for column in columns), strict=True)


def _about(about: dict[str, str], rounds: Array, roles: int, half: int) -> list[dict[str, Any]]:
    """Return the slice that describes the file, in its own process and thread."""
    if not len(rounds):
        return []
    pid, tid = 1, roles + 2
    start, end = int(rounds.min()) * _round(half), (int(rounds.max()) + 1) * _round(half)
    words = text_labels.clean("; ".join(about.values()), 400)
    return [
        _meta("process_name", pid, {"name": "about"}),
        _meta("process_sort_index", pid, {"sort_index": pid}),
        _meta("thread_name", pid, {"name": "this file"}, tid),
        _meta("thread_sort_index", pid, {"sort_index": tid}, tid),
        {
            "ph": "X", "cat": "about", "name": words, "pid": pid, "tid": tid, "ts": start, "dur": end - start,
            "args": about,
        },
    ]  # fmt: skip


def _names(threads: _Threads) -> Iterator[dict[str, Any]]:
    """Yield the events that name processes and threads and put them in order."""
    for place in [0] * bool(len(threads.users)) + list(range(len(threads.users), len(threads))):
        pid = threads.ids(place)["pid"]
        name = "users" if place < len(threads.users) else text_labels.clean(threads.name(place))
        yield _meta("process_name", pid, {"name": name})
        yield _meta("process_sort_index", pid, {"sort_index": pid})
    for place in range(len(threads)):
        pid, tid = threads.ids(place).values()
        yield _meta("thread_name", pid, {"name": text_labels.clean(threads.name(place))}, tid)
        yield _meta("thread_sort_index", pid, {"sort_index": tid}, tid)


def _meta(name: str, pid: int, args: dict[str, Any], tid: int | None = None) -> dict[str, Any]:
    return {"ph": "M", "name": name, "pid": pid} | ({} if tid is None else {"tid": tid}) | {"args": args}


def _rounds(
    table: MessageTable, threads: _Threads, sides: list[_Side], half: int
) -> Iterator[dict[str, Any]]:
    """Yield a slice for every round in which a party sends or receives."""
    rounds, code = np.unique(table.round, return_inverse=True)
    found = np.unique(np.concatenate([code.reshape(-1) * len(threads) + side.place for side in sides]))
    for round, place in _rows(rounds[found // max(len(threads), 1)], found % max(len(threads), 1)):
        yield {
            "ph": "X", "cat": "round", "name": f"round {round}", **threads.ids(place),
            "ts": round * _round(half), "dur": 2 * half + 3,
        }  # fmt: skip


def _messages(
    part: Slice, table: MessageTable, threads: _Threads, sides: list[_Side], half: int
) -> Iterator[dict[str, Any]]:
    """Yield, of each message, two slices, for sending and receiving it, and an arrow between them."""
    spans = [side.span(table.round, start, half) for side, start in zip(sides, (1, half + 2), strict=True)]
    when = _rows(*(column for side, span in zip(sides, spans, strict=True) for column in (side.place, *span)))
    events = part.events((table.kind, table.row))
    for number, (event, (*sent, place, start, long)) in enumerate(zip(events, when, strict=True), 1):
        kind, names = text_labels.clean(event.kind), [text_labels.clean(name) for name in event.ends]
        about = {
            "id": text_labels.clean(event.id, 200), "round": event.round, "bytes": event.nbytes,
            "fields": graphml.fields(part, event),
        }  # fmt: skip
        at = threads.ids(sent[0]) | {"ts": sent[1]}
        yield {
            "ph": "X",
            "cat": _DOES[0],
            "name": f"{kind} to {names[1]}",
            **at,
            "dur": sent[2],
            "args": about,
        }
        yield {"ph": "s", "cat": "message", "name": kind, "id": number, **at}
        at = threads.ids(place) | {"ts": start}
        yield {
            "ph": "X",
            "cat": _DOES[1],
            "name": f"{kind} from {names[0]}",
            **at,
            "dur": long,
            "args": about,
        }
        yield {"ph": "f", "bp": "e", "cat": "message", "name": kind, "id": number, **at}
