"""The inner loops compiled by numba: the same functions as ``plain.py``, bit for bit, several times faster.

Imported on first use (see ``compute.choose``).  Inputs are typed read-only, so arrays that Ray shares need no copy.
Straight-line integer code lets the compiler encrypt eight counters at once in vector registers.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"
from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit, types

from p2p_sim.core import plain
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
    "merge",
    "words",
    "words_at",
]  # fmt: skip

BLOCK = 262_144
_HASH_BLOCK = 4_096

_u64, _i64 = types.uint64, types.int64
_W = types.Array(_u64, 1, "C", readonly=True)
_L = types.Array(_i64, 1, "C", readonly=True)
_I = types.Array(types.int32, 1, "C", readonly=True)
_B = types.Array(types.uint8, 1, "C", readonly=True)
_P = types.Array(types.uint16, 1, "C", readonly=True)
_P_OUT = types.Array(types.uint16, 1, "C")
_W_OUT = types.Array(_u64, 1, "C")
_L_OUT = types.Array(_i64, 1, "C")
_I_OUT = types.Array(types.int32, 1, "C")
_B_OUT = types.Array(types.uint8, 1, "C")
_OPTIONS: dict[str, Any] = {"cache": True, "nogil": True}


@njit(inline="always", **_OPTIONS)
def _high(a, b):
    a_low, a_high = a & np.uint64(0xFFFFFFFF), a >> np.uint64(32)
    b_low, b_high = b & np.uint64(0xFFFFFFFF), b >> np.uint64(32)
    middle = a_high * b_low + ((a_low * b_low) >> np.uint64(32))
    middle_low = a_low * b_high + (middle & np.uint64(0xFFFFFFFF))
    return a_high * b_high + (middle >> np.uint64(32)) + (middle_low >> np.uint64(32))


@njit(inline="always", **_OPTIONS)
def _round(c0, c1, c2, c3, key0, key1, n):
    high0, low0 = _high(np.uint64(0xD2E7470EE14C6C93), c0), np.uint64(0xD2E7470EE14C6C93) * c0
    high1, low1 = _high(np.uint64(0xCA5A826395121157), c2), np.uint64(0xCA5A826395121157) * c2
    round0 = key0 + np.uint64(n) * np.uint64(0x9E3779B97F4A7C15)
    round1 = key1 + np.uint64(n) * np.uint64(0xBB67AE8584CAA73B)
    return high1 ^ c1 ^ round0, low1, high0 ^ c3 ^ round1, low0


@njit(inline="always", **_OPTIONS)
def _philox(block, owner, key0, key1):
    """Philox4x64-10 at counter (block + 1, owner, 0, 0); numpy counts before it encrypts, hence the + 1."""
    c0, c1, c2, c3 = block + np.uint64(1), owner, np.uint64(0), np.uint64(0)
    c0, c1, c2, c3 = _round(c0, c1, c2, c3, key0, key1, 0)
    c0, c1, c2, c3 = _round(c0, c1, c2, c3, key0, key1, 1)
    c0, c1, c2, c3 = _round(c0, c1, c2, c3, key0, key1, 2)
    c0, c1, c2, c3 = _round(c0, c1, c2, c3, key0, key1, 3)
    c0, c1, c2, c3 = _round(c0, c1, c2, c3, key0, key1, 4)
    c0, c1, c2, c3 = _round(c0, c1, c2, c3, key0, key1, 5)
    c0, c1, c2, c3 = _round(c0, c1, c2, c3, key0, key1, 6)
    c0, c1, c2, c3 = _round(c0, c1, c2, c3, key0, key1, 7)
    c0, c1, c2, c3 = _round(c0, c1, c2, c3, key0, key1, 8)
    return _round(c0, c1, c2, c3, key0, key1, 9)


@njit(inline="always", **_OPTIONS)
def _lane(outputs, lane):
    first, second, third, fourth = outputs
    if lane == 0:
        return first
    if lane == 1:
        return second
    return third if lane == 2 else fourth


@njit(types.void(_u64, _u64, _u64, _W_OUT), **_OPTIONS)
def _words(key0, key1, first_block, out):
    """Fill ``out``, whose length is a multiple of 4, from the start of a cipher block."""
    for j in range(len(out) // 4):
        w0, w1, w2, w3 = _philox(first_block + np.uint64(j), np.uint64(0), key0, key1)
        out[4 * j], out[4 * j + 1], out[4 * j + 2], out[4 * j + 3] = w0, w1, w2, w3


@njit(types.void(_u64, _u64, _u64, _u64, _B_OUT), **_OPTIONS)
def _bernoulli(key0, key1, first_block, threshold, out):
    for j in range(len(out) // 4):
        w0, w1, w2, w3 = _philox(first_block + np.uint64(j), np.uint64(0), key0, key1)
        out[4 * j], out[4 * j + 1] = w0 < threshold, w1 < threshold
        out[4 * j + 2], out[4 * j + 3] = w2 < threshold, w3 < threshold


@njit(types.void(_u64, _u64, _L, _L, _B, _W_OUT), **_OPTIONS)
def _outputs_at(key0, key1, block, owner, lane, out):
    for i in range(len(out)):
        out[i] = _lane(_philox(np.uint64(block[i]), np.uint64(owner[i]), key0, key1), lane[i])


@njit(types.void(_W, _W, _L_OUT), **_OPTIONS)
def _below(drawn, limit, out):
    for i in range(len(out)):
        out[i] = np.int64(_high(drawn[i], limit[i]))


@njit(types.void(_W, _I, _L, _I_OUT), **_OPTIONS)
def _member_contiguous(drawn, codes, starts, out):
    for i in range(len(out)):
        first = starts[codes[i]]
        out[i] = np.int32(first + np.int64(_high(drawn[i], np.uint64(starts[codes[i] + 1] - first))))


@njit(types.void(_W, _I, _L, _I, _I_OUT), **_OPTIONS)
def _member_scattered(drawn, codes, starts, order, out):
    for i in range(len(out)):
        first = starts[codes[i]]
        out[i] = order[first + np.int64(_high(drawn[i], np.uint64(starts[codes[i] + 1] - first)))]


@njit(types.void(_B, _I, _i64, _B_OUT), **_OPTIONS)
def _gather(values, rows, first, out):
    for i in range(len(out)):
        out[i] = values[rows[i] - first]


@njit(types.int64(_I, types.int32), **_OPTIONS)
def _at_home(rows, first):
    """Count the places i at which ``rows[i]`` is first + i."""
    count = 0
    for i in range(len(rows)):
        count += rows[i] == first + np.int32(i)
    return count


@njit(types.void(_I, _L_OUT, _L_OUT), **_OPTIONS)
def _group(local, starts, order):
    """Counting sort; ``starts`` comes zeroed, one longer than the parties."""
    for i in range(len(local)):
        starts[local[i] + 1] += 1
    for p in range(1, len(starts)):
        starts[p] += starts[p - 1]
    place = starts.copy()
    for i in range(len(local)):
        order[place[local[i]]] = i
        place[local[i]] += 1


@njit(types.void(_I, _L, _P_OUT, _L_OUT, _L_OUT), **_OPTIONS)
def _divide(to, bounds, places, starts, order):
    for i in range(len(to)):
        place = 0
        while place < len(bounds) and to[i] >= bounds[place]:
            place += 1
        places[i] = place
        starts[place + 1] += 1
    for p in range(1, len(starts)):
        starts[p] += starts[p - 1]
    following = starts.copy()
    for i in range(len(to)):
        order[following[places[i]]] = i
        following[places[i]] += 1


@njit(types.void(_P, _B, _L_OUT, _B_OUT), **_OPTIONS)
def _merge(places, values, following, out):
    for i in range(len(out)):
        out[i] = values[following[places[i]]]
        following[places[i]] += 1


@njit(types.void(_W_OUT, _W_OUT, _W), **_OPTIONS)
def _absorb_words(a, b, column):
    for i in range(len(a)):
        x = (a[i] ^ column[i]) * np.uint64(0x9E3779B97F4A7C15)
        y = (b[i] ^ column[i]) * np.uint64(0xD6E8FEB86659FD93)
        a[i], b[i] = x ^ (x >> np.uint64(32)), y ^ (y >> np.uint64(29))


@njit(types.void(_W_OUT, _W_OUT, _I), **_OPTIONS)
def _absorb_ids(a, b, column):
    for i in range(len(a)):
        value = np.uint64(np.int64(column[i]))
        x = (a[i] ^ value) * np.uint64(0x9E3779B97F4A7C15)
        y = (b[i] ^ value) * np.uint64(0xD6E8FEB86659FD93)
        a[i], b[i] = x ^ (x >> np.uint64(32)), y ^ (y >> np.uint64(29))


@njit(types.void(_W_OUT, _W_OUT, _B), **_OPTIONS)
def _absorb_bytes(a, b, column):
    for i in range(len(a)):
        value = np.uint64(column[i])
        x = (a[i] ^ value) * np.uint64(0x9E3779B97F4A7C15)
        y = (b[i] ^ value) * np.uint64(0xD6E8FEB86659FD93)
        a[i], b[i] = x ^ (x >> np.uint64(32)), y ^ (y >> np.uint64(29))


@njit(types.void(_W_OUT, _W_OUT, _u64, _u64), **_OPTIONS)
def _absorb_range(a, b, start, step):
    """Absorb start, start + step, ...; step 0 is one value for all rows."""
    for i in range(len(a)):
        value = start + np.uint64(i) * step
        x = (a[i] ^ value) * np.uint64(0x9E3779B97F4A7C15)
        y = (b[i] ^ value) * np.uint64(0xD6E8FEB86659FD93)
        a[i], b[i] = x ^ (x >> np.uint64(32)), y ^ (y >> np.uint64(29))


def words(seed: int, stream: int, start: int, count: int) -> Words:
    """Return the words of parties ``start .. start + count - 1``."""
    skip = start % 4
    out = np.empty((skip + count + 3) // 4 * 4, np.uint64)
    _words(seed, stream, start // 4, out)
    return out[skip : skip + count]


def bernoulli(seed: int, stream: int, start: int, count: int, threshold: int) -> Bools:
    """Return word < threshold for parties ``start ..``; threshold in 0 .. 2^64."""
    if threshold >= 1 << 64:
        return np.ones(count, np.bool_)
    skip = start % 4
    out = np.empty((skip + count + 3) // 4 * 4, np.uint8)
    _bernoulli(seed, stream, start // 4, threshold, out)
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
    _outputs_at(seed, stream, block, owner, (output & 3).astype(np.uint8), out)
    return out


def below(drawn: Words, limit: Words | np.uint64) -> npt.NDArray[np.int64]:
    """Map each word to 0 .. limit - 1: the high half of word * limit; limit < 2^63."""
    out = np.empty(len(drawn), np.int64)
    _below(np.ascontiguousarray(drawn), np.ascontiguousarray(np.broadcast_to(limit, drawn.shape)), out)
    return out


def member(drawn: Words, codes: Ids, starts: npt.NDArray[np.int64], order: Ids | None) -> Ids:
    """Return, for each word, a uniform row of group ``codes[i]``: its k-th in ascending row."""
    out = np.empty(len(drawn), np.int32)
    if order is None:
        _member_contiguous(drawn, codes, starts, out)
    else:
        _member_scattered(drawn, codes, starts, order, out)
    return out


def gather(values: Array, rows: Ids, first: int) -> Array:
    """Return ``values[rows - first]``."""
    if values.itemsize != 1 or values.ndim != 1 or not values.flags.c_contiguous:
        return plain.gather(values, rows, first)
    out = np.empty(len(rows), np.uint8)
    _gather(values.view(np.uint8), rows, first, out)
    return out.view(values.dtype)


def group(local: Ids, parties: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Sort messages by recipient, keeping their order: (permutation, first message of each party and the end)."""
    starts, order = np.zeros(parties + 1, np.int64), np.empty(len(local), np.int64)
    _group(local, starts, order)
    return order, starts


