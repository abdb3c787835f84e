"""Tables of run.json: mappings by several keys, as lists of objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def to_list(table: Mapping[Any, Any], *names: str) -> list[dict[str, Any]]:
    """Return an object for each entry; ``names``: of the parts of its key, then of its value or values."""
    return [
        dict(zip(names, (*key, *(value if isinstance(value, tuple) else (value,))), strict=True))
        for key, value in table.items()
    ]


def from_list(rows: Sequence[Mapping[str, Any]], *names: str, values: int = 1) -> dict[Any, Any]:
    """Read back what ``to_list`` wrote; the last ``values`` names are of the value."""
    found = {}
    for row in rows:
        parts = tuple(row[name] for name in names)
        value = parts[len(parts) - values :]
        found[parts[: len(parts) - values]] = value if values > 1 else value[0]
    return found
