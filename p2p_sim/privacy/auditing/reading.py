"""Messages of users who hand noisy bits on, counted by world: what a coalition holds of the victim's.

Kinds go by the names ``ask`` and ``label``, among users, and ``report``, to the learner.
"""

from __future__ import annotations

import numpy as np

from p2p_sim.privacy.auditing.base import Array
from p2p_sim.privacy.auditing.worlds import Columns, Seen

UNSEEN = -1
"""Stands for a bit that was not seen."""

BOTH = 2
"""Stands for a bit of which 0 and 1 were seen: who flips once does not tell two stories."""

_MANY = 50  # reports a world from which sums over stretches are faster than a table


def readable(columns: Columns, field: str, wanted: Array) -> Array:
    """Return the indices of the messages, among those where the mask ``wanted`` is true, whose field can be read."""
    if field not in columns.fields:
        return np.empty(0, np.intp)
    return np.flatnonzero(wanted if columns.readable is None else wanted & columns.readable)


def bit_of_victim(seen: Seen, *, through_reports: bool) -> Array:
    """Return the victim's noisy bit as somebody was told it, ``UNSEEN``, or ``BOTH``; int8, (worlds,).

    ``through_reports``: whether it is known who asks whom, so that a report gives away the bit of who was asked.
    """
    told = np.zeros((2, seen.worlds), np.bool_)
    if through_reports and (reports := seen.kinds.get("report")) is not None:
        rows = readable(reports, "y", _asked_victim(seen)[reports.sender])
        if len(rows):
            told[reports.fields["y"][rows].astype(np.intp), reports.sender[rows] // seen.size] = True
    if (labels := seen.kinds.get("label")) is not None:
        rows = readable(labels, "y_hat", labels.sender % seen.size == 0)
        if len(rows):
            told[labels.fields["y_hat"][rows].astype(np.intp), labels.sender[rows] // seen.size] = True
    return np.asarray(np.array([UNSEEN, 0, 1, BOTH], np.int8)[told[0] + 2 * told[1]])


def _asked_victim(seen: Seen) -> Array:
    """Return a mask of all users: who asked the victim.  Her ask to herself does not travel, and so is missed."""
    asked = np.zeros(seen.worlds * seen.size, np.bool_)
    asked[:: seen.size] = True
    if (asks := seen.kinds.get("ask")) is not None:
        asked[asks.sender[asks.sender % seen.size == 0]] = False
        asked[asks.sender[asks.recipient % seen.size == 0]] = True
    return asked


def open_reports(seen: Seen) -> tuple[Array, Array, Array]:
    """Return, a world, how many reports of honest users came that carry no colluder's bit, and the ones among them.

    And of them the victim's own: 0 if there is none, otherwise 1 more than its bit.
    """
    reports = seen.kinds.get("report")
    if reports is None:
        nothing = np.zeros(seen.worlds, np.int64)
        return nothing, nothing, nothing
    sender, y = reports.sender, reports.fields["y"]
    if seen.colluders:
        kept = ~_tied(seen)[sender]
        sender, y = sender[kept], y[kept]
    return *counted(sender, y, seen.size, seen.worlds), _victims(sender, y, seen.size, seen.worlds)


def _victims(sender: Array, y: Array, size: int, worlds: int) -> Array:
    """Return the bit that the first user of each world sent, plus 1; 0 if she sent none."""
    own = np.zeros(worlds, np.int64)
    if len(sender) and bool((sender[1:] > sender[:-1]).all()):
        rows = np.searchsorted(sender, np.arange(worlds, dtype=sender.dtype) * size)
        rows = rows[(rows < len(sender)) & (sender[np.minimum(rows, len(sender) - 1)] % size == 0)]
    else:
        rows = np.flatnonzero(sender % size == 0)
    own[sender[rows] // size] = 1 + y[rows].astype(np.int64)
    return own


def _tied(seen: Seen) -> Array:
    """Return a mask of all users: colluders, and who asked one of them."""
    tied = np.zeros((seen.worlds, seen.size), np.bool_)
    tied[:, 1 : 1 + seen.colluders] = True
    flat = tied.reshape(-1)
    if (asks := seen.kinds.get("ask")) is not None:
        flat[asks.sender[of_colluders(seen, asks.recipient)]] = True
    return flat


def of_colluders(seen: Seen, users: Array) -> Array:
    """Return a mask: which of some users are colluders."""
    place = users % seen.size
    return np.asarray((place >= 1) & (place <= seen.colluders))


def counted(sender: Array, y: Array, size: int, worlds: int) -> tuple[Array, Array]:
    """Return (reports, ones among them) of each world; this is the hot path of an audit.

    ``sender``: user ids, in any order; ``y``: bits.
    """
    bits = y.view(np.uint8) if y.dtype == np.bool_ and y.flags.c_contiguous else y.astype(np.uint8)
    if len(sender) == 0:
        return np.zeros(worlds, np.int64), np.zeros(worlds, np.int64)
    many = len(sender) >= _MANY * worlds
    if many and bool((sender[1:] > sender[:-1]).all()):  # in order, each at most once, as programs leave them
        if len(sender) == worlds * size:
            return np.full(worlds, size), _row_sums(bits.reshape(worlds, size))
        edges = np.searchsorted(sender, np.arange(worlds + 1, dtype=sender.dtype) * size)
        return np.diff(edges), _part_sums(bits, edges)
    code = sender // size * 2
    code += bits
    table = np.bincount(code, minlength=2 * worlds).reshape(worlds, 2)
    return table.sum(1), table[:, 1]


def _row_sums(bits: Array) -> Array:
    # A sum of bytes stays in bytes, many at a time, if no more than 255 are added up.
    short = [bits[:, i : i + 255].sum(1, dtype=np.uint8) for i in range(0, bits.shape[1], 255)]
    return np.asarray(np.sum(short, axis=0, dtype=np.int64))


def _part_sums(bits: Array, edges: Array) -> Array:
    filled = np.diff(edges) > 0
    sums = np.zeros(len(filled), np.int64)
    if filled.any():
        sums[filled] = np.add.reduceat(bits, edges[:-1][filled], dtype=np.int64)
    return sums