def meetings(one: Array | range, other: Array | range) -> int:
    """Count the places at which two columns of rows are equal."""
    if isinstance(one, range):
        one, other = other, one
    if isinstance(one, range) or not isinstance(other, range):
        return plain.meetings(one, other)
    return int(_at_home(np.ascontiguousarray(one), other.start))


def divide(to: Ids, bounds: npt.NDArray[np.int64]) -> tuple[Array, Array, Array]:
    """Sort rows by shard, keeping their order: (shard of each, permutation, first of each shard and the end)."""
    places, order = np.empty(len(to), np.uint16), np.empty(len(to), np.int64)
    starts = np.zeros(len(bounds) + 2, np.int64)
    _divide(np.ascontiguousarray(to), bounds, places, starts, order)
    return places, order, starts


def merge(places: npt.NDArray[np.uint16], names: list[int], parts: list[Array]) -> Array:
    """Interleave: element i is the next unused one of the part whose name is ``places[i]``."""
    if parts[0].itemsize != 1 or parts[0].ndim != 1:
        return plain.merge(places, names, parts)
    following = np.zeros(max(names) + 1, np.int64)
    following[names] = np.cumsum([0, *map(len, parts[:-1])])
    out = np.empty(len(places), np.uint8)
    _merge(places, np.concatenate(parts).view(np.uint8), following, out)
    return out.view(parts[0].dtype)


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
        _absorb_range(a, b, column, 0)
    elif isinstance(column, range):
        _absorb_range(a, b, column.start, 1)
    elif column.dtype == np.int32 and column.flags.c_contiguous:
        _absorb_ids(a, b, column)
    elif column.dtype in (np.bool_, np.uint8) and column.flags.c_contiguous:
        _absorb_bytes(a, b, column.view(np.uint8))
    else:
        _absorb_words(a, b, np.ascontiguousarray(as_words(column)))
