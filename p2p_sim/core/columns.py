"""The two column spaces: one value a party (a plain array), one value a message (``PerMessage``).

Arithmetic that mixes them spreads party values over messages; ``sum``, ``first``, ``count`` return to parties.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.mixins import NDArrayOperatorsMixin

from p2p_sim.core.envelope import Envelope as Envelope
from p2p_sim.core.envelope import Trail
from p2p_sim.core.errors import ProtocolError
from p2p_sim.core.layouts import Layout as Layout
from p2p_sim.core.message import SEALED, Message

Array = npt.NDArray[Any]


class PerMessage(NDArrayOperatorsMixin):
    """One value for each message that the parties of a block hold, grouped by holder."""

    def __init__(
        self, data: Array, layout: Layout, sealed_for: str | None = None, envelope: Envelope | None = None
    ):
        self._data, self.layout, self.sealed_for, self.envelope = data, layout, sealed_for, envelope

    def __repr__(self) -> str:
        seal = f", sealed for {self.sealed_for}" if self.sealed_for else ""
        return f"<PerMessage of {self.layout.size} messages, {self.layout.parties} parties{seal}>"

    def __len__(self) -> int:
        return self.layout.size

    @property
    def data(self) -> Array:
        """The values, in canonical order; raises ProtocolError if they are sealed."""
        if self.sealed_for:
            raise ProtocolError(
                f"this column is sealed for {self.sealed_for!r}: only that role can compute with it"
            )
        return self._data

    @property
    def count(self) -> Array:
        """Messages held, for each party."""
        return self.layout.count

    @property
    def rank(self) -> PerMessage:
        """The position of each message among those of its holder, from 0."""
        return PerMessage(self.layout.rank, self.layout)

    def sum(self) -> Array:
        """Sum over each party's messages: int64, or uint64 modulo 2^64 for uint64 columns."""
        if self.data.dtype.kind not in "bui":
            raise ProtocolError(
                f"sum of a column of type {self.data.dtype}: only bool and integers; use fixed point"
            )
        data = self.data.astype(np.uint64 if self.data.dtype == np.uint64 else np.int64)
        running = np.zeros((len(data) + 1, *data.shape[1:]), data.dtype)
        np.cumsum(data, axis=0, out=running[1:])
        return running[self.layout.starts[1:]] - running[self.layout.starts[:-1]]

    def first(self, default: Any) -> Array:
        """Return each party's first value, or ``default`` (a value or a party column) where she holds none."""
        if self.layout.dense:
            return self.data
        held = self.layout.count > 0
        out = np.empty((self.layout.parties, *self.data.shape[1:]), self.data.dtype)
        out[:] = default
        if not bool((out == default).all()):
            raise ProtocolError(
                f"first: default {default!r} does not fit type {self.data.dtype}; convert the column first"
            )
        out[held] = self.data[self.layout.starts[:-1][held]]
        return out

    def where(self, mask: Any) -> PerMessage:
        """Keep the messages for which ``mask`` is true.  To filter several columns alike, filter their inbox."""
        keep = np.broadcast_to(aligned(mask, self.layout), (self.layout.size,)).astype(np.bool_)
        return self._moved(self._data[keep], self.layout.filter(keep), keep)

    def take(self, order: PerMessage) -> PerMessage:
        """Reorder within each holder: position i receives the message of rank ``order[i]``."""
        ranks, layout, alone = aligned(order, self.layout), self.layout, self.layout.parties == 1
        most = layout.size if alone else layout.count[layout.holder]
        if len(ranks) and (int(ranks.min()) < 0 or bool((ranks >= most).any())):
            raise ProtocolError("take: order must hold ranks, from 0 to each holder's count - 1")
        places = ranks if alone else ranks + layout.starts[:-1][layout.holder]
        taken = np.take(self._data, places, axis=0)
        taken.flags.writeable = False  # so that sending it needs no copy
        return self._moved(taken, self.layout, places)

    def _moved(self, data: Array, layout: Layout, which: Array) -> PerMessage:
        envelope = None if self.envelope is None else self.envelope.pick(which)
        return PerMessage(data, layout, self.sealed_for, envelope)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method != "__call__" or "out" in kwargs:
            name = f"{ufunc.__name__}.{method}"
            raise ProtocolError(f"{name} is not defined for message columns: use sum, first or where")
        layout = next(x.layout for x in inputs if isinstance(x, PerMessage))
        result = ufunc(*(aligned(x, layout) for x in inputs), **kwargs)
        if isinstance(result, tuple):
            return tuple(PerMessage(part, layout) for part in result)
        return PerMessage(result, layout)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function is not np.where or len(args) != 3:
            raise ProtocolError(
                f"numpy.{function.__name__} is not defined for message columns: use operators or np.where"
            )
        layout = next(x.layout for x in args if isinstance(x, PerMessage))
        return PerMessage(np.where(*(aligned(x, layout) for x in args)), layout)

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise ProtocolError(
            "a message column is not a party column: .sum(), .first(default) or .count lead back"
        )


