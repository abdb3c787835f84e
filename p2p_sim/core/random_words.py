"""Random words: the one source of chance, a pure function of (seed, stream, party, slot).

This is the reference, in numpy.  ``kernels_numba.py`` computes the same words faster; a test holds them equal.
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
_FEW = 16_000
"""Words computed at a time: what lies between fits the cache."""
_MANY = 8_000
"""Words from which it pays to go through them lane by lane, and then to compute no more than each lane needs."""
_SHORT = 500
"""Words of which an argsort is as fast as anything else."""
_HANDFUL = 20
"""Words, or parties with several, up to which a loop is faster than numpy."""
_SOME = 1_500
"""Words up to which calls of numpy take longer than its work."""
_MULTIPLIERS = (0xD2E7470EE14C6C93, 0xCA5A826395121157)
_WEYL = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)
_ROUNDS = 10


@lru_cache(maxsize=4096)
def stream(role: str, name: str, step: int) -> int:
    """Number the stream of one draw: the first 8 bytes of SHA-256(``role/name/step``), little-endian."""
    return int.from_bytes(hashlib.sha256(f"{role}/{name}/{step}".encode()).digest()[:8], "little")


def uniform(drawn: Words) -> npt.NDArray[np.float64]:
    """Return words as numbers in [0, 1), of the same shape: (word >> 11) * 2^-53."""
    return np.asarray((drawn >> np.uint64(11)).astype(np.float64) * 2.0**-53)


def words(seed: int, stream: int, start: int, count: int, owner: int = 0) -> Words:
    """Return the words of parties ``start .. start + count - 1``, shape (count,).

    ``owner``: 0; for item words of one party, hers plus 1.
    """
    key, counter = np.array([seed, stream], np.uint64), np.array([0, owner, 0, 0], np.uint64)
    generator = np.random.Philox(key=key, counter=counter)
    generator.advance(int(start) // 4)
    skip = int(start) % 4
    return generator.random_raw(count + skip)[skip:]


def words_at(seed: int, stream: int, parties: npt.NDArray[Any]) -> Words:
    """Return the words of the given parties, in their order."""
    ids = parties.astype(np.uint64)
    return _outputs(seed, stream, ids >> np.uint64(2), np.zeros(1, np.uint64), ids & np.uint64(3))


def item_words(seed: int, stream: int, parties: npt.NDArray[Any], slots: npt.NDArray[Any]) -> Words:
    """Return item word ``slots[i]`` of party ``parties[i]``, for every i."""
    ranks = slots.astype(np.uint64)
    owners = parties.astype(np.uint64) + np.uint64(1)
    return _outputs(seed, stream, ranks >> np.uint64(2), owners, ranks & np.uint64(3))


def several_words(seed: int, stream: int, parties: npt.NDArray[Any], times: int) -> Words:
    """Return the item words 0 .. times - 1 of every given party, one party after the other."""
    if 0 < len(parties) <= _HANDFUL:
        return np.concatenate([own_words(seed, stream, party, times) for party in parties.tolist()])
    owners, zero = parties.astype(np.uint64) + np.uint64(1), np.zeros(1, np.uint64)
    out = np.empty((len(owners), times), np.uint64)
    for first in range(0, times, 4):  # a block of the cipher has four of them
        lanes = range(min(4, times - first))
        counter, needed = np.array([first // 4 + 1], np.uint64), _needed(*lanes)
        for low in range(0, len(owners), _FEW):
            few = slice(low, low + _FEW)
            state = _philox(seed, stream, [counter, owners[few], zero, zero], needed)
            for lane in lanes:
                out[few, first + lane] = state[lane]
    return out.reshape(-1)


def own_words(seed: int, stream: int, party: int, count: int) -> Words:
    """Return the item words 0 .. count - 1 of one party."""
    return words(seed, stream, 0, count, party + 1)


def order(drawn: Words) -> npt.NDArray[np.int64]:
    """Return the order of words, ties by index: a uniform permutation."""
    if len(drawn) < _SHORT or len(drawn) >= 1 << 32:
        return drawn.argsort(kind="stable")
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
    """Return the high 64 bits of the 128-bit product, in 32-bit halves; ``a`` has the shape of the product."""
    low, high = a & _LOW, a >> _SHIFT
    b_low, b_high = b & _LOW, b >> _SHIFT
    middle = low * b_low
    middle >>= _SHIFT  # in place wherever it can be: memory is what this waits for
    middle += high * b_low
    high *= b_high
    low *= b_high
    low += middle & _LOW
    middle >>= _SHIFT
    low >>= _SHIFT
    high += middle
    high += low
    return high


def _outputs(seed: int, stream: int, block: Words, owner: Words, lane: Words) -> Words:
    """Philox4x64-10 at counter (block + 1, owner, 0, 0): of its four words that of ``lane``, 0 to 3.

    ``owner``: one each, or one for all.  Numpy counts before it encrypts, hence the + 1.
    """
    if len(block) <= _HANDFUL:
        return _handful(seed, stream, block, owner, lane)
    zero = np.zeros(1, np.uint64)
    counter = block + np.uint64(1)
    if len(block) < _MANY:
        every = (
            _all_words(seed, stream, counter, owner)
            if len(block) <= _SOME
            else _philox(seed, stream, [counter, owner, zero, zero], _ALL)
        )
        return np.choose(lane.astype(np.intp), every)
    out = np.empty(len(block), np.uint64)
    for word, needed in enumerate(_NEEDED):
        places = np.flatnonzero(lane == np.uint64(word))
        for low in range(0, len(places), _FEW):
            few = places[low : low + _FEW]
            state = [counter[few], owner if len(owner) == 1 else owner[few], zero, zero]
            out[few] = _philox(seed, stream, state, needed)[word]
    return out


def _keys(seed: int, stream: int) -> list[tuple[int, int]]:
    """Return the two keys of each round."""
    return [
        ((seed + i * _WEYL[0]) % SEED_LIMIT, (stream + i * _WEYL[1]) % SEED_LIMIT) for i in range(_ROUNDS)
    ]


def _handful(seed: int, stream: int, block: Words, owner: Words, lane: Words) -> Words:
    """Do what ``_outputs`` does, word by word."""
    keys, (one, other), mask = _keys(seed, stream), _MULTIPLIERS, SEED_LIMIT - 1
    owners = owner.tolist() * (len(block) if len(owner) == 1 else 1)
    out = []
    for counter, own, word in zip(block.tolist(), owners, lane.tolist(), strict=True):
        a, b, c, d = (counter + 1) & mask, own, 0, 0
        for first, second in keys:
            left, right = a * one, c * other
            a, b, c, d = (right >> 64) ^ b ^ first, right & mask, (left >> 64) ^ d ^ second, left & mask
        out.append((a, b, c, d)[word])
    return np.array(out, np.uint64)


def _all_words(seed: int, stream: int, counter: Words, owner: Words) -> list[Words]:
    """Return all four words at counter (``counter``, ``owner``, 0, 0); both products of a round are one of numpy."""
    even, odd = np.zeros((2, 2, len(counter)), np.uint64)
    even[0], odd[0] = counter, owner
    for keys in np.array(_keys(seed, stream), np.uint64)[:, :, None]:
        high, low = high_product(even, _BOTH), even * _BOTH
        even, odd = high[::-1] ^ odd, low[::-1]
        even ^= keys
    return [even[0], odd[0], even[1], odd[1]]


def _philox(seed: int, stream: int, state: list[Words], needed: list[set[int]]) -> list[Words]:
    """Return the state after ten rounds, each of which computes the needed words only.

    What is the same for all, such as the zeros of the counter, has length 1 as long as it can.
    """
    for these, keys in zip(needed, _keys(seed, stream), strict=True):
        state = [_round(state, i, keys) if i in these else state[i] for i in range(4)]
    return state


def _round(state: list[Words], i: int, keys: tuple[int, int]) -> Words:
    """Return word i of the state after one more round: the low half of a product, or its high half, mixed (even i)."""
    factor, multiplier = state[2 - i // 2 * 2], np.uint64(_MULTIPLIERS[1 - i // 2])
    if i % 2:
        return factor * multiplier
    high, other = high_product(factor, multiplier), state[i + 1]
    high ^= np.uint64(keys[i // 2])
    if high.shape != other.shape:
        return high ^ other
    high ^= other
    return high


def _needed(*words: int) -> list[set[int]]:
    """Return which words of the state each of ten rounds must compute, so that the last computes the given ones."""
    rounds = [set(words)]
    while len(rounds) < _ROUNDS:
        sources = [{2 - i // 2 * 2} | ({i + 1} if i % 2 == 0 else set()) for i in rounds[0]]
        rounds.insert(0, set().union(*sources))
    return rounds


_NEEDED = [_needed(word) for word in range(4)]
_ALL = [set(range(4))] * _ROUNDS
_BOTH = np.array(_MULTIPLIERS, np.uint64)[:, None]
