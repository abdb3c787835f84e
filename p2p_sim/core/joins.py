"""Inboxes put together."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.columns import Inbox, Layout, Rows
from p2p_sim.core.errors import ProtocolError

Array = npt.NDArray[Any]


def beside(one: Inbox, other: Inbox) -> Inbox:
    """Return the messages of two issues of one kind: of each holder first those of ``one``.  It cannot be replied to.

    Raises ProtocolError for inboxes of other kinds or of other parties.
    """
    if one.message is not other.message or one.layout.parties != other.layout.parties:
        raise ProtocolError(
            f"beside: {one.kind!r} of {one.layout.parties} parties and {other.kind!r} of {other.layout.parties} meet"
        )
    both = Inbox(one.message, lambda: _rows(one.rows, other.rows), one._reader)
    both.distinct = False  # the same id may come in both rounds
    return both


def _rows(one: Rows, other: Rows) -> Rows:
    first, second = one.layout, other.layout
    starts = first.starts + second.starts
    places = np.concatenate(
        [
            starts[:-1][first.holder] + first.rank,
            (starts[:-1] + first.count)[second.holder] + second.rank,
        ]
    )
    order = np.argsort(places)

    def put(a: Array, b: Array) -> Array:
        return np.asarray(np.concatenate([a, b])[order])

    shared = [name for name in one.fields if name in other.fields]
    fields = {name: put(one.fields[name], other.fields[name]) for name in shared}
    origin = one.origin if one.origin == other.origin else None
    return Rows(Layout(starts), lambda: put(one.sender, other.sender), None, fields, origin)
