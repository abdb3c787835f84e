"""Groups of users laid out one after the other, pairs within them, and random words for drawing graphs.

A *place* is a position in this layout: group g has the places ``starts[g] .. starts[g + 1] - 1``.  A graph over
everyone is one group; a graph within clusters has a group a cluster, and no pair leaves its group.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.random_words import Words, stream, words

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]

_CHUNK = 1 << 16
_SIEVE = (1 << 20) - 1


@dataclass(frozen=True)
class Draws:
    """The words of one attempt at a graph: a function of seed, topology, name and attempt."""

    seed: int
    topology: str
    attempt: int

    def words(self, name: str, count: int) -> Words:
        """Return ``count`` words of a name, shape (count,)."""
        return words(self.seed, self._stream(name), 0, count)

    def each(self, name: str) -> Iterator[int]:
        """Yield the words of a name one by one, without end."""
        low = 0
        while True:
            yield from words(self.seed, self._stream(name), low, _CHUNK).tolist()
            low += _CHUNK

    def _stream(self, name: str) -> int:
        return stream("graph", f"{self.topology}/{name}", self.attempt)


@dataclass(frozen=True)
class Blocks:
    """Groups of ``sizes`` users, shape (groups,), one after the other."""

    sizes: Ints

    @cached_property
    def starts(self) -> Ints:
        """First place of each group, and the end: shape (groups + 1,)."""
        return np.concatenate([[0], np.cumsum(self.sizes)])

    @property
    def places(self) -> int:
        """How many places there are."""
        return int(self.starts[-1])

    @cached_property
    def group(self) -> Ints:
        """The group of each place."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    @cached_property
    def rank(self) -> Ints:
        """The position of each place in its group, from 0."""
        return np.arange(self.places) - self.starts[:-1][self.group]

    @property
    def bits(self) -> int:
        """Bits that hold a place."""
        return max(1, self.places.bit_length())


def keys(first: Ints, second: Ints, bits: int) -> Ints:
    """Return one number a pair, the same in both directions; ``bits`` hold either end, at most 31."""
    return (np.minimum(first, second) << bits) | np.maximum(first, second)


def within(sorted_keys: Ints, wanted: Ints) -> npt.NDArray[np.bool_]:
    """Return which wanted keys are among the known ones, which are sorted."""
    if not len(sorted_keys):
        return np.zeros(len(wanted), np.bool_)
    found: npt.NDArray[np.bool_] = (
        sorted_keys[np.minimum(np.searchsorted(sorted_keys, wanted), len(sorted_keys) - 1)] == wanted
    )
    return found


def copies(key: Ints, sorted_keys: Ints) -> Ints:
    """Return the positions of keys that occurred before; ``sorted_keys`` are the same keys, sorted."""
    twice = sorted_keys[1:][sorted_keys[1:] == sorted_keys[:-1]]
    sieve = np.zeros(
        _SIEVE + 1, np.bool_
    )  # few are looked at closely: a search for each key would take longer
    sieve[twice & _SIEVE] = True
    near = np.flatnonzero(sieve[key & _SIEVE])
    near = near[within(twice, key[near])]
    _, first = np.unique(key[near], return_index=True)
    return np.delete(near, first)


def all_pairs(blocks: Blocks) -> Ints:
    """Return every pair of each group, shape (m, 2): for groups that are small."""
    higher = np.repeat(np.arange(blocks.places), blocks.rank)
    before = np.cumsum(blocks.rank) - blocks.rank  # pairs of earlier places
    lower = np.arange(len(higher)) - before[higher] + blocks.starts[:-1][blocks.group[higher]]
    return np.stack([lower, higher]).T
