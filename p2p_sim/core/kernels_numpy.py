"""The inner loops in numpy: the reference that ``kernels_numba.py`` must equal bit for bit.

Both modules offer the same functions; ``compute.choose`` picks one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core import random_words as _words
from p2p_sim.core.exact import pick
from p2p_sim.core.random_words import (
    Words,
    high_product,
    item_words,
    several_words,
    words,
    words_at,
)

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

BLOCK = 131_072
"""Users of one block where the caller does not say: small enough for the processor's cache."""

Each = Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]
"""Does work on each item, in whatever order and threads; see ``Threads.map``."""
Ids = npt.NDArray[np.int32]
Octets = npt.NDArray[np.uint8]
Bools = npt.NDArray[np.bool_]
Array = npt.NDArray[Any]

_LANES = ((0x9E3779B97F4A7C15, 32), (0xD6E8FEB86659FD93, 29))
_PACK_LIMIT = 1 << 31
_TALLIED = 1 << 16


def bernoulli(seed: int, stream: int, start: int, count: int, threshold: int, owner: int = 0) -> Bools:
    """Return word < threshold for the words that ``words`` gives; threshold in 0 .. 2^64."""
    if threshold >= 1 << 64:
        return np.ones(count, np.bool_)
    return _words.words(seed, stream, start, count, owner) < np.uint64(threshold)


def below(drawn: Words, limit: Words | np.uint64) -> npt.NDArray[np.int64]:
    """Map each word to 0 .. limit - 1: the high half of word * limit; limit < 2^63."""
    if np.max(limit, initial=0) >> np.uint64(32):
        return high_product(drawn, limit).astype(np.int64)
    top = (drawn >> np.uint64(32)) * limit  # a limit of 32 bits leaves room for the carry: two products do
    top += ((drawn & np.uint64(0xFFFFFFFF)) * limit) >> np.uint64(32)
    top >>= np.uint64(32)
    return top.view(np.int64)


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
    return below(_words.words(seed, stream, start, count, owner), limit).astype(dtype, copy=False)


def weighted(drawn: Words, sums: Words, rows: Ids) -> npt.NDArray[np.uint8]:
    """Return, for each word, how many running sums of its row are at most an integer drawn below the last of them.

    ``sums``: (rows, outcomes), ascending in each row, at most 256 outcomes; the last is at least 1 and below 2^63.
    """
    columns, where = np.ascontiguousarray(sums.T), rows.astype(np.intp)
    place = below(drawn, columns[-1].take(where)).view(np.uint64)
    found = np.zeros(len(drawn), np.uint8)
    for column in columns[:-1]:
        found += place >= column.take(where)
    return found


def words_weighted(
    seed: int, stream: int, start: int, sums: Words, rows: Ids, owner: int = 0
) -> npt.NDArray[np.uint8]:
    """Do what ``weighted`` does, with as many words as rows of those that ``words`` gives."""
    return weighted(_words.words(seed, stream, start, len(rows), owner), sums, rows)


def several_picked(
    table: Words, seed: int, stream: int, parties: range | npt.NDArray[Any], times: int, dtype: Any = np.int64
) -> Array:
    """Return, for each of the words that ``several_words`` gives, how many thresholds are at most the word.

    ``dtype``: np.int64 or np.int32.
    """
    owners = np.arange(parties.start, parties.stop) if isinstance(parties, range) else parties
    return pick(table, several_words(seed, stream, owners, times)).astype(dtype, copy=False)


def several_looked_up(
    table: Words, values: Array, seed: int, stream: int, parties: range | npt.NDArray[Any], times: int
) -> npt.NDArray[np.float64]:
    """Return the value of each number that ``several_picked`` gives; ``values``: float64, one more than thresholds."""
    return values.take(several_picked(table, seed, stream, parties, times))


def member(drawn: Words, codes: Ids, starts: npt.NDArray[np.int64], order: Ids | None) -> Ids:
    """Return, for each word, a uniform row of group ``codes[i]``: its k-th in ascending row."""
    first = starts[codes]
    place = below(drawn, (starts[1:][codes] - first).astype(np.uint64)) + first
    return place.astype(np.int32) if order is None else order[place]


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
    return member(_words.words(seed, stream, start, len(codes), owner), codes, starts, order)


