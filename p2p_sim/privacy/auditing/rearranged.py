"""What is seen of some worlds alone, in another order: what follows from one world alone is the same there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.message import USER
from p2p_sim.privacy.auditing import numbering
from p2p_sim.privacy.auditing.seen import Seen, SeenMessages

Array = npt.NDArray[Any]
Columns = dict[str, Array]


def rearranged(seen: Seen, order: Array) -> Seen:
    """Return what is seen of the worlds ``order`` as if there were no others, and they had run in this order.

    Whatever counts through the worlds is renumbered: users, clusters, and fields and draws that do (``numbering``).
    """
    place = np.full(seen.worlds, -1)
    place[order] = np.arange(len(order))
    kinds = {kind: _messages(seen, messages, place) for kind, messages in seen.kinds.items()}
    draws = {name: _draws(seen, drawn, place) for name, drawn in seen.draws.items()}
    return replace(seen, worlds=len(order), kinds=kinds, draws=draws, ones=None, which=None)


def locked(seen: Seen) -> Seen:
    """Return the same, of which no array can be written to."""
    kinds = {
        kind: replace(
            messages,
            round=_locked(messages.round),
            sender=_locked(messages.sender),
            recipient=_locked(messages.recipient),
            fields={name: _locked(column) for name, column in messages.fields.items()},
            readable=None if messages.readable is None else _locked(messages.readable),
            cluster=None if messages.cluster is None else _locked(messages.cluster),
        )
        for kind, messages in seen.kinds.items()
    }
    draws = {
        name: {part: _locked(column) for part, column in drawn.items()} for name, drawn in seen.draws.items()
    }
    weights = None if seen.weights is None else _locked(seen.weights)
    return replace(seen, kinds=kinds, draws=draws, weights=weights)


def _locked(column: Array) -> Array:
    view = column.view()
    view.flags.writeable = False
    return view


def _messages(seen: Seen, messages: SeenMessages, place: Array) -> SeenMessages:
    world = seen.world_of(messages)
    rows = _rows(world, messages.round, place)
    old, new = world[rows], place[world[rows]]

    def ids(column: Array, role: str) -> Array:
        return _moved(column[rows], old, new, seen.size if role == USER else 0)

    def part(column: Array | None) -> Array | None:
        return None if column is None else column[rows]

    readable = part(messages.readable)
    fields = {}
    for name, column in messages.fields.items():
        each = seen.numbers_a_world(messages, name, world)
        moved = _moved(column[rows], old, new, each)
        fields[name] = np.where(readable, moved, 0) if each and readable is not None else moved
    return replace(
        messages,
        round=messages.round[rows],
        sender=ids(messages.sender, messages.message.sender),
        recipient=ids(messages.recipient, messages.message.recipient),
        fields=fields,
        readable=readable,
        cluster=None if messages.cluster is None else new.astype(messages.cluster.dtype),
    )


def _draws(seen: Seen, drawn: Columns, place: Array) -> Columns:
    world = drawn["party"] // seen.size
    rows = _rows(world, np.zeros_like(world), place)
    old, new = world[rows], place[world[rows]]
    each = numbering.a_world(drawn["value"], world, seen.size, seen.worlds)
    return {
        "party": _moved(drawn["party"][rows], old, new, seen.size),
        "slot": drawn["slot"][rows],
        "value": _moved(drawn["value"][rows], old, new, each),
    }


def _rows(world: Array, rounds: Array, place: Array) -> Array:
    """Return the rows of the worlds that are kept, by round and world where they were so, else in their order."""
    rows = np.flatnonzero(place[world] >= 0)
    new = place[world[rows]]
    if not np.any(np.diff(rounds * (int(world.max(initial=0)) + 1) + world) < 0):
        return rows[np.lexsort((new, rounds[rows]))]
    return rows[np.argsort(new, kind="stable")] if not np.any(np.diff(world) < 0) else rows


def _moved(values: Array, old: Array, new: Array, each: int) -> Array:
    """Return numbers, of which each world has so many, as those of the world's new place."""
    return values if not each else (values.astype(np.int64) + (new - old) * each).astype(values.dtype)
