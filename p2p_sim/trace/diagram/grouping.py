"""Who shares a lane: each party has one of its own, until lanes or arrows are too many; then clusters or roles have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.message import USER
from p2p_sim.trace.diagram import labels, opening
from p2p_sim.trace.diagram.flat import Flat

Array = npt.NDArray[Any]
ClusterOf = Callable[[Array], Array]

_ONE, _CLUSTER, _ROLE, _SERVER = range(4)  # what a lane stands for, in the order of lanes


@dataclass(frozen=True)
class Lane:
    """One lane: a party, or several drawn together.

    ``asked``: whether it was asked for by name; ``opens``: the options that draw what is in it, "" for one party.
    """

    name: str
    server: bool
    parties: int
    asked: bool = False
    opens: str = ""


@dataclass(frozen=True)
class Layout:
    """Which messages make an arrow, and where it goes.

    ``single``: an arrow a message.  ``arrow``: of each row of the table, -1 if it is left out; ``first``: each arrow's
    first row; ``ends``: each arrow's lanes, shape (arrows, 2).  ``parties``: all, ascending; ``lane``: of each of them.
    ``notes``: what was put together or left out.
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
    table: Flat, asked: Array, clusters: ClusterOf | None, most_lanes: int, most_arrows: int
) -> Layout:
    """Return the finest layout with at most so many lanes and arrows; if there is none, the coarsest, cut to them.

    ``asked``: ids, ascending, of users who stay alone as long as possible.
    """
    parties = _distinct(np.concatenate([table.sender, table.recipient, asked]))
    if len(parties) <= most_lanes and len(table) <= most_arrows:
        return _layout(table, parties, asked, None, asked, None)
    most = (most_lanes, most_arrows)
    found = _together(table, parties, asked, clusters, most)
    return _cut(_opened(found, table, clusters, most), most_arrows)


def _distinct(values: Array) -> Array:
    """Return the values that there are, ascending: for millions, quicker than numpy's own, which hashes them."""
    ordered = np.sort(values)
    first = np.concatenate([np.ones(min(len(values), 1), np.bool_), ordered[1:] != ordered[:-1]])
    return np.asarray(ordered[first])


def _together(
    table: Flat, parties: Array, asked: Array, clusters: ClusterOf | None, most: tuple[int, int]
) -> Layout:
    """Return the finest layout in which users share lanes, or the coarsest."""
    groups = 0 if clusters is None else len(_distinct(clusters(parties[parties >= 0])))
    ways = ([("cluster", clusters)] if 0 < groups <= most[0] else []) + [("role", None)]  # more have no room
    advice = _advice(table, parties, groups, most[0])
    for kept in [asked, asked[:0]] if len(asked) else [asked]:
        for way, label in ways:
            found = _layout(table, parties, asked, way, kept, label)
            found = replace(found, notes=tuple(f"{note}; {advice}" for note in found.notes))
            if len(found.lanes) <= most[0] and len(found.first) <= most[1]:
                return found
    return found


def _opened(layout: Layout, table: Flat, clusters: ClusterOf | None, most: tuple[int, int]) -> Layout:
    """Return a layout whose lanes of many say what opens them."""
    shared = [i for i, lane in enumerate(layout.lanes) if _shared(lane)]
    options = opening.options(table, layout.parties, layout.lane, shared, clusters, most)
    lanes = tuple(replace(lane, opens=options.get(i, "")) for i, lane in enumerate(layout.lanes))
    return replace(layout, lanes=lanes)


def _shared(lane: Lane) -> bool:
    return not lane.server and not lane.name.startswith(f"{USER} ")


def _advice(table: Flat, parties: Array, groups: int, most_lanes: int) -> str:
    """Say how to see single messages: only what helps here; ``groups``: how many clusters there are."""
    ways = ["one --cluster"] if groups > 1 else []
    ways += ["a few users (--user)"]
    if len(parties) <= most_lanes:
        ways.append(f"--limit {len(table)}")
    return f"to see single messages ask for {' or '.join(ways)}"


def _layout(
    table: Flat, parties: Array, asked: Array, way: str | None, kept: Array, clusters: ClusterOf | None
) -> Layout:
    """Return one layout; ``way``: how users other than ``kept`` are put together, None for not at all."""
    stands = np.full(len(parties), _ONE)
    value = np.where(parties < 0, -1 - parties, parties)
    stands[parties < 0] = _SERVER
    together = (parties >= 0) & ~np.isin(parties, kept) & (way is not None)
    stands[together] = _CLUSTER if way == "cluster" else _ROLE
    value[together] = 0 if clusters is None else clusters(parties[together])
    values, rank = np.unique(value, return_inverse=True)
    keys, lane, counts = np.unique(stands * len(values) + rank, return_inverse=True, return_counts=True)
    lanes = tuple(
        _lane(table, key // len(values), int(values[key % len(values)]), count, asked, len(kept) > 0)
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
    said = (_said(way, lanes, together),)
    return Layout(lanes, parties, lane, False, arrow.reshape(-1), first, ends[first], said)


def _lane(table: Flat, what: int, number: int, parties: int, asked: Array, others: bool) -> Lane:
    """Return a lane and its name."""
    if what == _SERVER:
        return Lane(table.name(-1 - number), True, 1)
    if what == _ONE:
        return Lane(f"{USER} {number}", False, 1, bool(np.isin(number, asked)))
    name = f"cluster {number}" if what == _CLUSTER else f"{USER}s"
    return Lane(f"{name}, others" if others else name, False, parties)


def _said(way: str, lanes: tuple[Lane, ...], together: Array) -> str:
    shared = labels.counted(sum(map(_shared, lanes)), "lane")
    return f"{labels.counted(int(together.sum()), USER)} are drawn together by {way}, in {shared}"


def _cut(layout: Layout, most: int) -> Layout:
    """Return the first arrows of a layout, and say so."""
    if len(layout.first) <= most:
        return layout
    arrow = np.where(layout.arrow < most, layout.arrow, -1)
    whole = labels.counted(len(layout.first), "arrow")
    note = f"the first {most:,} of {whole} are shown; ask for one round, or for more with --limit"
    notes = (*layout.notes, note)
    return replace(layout, arrow=arrow, first=layout.first[:most], ends=layout.ends[:most], notes=notes)
