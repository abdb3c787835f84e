"""Random words: the one source of chance, a pure function of (seed, stream, party, slot).

This is the reference, in numpy.  ``kernels.py`` computes the same words faster; a test holds them equal.
Party ``u`` of stream ``h`` owns one word, output ``u`` of Philox4x64-10 keyed by (seed, h).  What she holds
or draws several times has item words: item ``r`` is output ``r`` of the same cipher at counter (0, u + 1, 0, 0).
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]

SEED_LIMIT = 1 << 64
_LOW = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)
_FEW = 8192
_MULTIPLIERS = (0xD2E7470EE14C6C93, 0xCA5A826395121157)
_WEYL = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)


@lru_cache(maxsize=4096)
def stream(role: str, name: str, step: int) -> int:
    """Number the stream of one draw: the first 8 bytes of SHA-256(``role/name/step``), little-endian."""
    return int.from_bytes(hashlib.sha256(f"{role}/{name}/{step}".encode()).digest()[:8], "little")


def words(seed: int, stream: int, start: int, count: int) -> Words:
    """Return the words of parties ``start .. start + count - 1``, shape (count,)."""
    key = np.array([seed, stream], np.uint64)
    generator = np.random.Philox(key=key, counter=np.zeros(4, np.uint64))
    generator.advance(int(start) // 4)
    skip = int(start) % 4
    return generator.random_raw(count + skip)[skip:]


def words_at(seed: int, stream: int, parties: npt.NDArray[Any]) -> Words:
    """Return the words of the given parties, in their order."""
    ids = parties.astype(np.uint64)
    return _outputs(seed, stream, ids >> np.uint64(2), np.zeros_like(ids), ids & np.uint64(3))


def item_words(seed: int, stream: int, parties: npt.NDArray[Any], slots: npt.NDArray[Any]) -> Words:
    """Return item word ``slots[i]`` of party ``parties[i]``, for every i."""
    ranks = slots.astype(np.uint64)
    owners = parties.astype(np.uint64) + np.uint64(1)
    return _outputs(seed, stream, ranks >> np.uint64(2), owners, ranks & np.uint64(3))


def own_words(seed: int, stream: int, party: int, count: int) -> Words:
    """Return the item words 0 .. count - 1 of one party."""
    key, counter = np.array([seed, stream], np.uint64), np.array([0, party + 1, 0, 0], np.uint64)
    return np.random.Philox(key=key, counter=counter).random_raw(count)


def order(drawn: Words) -> npt.NDArray[np.int64]:
    """Return the order of words, ties by index: a uniform permutation."""
    if len(drawn) >= 1 << 32:
        return np.argsort(drawn, kind="stable")
    packed = drawn & ~_LOW
    packed |= np.arange(len(drawn), dtype=np.uint64)  # a plain sort is four times as fast as an argsort
    packed.sort()
    same = np.flatnonzero((packed[1:] ^ packed[:-1]) <= _LOW)
    packed &= _LOW
    found = packed.view(np.int64)
    if len(same):  # the rest of the word decides
        places = np.union1d(same, same + 1)
        tied = found[places]
        found[places] = tied[np.lexsort((tied, drawn[tied]))]
    return found


def high_product(a: Words, b: Words | np.uint64) -> Words:
    """Return the high 64 bits of the 128-bit product, in 32-bit halves."""
    a_low, a_high = a & _LOW, a >> _SHIFT
    b_low, b_high = b & _LOW, b >> _SHIFT
    middle = a_high * b_low + ((a_low * b_low) >> _SHIFT)
    middle_low = a_low * b_high + (middle & _LOW)
    high: Words = a_high * b_high + (middle >> _SHIFT) + (middle_low >> _SHIFT)
    return high


def _outputs(seed: int, stream: int, block: Words, owner: Words, lane: Words) -> Words:
    """Philox4x64-10 at counter (block + 1, owner, 0, 0), a few at a time: what lies between fits the cache."""
    out = np.empty(len(block), np.uint64)
    for low in range(0, len(block), _FEW):
        few = slice(low, low + _FEW)
        out[few] = _philox(seed, stream, block[few], owner[few], lane[few])
    return out


def _philox(seed: int, stream: int, block: Words, owner: Words, lane: Words) -> Words:
    """Return one output each; numpy counts before it encrypts, hence the + 1."""
    c0, c1 = block + np.uint64(1), owner.copy()
    c2, c3 = np.zeros_like(c0), np.zeros_like(c0)
    m0, m1 = (np.uint64(m) for m in _MULTIPLIERS)
    key0, key1 = seed, stream
    for _ in range(10):
        high0, low0 = high_product(c0, m0), c0 * m0
        high1, low1 = high_product(c2, m1), c2 * m1
        c0, c1, c2, c3 = high1 ^ c1 ^ np.uint64(key0), low1, high0 ^ c3 ^ np.uint64(key1), low0
        key0, key1 = (key0 + _WEYL[0]) % SEED_LIMIT, (key1 + _WEYL[1]) % SEED_LIMIT
    return np.choose(lane.astype(np.intp), [c0, c1, c2, c3])