def aligned(value: Any, layout: Layout) -> Any:
    """Return a value as one entry a message: message columns as they are, party columns spread, scalars kept."""
    if isinstance(value, PerMessage):
        if not value.layout.same(layout):
            raise ProtocolError(
                f"columns of different inboxes meet ({value.layout.size} and {layout.size} messages): "
                "bring one to parties with .first(default), or filter the inbox instead of its columns"
            )
        return value.data
    array = np.asarray(value)
    if array.ndim == 0:
        return value
    if len(array) != layout.parties:
        raise ProtocolError(
            f"a column of length {len(array)} is neither one a party ({layout.parties}) nor a message column"
        )
    return layout.spread(array)


class Inbox:
    """The messages of one issue that a block holds; sorted only when a program looks.

    Each field is an attribute.  Order: (holder, sender, sender's sequence number).
    """

    def __init__(self, message: Message, load: Callable[[], Rows], reader: str, ticket: Any = None):
        self.message, self.kind, self._load, self._reader = message, message.kind, load, reader
        self.distinct = True  # no message is in it twice
        self.ticket = ticket  # the engine's name for this issue, if it can be answered without a look
        self.looked = False

    @cached_property
    def rows(self) -> Rows:
        """The sorted rows."""
        self.looked = True
        return self._load()

    def __getattr__(self, name: str) -> PerMessage:
        if name.startswith("_"):
            raise AttributeError(name)
        rows = self.rows
        if name not in rows.fields:
            raise ProtocolError(
                f"message {self.kind!r} has no field {name!r}; it has {list(self.message.fields)}"
            )
        sealed = self._sealed_for
        envelope = None
        if sealed is not None:
            envelope = Envelope(rows.origin, self.message, name, rows.trail, rows.fields.get(SEALED))
        return PerMessage(rows.fields[name], rows.layout, sealed, envelope)

    @property
    def _sealed_for(self) -> str | None:
        seal = self.message.sealed_for
        return None if seal == self._reader else seal

    @property
    def layout(self) -> Layout:
        """Who holds what."""
        return self.rows.layout

    @property
    def sender(self) -> PerMessage:
        """The id of each message's sender."""
        return PerMessage(self.rows.sender, self.rows.layout)

    @property
    def count(self) -> Array:
        """Messages held, for each party."""
        return self.rows.layout.count

    @property
    def rank(self) -> PerMessage:
        """The position of each message among those of its holder, from 0."""
        return PerMessage(self.rows.layout.rank, self.rows.layout)

    def columns(self) -> dict[str, Array]:
        """Return sender and fields as plain arrays, one entry a message: what a server hands out as its output."""
        names = [name for name in self.rows.fields if name != SEALED]
        return {"sender": self.sender.data} | {name: getattr(self, name).data for name in names}

    def where(self, mask: Any) -> Inbox:
        """Return the inbox of those messages for which ``mask`` (a party or message column) is true."""
        keep = np.broadcast_to(aligned(mask, self.layout), (self.layout.size,)).astype(np.bool_)
        result = Inbox(self.message, lambda: self.rows.pick(keep, self.layout.filter(keep)), self._reader)
        result.distinct = self.distinct
        return result

    def find(self, *, sender: Any) -> Inbox:
        """Join by sender: for each given id, the first message its holder has from that sender; none, no row.

        ``sender``: a party column (one id a party) or a message column of any inbox of this block.
        """
        wanted = sender if isinstance(sender, PerMessage) else None
        layout = wanted.layout if wanted is not None else Layout.one_each(self.layout.parties)
        ids = wanted.data if wanted is not None else np.broadcast_to(sender, (layout.size,))
        span = int(max(self.rows.sender.max(initial=0), ids.max(initial=0))) + 1
        have = self.layout.holder * span + self.rows.sender
        want = layout.holder * span + ids
        order = np.argsort(have, kind="stable")
        place = np.searchsorted(have[order], want)
        found = (place < len(have)) & (ids >= 0)
        place[found] = order[place[found]]
        found[found] = have[place[found]] == want[found]
        picked = layout if found.all() else layout.filter(found)
        result = Inbox(self.message, lambda: self.rows.pick(place[found], picked), self._reader)
        result.distinct = len(np.unique(place[found])) == int(found.sum())
        return result


class Rows:
    """Messages in canonical order: layout, sender ids, sequence numbers (None: all 0), fields.

    ``sender`` may be given as a function: few programs look at it.  ``origin``: where they were sealed.  ``trail``:
    which rows of an inbox these are, None for all.
    """

    def __init__(
        self,
        layout: Layout,
        sender: Array | Callable[[], Array],
        seq: Array | None,
        fields: dict[str, Array],
        origin: tuple[str, int] | None = None,
        trail: Trail | None = None,
    ):
        self.trail = Trail(object()) if trail is None else trail
        self.layout, self._sender, self.seq, self.fields = layout, sender, seq, fields
        self.origin = origin
        for column in fields.values():
            column.flags.writeable = False  # what was delivered must not change

    @cached_property
    def sender(self) -> Array:
        """Who sent each message."""
        return self._sender() if callable(self._sender) else self._sender

    def pick(self, which: Array, layout: Layout) -> Rows:
        """Return the chosen rows (a mask or positions) under another layout."""
        seq = None if self.seq is None else self.seq[which]
        fields = {name: column[which] for name, column in self.fields.items()}
        trail = self.trail.pick(which)
        return Rows(layout, lambda: self.sender[which], seq, fields, self.origin, trail)
