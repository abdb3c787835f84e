"""The lanes of a diagram, and which messages share an arrow: as fine as there is room for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.message import USER
from p2p_sim.render import text_labels
from p2p_sim.render.message_table import MessageTable

Array = npt.NDArray[Any]

MOST_LANES, MOST_ARROWS = 40, 400
"""Limits of a diagram: with more, parties share lanes, by cluster or by role."""

ClusterOf = Callable[[Array], Array]

_ONE, _CLUSTER, _ROLE, _SERVER = range(4)  # what a lane stands for, in the order of lanes


@dataclass(frozen=True)
class Lane:
    """One lane of a diagram: a party, or several drawn together.

    ``requested``: whether the user was requested by id.  ``opens``: options of a command that draws the parties of a
    shared lane one by one, "" for one party.
    """

    name: str
    server: bool
    parties: int
    requested: bool = False
    opens: str = ""


@dataclass(frozen=True)
class Layout:
    """The lanes, which messages share an arrow, and between which lanes it goes.

    ``parties``: all, ascending; ``lane``: the lane of each of them.  ``single``: whether each message has an arrow of
    its own.  ``arrow``: the arrow of each row of the table, -1 if it is left out; ``first``: the first row of each
    arrow; ``ends``: the lanes of each arrow, shape (arrows, 2).  ``notes``: what was merged or left out, in words.
    """

    lanes: tuple[Lane, ...]
    parties: Array
    lane: Array
    single: bool
    arrow: Array
    first: Array
    ends: Array
    notes: tuple[str, ...]


def choose(
    table: MessageTable, requested: Array, clusters: ClusterOf | None, most_lanes: int, most_arrows: int
) -> Layout:
    """Return the finest layout within the limits of lanes and arrows; if there is none, the coarsest, cut to them.

    ``requested``: ids, ascending, of users who have lanes of their own if possible.
    """
    parties = _distinct(np.concatenate([table.sender, table.recipient, requested]))
    if len(parties) <= most_lanes and len(table) <= most_arrows:
        return _layout(table, parties, requested, None, requested, None)
    most = (most_lanes, most_arrows)
    found = _shared_layout(table, parties, requested, clusters, most)
    return _cut(_with_options(found, table, clusters, most), most_arrows)


def _distinct(values: Array) -> Array:
    """Return the distinct values, ascending: for millions, faster than ``np.unique``, which hashes them."""
    ordered = np.sort(values)
    first = np.concatenate([np.ones(min(len(values), 1), np.bool_), ordered[1:] != ordered[:-1]])
    return np.asarray(ordered[first])


def _shared_layout(
    table: MessageTable, parties: Array, requested: Array, clusters: ClusterOf | None, most: tuple[int, int]
) -> Layout:
    """Return the finest layout in which users share lanes, or the coarsest."""
    groups = 0 if clusters is None else len(_distinct(clusters(parties[parties >= 0])))
    ways = ([("cluster", clusters)] if 0 < groups <= most[0] else []) + [("role", None)]  # more have no room
    advice = _advice(table, parties, groups, most[0])
    for kept in [requested, requested[:0]] if len(requested) else [requested]:
        for way, label in ways:
            found = _layout(table, parties, requested, way, kept, label)
            found = replace(found, notes=tuple(f"{note}; {advice}" for note in found.notes))
            if len(found.lanes) <= most[0] and len(found.first) <= most[1]:
                return found
    return found


def _with_options(
    layout: Layout, table: MessageTable, clusters: ClusterOf | None, most: tuple[int, int]
) -> Layout:
    """Return a layout with the options that draw the parties of each shared lane."""
    shared = [i for i, lane in enumerate(layout.lanes) if _shared(lane)]
    options = _opening_options(table, layout.parties, layout.lane, shared, clusters, most)
    lanes = tuple(replace(lane, opens=options.get(i, "")) for i, lane in enumerate(layout.lanes))
    return replace(layout, lanes=lanes)


def _shared(lane: Lane) -> bool:
    return not lane.server and not lane.name.startswith(f"{USER} ")


def _advice(table: MessageTable, parties: Array, groups: int, most_lanes: int) -> str:
    """Return advice on how to see single messages, as far as it applies; ``groups``: how many clusters there are."""
    ways = ["one --cluster"] if groups > 1 else []
    ways += ["a few users (--user)"]
    if len(parties) <= most_lanes:
        ways.append(f"--limit {len(table)}")
    return f"to see single messages ask for {' or '.join(ways)}"


def _layout(
    table: MessageTable,
    parties: Array,
    requested: Array,
    way: str | None,
    kept: Array,
    clusters: ClusterOf | None,
) -> Layout:
    """Return one layout; ``way``: by what users other than ``kept`` share lanes, None for not at all."""
    stands = np.full(len(parties), _ONE)
    value = np.where(parties < 0, -1 - parties, parties)
    stands[parties < 0] = _SERVER
    together = (parties >= 0) & ~np.isin(parties, kept) & (way is not None)
    stands[together] = _CLUSTER if way == "cluster" else _ROLE
    value[together] = 0 if clusters is None else clusters(parties[together])
    values, rank = np.unique(value, return_inverse=True)
    keys, lane, counts = np.unique(stands * len(values) + rank, return_inverse=True, return_counts=True)
    lanes = tuple(
        _lane(table, key // len(values), int(values[key % len(values)]), count, requested, len(kept) > 0)
        for key, count in zip(keys.tolist(), counts.tolist(), strict=True)
    )
    ends = np.column_stack(
        [lane[np.searchsorted(parties, column)] for column in (table.sender, table.recipient)]
    )
    if way is None:
        rows = np.arange(len(table))
        return Layout(lanes, parties, lane, True, rows, rows, ends, ())
    key = table.round - (table.round.min() if len(table) else 0)
    for column, width in ((table.kind, len(table.kinds)), *((ends[:, i], len(lanes)) for i in (0, 1))):
        key = key * width + column
    _, first, arrow = np.unique(key, return_index=True, return_inverse=True)
    notes = (_merging_note(way, lanes, together),)
    return Layout(lanes, parties, lane, False, arrow.reshape(-1), first, ends[first], notes)


def _lane(table: MessageTable, what: int, number: int, parties: int, requested: Array, others: bool) -> Lane:
    """Return a lane and its name."""
    if what == _SERVER:
        return Lane(table.name(-1 - number), True, 1)
    if what == _ONE:
        return Lane(f"{USER} {number}", False, 1, bool(np.isin(number, requested)))
    name = f"cluster {number}" if what == _CLUSTER else f"{USER}s"
    return Lane(f"{name}, others" if others else name, False, parties)


def _merging_note(way: str, lanes: tuple[Lane, ...], together: Array) -> str:
    shared = text_labels.counted(sum(map(_shared, lanes)), "lane")
    return f"{text_labels.counted(int(together.sum()), USER)} are drawn together by {way}, in {shared}"


def _cut(layout: Layout, most: int) -> Layout:
    """Return a layout with its first arrows alone, and a note on that."""
    if len(layout.first) <= most:
        return layout
    arrow = np.where(layout.arrow < most, layout.arrow, -1)
    whole = text_labels.counted(len(layout.first), "arrow")
    note = f"the first {most:,} of {whole} are shown; ask for one round, or for more with --limit"
    notes = (*layout.notes, note)
    return replace(layout, arrow=arrow, first=layout.first[:most], ends=layout.ends[:most], notes=notes)


def page_lanes(table: MessageTable, users: Array) -> list[int | None]:
    """Return the lanes of the page as parties of a table, in the order of every picture: ``users`` by id, all others
    together, servers.

    None is the lane of all users who are not among ``users``; it is there if one of them occurs.
    """
    parties = _distinct(np.concatenate([table.sender, table.recipient, users]))
    layout = _layout(table, parties, users, "role", users, None)
    _, first = np.unique(layout.lane, return_index=True)
    return [
        None if _shared(lane) else int(parties[place])
        for lane, place in zip(layout.lanes, first, strict=True)
    ]  # fmt: skip


def _opening_options(
    table: MessageTable,
    parties: Array,
    lane: Array,
    shared: list[int],
    clusters: Callable[[Array], Array] | None,
    most: tuple[int, int],
) -> dict[int, str]:
    """Return, for each of the ``shared`` lanes, the options that draw its first user's cluster, or her alone.

    ``parties``: all, ascending; ``lane``: of each of them.  It is the cluster if its messages can be drawn one by one
    within the limits ``most`` of lanes and arrows: otherwise its diagram would have the same shared lane.
    """
    users = np.flatnonzero(parties >= 0)
    first = {number: int(users[lane[users] == number][0]) for number in shared}
    if clusters is None or not shared:
        return {number: _user(parties, place) for number, place in first.items()}
    names, inverse = np.unique(clusters(parties[users]), return_inverse=True)
    code = np.full(len(parties), -1)
    code[users] = inverse.reshape(-1)
    ends = [code[np.searchsorted(parties, column)] for column in (table.sender, table.recipient)]
    found = {}
    for number, place in first.items():
        inside = (ends[0] == code[place]) | (ends[1] == code[place])
        alone = _fits(table.sender[inside], table.recipient[inside], *most)
        found[number] = f"--cluster {names[code[place]]}" if alone else _user(parties, place)
    return found


def _user(parties: Array, place: int) -> str:
    return f"--user {parties[place]}"


def _fits(senders: Array, recipients: Array, most_lanes: int, most_arrows: int) -> bool:
    """Return whether messages can be drawn one by one."""
    if len(senders) > most_arrows:
        return False
    return len(np.unique(np.concatenate([senders, recipients]))) <= most_lanes
