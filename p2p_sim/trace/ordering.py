"""Putting rows in the order (round, recipient, sender, seq), in bounded memory where only the first are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.trace.parts import File

Array = npt.NDArray[Any]

_CHUNK = 1 << 20
_FEW = 1 << 18
_SHIFT, _BINS = 15, 1 << 16
_HALF = np.int64(1) << np.int64(31)


def order_of(recipient: Array, sender: Array, seq: Array, round: Array | None = None) -> Array:
    """Return the permutation that sorts rows by round (if given), recipient, sender, seq."""
    if not len(recipient):
        return np.zeros(0, np.int64)
    narrow = all(bool(column.min() >= 0 and column.max() < _HALF) for column in (recipient, sender))
    if round is None and narrow and not seq.any():  # then one sort of single words does
        return np.argsort((recipient.astype(np.int64) << np.int64(32)) | sender)
    return np.lexsort((seq, sender, recipient) if round is None else (seq, sender, recipient, round))


def places_of(files: list[File], low: int, high: int) -> Array:
    """Return where the rows ``low .. high - 1`` in that order lie, in files of one round laid end to end."""
    places, before = np.arange(sum(file.rows for file in files)), 0
    if len(places) > _FEW:
        places, before = _near(files, low, high)
    keys = [_at(files, name, places) for name in ("recipient", "sender", "seq")]
    return places[order_of(keys[0], keys[1], keys[2])[low - before : high - before]]


def _near(files: list[File], low: int, high: int) -> tuple[Array, int]:
    """Return where the rows ``low .. high - 1`` lie and others near them, and how many come before all of these.

    Near are those in the same bins by recipient: a look at all finds which bins, a second one who is in them.
    """
    sizes = np.zeros(_BINS, np.int64)
    for _, recipients in _chunks(files):
        sizes += np.bincount(_bin(recipients), minlength=_BINS)
    ends = np.cumsum(sizes)
    first, last = np.searchsorted(ends, [low, high - 1], side="right")
    found = []
    for start, recipients in _chunks(files):
        bins = _bin(recipients)
        found.append(np.flatnonzero((bins >= first) & (bins <= last)) + start)
    return np.concatenate(found), int(ends[first] - sizes[first])


def _chunks(files: list[File]) -> Iterator[tuple[int, Array]]:
    """Yield recipients, and where they begin, of files laid end to end."""
    before = 0
    for file in files:
        for low in range(0, file.rows, _CHUNK):
            yield before + low, file.column("recipient", low, min(low + _CHUNK, file.rows))
        before += file.rows


def _bin(recipients: Array) -> Array:
    return np.asarray(np.minimum(recipients >> _SHIFT, _BINS - 1))


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
