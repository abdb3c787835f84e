"""Messages on their way: batches as blocks send them, parcels between sites, mailboxes where they arrive.

Inside the engine users are numbered by row; ids appear only to programs, digests and traces.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.columns import Layout, Rows
from p2p_sim.core.kernels_numpy import Each, as_array
from p2p_sim.core.lazy_attribute import lazy
from p2p_sim.core.message import SEALED
from p2p_sim.core.run_digest import Lanes

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Examined:
    """Counts and hash of a batch of delivered messages.

    ``to_self``: how many have the same sender and recipient.  ``addresses``: ids of senders and recipients, and
    sequence numbers, if the messages are kept or hashed; empty otherwise.  ``lanes``: the lanes of their hash.
    """

    to_self: int
    addresses: dict[str, range | Array | int] = field(default_factory=dict)
    lanes: Lanes = (0, 0)


@dataclass
class Batch:
    """What one block sends in one action, in the order (sender, sequence number).

    ``sender``: rows.  ``to``: rows, None for a server.  ``seq``: sequence numbers, None where all are 0.
    ``full``: every party of the block sends exactly one.  ``block``: number of the block within its site.
    ``strays``: users send to ids that they neither drew nor received a question from.  ``origin``: role and round in
    which the fields were sealed, if not by this sender.

    Two are set by the thread that makes a batch, if the batch stays on its site unchanged: ``examined``; and
    ``most_sent``, the largest number of its messages from one user, if messages are tallied.
    """

    sender: range | Array
    to: range | Array | None
    seq: range | Array | None
    fields: dict[str, Array]
    full: bool
    block: int
    strays: bool = False
    origin: tuple[str, int] | None = None
    examined: Examined | None = None
    most_sent: int | None = None

    def __len__(self) -> int:
        return len(self.sender)

    def pick(self, which: Array) -> Batch:
        """Return the rows at some places."""
        rows = self.sender
        sender = (
            (which + np.int32(rows.start)).astype(np.int32, copy=False)
            if isinstance(rows, range)
            else rows[which]
        )
        to = None if self.to is None else as_array(self.to)[which]
        seq = None if self.seq is None else as_array(self.seq)[which]
        fields = {k: v[which] for k, v in self.fields.items()}
        return Batch(sender, to, seq, fields, False, self.block, origin=self.origin)

    @property
    def plain(self) -> dict[str, Array]:
        """The fields, without the column of the bytes in which they travel sealed."""
        return {name: column for name, column in self.fields.items() if name != SEALED}


@dataclass
class Parcel:
    """Everything that one site sends of one issue to one site.

    ``answers``: these are replies to parties who each asked exactly once, in the order of the questions; then a
    batch's ``block`` is the block of those who asked.
    """

    kind: str
    round: int
    source: int
    batches: list[Batch]
    answers: bool = False


@dataclass
class Mailbox:
    """All parcels of one issue at the site that receives it, whose ``parties`` have the rows from ``first`` on."""

    kind: str
    round: int
    first: int
    parties: int
    parcels: list[Parcel] = field(default_factory=list)
    _sorted: Rows | None = None

    @property
    def origin(self) -> tuple[str, int] | None:
        """Role and round in which everything here was sealed; None if in several, or nothing was."""
        origins = {b.origin for parcel in self.parcels for b in parcel.batches if len(b)}
        return origins.pop() if len(origins) == 1 else None

    def batches(self) -> list[Batch]:
        """Return the batches in the order of their senders."""
        return [
            b for parcel in sorted(self.parcels, key=lambda p: p.source) for b in parcel.batches if len(b)
        ]

    def answers(self, block: int, parties: range, compute: ModuleType) -> Rows | None:
        """Return the messages to one block without sorting them; None unless they are replies, one to each party."""
        if not self.parcels or not all(parcel.answers for parcel in self.parcels):
            return None
        batches = self._by_block.get(block, [])
        if sum(map(len, batches)) != len(parties):
            return None
        if len(batches) == 1 and isinstance(batches[0].to, range):
            fields = batches[0].fields
            return Rows(Layout.one_each(len(parties)), lambda: as_array(batches[0].sender), None, fields)

        def put(columns: list[Array]) -> Array:
            out = np.empty((len(parties), *columns[0].shape[1:]), columns[0].dtype)
            for batch, column in zip(batches, columns, strict=True):
                assert batch.to is not None
                compute.scatter(column, as_array(batch.to), parties.start, out)
            return out

        fields = {name: put([b.fields[name] for b in batches]) for name in batches[0].fields}
        return Rows(
            Layout.one_each(len(parties)), lambda: put([as_array(b.sender) for b in batches]), None, fields
        )

    @lazy
    def _by_block(self) -> dict[int, list[Batch]]:
        index: dict[int, list[Batch]] = {}
        for parcel in self.parcels:
            for batch in parcel.batches:
                index.setdefault(batch.block, []).append(batch)
        return index

    def sort(self, empty: dict[str, Array], compute: ModuleType, each: Each = map) -> None:
        """Sort the messages by recipient, unless that was done; not to be called by two threads at once.

        ``empty``: columns of no rows, for a mailbox without messages; ``each``: ``map``, or one with threads.
        """
        if self._sorted is None:
            self._sorted = self._sort(empty, compute, each)

    def rows(self, low: int, high: int) -> Rows:
        """Return the messages of the parties ``low .. high - 1`` (numbered within the site), which are sorted."""
        assert self._sorted is not None
        span, layout = _part(self._sorted.layout, low, high)
        seq = self._sorted.seq
        picked = {name: column[span] for name, column in self._sorted.fields.items()}
        whole = self._sorted
        return Rows(
            layout,
            lambda: whole.sender[span],
            None if seq is None else seq[span],
            picked,
            one_a_sender=whole.one_a_sender,
        )

    def _sort(self, empty: dict[str, Array], compute: ModuleType, each: Each) -> Rows:
        batches = self.batches()
        if not batches:
            return Rows(Layout(np.zeros(self.parties + 1, np.int64)), np.zeros(0, np.int64), None, empty)

        def sender() -> Array:
            return _end_to_end([b.sender for b in batches], np.dtype(np.int64), each)

        fields = {name: _joined([b.fields[name] for b in batches], each) for name in batches[0].fields}
        seq = batches[0].seq
        if len(batches) > 1 and any(b.seq is not None for b in batches):
            seq = np.concatenate(
                [np.zeros(len(b), np.int32) if b.seq is None else as_array(b.seq) for b in batches]
            )
        if batches[0].to is None:
            # the senders of a range are distinct
            one_a_sender = all(isinstance(b.sender, range) for b in batches)
            layout = Layout(np.array([0, sum(map(len, batches))]))
            return Rows(layout, sender, seq, fields, one_a_sender=one_a_sender)
        to = np.concatenate([as_array(b.to) for b in batches if b.to is not None])
        to -= np.int32(self.first)
        if bool((to[1:] > to[:-1]).all()):
            return Rows(Layout.one_at_most_each(to, self.parties), sender, seq, fields)
        if bool(
            (to[1:] >= to[:-1]).all()
        ):  # as of replies to sorted messages, and of what a server sends to all
            starts = np.zeros(self.parties + 1, np.int64)
            np.cumsum(np.bincount(to, minlength=self.parties), out=starts[1:])
            return Rows(Layout(starts), sender, seq, fields)
        order, starts = compute.group(to, self.parties)
        return Rows(Layout(starts), sender, seq, fields).pick(order, Layout(starts))


def _end_to_end(parts: Sequence[range | Array], dtype: np.dtype[Any], each: Each) -> Array:
    """Return columns concatenated."""
    starts = [0, *itertools.accumulate(map(len, parts))]
    shape = () if isinstance(parts[0], range) else parts[0].shape[1:]
    whole = np.empty((starts[-1], *shape), dtype)

    def put(place: int) -> None:
        whole[starts[place] : starts[place + 1]] = as_array(parts[place])

    for _ in each(put, range(len(parts))):
        pass
    return whole


def _joined(parts: list[Array], each: Each = map) -> Array:
    """Return columns concatenated, without a copy if they follow each other in memory, as blocks of one column do."""
    first, root = parts[0], _root(parts[0])
    following = first.ctypes.data
    for part in parts:
        alike = part.dtype == first.dtype and part.shape[1:] == first.shape[1:] and not part.flags.writeable
        if (
            not alike
            or not part.flags.c_contiguous
            or _root(part) is not root
            or part.ctypes.data != following
        ):
            if any(part.dtype != first.dtype for part in parts):
                return np.concatenate(parts)
            return _end_to_end(parts, first.dtype, each)
        following += part.nbytes
    if len(parts) == 1:
        return first
    shape = (sum(map(len, parts)), *first.shape[1:])
    return np.lib.stride_tricks.as_strided(first, shape, first.strides, writeable=False)


def _root(column: Array) -> Any:
    """Return the array whose memory a column is part of."""
    while isinstance(column.base, np.ndarray):
        column = column.base
    return column


def _part(layout: Layout, low: int, high: int) -> tuple[slice, Layout]:
    """Return the slice of the messages to the parties ``low .. high - 1``, and its layout."""
    if "starts" not in vars(layout) and layout.one_at_most:
        bounds = np.array(
            (low, high), layout.holder.dtype
        )  # of another type, searchsorted would convert all holders
        first, end = np.searchsorted(layout.holder, bounds).tolist()
        mine = layout.holder[first:end].astype(np.int64) - low
        return slice(first, end), Layout.one_at_most_each(mine, high - low)
    starts = layout.starts
    return slice(int(starts[low]), int(starts[high])), Layout(starts[low : high + 1] - starts[low])
