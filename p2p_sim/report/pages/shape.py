"""What a report needs of a run's notes: a run.json that was altered is named, and not shown in part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import NoneType
from typing import Any


@dataclass(frozen=True)
class Each:
    """A list, or with ``keyed`` a mapping, whose every entry has one shape."""

    shape: Any
    keyed: bool = False


@dataclass(frozen=True)
class Either:
    """Any of several shapes."""

    shapes: tuple[Any, ...]


@dataclass(frozen=True)
class Number:
    """A number; infinity is ``"inf"``."""


NUMBER = Number()
_ACCURACY = {
    "accuracy_private": float, "accuracy_true": float, "baseline": float, "trained_on": int, "test_rows": int,
    "model": str, "note": str,
}  # fmt: skip
_FIGURE = {"epsilon": NUMBER, "lower": NUMBER, "upper": NUMBER}
_EXACT = {**_FIGURE, "basis": str, "source": str, "assumes": Each(str)}
_THEOREM = {"name": str, "basis": str, "holds": bool, "epsilon": NUMBER, "source": str, "why": str}
_VIEW = {
    "view": str, "name": str, "users": str, "refused": str, "exact": Either((None, _EXACT)),
    "by_cluster": Either((None, Each(Either((None, _FIGURE)), keyed=True))), "theorems": Each(_THEOREM),
}  # fmt: skip
_PRIVACY = {
    "delta": NUMBER, "channels": str, "hidden": str, "local_epsilon": Either((None, NUMBER)), "views": Each(_VIEW),
}  # fmt: skip
_ROLE = {
    "role": str, "parties": int, "messages_up": int, "messages_down": int, "bytes_up": int, "bytes_down": int,
    "operations": Each(int, keyed=True), "compute_seconds": NUMBER,
}  # fmt: skip
_COSTS = {"channel": str, "server_channel": str, "simulated_seconds": NUMBER, "roles": Each(_ROLE)}
_CLUSTERS = {"count": int, "origin": str, "minimum": int, "maximum": int}
_GRAPH = {
    "source": str, "over": str, "minimum": NUMBER, "median": NUMBER, "maximum": NUMBER, "complete": bool
}  # fmt: skip

NOTES = {
    name: Either((None, shape))
    for name, shape in (
        ("privacy", _PRIVACY), ("costs", _COSTS), ("accuracy", _ACCURACY), ("released", {"labels": int}),
        ("clusters", _CLUSTERS), ("graph", _GRAPH), ("data", {"name": str, "source": str}), ("defaults", Each(str)),
        ("command", Each(str)),
    )
}  # fmt: skip
"""What a run notes of itself; a run from Python notes nothing."""


def misfit(value: Any, shape: Any, name: str = "notes") -> str:
    """Return what in a value has not the shape it should, such as ``notes.privacy.views: None``; nothing if all has.

    Of a mapping only the names of its shape are looked at.
    """
    if isinstance(shape, Either):
        found = [misfit(value, one, name) for one in shape.shapes]
        return "" if "" in found else max(found, key=_depth)
    if isinstance(shape, Each):
        if not isinstance(value, dict if shape.keyed else list):
            return _told(value, name)
        entries = list(value.items() if isinstance(value, dict) else enumerate(value))
        return next((bad for key, one in entries if (bad := misfit(one, shape.shape, f"{name}.{key}"))), "")
    if isinstance(shape, Mapping):
        if not isinstance(value, dict):
            return _told(value, name)
        parts = ((value.get(key), one, f"{name}.{key}") for key, one in shape.items())
        return next((bad for part in parts if (bad := misfit(*part))), "")
    return "" if _is(value, shape) else _told(value, name)


def _is(value: Any, kind: Any) -> bool:
    """Return whether a value is of a kind; a bool is no number, a whole number may stand for a float."""
    if isinstance(kind, Number):
        return value in ("inf", "-inf") or _is(value, float)
    allowed: Any = {None: NoneType, float: (int, float)}.get(kind, kind)
    return isinstance(value, allowed) and (kind is bool or not isinstance(value, bool))


def _depth(found: str) -> int:
    """Return how far a value fits: how deep that lies which does not."""
    return found.partition(":")[0].count(".")


def _told(value: Any, name: str) -> str:
    text = repr(value)
    return f"{name}: {text if len(text) <= 40 else text[:39] + '…'}"
