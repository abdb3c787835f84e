"""How two runs differ, on paper."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from p2p_sim.report import layout, messages
from p2p_sim.report.terminal import visible
from p2p_sim.trace.compare import Comparison

_PARTS = ("settings", "population", "counts", "outputs", "digest")


def document(found: Comparison) -> dict[str, Any]:
    """Return a comparison as JSON values; ``first``: the first message that differs, in causal order."""
    apart = found.messages
    told: dict[str, Any] = {"equal": found.equal, "notes": list(found.notes)}
    told |= {name: [asdict(unlike) for unlike in getattr(found, name)] for name in _PARTS}
    told["messages"] = None
    if apart is not None:
        rows = [{name: value for name, value in asdict(row).items() if name != "least"} for row in apart]
        told["messages"] = {
            "compared": list(found.compared), "different": rows, "first": apart[0].least if apart else None
        }  # fmt: skip
    return told


def as_text(told: Mapping[str, Any]) -> str:
    """Lay out a comparison: what differs first, then what was compared."""
    head = f"{told['first_run']} and {told['second_run']}: {'equal' if told['equal'] else 'DIFFERENT'}"
    blocks = ["\n".join(map(visible, [head, *(f"note: {note}" for note in told["notes"])]))]
    rows = [
        [row["what"], _value(row["first"]), _value(row["second"]), row["differ"], row["party"]]
        for part in _PARTS
        for row in told[part]
    ]
    if rows:
        blocks.append(layout.table(["What", "first", "second", "differ", "first party"], rows))
    if told["messages"] is not None:
        blocks.append(_messages(told["messages"]))
    return "\n\n".join(blocks) + "\n"


def _messages(told: Mapping[str, Any]) -> str:
    one, other = told["compared"]
    first = told["first"]
    if first is None:
        return f"Messages: {one:,} compared; all are equal."
    names = ["round", "kind", "only_first", "only_second", "changed"]
    rows = [[row[name] for name in names] for row in told["different"]]
    table = layout.table(["round", "kind", "only in the first", "only in the second", "other fields"], rows)
    head = f"The first that differs: {first['id']}, from {first['sender']} to {first['recipient']}"
    lines = [head, *messages.sides(first, "first", "second")]
    return f"Messages: {one:,} and {other:,} compared\n{table}\n\n" + "\n".join(map(visible, lines))


def _value(value: Any) -> str:
    return "none" if value is None else messages.cell(value)
