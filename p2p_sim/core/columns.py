"""The two column spaces: one value a party (a plain array), one value a message (``PerMessage``), read or sealed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.mixins import NDArrayOperatorsMixin

from p2p_sim.core.errors import ProtocolError
from p2p_sim.core.fixed_point import FixedPoint
from p2p_sim.core.kernels_numpy import as_array
from p2p_sim.core.lazy_attribute import lazy
from p2p_sim.core.message import SEALED, USER, Message, field_dtype, field_shape, fixed_point

Array = npt.NDArray[Any]


class Layout:
    """Which party of a block holds which messages: party p holds ``starts[p] .. starts[p + 1] - 1``.

    ``server``: whether they are a server's, whose plain arrays then have one entry a message.  ``given``: whether they
    stand for no inbox, except for whatever the program pairs them with (``me.each``).
    """

    server = given = False

    def __init__(self, starts: Array | None, parties: int = 0, times: int = 1):
        self._times = times
        if starts is None:  # every party holds as many: nothing need be stored
            self.parties, self.size = parties, parties * times
            self.dense, self.one_at_most = self.size == parties, times <= 1
        else:
            self.starts = starts
            self.parties, self.size = len(starts) - 1, int(starts[-1])

    @classmethod
    def one_each(cls, parties: int) -> Layout:
        """Every party holds exactly one."""
        return cls(None, parties)

    @classmethod
    def one_at_most_each(cls, holders: Array, parties: int) -> Layout:
        """The parties at some places, ascending, hold one, the others none."""
        layout = cls.one_each(parties)
        layout.size, layout.dense = len(holders), len(holders) == parties
        layout.holder, layout.one_at_most = holders, True
        return layout

    @lazy
    def starts(self) -> Array:
        """The first message of each party, and the end."""
        if self.size == self.parties * self._times:
            return np.arange(self.parties + 1) * self._times
        starts = np.zeros(self.parties + 1, np.int64)
        starts[self.holder + 1] = 1
        return np.cumsum(starts, out=starts)

    @lazy
    def count(self) -> Array:
        """Messages held, for each party."""
        return np.asarray(np.diff(self.starts))

    @lazy
    def dense(self) -> bool:
        """Whether every party holds exactly one, so that a message column is a party column."""
        return self.size == self.parties and bool((self.count == 1).all())

    @lazy
    def one_at_most(self) -> bool:
        """Whether no party holds more than one."""
        return int(self.count.max(initial=0)) <= 1

    @lazy
    def holder(self) -> Array:
        """The party, numbered within the block, that holds each message."""
        if self.one_at_most:  # a fraction of what repeating takes
            return np.flatnonzero(self.count.astype(np.bool_))
        return np.repeat(np.arange(self.parties), self.count)

    @lazy
    def rank(self) -> Array:
        """The position of each message among those of its holder."""
        if self.one_at_most:
            return np.zeros(self.size, np.int64)
        places = np.arange(self.size)
        return places if self.parties == 1 else places - self.starts[self.holder]

    def spread(self, column: Array) -> Array:
        """Give each message its holder's value."""
        spread: Array = column if self.dense else column[self.holder]
        return spread

    def filter(self, mask: Array) -> Layout:
        """Return the layout of the messages that a mask keeps."""
        counts = np.zeros(self.size + 1, np.int64)
        np.cumsum(mask, out=counts[1:])
        kept = Layout(counts[self.starts])
        kept.server = self.server
        return kept

    def same(self, other: Layout) -> bool:
        """Whether columns of the two can be combined element by element."""
        if self is other or (self.dense and other.dense and self.parties == other.parties):
            return True
        return self.server and other.server and (self.given or other.given) and self.size == other.size


@dataclass(frozen=True)
class Trail:
    """Which messages of an inbox a column holds: ``picks``, masks and places, were applied one after the other.

    ``inbox``: an object of its own for each inbox.
    """

    inbox: Any
    picks: tuple[Array, ...] = ()

    def pick(self, which: Array) -> Trail:
        """Return the trail of the messages at some places, or under a mask."""
        return replace(self, picks=(*self.picks, which))

    @property
    def places(self) -> Array | None:
        """The places in the inbox, None for all in their order."""
        places = (np.flatnonzero(which) if which.dtype == np.bool_ else which for which in self.picks)
        return reduce(lambda held, which: held[which], places) if self.picks else None

    def same(self, other: Trail) -> bool:
        """Whether two columns hold the same messages in the same order."""
        if self.inbox is not other.inbox:
            return False
        if len(self.picks) == len(other.picks) and all(map(_is, self.picks, other.picks)):
            return True
        mine, others = self.places, other.places
        if mine is None or others is None:
            some = others if mine is None else mine
            return some is None or np.array_equal(some, np.arange(len(some)))
        return np.array_equal(mine, others)

    @property
    def distinct(self) -> bool:
        """Whether no message is held twice."""
        if all(which.dtype == np.bool_ for which in self.picks):
            return True
        places = self.places
        return places is None or not len(places) or int(np.bincount(places).max()) == 1


