"""Putting rows in the order (round, recipient, sender, seq), in bounded memory where only the first are asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.trace.parts import File

Array = npt.NDArray[Any]

_CHUNK = 1 << 20
_FEW = 1 << 22
_HALF = np.int64(1) << np.int64(31)


def order_of(recipient: Array, sender: Array, seq: Array, round: Array | None = None) -> Array:
    """Return the permutation that sorts rows by round (if given), recipient, sender, seq."""
    if not len(recipient):
        return np.zeros(0, np.int64)
    narrow = all(bool(column.min() >= 0 and column.max() < _HALF) for column in (recipient, sender))
    if round is None and narrow and not seq.any():  # then one sort of single words does
        return np.argsort((recipient.astype(np.int64) << np.int64(32)) | sender)
    return np.lexsort((seq, sender, recipient) if round is None else (seq, sender, recipient, round))


def first_places(files: list[File], low: int, high: int) -> Array:
    """Return where the rows ``low .. high - 1`` in that order lie, in files of one round laid end to end."""
    total = sum(file.rows for file in files)
    places = np.arange(total)
    if high <= _FEW < total:
        few = _up_to(files, _least(files, high))
        places = few if len(few) <= 2 * _FEW else places
    keys = [_at(files, name, places) for name in ("recipient", "sender", "seq")]
    return places[order_of(keys[0], keys[1], keys[2])[low:high]]


def _least(files: list[File], count: int) -> int:
    """Return the ``count``-th smallest recipient."""
    kept = np.zeros(0, np.int64)
    bound: int | None = None
    for file in files:
        for low in range(0, file.rows, _CHUNK):
            chunk = file.column("recipient", low, min(low + _CHUNK, file.rows))
            kept = np.concatenate([kept, chunk if bound is None else chunk[chunk <= bound]])
            if len(kept) > count:
                kept = np.partition(kept, count - 1)[:count]
                bound = int(kept.max())
    return int(kept.max())


def _up_to(files: list[File], bound: int) -> Array:
    """Return where recipients are at most ``bound``, in files laid end to end."""
    found, before = [np.zeros(0, np.int64)], 0
    for file in files:
        for low in range(0, file.rows, _CHUNK):
            chunk = file.column("recipient", low, min(low + _CHUNK, file.rows))
            found.append(np.flatnonzero(chunk <= bound) + (before + low))
        before += file.rows
    return np.concatenate(found)


def _at(files: list[File], name: str, places: Array) -> Array:
    """Return an address column at some places (ascending), in files laid end to end."""
    found, before = [], 0
    for file in files:
        for low in range(0, file.rows, _CHUNK):
            high = min(low + _CHUNK, file.rows)
            cut = slice(*np.searchsorted(places, [before + low, before + high]).tolist())
            if cut.start < cut.stop:
                found.append(file.column(name, low, high)[places[cut] - (before + low)])
        before += file.rows
    return np.concatenate(found)
