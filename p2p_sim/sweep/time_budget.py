"""How long each group of runs may take, so that none takes the time of the others."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from p2p_sim.sweep.processes import Workers

_LEAST = 0.25

OUT_OF_TIME = "it took longer than its part of the time"
"""How the worker of a run ended that was stopped."""


@dataclass
class TimeBudget:
    """A time, by ``time.monotonic``, ``until`` which runs are made; ``workers``: how many at the same time.

    Every group that has runs left may take an equal part of what is left, so that what quick groups leave over is for
    the slow ones; but no less than a quarter, as the first run of a process reads and imports.
    """

    until: float
    workers: int = 1
    _left: Counter[str] = field(default_factory=Counter)
    _spent: dict[str, list[float]] = field(default_factory=dict)

    def begin(self, groups: Iterable[str]) -> None:
        """Say which runs there are to make, by their groups."""
        self._left.update(groups)

    @property
    def over(self) -> bool:
        """Whether no time is left."""
        return time.monotonic() >= self.until

    def limit(self, group: str) -> float | None:
        """Return the time up to which the next run of a group may take; None: it is not to be made."""
        now = time.monotonic()
        left = self.until - now
        if left <= 0:
            return None
        share = min(left, max(left * _LEAST, left * self.workers / max(1, len(self._left))))
        spent = self._spent.get(group, [])
        if spent and sum(spent) / len(spent) > share:
            return None
        return now + share

    def ended(self, group: str, seconds: float | None) -> None:
        """Say that a run of a group ended after so many seconds; None: it was not begun."""
        self._left[group] -= 1
        if self._left[group] <= 0:
            del self._left[group]
        if seconds is not None:
            self._spent.setdefault(group, []).append(seconds)


@dataclass
class TimedWorkers:
    """Workers, and the ``budget`` of what they are given; None: there is time for all."""

    workers: Workers
    budget: TimeBudget | None
    _limits: dict[int, float] = field(default_factory=dict)
    _begun: dict[int, tuple[str, float]] = field(default_factory=dict)

    def give(self, index: int, text: str, group: str) -> bool:
        """Have a run of a group made; return whether there is time for it."""
        if self.budget is not None:
            limit = self.budget.limit(group)
            if limit is None:
                self.budget.ended(group, None)
                return False
            self._limits[index] = limit
            self._begun[index] = group, time.monotonic()
        self.workers.give(index, text)
        return True

    def take(self) -> tuple[int, str | None, str]:
        """Wait for the next run that ends, as ``Workers.take`` does, or stop one that is out of time."""
        if self.budget is None:
            taken = self.workers.take()
            assert taken is not None  # it waits without an end
            return taken
        first = min(self._limits, key=lambda index: self._limits[index])
        taken = self.workers.take(self._limits[first])
        if taken is None:
            self.workers.stop(first)
            taken = first, None, OUT_OF_TIME
        del self._limits[taken[0]]
        group, begun = self._begun.pop(taken[0])
        self.budget.ended(group, time.monotonic() - begun)
        return taken
