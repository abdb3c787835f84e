"""The messages of some users of a run, before anybody filters them or looks at them through somebody's eyes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.core.message import USER
from p2p_sim.trace import around, query
from p2p_sim.trace.slices import Slice

Array = npt.NDArray[Any]

LANES = 24
"""Users who are shown at once."""

BETWEEN = 250
"""Messages between servers that are shown at once, of each kind: whom they are about is not to be seen."""

_REPEATED = 20_000  # users up to whom a run is repeated for messages between servers that it did not keep


@dataclass(frozen=True)
class Place:
    """Where one looks: at ``user`` and whom she exchanged messages with, or at the users of ``cluster``, by default the
    first, from number ``offset`` on.
    """

    cluster: int | None = None
    user: int | None = None
    offset: int = 0


@dataclass(frozen=True, eq=False)
class Found:
    """What was found.

    ``part``: messages; ``ids``: users with a lane of their own; ``users``: how many there are to choose from;
    ``cluster``: its number, None if that is not known; ``notes``: in words, what is not shown and where it came from.
    """

    part: Slice
    ids: Array
    users: int
    cluster: int | None
    notes: tuple[str, ...]


def gather(run: Any, place: Place) -> Found:
    """Return the messages of a place.

    Raises InputError for a user or cluster that there is not, and for messages that are neither kept nor recomputed.
    """
    return _of_crowd(run, place) if place.user is None else _of_user(run, place.user)


def _of_crowd(run: Any, place: Place) -> Found:
    crowd, number, notes = _crowd(run, place.cluster)
    if place.offset >= len(crowd):
        raise InputError(f"offset = {place.offset}: there are {len(crowd):,} users to show")
    ids = np.array(crowd[place.offset : place.offset + LANES], np.int64)
    part, more = _with_servers(run, around.around(run, ids, protocol=run.source))
    return Found(part, ids, len(crowd), number, (*part.notes, *notes, *more))


def _crowd(run: Any, cluster: int | None) -> tuple[Sequence[int] | Array, int | None, tuple[str, ...]]:
    """Return the users of a cluster and its number; of a run without its population all users, as far as known."""
    people = query.census(run)
    if people is not None:
        number = cluster
        if number is None:
            first = around.clusters_of(run, np.zeros(1, np.int64) if people.ids is None else people.ids[:1])
            if first is None and people.ids is None:
                return range(people.users), 0, ()
            number = 0 if first is None else int(first[0])
        return around.cluster(run, number), number, ()
    why = "the population was not kept: who belongs to which cluster is not known"
    if cluster is not None or not run.users:
        raise InputError(f"{why}; search for a user by her number")
    return range(run.users), None, (why,)


def _with_servers(run: Any, part: Slice) -> tuple[Slice, list[str]]:
    """Add the first messages between servers, and say how many there are."""
    kinds, notes = dict(part.kinds), []
    between = [kind for kind, roles in part.roles.items() if USER not in roles]
    if (
        between
        and run.trace != "full"
        and ((people := query.census(run)) is None or people.users > _REPEATED)
    ):
        notes.append(f"{', '.join(between)}: between servers, not kept; a run with trace='full' shows them")
        between = []
    every = []
    for kind in between:
        some = query.messages(run, kind=kind, limit=BETWEEN, protocol=run.source)
        kinds[kind] = some.kinds[kind]
        if some.total[kind] > BETWEEN:
            part_of = f"the first {BETWEEN:,} of {some.total[kind]:,}"
            notes.append(f"{kind}: between servers, so not of these users alone; {part_of}")
        elif some.total[kind]:
            every.append(kind)
    if every:
        notes.append(f"{', '.join(every)}: between servers, so not of these users alone")
    return replace(part, kinds=kinds), notes


def _of_user(run: Any, user: int) -> Found:
    focus = np.array([user])
    part = around.around(run, focus, protocol=run.source)
    ends = [focus]
    for kind, columns in part.kinds.items():
        ends += [
            columns[end]
            for end, role in zip(("sender", "recipient"), part.roles[kind], strict=True)
            if role == USER
        ]
    met = np.setdiff1d(np.concatenate(ends), focus)
    notes = list(part.notes)
    if len(met) >= LANES:
        notes.append(f"the first {LANES - 1} of the {len(met):,} users she met have lanes of their own")
    if not len(part) and query.census(run) is None:
        notes.append(f"user {user} occurs in no message; whether she exists was not kept")
    cluster = around.clusters_of(run, focus)
    number = None if cluster is None else int(cluster[0])
    return Found(part, np.concatenate([focus, met[: LANES - 1]]), 1, number, tuple(notes))
