"""Messages of some users for the page: gathered once, laid out in lanes, filtered, and redacted for a viewpoint."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.core.message import USER
from p2p_sim.render import message_table
from p2p_sim.render.known_run import KnownRun
from p2p_sim.render.lanes import page_lanes
from p2p_sim.rundir.run_record import RunRecord
from p2p_sim.trace import neighbourhood, query
from p2p_sim.trace.slices import Slice, Viewer, message_id, party

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

    @functools.cached_property
    def table(self) -> message_table.MessageTable:
        """All messages as one table, in order."""
        return message_table.tabulate(self.part)


def gather(run: RunRecord, place: Place) -> Found:
    """Return the messages of a place.

    Raises InputError for a user or cluster that there is not, and for messages that are neither kept nor recomputed.
    """
    return _of_crowd(run, place) if place.user is None else _of_user(run, place.user)


def _of_crowd(run: RunRecord, place: Place) -> Found:
    crowd, number, notes = _crowd(run, place.cluster)
    if place.offset >= len(crowd):
        raise InputError(f"offset = {place.offset}: there are {len(crowd):,} users to show")
    ids = np.array(crowd[place.offset : place.offset + LANES], np.int64)
    part, more = _with_servers(run, neighbourhood.around(run, ids, protocol=run.source))
    return Found(part, ids, len(crowd), number, (*part.notes, *notes, *more))


def _crowd(run: RunRecord, cluster: int | None) -> tuple[Sequence[int] | Array, int | None, tuple[str, ...]]:
    """Return the users of a cluster and its number; of a run without its population all users, as far as known."""
    people = query.census(run)
    if people is not None:
        number = cluster
        if number is None:
            first = neighbourhood.clusters_of(
                run, np.zeros(1, np.int64) if people.ids is None else people.ids[:1]
            )
            if first is None and people.ids is None:
                return range(people.users), 0, ()
            number = 0 if first is None else int(first[0])
        return neighbourhood.cluster(run, number), number, ()
    why = "the population was not kept: who belongs to which cluster is not known"
    if cluster is not None or not run.users:
        raise InputError(f"{why}; search for a user by her number")
    return range(run.users), None, (why,)


def _with_servers(run: RunRecord, part: Slice) -> tuple[Slice, list[str]]:
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


def _of_user(run: RunRecord, user: int) -> Found:
    focus = np.array([user])
    part = neighbourhood.around(run, focus, protocol=run.source)
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
    cluster = neighbourhood.clusters_of(run, focus)
    number = None if cluster is None else int(cluster[0])
    return Found(part, np.concatenate([focus, met[: LANES - 1]]), 1, number, tuple(notes))


MARKS = 2000
"""Messages that are shown at once."""

OTHERS = ""
"""The lane of all users who have none of their own."""

_LETTERS = 400  # of a field that are shown


@dataclass(frozen=True)
class Look:
    """How one looks: at messages of one ``kind`` or ``round``, through the eyes of ``view``, empty for everything."""

    kind: str | None = None
    round: int | None = None
    view: str = ""
    channels: str = "plain"


def lanes(
    run: RunRecord,
    known: KnownRun,
    found: Found,
    look: Look,
    eyes_of: Callable[[RunRecord, str, KnownRun], Viewer],
) -> dict[str, Any]:
    """Return lanes and messages as JSON values; raises InputError for a kind, round or view that there is not.

    What the view cannot read is not among them.
    """
    query.check_kind(known.kinds, look.kind)
    query.check_round(known, look.round)
    eyes = eyes_of(run, look.view, known) if look.view else None
    wanted = _filtered(found.part, look)
    shown = neighbourhood.first(wanted, MARKS)
    notes = [note for note in found.notes if note != known.cut]  # which the whole run says already
    if "*user" in look.view:
        notes.append(f"{look.view} looks: here, {eyes}")
    if len(wanted) > len(shown):
        notes.append(f"only {len(shown):,} of {len(wanted):,} messages are drawn: choose a kind or a round")
    return {
        "lanes": _lanes(run, found, named=eyes is None),
        "messages": _rows(shown, eyes, look.channels),
        "total": len(wanted), "users": found.users, "most": LANES,
        "cluster": found.cluster, "clusters": _clusters(neighbourhood.sizes_of(run)),
        "coalition": "" if eyes is None else str(eyes), "notes": notes,
    }  # fmt: skip


def _clusters(sizes: Array | None) -> dict[str, Any] | None:
    """Return how many clusters there are, of how many users; None if there is one, or that was not kept."""
    if sizes is None or len(sizes) < 2:
        return None
    return {"count": len(sizes), "least": int(sizes.min()), "most": int(sizes.max())}


def _filtered(part: Slice, look: Look) -> Slice:
    """Return the messages of a kind and round."""
    kinds = {kind: columns for kind, columns in part.kinds.items() if look.kind in (None, kind)}
    if look.round is not None:
        for kind, columns in kinds.items():
            now = columns["round"] == look.round
            kinds[kind] = {name: column[now] for name, column in columns.items()}
    return replace(part, kinds=kinds)


def _lanes(run: RunRecord, found: Found, named: bool) -> list[dict[str, str]]:
    """Return the lanes as JSON values; ``named``: whether they say who dropped out or lied."""
    table, shown = found.table, []
    faulty = run.faulty if named else {}
    states = {what: set(found.ids[np.isin(found.ids, ids)].tolist()) for what, ids in faulty.items()}
    for number in page_lanes(table, found.ids):
        if number is None:
            shown.append({"id": OTHERS, "title": "others", "user": "", "state": ""})
            continue
        name, user = party(*table.party(number)), "" if number < 0 else str(number)
        state = ", ".join(what for what, users in states.items() if number in users)
        shown.append({"id": name, "title": name, "user": user, "state": state})
    return shown


def _rows(part: Slice, eyes: Viewer | None, channels: str) -> list[dict[str, Any]]:
    """Return the messages as JSON values in causal order, with what the viewpoint sees and reads of each."""
    table = message_table.tabulate(part)
    seen = read = np.ones(len(table), np.bool_)
    if eyes is not None:
        seen, read = message_table.masks(part, table, message_table.sight_of(part, eyes, channels))
    rows = []
    for row in range(len(table)):
        kind, address = table.kinds[table.kind[row]], table.address(row)
        rows.append({
            "id": message_id(kind, *address), "kind": kind, "round": address[0],
            "from": party(*table.party(int(table.sender[row]))), "to": party(*table.party(int(table.recipient[row]))),
            "nbytes": int(table.nbytes[row]), "seen": bool(seen[row]), "readable": bool(read[row]),
            "fields": message_table.fields(part, table, row, _LETTERS) if read[row] else None,
        })  # fmt: skip
    return rows
