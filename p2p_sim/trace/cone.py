"""The cone of a message: what may have influenced it, and what it may have influenced.

A party's message may depend on every message that she had received in earlier rounds, and so on backwards; whether the
program used them is not asked.  So nothing outside of a cone had, or felt, any influence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.core.message import USER, Message
from p2p_sim.trace import hiding, query
from p2p_sim.trace.crowd import Crowd
from p2p_sim.trace.hiding import Hidden
from p2p_sim.trace.opened import opened
from p2p_sim.trace.reader import Source
from p2p_sim.trace.slices import Slice

Array = npt.NDArray[Any]
Columns = dict[str, Array]
_END = {"before": ("recipient", "sender"), "after": ("sender", "recipient")}


@dataclass(frozen=True)
class Half:
    """One side of a cone.

    ``counts``: its messages by (kind, round); ``users``: how many users sent (after: received) one of them;
    ``nearest``: some of the messages, those of the nearest rounds, and by ``cut`` how many others.
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
    """A message, what it may have depended on, what it may have led to, and what of that its recipient cannot see."""

    message: Slice
    before: Half
    after: Half
    hidden: Hidden
    notes: tuple[str, ...]


def cone(run: Any, message: str, *, limit: int | None = None, protocol: Any = None) -> Cone:
    """Return the cone of a message of a run, a ``Run`` or the path of a run directory, in bounded memory.

    ``message``: its id, ``kind:round:sender:recipient:seq``, a server as 0 or by its role.  ``limit``: most messages of
    each kind on either side.  ``protocol``: for a run of one that is not shipped.  What a run did not keep is
    recomputed: runs of up to 1,000,000 users as a whole, of others the closed world of the sender.  Raises InputError
    for an id that cannot be read, a message that there is not, and what is neither kept nor recomputed.
    """
    looked = opened(run)
    program = looked.source if protocol is None else protocol
    kinds = query.kept_of(looked, program)[1]
    address = _read(message, kinds)
    trace, notes = _trace(looked, program, kinds, address)
    found = _found(trace, kinds, message, address)
    size = query.size_of(looked)
    before, after = (_half(way, trace, kinds, address, size, limit) for way in _END)
    hidden = hiding.hidden(trace, kinds, found, looked, program)
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
    if not all(part.isascii() and part.isdigit() and len(part) < 19 for part in parts[1:]):
        raise InputError(f"message {text!r} is no id: write it as {shape}")
    return Address(parts[0], *map(int, parts[1:]))


def _trace(
    run: Any, program: Any, kinds: Mapping[str, Message], address: Address
) -> tuple[Source, tuple[str, ...]]:
    """Return a trace that holds the cone, as far as it can be had."""
    try:
        trace, _, notes = query.trace_of(run, program)
    except InputError:
        if kinds[address.kind].sender != USER or query.census(run) is None:
            raise
        query.check_user(query.census(run), address.sender)
        trace, _, notes = query.trace_of(run, program, address.sender, whole=True)
        notes += ("what it led to is known only as far as the users who were run again go",)
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
) -> Half:
    """Go through the rounds, away from the message: whose messages are reached in one counts in the next."""
    near, far = _END[way]
    reached, seen = Crowd(size), Crowd(size)
    start = kinds[address.kind]
    reached.add(getattr(start, far), np.array([getattr(address, far)]))
    counts: dict[tuple[str, int], int] = {}
    nearest = {kind: [trace.rows(kind, limit=0)[0]] for kind in kinds}
    for round in _rounds(way, trace, address.round):
        following = Crowd(size)
        for kind, message in kinds.items():
            if (kind, round) not in trace.counts or not reached.could_have(getattr(message, near)):
                continue
            for columns in trace.batches(kind, round):
                rows = np.flatnonzero(reached.has(getattr(message, near), columns[near]))
                counts[kind, round] = counts.get((kind, round), 0) + len(rows)
                following.add(getattr(message, far), columns[far][rows])
                here = sum(len(part["round"]) for part in nearest[kind])
                some = rows if limit is None else rows[: limit - here]
                nearest[kind].append({name: column[some] for name, column in columns.items()})
        reached.join(following)
        seen.join(following)
    counts = {key: number for key, number in counts.items() if number}
    total = {kind: sum(number for key, number in counts.items() if key[0] == kind) for kind in kinds}
    joined = {kind: _joined(parts) for kind, parts in nearest.items() if total[kind]}
    return Half(counts, seen.users, Slice.of(kinds, joined, total))


def _rounds(way: str, trace: Source, start: int) -> list[int]:
    rounds = {number for _, number in trace.counts if number}
    if way == "before":
        return sorted((number for number in rounds if number < start), reverse=True)
    return sorted(number for number in rounds if number > start)


def _joined(parts: list[Columns]) -> Columns:
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    order = np.lexsort([joined[name] for name in ("seq", "sender", "recipient", "round")])
    return {name: column[order] for name, column in joined.items()}