@dataclass(frozen=True)
class Envelope:
    """In what a column travels that its holder cannot read.

    ``origin``: role and round in which all of it was sealed, None if in several.  ``message``, ``field``: as what it
    came; ``trail``: which of an inbox it is.  ``octets`` (messages, bytes): the ciphertexts; where cryptography is
    modelled, (messages,) the users who can open them, None where that is not one user or the one addressed.
    """

    origin: tuple[str, int] | None
    message: Message
    field: str
    trail: Trail
    octets: Array | None = None

    def pick(self, which: Array) -> Envelope:
        """Return the envelopes at some places."""
        octets = None if self.octets is None else self.octets[which]
        return replace(self, trail=self.trail.pick(which), octets=octets)

    @property
    def layers(self) -> tuple[str, ...]:
        """The layers that are left: the engine takes off the one of who received it."""
        message = self.message
        return message.layers[1:] if message.opener == message.recipient else message.layers


def mismatch(found: Sequence[Envelope], message: Message, sizes: dict[str, int]) -> str | None:
    """Say why the columns, in the order of the fields of ``message``, cannot be handed on as it; None if they can.

    Handing on is passing on bytes: all the fields that were sealed together, in their order and types, once each, under
    the layers that are left.
    """
    first = found[0]
    original = first.message
    if [one.field for one in found] != list(original.fields) or _types(original, sizes) != _types(
        message, sizes
    ):
        return (
            f"hands on {', '.join(one.field for one in found)} of {original.kind!r}: what was sealed together is "
            f"handed on together, all fields in their order and of their types: {', '.join(original.fields)}"
        )
    if first.layers != message.layers:
        left, declared = (" and ".join(layers) or "none" for layers in (first.layers, message.layers))
        return f"the layers of {original.kind!r} that are left are {left}; declared are {declared}"
    if not all(one.message is original and first.trail.same(one.trail) for one in found[1:]):
        return "joins fields of different messages: what was sealed together is handed on together"
    return None if first.trail.distinct else "hands on a message twice: the copy would be refused as one"


def _types(message: Message, sizes: dict[str, int]) -> list[Any]:
    return [
        (field_dtype(kind), field_shape(kind, sizes), fixed_point(kind)) for kind in message.fields.values()
    ]


def _is(one: Any, other: Any) -> bool:
    return one is other


