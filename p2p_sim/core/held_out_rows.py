"""Rows of a table that are held out to test a model, drawn by a seed; the other rows are the users.

Whether a row is held out follows from its place in the table, a seed and a share: not from files, blocks or shards.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.core.population import check_seed
from p2p_sim.core.random_words import SEED_LIMIT, stream, words

Rows = npt.NDArray[np.bool_]

_BLOCK = 1 << 16
"""Rows of which the held-out ones are counted together."""

_WIDE = 10
"""Standard deviations to either side of where the last held-out row's word is expected."""


@dataclass(frozen=True)
class HeldOutRows:
    """The round(rows · share) rows of a table with the smallest random words (ties by row).

    ``share``: in (0, 1); ``seed``: below 2^64.  Raises InputError for a value out of range, and if either part would be
    empty.
    """

    rows: int
    share: float
    seed: int

    def __post_init__(self) -> None:
        check_seed(self.seed)
        if not 0 < self.size < self.rows:
            raise InputError(
                f"test share {self.share!r} of {self.rows} rows leaves {self.size} test rows; give a share between 0 "
                "and 1, and rows enough that neither part is empty"
            )

    def __getstate__(self) -> dict[str, Any]:
        """Return what it is made of, and what was found: whoever gets it need not draw all words again."""
        return {"rows": self.rows, "share": self.share, "seed": self.seed, "_found": self._found}

    @property
    def size(self) -> int:
        """How many rows are held out."""
        return round(self.rows * self.share) if 0 < self.share < 1 else 0

    @property
    def users(self) -> int:
        """How many rows are users."""
        return self.rows - self.size

    @property
    def described(self) -> str:
        """Which rows are held out, in words."""
        return f"{100 * self.share:g} % of the rows, drawn by seed"

    def mask(self, low: int, high: int) -> Rows:
        """Return which of the rows ``low .. high - 1`` are held out."""
        word, row, _ = self._found
        drawn = self._words(low, high)
        chosen = drawn < word
        same = drawn == word
        if same.any():
            chosen |= same & (np.arange(low, high) <= row)
        return chosen

    def user_rows(self) -> npt.NDArray[np.int64]:
        """Return the row of each user, (users,)."""
        return np.flatnonzero(~self.mask(0, self.rows))

    def rows_of(self, low: int, high: int) -> tuple[int, int]:
        """Return the first of the rows of the users ``low .. high - 1``, and the row after the last; 0, 0 of none.

        Held-out rows among them and after them, of the first user also before, are there too: ranges of users that
        follow one another have ranges of rows that do, and those of all users are all rows.
        """
        if low == high:
            return 0, 0
        return self._row(low) if low else 0, self._row(high) if high < self.users else self.rows

    def _row(self, user: int) -> int:
        """Return the row of a user."""
        _, _, before = self._found
        block = int(np.searchsorted(before, user, side="right")) - 1
        first = block * _BLOCK
        free = np.flatnonzero(~self.mask(first, min(first + _BLOCK, self.rows)))
        return first + int(free[user - int(before[block])])

    def _words(self, low: int, high: int) -> npt.NDArray[np.uint64]:
        return words(self.seed, stream("split", "test", 0), low, high - low)

    @cached_property
    def _found(self) -> tuple[np.uint64, int, npt.NDArray[np.int64]]:
        """Return word and row of the last held-out row, and how many users there are before each block of rows.

        The word is looked for where it is expected, so that one pass over all words does, and few are kept.
        """
        at, spread = self.size / self.rows, math.sqrt(self.share * (1 - self.share) / self.rows)
        wide = _WIDE * spread + 64 / self.rows
        while True:
            low, high = (min(max(at + side, 0.0), 1.0) for side in (-wide, wide))
            if (found := self._within(int(low * SEED_LIMIT), int(high * SEED_LIMIT))) is not None:
                return found
            wide *= 8

    def _within(self, low: int, high: int) -> tuple[np.uint64, int, npt.NDArray[np.int64]] | None:
        """Return the same if the word is at least ``low`` and below ``high``, or the largest; None otherwise."""
        least, most = np.uint64(low), np.uint64(min(high, SEED_LIMIT - 1))
        held_out, near, rows = [], [], []
        for first, end in self._blocks():
            drawn = self._words(first, end)
            held_out.append(int(np.count_nonzero(drawn < least)))
            places = np.flatnonzero((drawn >= least) & (drawn <= most))
            near.append(drawn[places])
            rows.append(places + first)
        needed, (word, row) = self.size - sum(held_out), (np.concatenate(near), np.concatenate(rows))
        if not 1 <= needed <= len(word):
            return None
        chosen = np.lexsort((row, word))[:needed]
        last = chosen[-1]
        counts = np.array(held_out) + np.bincount(row[chosen] // _BLOCK, minlength=len(held_out))
        sizes = np.array([end - first for first, end in self._blocks()])
        before = np.concatenate([[0], np.cumsum(sizes - counts)])
        return word[last], int(row[last]), before

    def _blocks(self) -> Iterator[tuple[int, int]]:
        return itertools.pairwise([*range(0, self.rows, _BLOCK), self.rows])
