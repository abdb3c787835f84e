"""What an export tells of one message's fields: what is sealed, or cannot be read, is named and not shown."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.trace.diagram import labels
from p2p_sim.trace.slices import Event, Slice

_LARGEST = 2**53  # beyond it, programs that compute in floating point round
_LETTERS = 200  # of octets or several numbers: keys and shares are whole


def fields(part: Slice, event: Event) -> dict[str, str]:
    """Return the fields of a message as text, by name."""
    names = map(labels.clean, part.fields(event.kind))
    if event.fields is None or _shut(part, event.kind):
        sealed = part.sealed[event.kind]
        return dict.fromkeys(names, f"sealed for {labels.clean(sealed)}" if sealed else "not readable")
    columns = part.kinds[event.kind]
    values = (np.array(value, columns[name].dtype)[()] for name, value in event.fields.items())
    return dict(zip(names, (labels.value(value, _LETTERS) for value in values), strict=True))


def numbers(part: Slice) -> set[str]:
    """Return the names of fields that hold a whole number up to 2^53 in every message that has them.

    Bits are not among them: where a message lacks a bit, some programs read it as false.
    """
    found: dict[str, set[bool]] = {}
    for kind, columns in part.kinds.items():
        shut = _shut(part, kind) or not columns.get("readable", np.ones(1, np.bool_)).all()
        for name in part.fields(kind):
            found.setdefault(name, set()).add(not shut and _whole(columns[name]))
    return {name for name, whole in found.items() if whole == {True}}


def _whole(column: npt.NDArray[Any]) -> bool:
    if column.ndim > 1 or column.dtype.kind not in "iu":
        return False
    return not column.size or bool(column.min() >= -_LARGEST and column.max() <= _LARGEST)


def plain(part: Slice, event: Event, numbers: set[str]) -> dict[str, str | int]:
    """Return the fields of a message by name: those among ``numbers`` as they are, all others as text."""
    known = event.fields or {}
    return fields(part, event) | {
        labels.clean(name): int(value) for name, value in known.items() if name in numbers
    }


def _shut(part: Slice, kind: str) -> bool:
    """Whether nobody looks and the fields are sealed."""
    return part.sealed[kind] is not None and "readable" not in part.kinds[kind]
