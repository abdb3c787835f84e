"""Address columns of messages: those that follow from a message's row number, which are not stored, and their order."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.kernels_numpy import as_array

Array = npt.NDArray[Any]

Address = range | Array | int
"""Ids or sequence numbers of a batch: consecutive (range), any (array) or all equal (int)."""

ADDRESSES = ("sender", "recipient", "seq")
STORED = "stored"


class StoredArrays:
    """Where arrays were stored, to recognise them when they come again: the sender of an answer was the one asked."""

    def __init__(self) -> None:
        self._places: dict[int, tuple[weakref.ref[Array], str, str, int]] = {}

    def remember(self, column: Array, file: str, name: str, row: int) -> None:
        """Record that a read-only column is stored in a file from a row on."""
        if not column.flags.writeable:
            key = id(column)
            reference = weakref.ref(column, lambda _: self._places.pop(key, None))
            self._places[key] = (reference, file, name, row)

    def find(self, column: Array) -> tuple[str, str, int] | None:
        """Return (file, column, first row) where this array object is stored; None if nowhere."""
        place = self._places.get(id(column))
        return place[1:] if place is not None and place[0]() is column else None


def narrowest_rule(column: Address, row: int, known: StoredArrays) -> Any:
    """Return the shortest rule that gives a batch's column; ``row``: where in its file the batch begins.

    ``{"all": n}``: every row has n; ``{"from": n}``: row i has n + i; ``{"as": [file, column]}``: a copy of a stored
    column; ``"stored"``: the column is in the file itself.
    """
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


def as_column(column: Address, size: int) -> Array:
    """Return a column as an array."""
    return np.full(size, column, np.int32) if isinstance(column, int) else as_array(column)


def narrowed(column: Array) -> Address:
    """Return a column whose values are all equal as an int, of consecutive values as a range, and others unchanged."""
    first = int(column[0])
    if bool((column == first).all()):
        return first
    counting = range(first, first + len(column))
    return (
        counting if int(column[-1]) == counting[-1] and np.array_equal(column, as_array(counting)) else column
    )


class Order:
    """Whether the rows of a file are strictly in the order (recipient, sender, seq)."""

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
    """Return whether rows are strictly ascending in lexicographic order."""
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
