"""Statistics of a run's messages on paper."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from p2p_sim.core.ledger import Count
from p2p_sim.core.message import USER
from p2p_sim.report import layout
from p2p_sim.report.terminal import visible
from p2p_sim.trace.degrees import QUANTILES
from p2p_sim.trace.stats import Stats


def document(found: Stats) -> dict[str, Any]:
    """Return statistics as JSON values."""
    return {
        "notes": list(found.notes),
        "rounds": [
            {"round": round, "kind": kind, **_count(count)} for (kind, round), count in found.counts.items()
        ],
        "roles": [{"role": role, "way": way, **_count(count)} for (role, way), count in found.roles.items()],
        "between": [
            {"kind": kind, "sender": sender, "recipient": recipient, **_count(count)}
            for (kind, sender, recipient), count in found.between.items()
        ],
        "degrees": [
            {"way": degree.way, "kind": degree.kind, "round": degree.round, **_spread(asdict(degree.spread))}
            for degree in found.degrees
        ],
    }


def _count(count: Count) -> dict[str, int]:
    return {"messages": count.messages, "travelled": count.travelled, "bytes": count.nbytes}


def _spread(spread: dict[str, Any]) -> dict[str, Any]:
    named = {f"q{round(100 * q)}": n for q, n in zip(QUANTILES, spread.pop("quantiles"), strict=True)}
    return spread | named


def as_text(told: Mapping[str, Any]) -> str:
    """Lay out statistics as tables."""
    head = [f"{told['run']} ({told['protocol']})", *(f"note: {note}" for note in told["notes"])]
    blocks = ["\n".join(map(visible, head))]
    names, titles = ("messages", "travelled", "bytes"), ("delivered", "travelled", "bytes")
    rows = [[row["round"], row["kind"], *(row[name] for name in names)] for row in told["rounds"]]
    rows.append(["in all", None, *(sum(row[name] for row in told["rounds"]) for name in names)])
    blocks.append(layout.table(["round", "kind", *titles], rows))
    rows = [[f"{row['sender']} to {row['recipient']}", row["kind"], *(row[name] for name in names)]
            for row in told["between"]]  # fmt: skip
    blocks.append(layout.table(["who to whom", "kind", *titles], rows))
    rows = [[row["role"], row["way"], *(row[name] for name in names)] for row in told["roles"]]
    blocks.append(layout.table(["role", "", *titles], rows))
    if told["degrees"]:
        blocks.append(_degrees(told["degrees"]))
    return "\n\n".join(blocks) + "\n"


def _degrees(degrees: list[dict[str, Any]]) -> str:
    numbers = ["users", "none", "least", *(f"q{round(100 * q)}" for q in QUANTILES), "most", "mean"]
    rows = []
    for row in degrees:
        kind = "all kinds" if row["kind"] is None else row["kind"]
        span = "all" if row["round"] is None else str(row["round"])
        rows.append(
            [f"{kind}, {row['way']}", span, *(row[name] for name in numbers), f"{USER}:{row['busiest']}"]
        )
    title = "Messages a user (qP: the least number that P % of the users do not exceed)"
    return f"{title}\n{layout.table(['', 'round', *numbers, 'most by'], rows)}"
