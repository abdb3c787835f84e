"""Plain text for a person: tables, and how numbers stand in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from p2p_sim.report import terminal


def table_of(head: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    """Lay out rows that are mappings, the names in ``head`` as columns."""
    return table(head, [[row.get(name) for name in head] for row in rows]) + "\n"


def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Lay out rows under a head: columns of numbers to the right, others to the left."""
    cells = [[cell(value) for value in row] for row in rows]
    right = [
        bool(rows) and all(_is_number(row[i]) or row[i] is None for row in rows) for i in range(len(head))
    ]
    every = [[terminal.visible(name) for name in head], *cells]
    widths = [max(len(line[i]) for line in every) for i in range(len(head))]
    lines = []
    for line in every:
        padded = [
            text.rjust(w) if r else text.ljust(w) for text, w, r in zip(line, widths, right, strict=True)
        ]
        lines.append("   ".join(padded).rstrip())
    return "\n".join(lines)


def cell(value: Any) -> str:
    """Return one value of a table: thousands with commas, four digits of a fraction."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}" if isinstance(value, float) else terminal.visible(str(value))


def nbytes(count: float) -> str:
    """Return a number of bytes in the unit that suits it."""
    for unit in ("bytes", "KiB", "MiB"):
        if count < 1024:
            return f"{count:,.0f} bytes" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:,.1f} GiB"


def parameters(told: Mapping[str, Any]) -> str:
    """Return a protocol's parameters, with those that were not given marked as defaults."""
    defaults = told["defaults"]
    shown = [f"{k} = {v}" + (" (default)" if k in defaults else "") for k, v in told["parameters"].items()]
    return ", ".join(shown) or "no parameters"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def graph(told: Mapping[str, Any]) -> str:
    """Return a graph's numbers in words."""
    over = "over everybody" if told["over"] == "everybody" else "within each cluster"
    least, most = told["minimum"], told["maximum"]
    each = (
        f"{least:,} each"
        if least == most
        else f"minimum {least:,}, median {told['median']:,g}, maximum {most:,}"
    )
    return f"{told['source']} {over}; neighbours: {each}" + (", herself included" if told["complete"] else "")