def gather(values: Array, rows: Ids, first: int) -> Array:
    """Return ``values[rows - first]``."""
    return np.take(values, rows - np.int32(first) if first else rows, axis=0)


def choose_multiples(
    mask: Bools, one: Array, other: Array, resolution: float, least: int, most: int, dtype: np.dtype[Any]
) -> Array | None:
    """Return what ``multiples`` does of rows of ``one`` (n, width) where the mask (n,) is true, else of ``other``.

    By look-up, some at a time: np.where, which branches for every random entry, takes several times as long.
    """
    out = np.empty(one.shape, dtype)
    for some in parts(one):
        both, count = np.concatenate([other[some], one[some]]), len(one[some])
        chosen = np.take(both, np.arange(count) + count * mask[some], axis=0)
        found = multiples(chosen, resolution, least, most, dtype)
        if found is None:
            return None
        out[some] = found
    return out


def add_rows(rows: Array, which: Array, out: Array) -> None:
    """Add row ``which[i]`` of a table to row i of ``out``; all float64."""
    for some in parts(out):
        out[some] += np.take(rows, which[some], axis=0)


def multiples(values: Array, resolution: float, least: int, most: int, dtype: np.dtype[Any]) -> Array | None:
    """Return the nearest multiples of a resolution, of a tie the even ones, as integers; None if one is outside.

    ``values``: bool, integers or floats, of any shape.  ``least``, ``most``: at most 2^50 from 0.
    """
    flat, out, inverse = values.reshape(-1), np.empty(values.size, dtype), exact_inverse(resolution)
    for some in parts(flat):
        with np.errstate(over="ignore"):  # what is too large for a float is outside, too
            if inverse is None:
                nearest = np.divide(flat[some], resolution, dtype=np.float64)
            else:
                nearest = np.multiply(flat[some], inverse, dtype=np.float64)
            np.rint(nearest, out=nearest)
        if not least <= nearest.min() <= nearest.max() <= most:
            return None
        out[some] = nearest
    return out.reshape(values.shape)


def exact_inverse(resolution: float) -> float | None:
    """Return the inverse of a power of two, by which it is sooner multiplied than divided; None of other numbers."""
    return 1 / resolution if math.frexp(resolution)[0] == 0.5 else None


_AT_ONCE = 16_384
"""Numbers computed at a time: what lies between stays in the processor's cache."""


def parts(rows: Array) -> Iterator[slice]:
    """Return, one after the other, so few rows that what is computed of them fits the processor's cache."""
    step = max(1, _AT_ONCE * len(rows) // max(1, rows.size))
    return (slice(low, low + step) for low in range(0, len(rows), step))


def places(mask: Bools) -> Ids:
    """Return where a mask is true."""
    return np.flatnonzero(mask).astype(np.int32)


def table(parts: Sequence[Array], each: Each = map) -> Any:
    """Prepare values, given in parts that follow each other, for many calls of ``gather``.

    ``each``: what does work on items one after the other, or side by side.
    """
    if len(parts) == 1:
        return parts[0]
    starts = [0, *itertools.accumulate(map(len, parts))]
    whole = np.empty((starts[-1], *parts[0].shape[1:]), parts[0].dtype)

    def put(place: int) -> None:
        whole[starts[place] : starts[place + 1]] = parts[place]

    for _ in each(put, range(len(parts))):
        pass
    return whole


def scatter(values: Array, rows: Ids, first: int, out: Array) -> None:
    """Set ``out[rows - first]`` to the values; rows are distinct."""
    out[rows - np.int32(first)] = values


def tally(rows: Ids | range, others: Ids | range | None, first: int, out: Octets) -> Ids:
    """Add 1 to ``out[row - first]`` for each row, but where ``others`` has the same row.

    Return the places in ``out`` that came around to 0, each as often as it did.
    """
    counted, found = as_array(rows), [np.zeros(0, np.int32)]
    if others is not None:
        counted = counted[counted != as_array(others)]
    for low in range(0, len(counted), _TALLIED):
        places = counted[low : low + _TALLIED] - np.int32(first)
        if int(np.bincount(places & 0xFFFF).max()) > 255:  # some row may come around and beyond where it was
            found.append(_tally_often(places, out))
            continue
        before = out[places]
        np.add.at(out, places, np.uint8(1))
        found.append(np.unique(places[out[places] < before]))
    return np.concatenate(found)


def _tally_often(places: Ids, out: Octets) -> Ids:
    """Do what ``tally`` does where some rows are counted many times: all of a row at once."""
    ordered = np.sort(places)
    begins = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    which = ordered[begins]
    counts = out[which] + np.diff(begins, append=len(ordered))
    out[which] = counts & 255
    around: Ids = np.repeat(which, counts >> 8)
    return around


def contingency(groups: Ids, values: npt.NDArray[np.uint8], shape: tuple[int, int]) -> npt.NDArray[np.int64]:
    """Count how often each value, below ``shape[1]``, stands beside each group, below ``shape[0]``."""
    cells = np.multiply(groups, shape[1], dtype=np.int64)
    cells += values
    return np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)


