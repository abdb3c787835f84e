"""Tables held to our own earlier values: those of full runs in ``expected/``, of quick ones in ``expected/quick/``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from p2p_sim.core.errors import InputError

FOLDER = Path(__file__).parent / "expected"
ERRORS = 4.0
"""How many joint standard errors a value may have moved.  On one machine equal seeds and equal code give equal values;
the tolerance is for what is drawn otherwise on purpose."""

SIZES = ("n", "users", "test_n", "d", "clusters")
"""Columns of how much a row is of: a row of less is another one, and not held to it."""


@dataclass(frozen=True)
class Held:
    """What of a table is held to earlier values.

    ``keys``: columns that identify a row.  ``values``: a column to the column of its standard error, or to an absolute
    tolerance.
    """

    keys: tuple[str, ...]
    values: Mapping[str, str | float]


def file(table: str, *, quick: bool) -> Path:
    """Return where the earlier values of a table are."""
    return (FOLDER / "quick" if quick else FOLDER) / f"{table}.csv"


def drifted(
    found: Sequence[Mapping[str, Any]],
    expected: Sequence[Mapping[str, str]],
    held: Held,
    *,
    whole: bool,
) -> list[str]:
    """Say which values left their tolerance: what was found, what was expected, and by how much it may differ.

    Rows are held to those with the same keys and of the same sizes.  ``whole``: every expected row must have been
    found.  Raises InputError if keys are ambiguous.
    """
    keys = held.keys
    here = {_key(row, keys): row for row in found}
    if len(here) != len(found):
        raise InputError(f"the keys {', '.join(keys)} do not tell rows apart: name more columns")
    told = [name for name in SIZES if found and expected and name in found[0] and name in expected[0]]
    said = []
    for row in expected:
        key = _key(row, keys)
        if key in here and _key(here[key], told) == _key(row, told):
            said += [_moved(key, name, here[key], row, by) for name, by in held.values.items()]
        elif whole:
            said.append(f"{', '.join(key)}: expected, and not found")
    return [each for each in said if each]


def _moved(
    key: tuple[str, ...], name: str, found: Mapping[str, Any], expected: Mapping[str, str], by: str | float
) -> str:
    here, there = _number(found[name]), _number(expected[name])
    if isinstance(by, str):
        errors = (_number(found[by]), _number(expected[by]))
        allowed = ERRORS * math.hypot(*(0.0 if math.isnan(error) else error for error in errors))
    else:
        allowed = by
    if here == there or (math.isnan(here) and math.isnan(there)) or abs(here - there) <= allowed:
        return ""
    return f"{', '.join(key)}: {name} is {here:g}, expected {there:g}, within {allowed:.2g}"


def _key(row: Mapping[str, Any], keys: Sequence[str]) -> tuple[str, ...]:
    return tuple(str(row[name]) for name in keys)


def _number(value: Any) -> float:
    """Return a value of a table; a cell that is empty, or holds words such as "refused", is NaN."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan
