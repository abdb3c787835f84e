"""Messages as Chrome trace JSON, which ui.perfetto.dev and chrome://tracing open.

Time is logical: a round takes a fixed number of microseconds.  A role is a process and a party is a thread.  A round in
which a party sends or receives is a slice: it sends in the first half and receives in the second.  A message is an
arrow.  One slice over all rounds names the run and what was left out, since Perfetto shows that nowhere else.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from p2p_sim.core.message import USER
from p2p_sim.render import graphml, text_labels
from p2p_sim.trace.slices import Event, Slice

_HALF = 1000
"""Microseconds of half a round; more if a party has more messages in it."""


def perfetto(part: Slice, title: str, notes: tuple[str, ...] = ()) -> str:
    """Return the messages as a JSON document, one trace event a line."""
    events = list(part.events())
    threads = _threads(part, events)
    busy: Counter[tuple[str, str, int]] = Counter()  # by what a party does, its name, the round
    for event in events:
        busy.update((what, name, event.round) for what, name in zip(_DOES, event.ends, strict=True))
    half = max([_HALF, *busy.values()])
    about = {"run": text_labels.clean(title, 400), "time": f"logical: a round is {_round(half)} microseconds"}
    about |= {"notes": text_labels.clean("; ".join(notes), 2000)} if notes else {}
    lines = [
        *_names(threads),
        *_about(about, busy, len(_declared(part)), half),
        *_rounds(busy, threads, half),
    ]
    done: Counter[tuple[str, str, int]] = Counter()
    for number, event in enumerate(events, 1):
        lines += _message(part, event, number, threads, half, (busy, done))
    body = ",\n".join(json.dumps(line) for line in lines)
    return f'{{"displayTimeUnit": "ms", "otherData": {json.dumps(about)}, "traceEvents": [\n{body}\n]}}\n'


_DOES = ("sends", "receives")


def _round(half: int) -> int:
    return 2 * half + 4


def _threads(part: Slice, events: list[Event]) -> dict[str, tuple[str, int, int]]:
    """Return each party's role, process and thread, with unique numbers: users first, by id."""
    parties = {
        (role != USER, role, number)
        for event in events
        for role, number in zip(event.roles, (event.sender, event.recipient), strict=True)
    }
    declared = _declared(part)
    ordered = sorted(parties, key=lambda party: (party[0], declared.index(party[1]), party[2]))
    process = {role: 2 + i for i, role in enumerate(declared)}
    return {
        f"{USER}:{number}" if role == USER else role: (role, process[role], len(declared) + 3 + i)
        for i, (_, role, number) in enumerate(ordered)
    }


def _declared(part: Slice) -> list[str]:
    return list(dict.fromkeys([USER, *(role for ends in part.roles.values() for role in ends)]))


def _about(
    about: dict[str, str], busy: Counter[tuple[str, str, int]], roles: int, half: int
) -> list[dict[str, Any]]:
    """Return the slice that describes the file, in its own process and thread."""
    rounds = [round for _, _, round in busy]
    if not rounds:
        return []
    pid, tid = 1, roles + 2
    start, end = min(rounds) * _round(half), (max(rounds) + 1) * _round(half)
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


def _names(threads: dict[str, tuple[str, int, int]]) -> list[dict[str, Any]]:
    """Return the events that name processes and threads and put them in order."""
    lines = []
    for role, pid in dict.fromkeys((role, pid) for role, pid, _ in threads.values()):
        name = "users" if role == USER else text_labels.clean(role)
        lines += [
            _meta("process_name", pid, {"name": name}),
            _meta("process_sort_index", pid, {"sort_index": pid}),
        ]
    for name, (_, pid, tid) in threads.items():
        lines += [
            _meta("thread_name", pid, {"name": text_labels.clean(name)}, tid),
            _meta("thread_sort_index", pid, {"sort_index": tid}, tid),
        ]
    return lines


def _meta(name: str, pid: int, args: dict[str, Any], tid: int | None = None) -> dict[str, Any]:
    return {"ph": "M", "name": name, "pid": pid} | ({} if tid is None else {"tid": tid}) | {"args": args}


def _rounds(
    busy: Counter[tuple[str, str, int]], threads: dict[str, tuple[str, int, int]], half: int
) -> list[dict[str, Any]]:
    """Return a slice for every round in which a party sends or receives."""
    found = sorted({(round, *threads[name][1:]) for _, name, round in busy})
    return [
        {
            "ph": "X", "cat": "round", "name": f"round {round}", "pid": pid, "tid": tid,
            "ts": round * _round(half), "dur": 2 * half + 3,
        }
        for round, pid, tid in found
    ]  # fmt: skip


def _message(
    part: Slice,
    event: Event,
    number: int,
    threads: dict[str, tuple[str, int, int]],
    half: int,
    counts: tuple[Counter[tuple[str, str, int]], Counter[tuple[str, str, int]]],
) -> list[dict[str, Any]]:
    """Return one message: two slices, for sending and receiving it, and an arrow between them."""
    busy, done = counts
    kind = text_labels.clean(event.kind)
    args = {"id": text_labels.clean(event.id, 200), "round": event.round, "bytes": event.nbytes}
    lines = []
    for what, name, other, start in zip(_DOES, event.ends, event.ends[::-1], (1, half + 2), strict=True):
        key = (what, name, event.round)
        low, high = (half * (done[key] + i) // busy[key] for i in (0, 1))
        done[key] += 1
        at = {
            "pid": threads[name][1],
            "tid": threads[name][2],
            "ts": event.round * _round(half) + start + low,
        }
        words = f"{kind} {'to' if what == 'sends' else 'from'} {text_labels.clean(other)}"
        about = args | {"fields": graphml.fields(part, event)}
        lines.append({"ph": "X", "cat": what, "name": words, **at, "dur": high - low, "args": about})
        flow = {"ph": "s"} if what == "sends" else {"ph": "f", "bp": "e"}
        lines.append({**flow, "cat": "message", "name": kind, "id": number, **at})
    return lines
