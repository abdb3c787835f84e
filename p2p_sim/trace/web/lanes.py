"""Messages as lanes and marks: who has a lane, which messages are shown, and what a viewpoint reads of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.message import USER
from p2p_sim.trace import around, query
from p2p_sim.trace.diagram import labels
from p2p_sim.trace.sight import Eyes
from p2p_sim.trace.slices import Event, Slice, party
from p2p_sim.trace.web.gather import LANES, Found
from p2p_sim.trace.web.known import Known

Array = npt.NDArray[Any]

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
    run: Any, told: Known, found: Found, look: Look, eyes_of: Callable[[Any, str, Known], Eyes]
) -> dict[str, Any]:
    """Return lanes and messages as JSON values; raises InputError for a kind, round or view that there is not.

    What the view cannot read is not among them.
    """
    query.check_kind(told.kinds, look.kind)
    query.check_round(told, look.round)
    eyes = eyes_of(run, look.view, told) if look.view else None
    wanted = _filtered(found.part, look)
    shown = around.first(wanted, MARKS)
    notes = [note for note in found.notes if note != told.cut]  # which the whole run says already
    if "*user" in look.view:
        notes.append(f"{look.view} looks: here, {eyes}")
    if len(wanted) > len(shown):
        notes.append(f"only {len(shown):,} of {len(wanted):,} messages are drawn: choose a kind or a round")
    return {
        "lanes": _lanes(run, told, found, named=eyes is None),
        "messages": _rows(shown, told, eyes, look.channels),
        "total": len(wanted), "users": found.users, "most": LANES,
        "cluster": found.cluster, "clusters": _clusters(around.sizes_of(run)),
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


def _lanes(run: Any, told: Known, found: Found, named: bool) -> list[dict[str, str]]:
    """Return servers, the other users, then users; ``named``: whether it is told who dropped out or lied."""
    part, shown = found.part, []
    for role in told.servers:
        if any(role in part.roles[kind] for kind, columns in part.kinds.items() if len(columns["round"])):
            shown.append({"id": role, "title": role, "user": "", "state": ""})
    if _strangers(part, found):
        shown.append({"id": OTHERS, "title": "others", "user": "", "state": ""})
    states = {what: np.isin(found.ids, ids) for what, ids in run.faulty.items()} if named else {}
    for place, user in enumerate(found.ids.tolist()):
        state = ", ".join(what for what, mask in states.items() if mask[place])
        shown.append({"id": party(USER, user), "title": party(USER, user), "user": str(user), "state": state})
    return shown


def _strangers(part: Slice, found: Found) -> bool:
    """Whether a user without a lane sent or received any of the messages."""
    return any(
        not np.isin(columns[end], found.ids).all()
        for kind, columns in part.kinds.items()
        for end, role in zip(("sender", "recipient"), part.roles[kind], strict=True)
        if role == USER
    )


def _rows(part: Slice, told: Known, eyes: Eyes | None, channels: str) -> list[dict[str, Any]]:
    """Return the messages as JSON values in causal order, with what the viewpoint sees and reads of each."""
    seen: dict[str, bool] = {}
    read: dict[str, bool] = {}
    if eyes is not None:
        names = part.ids()
        for kind, columns in part.kinds.items():
            sees, reads = eyes.sees(told.kinds[kind], columns, channels)
            seen.update(zip(names[kind], sees.tolist(), strict=True))
            read.update(zip(names[kind], (sees & reads).tolist(), strict=True))
    rows = []
    for event in part.events():
        readable = read.get(event.id, True)
        rows.append({
            "id": event.id, "kind": event.kind, "round": event.round, "from": event.ends[0], "to": event.ends[1],
            "nbytes": event.nbytes, "seen": seen.get(event.id, True), "readable": readable,
            "fields": _fields(part, event) if readable else None,
        })  # fmt: skip
    return rows


def _fields(part: Slice, event: Event) -> dict[str, str]:
    columns = part.kinds[event.kind]
    return {
        name: labels.value(
            np.array(value, columns[name].dtype) if isinstance(value, list) else value, _LETTERS
        )
        for name, value in (event.fields or {}).items()
    }
