"""The inner loops compiled by numba: the same functions as ``kernels_numpy.py``, bit for bit, several times faster.

Imported on first use (see ``compute.choose``).
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core import exact, kernels_numpy, numba_loops
from p2p_sim.core.kernels_numpy import Array, Bools, Each, Ids, Octets, as_array, as_words
from p2p_sim.core.random_words import Words
from p2p_sim.core.run_digest import added

__all__ = [
    "BLOCK",
    "absorb",
    "add_rows",
    "below",
    "bernoulli",
    "choose_multiples",
    "contingency",
    "divide",
    "gather",
    "group",
    "item_words",
    "meetings",
    "member",
    "multiples",
    "orders",
    "pick",
    "places",
    "scatter",
    "several_looked_up",
    "several_picked",
    "several_words",
    "table",
    "tally",
    "weighted",
    "words",
    "words_at",
    "words_below",
    "words_member",
    "words_weighted",
]  # fmt: skip

BLOCK = 262_144
_AT_ONCE = 131_072
"""Rows that are hashed at a time where columns are copied for it."""
_PACKED = 1 << 20
"""Bools that are packed at a time, by one thread; a multiple of 8."""
_FEW = 32
"""Words up to which sorting by insertion is the fastest."""


def words(seed: int, stream: int, start: int, count: int, owner: int = 0) -> Words:
    """Return the words of parties ``start .. start + count - 1``, or item words of one, ``owner`` - 1."""
    skip = start % 4
    out = np.empty((skip + count + 3) // 4 * 4, np.uint64)
    numba_loops.words(seed, stream, owner, start // 4, out)
    return out[skip : skip + count]


def bernoulli(seed: int, stream: int, start: int, count: int, threshold: int, owner: int = 0) -> Bools:
    """Return word < threshold for the words that ``words`` gives; threshold in 0 .. 2^64."""
    if threshold >= 1 << 64:
        return np.ones(count, np.bool_)
    skip = start % 4
    out = np.empty((skip + count + 3) // 4 * 4, np.uint8)
    numba_loops.bernoulli(seed, stream, owner, start // 4, threshold, out)
    return out[skip : skip + count].view(np.bool_)


def words_at(seed: int, stream: int, parties: npt.NDArray[Any]) -> Words:
    """Return the words of the given parties, in their order."""
    return _of(seed, stream, parties, 0, parties)


def item_words(seed: int, stream: int, parties: npt.NDArray[Any], slots: npt.NDArray[Any]) -> Words:
    """Return item word ``slots[i]`` of party ``parties[i]``, for every i."""
    return _of(seed, stream, parties, 1, slots)


def several_words(seed: int, stream: int, parties: npt.NDArray[Any], times: int) -> Words:
    """Return the item words 0 .. times - 1 of every given party, one party after the other."""
    out = np.empty(len(parties) * times, np.uint64)
    numba_loops.several_words(seed, stream, np.ascontiguousarray(parties, np.int64), times, out)
    return out


def pick(table: Words, drawn: Words) -> npt.NDArray[np.int64]:
    """Return, for each word, how many thresholds are at most the word."""
    if len(drawn) < exact.GUIDED:
        return exact.pick(table, drawn)
    out = np.empty(len(drawn), np.int64)
    numba_loops.pick(table, np.ascontiguousarray(drawn), *exact.guide(table), out)
    return out


def several_picked(
    table: Words, seed: int, stream: int, parties: range | npt.NDArray[Any], times: int, dtype: Any = np.int64
) -> Array:
    """Return, for each of the words that ``several_words`` gives, how many thresholds are at most the word."""
    if len(parties) * times < exact.GUIDED:
        return kernels_numpy.several_picked(table, seed, stream, parties, times, dtype)
    return _several(table, np.arange(len(table) + 1, dtype=dtype), seed, stream, parties, times)


def several_looked_up(
    table: Words, values: Array, seed: int, stream: int, parties: range | npt.NDArray[Any], times: int
) -> npt.NDArray[np.float64]:
    """Return the value of each number that ``several_picked`` gives; ``values``: float64, one more than thresholds."""
    if len(parties) * times < exact.GUIDED:
        return kernels_numpy.several_looked_up(table, values, seed, stream, parties, times)

    return _several(table, np.ascontiguousarray(values, np.float64), seed, stream, parties, times)


def _several(
    table: Words, values: Array, seed: int, stream: int, parties: range | npt.NDArray[Any], times: int
) -> Array:
    out, together = np.empty(len(parties) * times, values.dtype), isinstance(parties, range)
    first = parties.start if isinstance(parties, range) else 0
    owners = np.zeros(0, np.int64) if together else np.ascontiguousarray(parties, np.int64)
    numba_loops.several_looked_up(seed, stream, first, owners, times, table, *exact.guide(table), values, out)
    return out


def _of(seed: int, stream: int, parties: Array, each: int, outputs: Array) -> Words:
    out = np.empty(len(parties), np.uint64)
    owners, places = (np.ascontiguousarray(part, np.int64) for part in (parties, outputs))
    numba_loops.words_of(seed, stream, owners, each, places, out)
    return out


def below(drawn: Words, limit: Words | np.uint64) -> npt.NDArray[np.int64]:
    """Map each word to 0 .. limit - 1: the high half of word * limit; limit < 2^63."""
    out = np.empty(len(drawn), np.int64)
    numba_loops.below(
        np.ascontiguousarray(drawn), np.ascontiguousarray(np.broadcast_to(limit, drawn.shape)), out
    )
    return out


def words_below(
    seed: int,
    stream: int,
    start: int,
    count: int,
    limit: Words | np.uint64,
    owner: int = 0,
    dtype: type[np.integer[Any]] = np.int64,
) -> npt.NDArray[np.integer[Any]]:
    """Map each of the words that ``words`` gives to 0 .. limit - 1, as ``below`` does, in a type that holds them."""
    out, limits = np.empty(count, np.uint8 if dtype is np.uint8 else np.int64), np.ascontiguousarray(limit)
    numba_loops.words_below(seed, stream, owner, start, np.ndim(limit) > 0, limits.reshape(-1), out)
    return out.astype(dtype, copy=False)


def weighted(drawn: Words, sums: Words, rows: Ids) -> npt.NDArray[np.uint8]:
    """Return, for each word, how many running sums of its row are at most an integer drawn below the last of them."""
    out = np.empty(len(drawn), np.uint8)
    numba_loops.weighted(np.ascontiguousarray(drawn), *_halved(sums), rows, out)
    return out


def words_weighted(
    seed: int, stream: int, start: int, sums: Words, rows: Ids, owner: int = 0
) -> npt.NDArray[np.uint8]:
    """Do what ``weighted`` does, with as many words as rows of those that ``words`` gives."""
    out = np.empty(len(rows), np.uint8)
    numba_loops.words_weighted(seed, stream, owner, start, *_halved(sums), rows, out)
    return out


def _halved(sums: Words) -> tuple[Words, int, Words]:
    """Return the running sums of all rows, how many each has, a power of two, and its last; the added are too large."""
    width = 1 << (sums.shape[1] - 1).bit_length()
    wide = np.full((len(sums), width), np.iinfo(np.uint64).max, np.uint64)
    wide[:, : sums.shape[1]] = sums
    return wide.reshape(-1), width, np.ascontiguousarray(sums[:, -1])


def member(drawn: Words, codes: Ids, starts: npt.NDArray[np.int64], order: Ids | None) -> Ids:
    """Return, for each word, a uniform row of group ``codes[i]``: its k-th in ascending row."""
    out = np.empty(len(drawn), np.int32)
    if order is None:
        numba_loops.member_contiguous(drawn, codes, starts, out)
    else:
        numba_loops.member_scattered(drawn, codes, starts, order, out)
    return out


def words_member(
    seed: int,
    stream: int,
    start: int,
    codes: Ids,
    starts: npt.NDArray[np.int64],
    order: Ids | None,
    owner: int = 0,
) -> Ids:
    """Do what ``member`` does, with as many words as codes of those that ``words`` gives."""
    out, rows = np.empty(len(codes), np.int32), np.zeros(0, np.int32) if order is None else order
    numba_loops.words_member(seed, stream, owner, start, codes, starts, order is not None, rows, out)
    return out


class Bits:
    """Bools, eight a byte: a table that fits the cache."""

    def __init__(self, parts: Sequence[Bools], each: Each):
        starts = [0, *itertools.accumulate(map(len, parts))]
        self.bits = np.empty(-(-starts[-1] // 8), np.uint8)

        def pack(low: int) -> None:
            """Pack the bools from ``low`` on, which is a multiple of 8, of however many parts they are."""
            pieces, high = [], min(low + _PACKED, starts[-1])
            for place in range(bisect.bisect_right(starts, low) - 1, bisect.bisect_left(starts, high)):
                pieces.append(parts[place][max(0, low - starts[place]) : high - starts[place]])
            whole = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
            self.bits[low // 8 : -(-high // 8)] = np.packbits(whole, bitorder="little")

        for _ in each(pack, range(0, starts[-1], _PACKED)):
            pass


def table(parts: Sequence[Array], each: Each = map) -> Any:
    """Prepare values, given in parts that follow each other, for many calls of ``gather``.

    ``each``: what does work on items one after the other, or side by side.
    """
    if parts[0].dtype == np.bool_ and parts[0].ndim == 1:
        return Bits(parts, each)
    return kernels_numpy.table(parts, each)


def gather(values: Any, rows: Ids, first: int) -> Array:
    """Return ``values[rows - first]``."""
    if isinstance(values, Bits):
        drawn = np.empty(len(rows), np.uint8)
        numba_loops.gather_bits(values.bits, rows, first, drawn)
        return drawn.view(np.bool_)
    bits = _BITS.get(values.itemsize)
    if bits is None or values.ndim != 1 or not values.flags.c_contiguous:
        return kernels_numpy.gather(values, rows, first)
    out = np.empty(len(rows), values.dtype)
    numba_loops.gather(values.view(bits), rows, first, out.view(bits))
    return out


_BITS: dict[int, type] = {1: np.uint8, 4: np.int32}
"""As what values of some bytes are gathered."""


def choose_multiples(
    mask: Bools, one: Array, other: Array, resolution: float, least: int, most: int, dtype: np.dtype[Any]
) -> Array | None:
    """Return what ``multiples`` does of rows of ``one`` (n, width) where the mask (n,) is true, else of ``other``."""
    inverse = kernels_numpy.exact_inverse(resolution)
    if inverse is None or dtype != np.int32 or not (_plain(one) and _plain(other)):
        return kernels_numpy.choose_multiples(mask, one, other, resolution, least, most, dtype)
    out, octets = np.empty(one.shape, dtype), np.ascontiguousarray(mask).view(np.uint8)
    words = (each.view(np.uint64) for each in (one, other))
    return out if numba_loops.choose_multiples(octets, *words, inverse, least, most, out) else None


def add_rows(rows: Array, which: Array, out: Array) -> None:
    """Add row ``which[i]`` of a table to row i of ``out``; all float64."""
    places = which if which.dtype == np.uint8 else which.astype(np.int64, copy=False)
    numba_loops.add_rows(np.ascontiguousarray(rows), np.ascontiguousarray(places), out)


def multiples(values: Array, resolution: float, least: int, most: int, dtype: np.dtype[Any]) -> Array | None:
    """Return the nearest multiples of a resolution, of a tie the even ones, as integers; None if one is outside."""
    inverse = kernels_numpy.exact_inverse(resolution)
    if inverse is None or dtype not in numba_loops.MULTIPLES or not _plain(values):
        return kernels_numpy.multiples(values, resolution, least, most, dtype)
    out = np.empty(values.shape, dtype)
    inside = numba_loops.multiples(values.reshape(-1), inverse, least, most, out.reshape(-1))
    return out if inside else None


def _plain(values: Array) -> bool:
    """Whether these are float64 beside each other."""
    return values.dtype == np.float64 and values.flags.c_contiguous


def places(mask: Bools) -> Ids:
    """Return where a mask is true."""
    out = np.empty(len(mask), np.int32)
    return out[: numba_loops.places(np.ascontiguousarray(mask).view(np.uint8), out)].copy()


def scatter(values: Array, rows: Ids, first: int, out: Array) -> None:
    """Set ``out[rows - first]`` to the values; rows are distinct."""
    if values.itemsize != 1 or values.ndim != 1 or not values.flags.c_contiguous:
        kernels_numpy.scatter(values, rows, first, out)
    else:
        numba_loops.scatter(values.view(np.uint8), rows, first, out.view(np.uint8))


def tally(rows: Ids | range, others: Ids | range | None, first: int, out: Octets) -> Ids:
    """Add 1 to ``out[row - first]`` for each row, but where ``others`` has the same row; return what came around."""
    counted, around = np.ascontiguousarray(as_array(rows)), np.empty(len(rows), np.int32)
    if isinstance(others, range):
        times = numba_loops.tally_from(counted, others.start, first, out, around)
    else:
        apart = np.zeros(0, np.int32) if others is None else np.ascontiguousarray(others)
        times = numba_loops.tally(counted, apart, first, out, around)
    return around[:times].copy()


def contingency(groups: Ids, values: npt.NDArray[np.uint8], shape: tuple[int, int]) -> npt.NDArray[np.int64]:
    """Count how often each value, below ``shape[1]``, stands beside each group, below ``shape[0]``."""
    out = np.zeros(shape, np.int64)
    numba_loops.contingency(
        np.ascontiguousarray(groups), np.ascontiguousarray(values), shape[1], out.reshape(-1)
    )
    return out


def group(local: Ids, parties: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Sort messages by recipient, keeping their order: (permutation, first message of each party and the end)."""
    starts, order = np.zeros(parties + 1, np.int64), np.empty(len(local), np.int64)
    numba_loops.group(local, starts, order)
    return order, starts


