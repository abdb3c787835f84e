"""The cone of a message on paper."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from p2p_sim.core.message import USER
from p2p_sim.report import layout, messages
from p2p_sim.report.terminal import visible
from p2p_sim.trace.cone import Cone, Half
from p2p_sim.trace.hiding import Alike, Hidden

_TITLES = {
    "before": "May have depended on (all that its sender had received in earlier rounds, and so on)",
    "after": "May have led to (all that its recipient sent in later rounds, and so on)",
}


def document(found: Cone) -> dict[str, Any]:
    """Return a cone as JSON values."""
    return {
        "notes": list(found.notes),
        "message": messages.tables(found.message)[0]["rows"][0],
        "text": next(iter(found.message.texts.values())),
        "before": _half(found.before),
        "after": _half(found.after),
        "hidden": asdict(found.hidden) | {"text": sentence(found.hidden)},
    }


def _half(half: Half) -> dict[str, Any]:
    rows = [
        {"round": round, "kind": kind, "messages": number} for (kind, round), number in half.counts.items()
    ]
    return {
        "messages": half.messages, "users": half.users,
        "rounds": sorted(rows, key=lambda row: row["round"]), "nearest": messages.tables(half.nearest),
    }  # fmt: skip


def sentence(hidden: Hidden) -> str:
    """Say what the recipient of a message cannot see of where it came from."""
    who, whom = hidden.sender, hidden.recipient
    if who == whom:
        return f"Nothing is hidden: {who} sent it to herself."
    if not hidden.unseen:
        return (
            f"Nothing is hidden: nothing that carries anything had reached {who} but what {whom} sent; it can only "
            f"come from what {who} held and drew."
        )
    count = " and ".join(f"{number:,} {kind}" for kind, number in hidden.unseen.items())
    plural = "s" if sum(hidden.unseen.values()) > 1 else ""
    told = f"The protocol hides its origin: {whom} does not see the {count} message{plural} that had reached {who}"
    if not who.startswith(USER):
        among = _alike(hidden.alike)
        return (
            f"{told}, from {_users(hidden.users)}; which of them it was made from, only {who} knows{among}."
        )
    if hidden.users is None:
        return f"{told}; from whom they may have come is not known without protocol and population."
    group = f"of cluster {hidden.cluster}" if hidden.cluster is not None else f"who can reach {who}"
    return f"{told}; it may carry what any of the {_users(hidden.users)} {group} handed on."


def _users(number: int | None) -> str:
    return "no user" if not number else "1 user" if number == 1 else f"{number:,} users"


def _alike(alike: tuple[Alike, ...]) -> str:
    parts = [f"{row.messages:,} {row.kind} with the same {' and '.join(row.fields)}" for row in alike]
    return f" (among them {', '.join(parts)})" if parts else ""


def as_text(told: Mapping[str, Any]) -> str:
    """Lay out a cone."""
    row = told["message"]
    fields = "".join(f"; {name} = {messages.cell(value)}" for name, value in row["fields"].items())
    head = [
        f"{told['run']} ({told['protocol']}), message {row['id']}: {told['text']}{fields}",
        *(f"note: {note}" for note in told["notes"]),
    ]
    blocks = ["\n".join(map(visible, head)), visible(told["hidden"]["text"])]
    for way, title in _TITLES.items():
        half = told[way]
        who = f"{half['messages']:,} messages, {'sent' if way == 'before' else 'received'} by {_users(half['users'])}"
        if not half["messages"]:
            blocks.append(f"{title}: nothing")
            continue
        rows = [[row["round"], row["kind"], row["messages"]] for row in half["rounds"]]
        blocks.append(f"{title}: {who}\n{layout.table(['round', 'kind', 'messages'], rows)}")
        blocks += ["\n".join(map(visible, messages.lines(part))) for part in half["nearest"]]
    return "\n\n".join(blocks) + "\n"
