"""Users' histories on paper: what each sent, received and drew, and whether the trace says the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from p2p_sim.report import console, messages
from p2p_sim.report.terminal import visible
from p2p_sim.trace.query import unheard
from p2p_sim.trace.slices import Slice

_WAYS = ("sent", "received")


def document(run: Any, people: Any, life: Any, limit: int) -> dict[str, Any]:
    """Return a life as JSON values; ``people``: of the population at least her; ``limit``: most rows of each table."""
    row, clusters, kinds = people.row(life.user, "replay"), people.clusters, run.source.messages()
    named = clusters is not None and clusters.labels is not None
    told: dict[str, Any] = {
        "users": run.users or people.users,
        "world": life.world,
        "cluster": int(clusters.label[row]) if named else None,
        "y": people.y[row].item(),
        "notes": list(unheard(run)),
    }
    for way in _WAYS:
        columns = getattr(life, way)
        total = {kind: len(found["round"]) for kind, found in columns.items()}
        some = {kind: {name: c[:limit] for name, c in found.items()} for kind, found in columns.items()}
        told[way] = messages.tables(Slice.of(kinds, some, total))
    drawn = [{"name": d.name, "step": d.step, "value": np.asarray(d.value).tolist()} for d in life.drawn]
    told["drawn"] = messages.counted(len(drawn), drawn[:limit])
    return told


def as_text(lives: Sequence[Mapping[str, Any]]) -> str:
    """Lay out lives as tables."""
    return "\n\n".join(map(_page, lives))


def _page(told: Mapping[str, Any]) -> str:
    blocks = [_head(told)]
    for way in _WAYS:
        for part in told[way]:
            head, *rest = messages.lines(part)
            blocks.append([f"{way}: {head}", *rest])
    blocks.append(["drawn", *messages.lines_of(told["drawn"])])
    blocks.append(verdict(told))
    return "\n\n".join("\n".join(map(visible, block)) for block in blocks) + "\n"


def _head(told: Mapping[str, Any]) -> list[str]:
    cluster = "" if told["cluster"] is None else f", in cluster {told['cluster']}"
    held = messages.cell(told["y"])
    return [
        f"{told['run']} ({told['protocol']}), user {told['user']}{cluster}, label {held}",
        f"recomputed from seed {told['seed']} by running {told['world']:,} of {told['users']:,} users again",
        *(f"by other code: {what}" for what in told["code"]),
        *(f"note: {note}" for note in told["notes"]),
    ]


def notes(told: Mapping[str, Any]) -> list[str]:
    """Return what a table of her messages alone does not say: what was cut, and whether the trace holds the same."""
    parts = [(way, part) for way in _WAYS for part in told[way]]
    cut = [f"{way} {part['kind']}: {messages.said(part)}" for way, part in parts if part["left_out"]]
    return [*told["notes"], *cut, *verdict(told)]


def verdict(document: Mapping[str, Any]) -> list[str]:
    """Say whether the trace holds the same."""
    found = document["compared"]
    if found is None:
        return ["Compared with no trace: the run kept no messages."]
    count = f"The trace ({found['trace']}) holds {found['held']:,} of her {found['replayed']:,} messages"
    if not found["different"]:
        return [f"{count}; they are equal."]
    told = found["first"]
    line = f"{count}; {found['different']:,} DIFFER.  The first: {told['id']}"
    return [line, *messages.sides(told, "replayed", "in the trace")]


def as_csv(lives: Sequence[Mapping[str, Any]]) -> str:
    """Lay out all messages as one table; the first columns say whose history it is, and sent or received."""
    parts = [(told["user"], way, part) for told in lives for way in _WAYS for part in told[way]]
    return messages.csv_of([part for *_, part in parts], ("user", "way"), [first for *first, _ in parts])


def as_json(lives: Sequence[Mapping[str, Any]]) -> str:
    """Return a life as JSON, several as a list."""
    return console.as_json(lives if len(lives) > 1 else lives[0])


FORMATS: dict[str, Callable[[Sequence[Mapping[str, Any]]], str]] = {
    "table": as_text, "json": as_json, "csv": as_csv
}  # fmt: skip
"""What writes lives, by the name of the format."""