def orders(drawn: Words, starts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return a uniform order of what each party holds, as ranks: by the order of its words, ties by rank."""
    ranks, counts = np.empty(len(drawn), np.int64), np.diff(starts)
    numba_loops.orders(np.ascontiguousarray(drawn), np.ascontiguousarray(starts), _FEW, ranks)
    many = counts > _FEW
    if bool(many.any()):
        mask = np.repeat(many, counts)
        ranks[mask] = kernels_numpy.orders(drawn[mask], np.concatenate([[0], np.cumsum(counts[many])]))
    return ranks


def meetings(one: Array | range, other: Array | range) -> int:
    """Count the places at which two columns of rows are equal."""
    if isinstance(one, range):
        one, other = other, one
    if isinstance(one, range) or not isinstance(other, range):
        return kernels_numpy.meetings(one, other)
    return int(numba_loops.at_home(np.ascontiguousarray(one), other.start))


def divide(to: Ids, bounds: npt.NDArray[np.int64]) -> tuple[Array, Array]:
    """Sort rows by shard, keeping their order: (permutation, first of each shard and the end)."""
    order, starts = np.empty(len(to), np.int32), np.zeros(len(bounds) + 2, np.int64)
    numba_loops.divide(np.ascontiguousarray(to), bounds.astype(np.int32), starts, order)
    return order, starts


_AS_IDS = (np.dtype(np.int32), np.dtype(np.uint16), np.dtype(np.int16))
"""Types of columns that are the same numbers as int32."""


def absorb(salt: int, columns: list[Array | range | int], count: int) -> tuple[int, int]:
    """Hash ``count`` rows, each from its columns in order, and return the two lane sums modulo 2^64."""
    if count > _AT_ONCE and not all(map(_read_as_it_is, columns)):  # the copies then stay in the caches
        total = (0, 0)
        for low in range(0, count, _AT_ONCE):
            few = [each if isinstance(each, int) else each[low : low + _AT_ONCE] for each in columns]
            total = added(total, absorb(salt, few, min(_AT_ONCE, count - low)))
        return total
    lanes = [salt, (salt + 1) % (1 << 64)]
    while columns and isinstance(columns[0], int):  # what is the same in all rows is hashed once
        lanes = kernels_numpy.mixed(lanes, columns[0])
        columns = columns[1:]
    plan = np.zeros((len(columns), 2), np.int64)
    base = np.zeros((len(columns), 2), np.uint64)
    ids: list[Array] = []
    octets: list[Array] = []
    longs: list[Array] = []
    wide: list[Array] = []
    for place, column in enumerate(columns):
        if isinstance(column, int):
            plan[place], base[place] = (numba_loops.RANGE, 0), (column, 0)
        elif isinstance(column, range):
            plan[place], base[place] = (numba_loops.RANGE, 0), (column.start, 1)
        elif column.dtype in _AS_IDS and len(ids) < numba_loops.ID_COLUMNS:
            plan[place] = (numba_loops.IDS, len(ids))
            ids.append(np.ascontiguousarray(column, np.int32))
        elif column.dtype in (np.bool_, np.uint8) and len(octets) < numba_loops.BYTE_COLUMNS:
            plan[place] = (numba_loops.BYTES, len(octets))
            octets.append(np.ascontiguousarray(column).view(np.uint8))
        elif column.dtype.itemsize == 8 and len(longs) < numba_loops.LONG_COLUMNS:
            plan[place] = (numba_loops.LONGS, len(longs))
            longs.append(column.view(np.uint64))
        else:
            plan[place] = (numba_loops.WORDS, len(wide))
            wide.append(np.asarray(as_words(column)))
    ids += [np.zeros(0, np.int32)] * (numba_loops.ID_COLUMNS - len(ids))
    octets += [np.zeros(0, np.uint8)] * (numba_loops.BYTE_COLUMNS - len(octets))
    longs += [np.zeros(0, np.uint64)] * (numba_loops.LONG_COLUMNS - len(longs))
    words = np.stack(wide) if wide else np.zeros((0, 0), np.uint64)
    a, b = numba_loops.absorb(*lanes, count, plan, base, *ids, *octets, *longs, words)
    return int(a), int(b)


def _read_as_it_is(column: Array | range | int) -> bool:
    """Whether a column is hashed without a copy of it, as few enough of its kind are."""
    if isinstance(column, (int, range)) or column.dtype.itemsize == 8:
        return True
    return column.flags.c_contiguous and column.dtype in (np.int32, np.uint8, np.bool_)
