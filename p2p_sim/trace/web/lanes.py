"""The messages of some users of a run as lanes: who is shown, what is struck out, and what was left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.core.message import USER, Message
from p2p_sim.trace import around, recompute
from p2p_sim.trace.diagram import labels
from p2p_sim.trace.reader import Kept
from p2p_sim.trace.sight import Eyes
from p2p_sim.trace.slices import Slice, message_id, party

Array = npt.NDArray[Any]

LANES, MARKS = 24, 2000
"""Users and messages shown at once."""

STORED_USERS = 200_000
"""Users above whom a user's messages are sooner recomputed from the seed than found in a trace."""


@dataclass(frozen=True)
class Asked:
    """What is to be shown.

    ``user``: she in focus, and whom she exchanged messages with; otherwise the users of ``cluster`` from number
    ``offset`` on.  ``kind``, ``round``: only of these.  ``view``: whose eyes, empty for everything.
    """

    cluster: int | None = None
    user: int | None = None
    kind: str | None = None
    round: int | None = None
    view: str = ""
    channels: str = "plain"
    offset: int = 0


def lanes(run: Any, program: Any, asked: Asked) -> dict[str, Any]:
    """Return lanes and messages as JSON values; raises InputError for a user, cluster, kind or view there is not."""
    kinds: dict[str, Message] = program.messages()
    if asked.kind is not None and asked.kind not in kinds:
        raise InputError(f"kind {asked.kind!r}: this protocol's kinds are {', '.join(kinds)}")
    crowd = _crowd(run, asked)
    part, ids = _messages(run, program, asked, crowd)
    eyes = None if not asked.view else run.coalition(asked.view, protocol=program)
    shown = [role for role in program.roles() if role != USER and _occurs(part, role)]
    rows = _rows(part, kinds, eyes, asked)
    marks = rows[:MARKS]
    notes = list(part.notes)
    if len(rows) > len(marks):
        notes.append(
            f"the first {len(marks):,} of {len(rows):,} messages are shown: choose a kind or a round"
        )
    if crowd is not None and len(crowd) > len(ids):
        end = asked.offset + len(ids)
        notes.append(
            f"users {asked.offset + 1:,} to {end:,} of {len(crowd):,} are shown, with all they exchanged"
        )
    return {
        "lanes": [{"id": party(USER, user), "role": USER} for user in ids.tolist()]
        + [{"id": role, "role": role} for role in shown],
        "messages": marks, "total": len(rows), "users": 0 if crowd is None else len(crowd),
        "offset": asked.offset, "most": LANES, "notes": notes,
    }  # fmt: skip


def _crowd(run: Any, asked: Asked) -> Array | None:
    """Return the users among whom some are shown; None if only the one in focus is known."""
    if asked.offset < 0:
        raise InputError(f"offset = {asked.offset}: must be 0 or more")
    if asked.user is not None:
        return None
    first = 0 if run.population is None or run.population.clusters is None else None
    number = asked.cluster
    if number is None:
        number = int(run.population.clusters.label[0]) if first is None else first
    return around.cluster(run, number)


def _messages(run: Any, program: Any, asked: Asked, crowd: Array | None) -> tuple[Slice, Array]:
    """Return the messages to show, and the users with a lane of their own."""
    if crowd is not None:
        ids = crowd[asked.offset : asked.offset + LANES]
        return _around(run, program, ids, asked.round), ids
    assert asked.user is not None
    focus = np.array([asked.user])
    part = _around(run, program, focus, asked.round)
    met = [focus]
    for kind, columns in part.kinds.items():
        met += [
            columns[end]
            for end, role in zip(("sender", "recipient"), part.roles[kind], strict=True)
            if role == USER
        ]
    others = np.setdiff1d(np.concatenate(met), focus)[: LANES - 1]
    return part, np.concatenate([focus, others])


def _around(run: Any, program: Any, ids: Array, round: int | None) -> Slice:
    """Return the messages that users sent or received: stored, or sooner recomputed where there are very many users."""
    people = run.population
    if people is None or people.users <= STORED_USERS:
        return around.around(run, ids, round=round, protocol=program)
    past = recompute.again(run, program, {USER: np.sort(ids)})
    again = type(
        "Again", (), {"source": program, "trace": "full", "counts": run.counts, "_trace": past.messages}
    )
    kept = Kept(again)
    found = {kind: kept.rows(kind, round=round)[0] for kind in kept.kinds}
    note = f"recomputed from the seed by running {past.world:,} users again, which is sooner than a look into the trace"
    return Slice.of(program.messages(), found, notes=(note,))


def _occurs(part: Slice, role: str) -> bool:
    return any(role in part.roles[kind] and len(columns["round"]) for kind, columns in part.kinds.items())


def _rows(part: Slice, kinds: dict[str, Message], eyes: Eyes | None, asked: Asked) -> list[dict[str, Any]]:
    """Return the messages as JSON values, in causal order, with what the viewpoint sees and reads of each."""
    seen: dict[str, bool] = {}
    read: dict[str, bool] = {}
    if eyes is not None:
        names = part.ids()
        for kind, columns in part.kinds.items():
            for found, mask in zip(
                (seen, read), eyes.sees(kinds[kind], columns, asked.channels), strict=True
            ):
                found.update(zip(names[kind], mask.tolist(), strict=True))
    rows = []
    for event in part.events():
        if asked.kind in (None, event.kind):
            sees, reads = seen.get(event.id, True), read.get(event.id, True)
            fields = {name: labels.value(value) for name, value in (event.fields or {}).items()}
            ends = event.ends
            rows.append({
                "id": message_id(event.kind, event.round, event.sender, event.recipient, event.seq),
                "kind": event.kind, "round": event.round, "from": ends[0], "to": ends[1], "seq": event.seq,
                "nbytes": event.nbytes, "seen": sees, "readable": sees and reads,
                "fields": fields if sees and reads else None,
            })  # fmt: skip
    return rows