def group(local: Ids, parties: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Sort messages by recipient, keeping their order: (permutation, first message of each party and the end)."""
    if len(local) >= _PACK_LIMIT:
        order = np.argsort(local, kind="stable")
    else:  # a plain sort of (recipient, position) packed in one word is ten times a stable argsort
        packed = (local.astype(np.int64) << 32) | np.arange(len(local), dtype=np.int64)
        packed.sort()
        order = packed & 0xFFFFFFFF
    starts = np.zeros(parties + 1, np.int64)
    np.cumsum(np.bincount(local, minlength=parties), out=starts[1:])
    return order, starts


def orders(drawn: Words, starts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return a uniform order of what each party holds, as ranks: by the order of its words, ties by rank.

    Party p holds the words ``starts[p] .. starts[p + 1] - 1``.
    """
    if len(starts) == 2:
        return _words.order(drawn)
    holder = np.repeat(np.arange(len(starts) - 1, dtype=np.int32), np.diff(starts))
    by_word = _words.order(drawn)  # and then by holder: two plain sorts take a fraction of a lexsort
    ranks: npt.NDArray[np.int64] = by_word[group(holder[by_word], len(starts) - 1)[0]] - starts[holder]
    return ranks


def divide(to: Ids, bounds: npt.NDArray[np.int64]) -> tuple[Array, Array]:
    """Sort rows by shard, keeping their order: (permutation, first of each shard and the end).

    ``bounds``: first row of each shard but the first; shard i + 1 begins at ``bounds[i]``.
    """
    shards = np.searchsorted(bounds, to, side="right").astype(np.uint16)
    starts = np.zeros(len(bounds) + 2, np.int64)
    np.cumsum(np.bincount(shards, minlength=len(bounds) + 1), out=starts[1:])
    return np.argsort(shards, kind="stable").astype(np.int32), starts


def meetings(one: Array | range, other: Array | range) -> int:
    """Count the places at which two columns of rows are equal."""
    return int(np.count_nonzero(as_array(one) == as_array(other)))


def absorb(salt: int, columns: list[Array | range | int], count: int) -> tuple[int, int]:
    """Hash ``count`` rows, each from its columns in order, and return the two lane sums modulo 2^64."""
    sums = []
    for lane, (multiplier, shift) in enumerate(_LANES):
        state = np.full(count, (salt + lane) % (1 << 64), np.uint64)
        for column in columns:
            state ^= as_words(column)
            state *= np.uint64(multiplier)
            state ^= state >> np.uint64(shift)
        sums.append(int(state.sum(dtype=np.uint64)))
    return sums[0], sums[1]


def mixed(lanes: list[int], value: int) -> list[int]:
    """Return the two states of a row's hash after one more value."""
    states = [
        (state ^ value) * multiplier % (1 << 64) for state, (multiplier, _) in zip(lanes, _LANES, strict=True)
    ]
    return [state ^ (state >> shift) for state, (_, shift) in zip(states, _LANES, strict=True)]


def as_array(rows: Array | range) -> Array:
    """Return rows as an array; numpy itself would go through a range one by one."""
    return np.arange(rows.start, rows.stop, dtype=np.int32) if isinstance(rows, range) else rows


def as_words(column: Array | range | int) -> Array | np.uint64:
    """Return a column as 64-bit words; signed values in two's complement."""
    if isinstance(column, int):
        return np.uint64(column)
    if isinstance(column, range):
        return np.arange(column.start, column.stop, dtype=np.uint64)
    if column.dtype.kind == "i":
        return column.astype(np.int64).view(np.uint64)
    return column.astype(np.uint64)
