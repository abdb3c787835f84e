"""The table of privacy as text, and what is written beside its curves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from p2p_sim.report import layout
from p2p_sim.report.figures import bound_text, bracket_text, number_text
from p2p_sim.report.question import REAL

BASES = {
    "lower": "at least this; the truth may be larger",
    "upper": "at most this; the truth may be smaller",
}
"""What is said below a table of figures that are not exact."""


def as_text(told: Mapping[str, Any]) -> str:
    """Return the table as text, footnotes below it; ``told``: what ``table_of`` returned, or its JSON."""
    notes: dict[str, int] = {}

    def note(text: str) -> str:
        return f"[{notes.setdefault(text, len(notes) + 1)}]" if text else ""

    if why := _alike(told["views"]):
        return f"{_above(told, False)}\nrefused for every view: {why}"
    several = (told["clusters"] or {}).get("count", 1) > 1 and any(row["by_cluster"] for row in told["views"])
    head = ["View", "worst cluster's ε" if several else "ε", "basis"]
    head += ["smallest", "median", "largest"] if several else []
    head += ["theorem ε", "local ε0", "notes"]
    local = told["local_epsilon"]
    lines = []
    for row in told["views"]:
        exact = row["exact"]
        if exact is None:
            cells = [row["view"], "refused" if _is_refusal(row) else "-", "-"]
            marks = note(row["refused"])
        else:
            cells = [row["view"], bracket_text(exact), exact["basis"]]
            marks = note("; ".join([exact["source"], *exact["assumes"]]))
        if several:
            found = row["by_cluster"] or {}
            cells += ["-" if found.get(k) is None else bracket_text(found[k]) for k in head[3:6]]
        lines.append([*cells, _theorems(row["theorems"], note), _local(local), marks])
    foot = [f"{basis}: {means}" for basis, means in BASES.items() if any(line[2] == basis for line in lines)]
    foot += [f"[{number}] {text}" for text, number in notes.items()]
    remarks = [f"note: {told['hidden']}"] if told.get("hidden") else []
    return "\n".join([_above(told, several), layout.table(head, lines), *foot, *remarks])


def _alike(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return why everything is refused, if it is all for the same reason; or nothing."""
    reasons = {
        "" if row["exact"] or row["theorems"] or not _is_refusal(row) else row["refused"] for row in rows
    }
    return str(*reasons) if len(rows) > 1 and len(reasons) == 1 else ""


def _above(told: Mapping[str, Any], several: bool) -> str:
    clusters, composition = told["clusters"], told.get("composition", "worst")
    above = f"Privacy of one label, ε in nats at δ = {told['delta']:g}, {told['channels']} channels"
    if clusters is not None and several:
        ends = f"smallest {clusters['smallest']:,}, median {clusters['median']:,}, largest {clusters['largest']:,}"
        above += f"; {clusters['count']:,} clusters: {ends}"
    elif clusters is not None:
        above += f"; {_users(clusters)}"
    above += "" if composition == "worst" else f"; composition: {composition}"
    above += f"; graph {layout.graph(told['graph'])}" if told.get("graph") else ""
    return above + (f"; faults: {', '.join(told['faults'])}" if told.get("faults") else "")


def _users(clusters: Mapping[str, Any]) -> str:
    if clusters.get("everybody"):  # no clusters
        return f"{clusters['largest']:,} users"
    both = sorted({clusters["smallest"], clusters["largest"]})
    return f"clusters of {' to '.join(f'{size:,}' for size in both)}"


def title(told: Mapping[str, Any]) -> str:
    """Return the title of a drawing: protocol, parameters, users, delta."""
    clusters, parameters = told["clusters"], told["parameters"].items()
    first = f"{told['protocol']}: " + ", ".join(f"{name} = {value}" for name, value in parameters)
    parts = [f"line at δ = {told['delta']:g}", f"{told['channels']} channels"]
    if clusters is not None:
        whole = told["composition"] == REAL or clusters["count"] == 1
        parts[:0] = [_users(clusters) if whole else f"smallest of {_users(clusters)} that fits the view"]
    return f"{first}\n{'; '.join(parts)}"


def drawn(told: Mapping[str, Any]) -> list[str]:
    """Return where curves were drawn, and which, in words; nothing where none were asked for."""
    if not told["plot"]:
        return []
    bases = [row["exact"]["basis"] for row in told["views"] if row["exact"] is not None]
    each = ", ".join(f"{bases.count(basis)} {basis}" for basis in dict.fromkeys(bases))
    what = title(told).partition("\n")[2]
    return [f"δ(ε) of {len(bases)} views drawn in {told['plot']} ({each}; {what})"]


def _is_refusal(row: Mapping[str, Any]) -> bool:
    return not str(row["refused"]).startswith("not computed here")


def _local(value: Any) -> str:
    return "-" if value is None else number_text(value)


def _theorems(theorems: Sequence[Mapping[str, Any]], note: Callable[[str], str]) -> str:
    parts = []
    for found in theorems:
        name = found["name"]
        if found["holds"]:
            told = ", ".join(part for part in (f"{found['basis']}: {found['source']}", found["why"]) if part)
            parts.append(f"{bound_text(found['epsilon'], found['basis'])} ({name}) {note(told)}")
        else:
            parts.append(
                f"{name} does not apply {note(name + ': ' + (found['why'] or 'epsilon is infinite'))}"
            )
    return "; ".join(parts) or "-"
