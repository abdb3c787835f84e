"""How values are kept as JSON, and compared: counts, texts and hashes exactly, floats within a stated tolerance."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent

RELATIVE = 1e-12
"""Figures come from exp, log, beta functions and sums of numpy and scipy, whose last digits another machine may round
otherwise; a root adds some.  Shares of whole numbers come within it only if the whole numbers are the same."""

LEARNT = 1e-9
"""Models are fitted by an iterative solver over BLAS, which adds up in the order that suits the machine."""


def kept(table: str) -> dict[str, Any]:
    """Return what is frozen of a table: "runs", "figures" or "artefacts"."""
    path = FOLDER / f"{table}.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return found


def write(table: str, entries: Mapping[str, Any]) -> None:
    """Write a table, sorted by name, one entry a line: a change is a line of the diff."""
    lines = [
        f"{json.dumps(name)}: {json.dumps(entry, allow_nan=False)}" for name, entry in sorted(entries.items())
    ]
    (FOLDER / f"{table}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


def as_json(value: Any) -> Any:
    """Return a value as JSON keeps it: fractions and what is not finite as text, tuples and arrays as lists."""
    if isinstance(value, Mapping):
        return {str(name): as_json(part) for name, part in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return as_json(value.tolist())
    if isinstance(value, list | tuple):
        return [as_json(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return str(value) if isinstance(value, Fraction) else value


def differences(found: Any, frozen: Any, where: str = "", relative: float = RELATIVE) -> list[str]:
    """Return where two JSON values differ, in words; an integer is no float, whatever its value."""
    if isinstance(found, dict) and isinstance(frozen, dict):
        lines = [f"{where}: {name} is gone" for name in frozen if name not in found]
        lines += [f"{where}: {name} is new" for name in found if name not in frozen]
        for name in [name for name in frozen if name in found]:
            lines += differences(found[name], frozen[name], f"{where}/{name}", relative)
        return lines
    if isinstance(found, list) and isinstance(frozen, list) and len(found) == len(frozen):
        pairs = zip(found, frozen, strict=True)
        return [
            line
            for i, (one, other) in enumerate(pairs)
            for line in differences(one, other, f"{where}[{i}]", relative)
        ]
    if isinstance(found, float) and isinstance(frozen, float):
        same = math.isclose(found, frozen, rel_tol=relative, abs_tol=0.0)
    else:
        same = type(found) is type(frozen) and found == frozen
    return [] if same else [f"{where}: {found!r}, frozen is {frozen!r}"]
