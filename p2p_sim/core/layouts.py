"""Who holds which messages of an inbox."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class Layout:
    """Which party of a block holds which messages: party p holds ``starts[p] .. starts[p + 1] - 1``."""

    def __init__(self, starts: Array | None, parties: int = 0):
        if starts is None:  # every party holds exactly one: nothing need be stored
            self.parties = self.size = parties
            self.dense = True
        else:
            self.starts = starts
            self.parties, self.size = len(starts) - 1, int(starts[-1])

    @classmethod
    def one_each(cls, parties: int) -> Layout:
        """Every party holds exactly one."""
        return cls(None, parties)

    @cached_property
    def starts(self) -> Array:
        """The first message of each party, and the end."""
        return np.arange(self.parties + 1)

    @cached_property
    def count(self) -> Array:
        """Messages held, for each party."""
        return np.asarray(np.diff(self.starts))

    @cached_property
    def dense(self) -> bool:
        """Whether every party holds exactly one, so that a message column is a party column."""
        return self.size == self.parties and bool((self.count == 1).all())

    @cached_property
    def holder(self) -> Array:
        """The party, numbered within the block, that holds each message."""
        return np.repeat(np.arange(self.parties), self.count)

    @cached_property
    def rank(self) -> Array:
        """The position of each message among those of its holder."""
        places = np.arange(self.size)
        return places if self.parties == 1 else places - self.starts[self.holder]

    def spread(self, column: Array) -> Array:
        """Give each message its holder's value."""
        spread: Array = column if self.dense else column[self.holder]
        return spread

    def filter(self, mask: Array) -> Layout:
        """Return the layout of the messages that a mask keeps."""
        kept = np.zeros(self.size + 1, np.int64)
        np.cumsum(mask, out=kept[1:])
        return Layout(kept[self.starts])

    def same(self, other: Layout) -> bool:
        """Whether columns of the two can be combined element by element."""
        return self is other or (self.dense and other.dense and self.parties == other.parties)
