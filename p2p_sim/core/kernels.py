"""The inner loops compiled by numba: the same functions as ``plain.py``, bit for bit, several times faster.

Imported on first use (see ``compute.choose``).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core import compiled, plain
from p2p_sim.core.plain import Array, Bools, Ids, as_words
from p2p_sim.core.words import Words

__all__ = [
    "BLOCK",
    "absorb",
    "below",
    "bernoulli",
    "divide",
    "gather",
    "group",
    "item_words",
    "meetings",
    "member",
    "scatter",
    "words",
    "words_at",
]  # fmt: skip

BLOCK = 262_144
_HASH_BLOCK = 4_096


def words(seed: int, stream: int, start: int, count: int) -> Words:
    """Return the words of parties ``start .. start + count - 1``."""
    skip = start % 4
    out = np.empty((skip + count + 3) // 4 * 4, np.uint64)
    compiled.words(seed, stream, start // 4, out)
    return out[skip : skip + count]


def bernoulli(seed: int, stream: int, start: int, count: int, threshold: int) -> Bools:
    """Return word < threshold for parties ``start ..``; threshold in 0 .. 2^64."""
    if threshold >= 1 << 64:
        return np.ones(count, np.bool_)
    skip = start % 4
    out = np.empty((skip + count + 3) // 4 * 4, np.uint8)
    compiled.bernoulli(seed, stream, start // 4, threshold, out)
    return out[skip : skip + count].view(np.bool_)


def words_at(seed: int, stream: int, parties: npt.NDArray[Any]) -> Words:
    """Return the words of the given parties, in their order."""
    ids = parties.astype(np.int64)
    return _at(seed, stream, ids >> 2, np.zeros_like(ids), ids)


def item_words(seed: int, stream: int, parties: npt.NDArray[Any], slots: npt.NDArray[Any]) -> Words:
    """Return item word ``slots[i]`` of party ``parties[i]``, for every i."""
    ranks = slots.astype(np.int64)
    return _at(seed, stream, ranks >> 2, parties.astype(np.int64) + 1, ranks)


def _at(seed: int, stream: int, block: Array, owner: Array, output: Array) -> Words:
    out = np.empty(len(block), np.uint64)
    compiled.outputs_at(seed, stream, block, owner, (output & 3).astype(np.uint8), out)
    return out


def below(drawn: Words, limit: Words | np.uint64) -> npt.NDArray[np.int64]:
    """Map each word to 0 .. limit - 1: the high half of word * limit; limit < 2^63."""
    out = np.empty(len(drawn), np.int64)
    compiled.below(
        np.ascontiguousarray(drawn), np.ascontiguousarray(np.broadcast_to(limit, drawn.shape)), out
    )
    return out


def member(drawn: Words, codes: Ids, starts: npt.NDArray[np.int64], order: Ids | None) -> Ids:
    """Return, for each word, a uniform row of group ``codes[i]``: its k-th in ascending row."""
    out = np.empty(len(drawn), np.int32)
    if order is None:
        compiled.member_contiguous(drawn, codes, starts, out)
    else:
        compiled.member_scattered(drawn, codes, starts, order, out)
    return out


def gather(values: Array, rows: Ids, first: int) -> Array:
    """Return ``values[rows - first]``."""
    if values.itemsize != 1 or values.ndim != 1 or not values.flags.c_contiguous:
        return plain.gather(values, rows, first)
    out = np.empty(len(rows), np.uint8)
    compiled.gather(values.view(np.uint8), rows, first, out)
    return out.view(values.dtype)


def scatter(values: Array, rows: Ids, first: int, out: Array) -> None:
    """Set ``out[rows - first]`` to the values; rows are distinct."""
    if values.itemsize != 1 or values.ndim != 1 or not values.flags.c_contiguous:
        plain.scatter(values, rows, first, out)
    else:
        compiled.scatter(values.view(np.uint8), rows, first, out.view(np.uint8))


def group(local: Ids, parties: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Sort messages by recipient, keeping their order: (permutation, first message of each party and the end)."""
    starts, order = np.zeros(parties + 1, np.int64), np.empty(len(local), np.int64)
    compiled.group(local, starts, order)
    return order, starts


def meetings(one: Array | range, other: Array | range) -> int:
    """Count the places at which two columns of rows are equal."""
    if isinstance(one, range):
        one, other = other, one
    if isinstance(one, range) or not isinstance(other, range):
        return plain.meetings(one, other)
    return int(compiled.at_home(np.ascontiguousarray(one), other.start))


def divide(to: Ids, bounds: npt.NDArray[np.int64]) -> tuple[Array, Array]:
    """Sort rows by shard, keeping their order: (permutation, first of each shard and the end)."""
    order, starts = np.empty(len(to), np.int64), np.zeros(len(bounds) + 2, np.int64)
    compiled.divide(np.ascontiguousarray(to), bounds, starts, order)
    return order, starts


def absorb(salt: int, columns: list[Array | range | int], count: int) -> tuple[int, int]:
    """Hash ``count`` rows, each from its columns in order, and return the two lane sums modulo 2^64."""
    total_a = total_b = 0
    state = np.empty((2, _HASH_BLOCK), np.uint64)
    for low in range(0, count, _HASH_BLOCK):
        high = min(low + _HASH_BLOCK, count)
        a, b = state[0, : high - low], state[1, : high - low]
        a.fill(salt)
        b.fill((salt + 1) % (1 << 64))
        for column in columns:
            _absorb_column(a, b, column if isinstance(column, int) else column[low:high])
        total_a += int(a.sum(dtype=np.uint64))
        total_b += int(b.sum(dtype=np.uint64))
    return total_a % (1 << 64), total_b % (1 << 64)


def _absorb_column(a: Words, b: Words, column: Array | range | int) -> None:
    if isinstance(column, int):
        compiled.absorb_range(a, b, column, 0)
    elif isinstance(column, range):
        compiled.absorb_range(a, b, column.start, 1)
    elif column.dtype == np.int32 and column.flags.c_contiguous:
        compiled.absorb_ids(a, b, column)
    elif column.dtype in (np.bool_, np.uint8) and column.flags.c_contiguous:
        compiled.absorb_bytes(a, b, column.view(np.uint8))
    else:
        compiled.absorb_words(a, b, np.ascontiguousarray(as_words(column)))
