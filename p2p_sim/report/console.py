"""What commands print: JSON that any program reads, and a benchmark's rows as text."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from p2p_sim.report.layout import cell, table_of


def as_json(document: Any) -> str:
    """Return a document as JSON: infinity as "inf", not-a-number as null."""
    return json.dumps(plain(document), indent=2, allow_nan=False) + "\n"


def plain(value: Any) -> Any:
    """Turn what JSON does not know into what it does."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return value if math.isfinite(value) else "inf" if value > 0 else "-inf"
    if value is None or isinstance(value, (bool, int, str)):
        return value
    return plain(value.item()) if hasattr(value, "item") else str(value)


def measured(result: Mapping[str, Any]) -> str:
    """Return a benchmark's result as text: the machine, and a table of its rows."""
    machine = ", ".join(f"{name} {value}" for name, value in result["machine"].items())
    rows = [dict(row) for row in result["rows"]]
    for row in rows:
        goals = row.get("target")
        if isinstance(goals, Mapping):
            row["target"] = ", ".join(f"{name} {cell(value)}" for name, value in goals.items())
    head = list(
        dict.fromkeys(name for row in rows for name in row if any(r.get(name) is not None for r in rows))
    )
    return f"{machine}\n\n{table_of(head, rows)}"