class PerMessage(NDArrayOperatorsMixin):
    """One value for each message that the parties of a block hold, grouped by holder.

    ``fixed``: what the ``data`` it is made of are multiples of; None if they are the values themselves.
    """

    def __init__(
        self,
        data: Array,
        layout: Layout,
        sealed_for: str | None = None,
        envelope: Envelope | None = None,
        fixed: FixedPoint | None = None,
    ):
        self._data, self.layout, self.sealed_for, self.envelope = data, layout, sealed_for, envelope
        self.fixed = fixed

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
        return self._data if self.fixed is None else self._decoded

    @lazy
    def _decoded(self) -> Array:
        assert self.fixed is not None
        numbers = self.fixed.decoded(self._data)
        numbers.flags.writeable = False  # what was delivered must not change
        return numbers

    @property
    def multiples(self) -> PerMessage:
        """The values as they travel: of fixed-point numbers the integers, with whatever seal they have."""
        return PerMessage(self._data, self.layout, self.sealed_for, self.envelope)

    @property
    def count(self) -> Array:
        """Messages held, for each party."""
        return self.layout.count

    @property
    def rank(self) -> PerMessage:
        """The position of each message among those of its holder, from 0."""
        return PerMessage(self.layout.rank, self.layout)

    def sum(self) -> Array:
        """Sum over each party's messages: int64, or uint64 modulo 2^64 for uint64 columns.

        Fixed-point numbers are summed as integers, so that no order matters, and the sum is read as one number is.
        """
        if self.fixed is not None:
            self.fixed.check_sum(int(self.count.max(initial=0)))
            return self.fixed.decoded(self.multiples.sum())
        if self.data.dtype.kind not in "bui":
            raise ProtocolError(
                f"sum of a column of type {self.data.dtype}: only bool and integers, and fields declared as FixedPoint"
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

    def look_up(self, table: Any) -> PerMessage:
        """Return the entry of a plain array at each message's place, 0 to its length - 1; rows of one of more axes.

        Raises ProtocolError for places outside, for what are no places, and for a table that is a message column.
        """
        if isinstance(table, PerMessage):
            raise ProtocolError(
                "look_up: the table is a plain array; column.take(order) reorders a message column"
            )
        array, places = np.asarray(table), self.data
        if places.dtype.kind not in "uib" or array.ndim == 0:
            raise ProtocolError(
                f"look_up: places are integers, of type {places.dtype} here, and a table has at least one axis, "
                f"{array.ndim} here"
            )
        if places.size and not 0 <= int(places.min()) <= int(places.max()) < len(array):
            raise ProtocolError(
                f"look_up: the column holds {int(places.min())} to {int(places.max())}; the table has "
                f"{len(array)} entries, from 0"
            )
        return PerMessage(np.take(array, places, axis=0), self.layout)

    def _moved(self, data: Array, layout: Layout, which: Array) -> PerMessage:
        envelope = None if self.envelope is None else self.envelope.pick(which)
        return PerMessage(data, layout, self.sealed_for, envelope, self.fixed)

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
                f"numpy.{function.__name__} is not defined for message columns: use operators, np.where or "
                "column.look_up(table)"
            )
        layout = next(x.layout for x in args if isinstance(x, PerMessage))
        return PerMessage(np.where(*(aligned(x, layout) for x in args)), layout)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if self.layout.server:  # all messages are its own, so that a plain array has one entry a message
            return np.array(self.data, dtype, copy=copy)
        raise ProtocolError(
            "a message column is not a party column: .sum(), .first(default) or .count lead back; "
            "column.look_up(table) is the entry of a table for each message"
        )


def aligned(value: Any, layout: Layout) -> Any:
    """Return a value as one entry a message: message columns as they are, party columns spread, scalars kept.

    A server's plain array of as many entries as there are messages is one entry a message, too.
    """
    if isinstance(value, PerMessage):
        if not value.layout.same(layout):
            raise ProtocolError(
                f"columns of different inboxes meet ({value.layout.size} and {layout.size} messages): "
                "bring one to parties with .first(default), or filter the inbox instead of its columns"
            )
        return value.data
    array = np.asarray(value)
    if array.ndim == 0 or (layout.server and len(array) == layout.size):
        return value if array.ndim == 0 else array
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

    @lazy
    def rows(self) -> Rows:
        """The sorted rows."""
        self.looked = True
        rows = self._load()
        rows.layout.server = self._reader != USER
        return rows

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
        fixed = fixed_point(self.message.fields[name])
        return PerMessage(rows.fields[name], rows.layout, sealed, envelope, fixed)

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
    which rows of an inbox these are, None for all.  ``one_a_sender``: whether no sender has several, as far as that is
    known without a look.
    """

    def __init__(
        self,
        layout: Layout,
        sender: Array | Callable[[], Array],
        seq: range | Array | None,
        fields: dict[str, Array],
        origin: tuple[str, int] | None = None,
        trail: Trail | None = None,
        *,
        one_a_sender: bool = False,
    ):
        self.one_a_sender = one_a_sender
        self.trail = Trail(object()) if trail is None else trail
        self.layout, self._sender, self.seq, self.fields = layout, sender, seq, fields
        self.origin = origin
        for column in fields.values():
            column.flags.writeable = False  # what was delivered must not change

    @lazy
    def sender(self) -> Array:
        """Who sent each message."""
        return self._sender() if callable(self._sender) else self._sender

    def pick(self, which: Array, layout: Layout) -> Rows:
        """Return the chosen rows (a mask or positions) under another layout."""
        seq = None if self.seq is None else as_array(self.seq)[which]
        fields = {name: column[which] for name, column in self.fields.items()}
        trail = self.trail.pick(which)
        return Rows(layout, lambda: self.sender[which], seq, fields, self.origin, trail)


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
