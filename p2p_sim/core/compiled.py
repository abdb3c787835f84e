"""The compiled loops themselves, with their types; ``kernels.py`` gives them the signatures of ``plain.py``.

Inputs are typed read-only, so arrays that Ray shares need no copy.  Straight-line integer code lets the compiler
encrypt eight counters at once in vector registers.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"
# ruff: noqa: D103
from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types

_u64, _i64 = types.uint64, types.int64
_W = types.Array(_u64, 1, "C", readonly=True)
_L = types.Array(_i64, 1, "C", readonly=True)
_I = types.Array(types.int32, 1, "C", readonly=True)
_B = types.Array(types.uint8, 1, "C", readonly=True)
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
def words(key0, key1, first_block, out):
    """Fill ``out``, whose length is a multiple of 4, from the start of a cipher block."""
    for j in range(len(out) // 4):
        w0, w1, w2, w3 = _philox(first_block + np.uint64(j), np.uint64(0), key0, key1)
        out[4 * j], out[4 * j + 1], out[4 * j + 2], out[4 * j + 3] = w0, w1, w2, w3


@njit(types.void(_u64, _u64, _u64, _u64, _B_OUT), **_OPTIONS)
def bernoulli(key0, key1, first_block, threshold, out):
    for j in range(len(out) // 4):
        w0, w1, w2, w3 = _philox(first_block + np.uint64(j), np.uint64(0), key0, key1)
        out[4 * j], out[4 * j + 1] = w0 < threshold, w1 < threshold
        out[4 * j + 2], out[4 * j + 3] = w2 < threshold, w3 < threshold


@njit(types.void(_u64, _u64, _L, _L, _B, _W_OUT), **_OPTIONS)
def outputs_at(key0, key1, block, owner, lane, out):
    for i in range(len(out)):
        out[i] = _lane(_philox(np.uint64(block[i]), np.uint64(owner[i]), key0, key1), lane[i])


@njit(types.void(_W, _W, _L_OUT), **_OPTIONS)
def below(drawn, limit, out):
    for i in range(len(out)):
        out[i] = np.int64(_high(drawn[i], limit[i]))


@njit(types.void(_W, _I, _L, _I_OUT), **_OPTIONS)
def member_contiguous(drawn, codes, starts, out):
    for i in range(len(out)):
        first = starts[codes[i]]
        out[i] = np.int32(first + np.int64(_high(drawn[i], np.uint64(starts[codes[i] + 1] - first))))


@njit(types.void(_W, _I, _L, _I, _I_OUT), **_OPTIONS)
def member_scattered(drawn, codes, starts, order, out):
    for i in range(len(out)):
        first = starts[codes[i]]
        out[i] = order[first + np.int64(_high(drawn[i], np.uint64(starts[codes[i] + 1] - first)))]


@njit(types.void(_B, _I, _i64, _B_OUT), **_OPTIONS)
def scatter(values, rows, first, out):
    for i in range(len(values)):
        out[rows[i] - first] = values[i]


@njit(types.void(_B, _I, _i64, _B_OUT), **_OPTIONS)
def gather(values, rows, first, out):
    for i in range(len(out)):
        out[i] = values[rows[i] - first]


@njit(types.int64(_I, types.int32), **_OPTIONS)
def at_home(rows, first):
    """Count the places i at which ``rows[i]`` is first + i."""
    count = 0
    for i in range(len(rows)):
        count += rows[i] == first + np.int32(i)
    return count


@njit(types.void(_I, _L_OUT, _L_OUT), **_OPTIONS)
def group(local, starts, order):
    """Counting sort; ``starts`` comes zeroed, one longer than the parties."""
    for i in range(len(local)):
        starts[local[i] + 1] += 1
    for p in range(1, len(starts)):
        starts[p] += starts[p - 1]
    place = starts.copy()
    for i in range(len(local)):
        order[place[local[i]]] = i
        place[local[i]] += 1


@njit(types.void(_I, _L, _L_OUT, _L_OUT), **_OPTIONS)
def divide(to, bounds, starts, order):
    shards = np.empty(len(to), np.uint16)
    for i in range(len(to)):
        shard = 0
        while shard < len(bounds) and to[i] >= bounds[shard]:
            shard += 1
        shards[i] = shard
        starts[shard + 1] += 1
    for s in range(1, len(starts)):
        starts[s] += starts[s - 1]
    following = starts.copy()
    for i in range(len(to)):
        order[following[shards[i]]] = i
        following[shards[i]] += 1


@njit(types.void(_W_OUT, _W_OUT, _W), **_OPTIONS)
def absorb_words(a, b, column):
    for i in range(len(a)):
        x = (a[i] ^ column[i]) * np.uint64(0x9E3779B97F4A7C15)
        y = (b[i] ^ column[i]) * np.uint64(0xD6E8FEB86659FD93)
        a[i], b[i] = x ^ (x >> np.uint64(32)), y ^ (y >> np.uint64(29))


@njit(types.void(_W_OUT, _W_OUT, _I), **_OPTIONS)
def absorb_ids(a, b, column):
    for i in range(len(a)):
        value = np.uint64(np.int64(column[i]))
        x = (a[i] ^ value) * np.uint64(0x9E3779B97F4A7C15)
        y = (b[i] ^ value) * np.uint64(0xD6E8FEB86659FD93)
        a[i], b[i] = x ^ (x >> np.uint64(32)), y ^ (y >> np.uint64(29))


@njit(types.void(_W_OUT, _W_OUT, _B), **_OPTIONS)
def absorb_bytes(a, b, column):
    for i in range(len(a)):
        value = np.uint64(column[i])
        x = (a[i] ^ value) * np.uint64(0x9E3779B97F4A7C15)
        y = (b[i] ^ value) * np.uint64(0xD6E8FEB86659FD93)
        a[i], b[i] = x ^ (x >> np.uint64(32)), y ^ (y >> np.uint64(29))


@njit(types.void(_W_OUT, _W_OUT, _u64, _u64), **_OPTIONS)
def absorb_range(a, b, start, step):
    """Absorb start, start + step, ...; step 0 is one value for all rows."""
    for i in range(len(a)):
        value = start + np.uint64(i) * step
        x = (a[i] ^ value) * np.uint64(0x9E3779B97F4A7C15)
        y = (b[i] ^ value) * np.uint64(0xD6E8FEB86659FD93)
        a[i], b[i] = x ^ (x >> np.uint64(32)), y ^ (y >> np.uint64(29))
