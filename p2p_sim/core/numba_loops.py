"""The compiled loops, with their types; ``kernels_numba.py`` gives them the signatures of ``kernels_numpy.py``.

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
_S = types.Array(_u64, 1, "A", readonly=True)
_L = types.Array(_i64, 1, "C", readonly=True)
_I = types.Array(types.int32, 1, "C", readonly=True)
_B = types.Array(types.uint8, 1, "C", readonly=True)
_W_OUT = types.Array(_u64, 1, "C")
_L_OUT = types.Array(_i64, 1, "C")
_PLAN = types.Array(_i64, 2, "C", readonly=True)
_BASE = types.Array(_u64, 2, "C", readonly=True)
_I_OUT = types.Array(types.int32, 1, "C")
_B_OUT = types.Array(types.uint8, 1, "C")
_F = types.Array(types.float64, 1, "C", readonly=True)
_F_OUT = types.Array(types.float64, 1, "C")
_ROWS = types.Array(_u64, 2, "C", readonly=True)
_ROWS_I_OUT = types.Array(types.int32, 2, "C")
_TABLE = types.Array(types.float64, 2, "C", readonly=True)
_TABLE_OUT = types.Array(types.float64, 2, "C")
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


@njit(types.void(_u64, _u64, _u64, _u64, _W_OUT), **_OPTIONS)
def words(key0, key1, owner, first_block, out):
    """Fill ``out``, whose length is a multiple of 4, from the start of a cipher block."""
    for j in range(len(out) // 4):
        w0, w1, w2, w3 = _philox(first_block + np.uint64(j), owner, key0, key1)
        out[4 * j], out[4 * j + 1], out[4 * j + 2], out[4 * j + 3] = w0, w1, w2, w3


@njit(types.void(_u64, _u64, _u64, _u64, _u64, _B_OUT), **_OPTIONS)
def bernoulli(key0, key1, owner, first_block, threshold, out):
    for j in range(len(out) // 4):
        w0, w1, w2, w3 = _philox(first_block + np.uint64(j), owner, key0, key1)
        out[4 * j], out[4 * j + 1] = w0 < threshold, w1 < threshold
        out[4 * j + 2], out[4 * j + 3] = w2 < threshold, w3 < threshold


@njit(types.void(_u64, _u64, _L, _u64, _L, _W_OUT), **_OPTIONS)
def words_of(key0, key1, parties, each, outputs, out):
    """Fill ``out`` with one output for each party: of her own stretch if ``each`` is 1, of a common one if it is 0.

    By tiles: the cipher then runs in vectors, for all four words of a block, of which one is taken.
    """
    w = np.empty((4, 512), np.uint64)
    w0, w1, w2, w3 = w[0], w[1], w[2], w[3]
    for low in range(0, len(out), 512):
        size = min(512, len(out) - low)
        owners, places = parties[low : low + size], outputs[low : low + size]
        for i in range(size):
            owner = (np.uint64(owners[i]) + np.uint64(1)) * each
            w0[i], w1[i], w2[i], w3[i] = _philox(np.uint64(places[i]) >> np.uint64(2), owner, key0, key1)
        into = out[low : low + size]
        for i in range(size):
            into[i] = w[np.uint64(places[i]) & np.uint64(3), i]


@njit(types.void(_u64, _u64, _L, _i64, _W_OUT), **_OPTIONS)
def several_words(key0, key1, parties, times, out):
    """Fill ``out`` with the first ``times`` item words of each party, by tiles: the cipher then runs in vectors."""
    w = np.empty((4, 512), np.uint64)
    w0, w1, w2, w3 = w[0], w[1], w[2], w[3]
    for low in range(0, len(parties), 512):
        size = min(512, len(parties) - low)
        owners = parties[low : low + size]
        for first in range(0, times, 4):
            block = np.uint64(first // 4)
            if times - first > 2:
                for i in range(size):
                    w0[i], w1[i], w2[i], w3[i] = _philox(
                        block, np.uint64(owners[i]) + np.uint64(1), key0, key1
                    )
            else:  # of the last two nothing is computed
                for i in range(size):
                    w0[i], w1[i], _, _ = _philox(block, np.uint64(owners[i]) + np.uint64(1), key0, key1)
            for lane in range(min(4, times - first)):
                place = low * times + first + lane
                for i in range(size):
                    out[place + i * times] = w[lane, i]


@njit(inline="always", **_OPTIONS)
def _picked(table, word, shift, firsts):
    """Count thresholds up to a word: those before its stretch, then by halving, where the stretch has any."""
    stretch = word >> shift
    low, high = np.uint64(firsts[stretch]), np.uint64(firsts[stretch + np.uint64(1)])
    while low < high:
        middle = (low + high) >> np.uint64(1)
        if table[middle] <= word:
            low = middle + np.uint64(1)
        else:
            high = middle
    return low


@njit(types.void(_W, _W, _u64, _I, _L_OUT), **_OPTIONS)
def pick(table, drawn, shift, firsts, out):
    """Count thresholds up to each word."""
    for i in range(len(drawn)):
        out[i] = _picked(table, drawn[i], shift, firsts)


@njit(
    [
        types.void(_u64, _u64, _i64, _L, _i64, _W, _u64, _I, values, out)
        for values, out in ((_F, _F_OUT), (_L, _L_OUT), (_I, _I_OUT))
    ],
    **_OPTIONS,
)
def several_looked_up(key0, key1, first, parties, times, table, shift, firsts, values, out):
    """Write the value of what ``pick`` picks for each of the item words of parties, so few that words stay in cache.

    ``parties``: empty for all from ``first`` up.
    """
    step = max(1, 8192 // times)
    owners, words = np.empty(step, np.int64), np.empty(step * times, np.uint64)
    for low in range(0, len(out) // times, step):
        size = min(step, len(out) // times - low)
        for i in range(size):
            owners[i] = parties[low + i] if len(parties) > 0 else first + low + i
        drawn, into = words[: size * times], out[low * times : (low + size) * times]
        several_words(key0, key1, owners[:size], times, drawn)
        for i in range(len(drawn)):
            into[i] = values[_picked(table, drawn[i], shift, firsts)]


@njit([types.void(_TABLE, which, _TABLE_OUT) for which in (_L, _B)], **_OPTIONS)
def add_rows(rows, which, out):
    for i in range(len(which)):
        row = np.uint64(which[i])
        for j in range(np.uint64(out.shape[1])):
            out[i, j] += rows[row, j]


MULTIPLES = (np.dtype(np.uint16), np.dtype(np.int32))
"""In which types of integers ``multiples`` writes."""


@njit(
    [
        types.boolean(_F, types.float64, types.float64, types.float64, types.Array(each, 1, "C"))
        for each in (types.uint16, types.int32)
    ],
    **_OPTIONS,
)
def multiples(values, factor, least, most, out):
    """Write the nearest multiple of each number, in a tie the even one; return whether all are in the range.

    A number outside it, such as nan, is written as 0: converted to an integer it could be anything.
    """
    inside = True
    for i in range(len(values)):
        nearest = np.rint(values[i] * factor)
        fits = (nearest >= least) & (nearest <= most)
        inside &= fits
        out[i] = np.int64(nearest if fits else 0.0)
    return inside


@njit(types.boolean(_B, _ROWS, _ROWS, types.float64, types.float64, types.float64, _ROWS_I_OUT), **_OPTIONS)
def choose_multiples(mask, one, other, factor, least, most, out):
    """Works by tiles and without branches: a mask is random, so a processor would mispredict half the branches.

    ``one``, ``other``: the bits of numbers.
    """
    count, width, inside = np.uint64(len(mask)), np.uint64(out.shape[1]), True
    step = max(np.uint64(1), np.uint64(2048) // width)
    bits = np.empty(step * width, np.uint64)
    numbers = bits.view(np.float64)
    for low in range(np.uint64(0), count, step):
        rows = min(step, count - low)
        for i in range(rows):
            taken = np.uint64(0) - np.uint64(mask[low + i])
            for j in range(width):
                a, b = one[low + i, j], other[low + i, j]
                bits[i * width + j] = b ^ ((a ^ b) & taken)
        inside &= multiples(numbers[: rows * width], factor, least, most, out[low : low + rows].reshape(-1))
    return inside


@njit(types.void(_W, _W, _L_OUT), **_OPTIONS)
def below(drawn, limit, out):
    for i in range(len(out)):
        out[i] = np.int64(_high(drawn[i], limit[i]))


@njit(
    [types.void(_u64, _u64, _u64, _u64, types.boolean, _W, out) for out in (_L_OUT, _B_OUT)],
    **_OPTIONS,
)
def words_below(key0, key1, owner, start, each, limit, out):
    """Draw below a limit, or below ``each`` of as many, by tiles of words from the block in which the first one is."""
    drawn = np.empty(2052, np.uint64)
    skip = start & np.uint64(3)
    for low in range(0, len(out), 2048):
        size = min(2048, len(out) - low)
        words(key0, key1, owner, (start + np.uint64(low)) >> np.uint64(2), drawn[: (size + 6) // 4 * 4])
        tile, into = drawn[skip : skip + np.uint64(size)], out[low : low + size]
        if each:
            limits = limit[low : low + size]
            for i in range(size):
                into[i] = np.int64(_high(tile[i], limits[i]))
        else:
            most = limit[0]
            for i in range(size):
                into[i] = np.int64(_high(tile[i], most))


@njit(types.void(_W, _W, _u64, _W, _I, _B_OUT), **_OPTIONS)
def weighted(drawn, sums, width, totals, rows, out):
    """Draw an outcome by the weights of a row, of which ``sums`` holds ``width`` running sums, a power of two.

    By halving, without branches: words are random, so a processor would mispredict half the branches.  In loops of
    their own what is looked up and what is computed, which then runs in vectors.
    """
    held, place, found = np.empty(2048, np.uint64), np.empty(2048, np.uint64), np.empty(2048, np.uint64)
    for low in range(0, len(out), 2048):
        size = min(2048, len(out) - low)
        tile, row, into = drawn[low : low + size], rows[low : low + size], out[low : low + size]
        for i in range(size):
            held[i] = totals[np.uint64(row[i])]
        for i in range(size):
            place[i] = _high(tile[i], held[i])
            found[i] = np.uint64(row[i]) * width
        step = width >> np.uint64(1)
        while step:
            for i in range(size):
                held[i] = sums[found[i] + step - np.uint64(1)]
            for i in range(size):
                found[i] += step * np.uint64(held[i] <= place[i])
            step >>= np.uint64(1)
        for i in range(size):
            into[i] = found[i] & (width - np.uint64(1))


@njit(types.void(_u64, _u64, _u64, _u64, _W, _u64, _W, _I, _B_OUT), **_OPTIONS)
def words_weighted(key0, key1, owner, start, sums, width, totals, rows, out):
    """Draw outcomes by tiles of words from the block in which the first one is."""
    drawn = np.empty(8196, np.uint64)
    skip = start & np.uint64(3)
    for low in range(0, len(out), 8192):
        size = min(8192, len(out) - low)
        words(key0, key1, owner, (start + np.uint64(low)) >> np.uint64(2), drawn[: (size + 6) // 4 * 4])
        tile = drawn[skip : skip + np.uint64(size)]
        weighted(tile, sums, width, totals, rows[low : low + size], out[low : low + size])


@njit(types.void(_I, _B, _i64, _L_OUT), **_OPTIONS)
def contingency(groups, values, outcomes, out):
    """Count in both halves by turns: neighbours are often of one group, and a count just written is slow to read."""
    half = len(groups) // 2
    for i in range(half):
        out[np.uint64(groups[i]) * np.uint64(outcomes) + np.uint64(values[i])] += 1
        out[np.uint64(groups[half + i]) * np.uint64(outcomes) + np.uint64(values[half + i])] += 1
    if len(groups) % 2:
        out[np.uint64(groups[-1]) * np.uint64(outcomes) + np.uint64(values[-1])] += 1


# Indices are unsigned: numba then leaves out the test for negative ones, and loops vectorise.


@njit(types.void(_W, _I, _L, _I_OUT), **_OPTIONS)
def member_contiguous(drawn, codes, starts, out):
    for i in range(len(out)):
        code = np.uint64(codes[i])
        first = starts[code]
        out[i] = np.uint64(first) + _high(drawn[i], np.uint64(starts[code + np.uint64(1)] - first))


@njit(types.void(_W, _I, _L, _I, _I_OUT), **_OPTIONS)
def member_scattered(drawn, codes, starts, order, out):
    """In two loops a tile, so that many of the slow look-ups in ``order`` are under way at a time."""
    place = np.empty(1024, np.uint64)
    for low in range(0, len(out), 1024):
        count = min(1024, len(out) - low)
        for i in range(count):
            code = np.uint64(codes[low + i])
            first = starts[code]
            size = np.uint64(starts[code + np.uint64(1)] - first)
            place[i] = np.uint64(first) + _high(drawn[low + i], size)
        for i in range(count):
            out[low + i] = order[place[i]]


@njit(types.void(_u64, _u64, _u64, _u64, _I, _L, types.boolean, _I, _I_OUT), **_OPTIONS)
def words_member(key0, key1, owner, start, codes, starts, scattered, order, out):
    """Draw members by tiles of words from the block in which the first one is."""
    drawn = np.empty(2052, np.uint64)
    skip = start & np.uint64(3)
    for low in range(0, len(out), 2048):
        size = min(2048, len(out) - low)
        words(key0, key1, owner, (start + np.uint64(low)) >> np.uint64(2), drawn[: (size + 6) // 4 * 4])
        tile, few, into = drawn[skip : skip + np.uint64(size)], codes[low : low + size], out[low : low + size]
        if scattered:
            member_scattered(tile, few, starts, order, into)
        else:
            member_contiguous(tile, few, starts, into)


@njit(types.void(_B, _I, _i64, _B_OUT), **_OPTIONS)
def scatter(values, rows, first, out):
    for i in range(len(values)):
        out[np.uint64(np.int64(rows[i]) - first)] = values[i]


@njit([types.void(_B, _I, _i64, _B_OUT), types.void(_I, _I, _i64, _I_OUT)], **_OPTIONS)
def gather(values, rows, first, out):
    for i in range(len(out)):
        out[i] = values[np.uint64(np.int64(rows[i]) - first)]


@njit(types.void(_B, _I, _i64, _B_OUT), **_OPTIONS)
def gather_bits(bits, rows, first, out):
    for i in range(len(out)):
        row = np.uint64(np.int64(rows[i]) - first)
        out[i] = (np.uint64(bits[row >> np.uint64(3)]) >> (row & np.uint64(7))) & np.uint64(1)


@njit(types.int64(_B, _I_OUT), **_OPTIONS)
def places(mask, out):
    """Write where a mask of 0 and 1 is 1, without branches; return how many there are."""
    count = np.uint64(0)
    for i in range(len(mask)):
        out[count] = i
        count += np.uint64(mask[i])
    return np.int64(count)


@njit(types.int64(_I, types.int32), **_OPTIONS)
def at_home(rows, first):
    """Count the places i at which ``rows[i]`` is first + i."""
    count = 0
    for i in range(len(rows)):
        count += rows[i] == first + np.int32(i)
    return count


@njit(types.int64(_I, _I, _i64, _B_OUT, _I_OUT), **_OPTIONS)
def tally(rows, others, first, out, around):
    """Count rows, except those that equal their entry of ``others``, which may be empty."""
    apart, wraps = len(others) > 0, 0
    for i in range(len(rows)):
        place = np.uint64(np.int64(rows[i]) - first)
        before = out[place]
        fresh = np.uint8(before + np.uint8(not apart or rows[i] != others[i]))
        if fresh < before:  # one comparison: no processor could predict whether a count is 0
            around[wraps] = place
            wraps += 1
        out[place] = fresh
    return wraps


@njit(types.int64(_I, types.int32, _i64, _B_OUT, _I_OUT), **_OPTIONS)
def tally_from(rows, other, first, out, around):
    """Count rows, except those at places i that equal ``other`` + i."""
    wraps = 0
    for i in range(len(rows)):
        place = np.uint64(np.int64(rows[i]) - first)
        before = out[place]
        fresh = np.uint8(before + np.uint8(rows[i] != other + np.int32(i)))
        if fresh < before:
            around[wraps] = place
            wraps += 1
        out[place] = fresh
    return wraps


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


@njit(types.void(_W, _L, _i64, _L_OUT), **_OPTIONS)
def orders(drawn, starts, few, out):
    """Sort by insertion what parties with up to ``few`` words hold; leave out the others."""
    for p in range(len(starts) - 1):
        first, count = starts[p], starts[p + 1] - starts[p]
        if count > few:
            continue
        for i in range(count):
            word, place = drawn[first + i], i
            while place > 0 and drawn[first + out[first + place - 1]] > word:
                out[first + place] = out[first + place - 1]
                place -= 1
            out[first + place] = i


@njit(types.void(_I, _I, _L_OUT, _I_OUT), **_OPTIONS)
def divide(to, bounds, starts, order):
    """Counting sort without branches: destinations are random, so a processor would mispredict half the branches."""
    shards = np.empty(len(to), np.uint16)
    for i in range(len(to)):
        shard = np.uint64(0)
        for bound in bounds:
            shard += np.uint64(to[i] >= bound)
        shards[i] = shard
        starts[shard + np.uint64(1)] += 1
    for s in range(1, len(starts)):
        starts[s] += starts[s - 1]
    following = starts.copy()
    for i in range(len(to)):
        shard = np.uint64(shards[i])
        order[np.uint64(following[shard])] = i
        following[shard] += 1


@njit(inline="always", **_OPTIONS)
def _mix(a, b, value):
    x = (a ^ value) * np.uint64(0x9E3779B97F4A7C15)
    y = (b ^ value) * np.uint64(0xD6E8FEB86659FD93)
    return x ^ (x >> np.uint64(32)), y ^ (y >> np.uint64(29))


RANGE, IDS, BYTES, LONGS, WORDS = 0, 1, 2, 3, 4
ID_COLUMNS, BYTE_COLUMNS, LONG_COLUMNS = 3, 2, 2


@njit(types.UniTuple(_u64, 2)(_u64, _u64, _i64, _PLAN, _BASE, _I, _I, _I, _B, _B, _S, _S, _BASE), **_OPTIONS)
def absorb(salt_a, salt_b, count, plan, base, ids0, ids1, ids2, bytes0, bytes1, longs0, longs1, words):
    """Hash all columns of a tile before the next, so that the state stays in the nearest cache.

    ``plan``: (kind, which) of each column.  A RANGE is ``base[column]``: start + step * row; IDS, BYTES and LONGS
    number the arguments of that name; WORDS are rows of ``words``.
    """
    a, b = np.empty(512, np.uint64), np.empty(512, np.uint64)
    total_a = total_b = np.uint64(0)
    for low in range(0, count, 512):
        size = min(512, count - low)
        for i in range(size):
            a[i], b[i] = salt_a, salt_b
        for c in range(len(plan)):
            kind, which = plan[c, 0], plan[c, 1]
            if kind == RANGE:
                start, step = base[c, 0] + np.uint64(low) * base[c, 1], base[c, 1]
                for i in range(size):
                    a[i], b[i] = _mix(a[i], b[i], start + np.uint64(i) * step)
            elif kind == IDS:
                column = (ids0 if which == 0 else (ids1 if which == 1 else ids2))[low : low + size]
                for i in range(size):
                    a[i], b[i] = _mix(a[i], b[i], np.uint64(np.int64(column[i])))
            elif kind == BYTES:
                octets = (bytes0 if which == 0 else bytes1)[low : low + size]
                for i in range(size):
                    a[i], b[i] = _mix(a[i], b[i], np.uint64(octets[i]))
            elif kind == LONGS:
                longs = (longs0 if which == 0 else longs1)[low : low + size]
                for i in range(size):
                    a[i], b[i] = _mix(a[i], b[i], longs[i])
            else:
                wide = words[which, low : low + size]
                for i in range(size):
                    a[i], b[i] = _mix(a[i], b[i], wide[i])
        for i in range(size):
            total_a += a[i]
            total_b += b[i]
    return total_a, total_b
