"""The compact form: address columns that follow from a message's position are not stored.

A column of a file is one of: ``"stored"``; ``{"all": 0}``, the same number in every row; ``{"from": 5}``, counting up
from it; ``{"as": [FILE, COLUMN]}``, row for row equal to a column of another file.  What holds is seen from the
messages themselves, as they come; what fits nothing is stored.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.plain import as_array

Array = npt.NDArray[Any]
Address = range | Array | int
"""Ids or sequence numbers of a batch: counting up, any, or all the same."""

ADDRESSES = ("sender", "recipient", "seq")
STORED = "stored"


class Known:
    """Which arrays have been stored where, to recognise them when they come again: an answer's sender was asked."""

    def __init__(self) -> None:
        self._places: dict[int, tuple[weakref.ref[Array], str, str, int]] = {}

    def remember(self, column: Array, file: str, name: str, row: int) -> None:
        """Note that a read-only column is stored from some row of a file on."""
        if not column.flags.writeable:
            key = id(column)
            reference = weakref.ref(column, lambda _: self._places.pop(key, None))
            self._places[key] = (reference, file, name, row)

    def find(self, column: Array) -> tuple[str, str, int] | None:
        """Return (file, column, first row) where this very array is stored; None if nowhere."""
        place = self._places.get(id(column))
        return place[1:] if place is not None and place[0]() is column else None


def rule_of(column: Address, row: int, known: Known) -> Any:
    """Return the narrowest rule that gives a batch's column, whose first row is the ``row``-th of its file."""
    if isinstance(column, int):
        return {"all": column}
    if isinstance(column, range):
        return {"from": column.start - row}
    place = known.find(column)
    return STORED if place is None or place[2] != row else {"as": [place[0], place[1]]}


def by_rule(rule: Any, low: int, high: int) -> Array:
    """Return rows ``low .. high - 1`` of a column whose rule needs no file, as int64."""
    if "all" in rule:
        return np.full(high - low, rule["all"], np.int64)
    return np.arange(rule["from"] + low, rule["from"] + high, dtype=np.int64)


def spelled(column: Address, size: int) -> Array:
    """Return a column as an array."""
    return np.full(size, column, np.int32) if isinstance(column, int) else as_array(column)


def narrowed(column: Array) -> Address:
    """Return a column that is all one number, or counts up, as such."""
    first = int(column[0])
    if bool((column == first).all()):
        return first
    counting = range(first, first + len(column))
    return (
        counting if int(column[-1]) == counting[-1] and np.array_equal(column, as_array(counting)) else column
    )


class Order:
    """Whether the rows of a file are in the order (recipient, sender, seq), each once."""

    def __init__(self) -> None:
        self.holds = True
        self.first: tuple[int, ...] | None = None
        self.last: tuple[int, ...] | None = None

    def follow(self, sender: Address, recipient: Address, seq: Address, size: int) -> None:
        """Look at the next rows."""
        if not self.holds or not size:
            return
        columns = (recipient, sender, seq)
        ends = [tuple(_at(column, place) for column in columns) for place in (0, size - 1)]
        follows = self.last is None or self.last < ends[0]
        self.holds = follows and _ascends(columns, size)
        self.first, self.last = self.first or ends[0], ends[1]


def _at(column: Address, place: int) -> int:
    return column if isinstance(column, int) else int(column[place])


def _ascends(columns: tuple[Address, ...], size: int) -> bool:
    """Whether rows rise, column before column."""
    tied = np.ones(max(size - 1, 0), np.bool_)
    for column in columns:
        if isinstance(column, range):
            return True  # rises everywhere
        if isinstance(column, int):
            continue
        if bool((column[1:] < column[:-1])[tied].any()):
            return False
        tied &= column[1:] == column[:-1]
        if not tied.any():
            return True
    return not tied.any()
