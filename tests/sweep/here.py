"""Runs that are made in this process, in any order: what a sweep does with them, without the cost of processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from p2p_sim.sweep.worker import Worker

USERS = {
    "users": 60, "cluster_size": 20, "views": ["learner"], "seed": [0, 1, 2],
    "grid": [
        {"protocol": "randomized-response", "epsilon": [0.5, 1.0]},
        {"protocol": "peer-to-peer", "alpha": [0.1, 0.2]},
    ],
}  # fmt: skip
"""A sweep of twelve runs that take milliseconds."""


class Here:
    """A worker in this process.  ``order``: which of the waiting runs is made next; ``dies``: whose worker is lost."""

    def __init__(self, at_once: int = 1, order: int = 0, dies: Callable[[int], bool] = lambda _: False):
        self._worker, self._at_once, self._order, self._dies = Worker(), at_once, order, dies
        self._waiting: list[tuple[int, str]] = []
        self.made: list[int] = []

    def free(self) -> bool:
        return len(self._waiting) < self._at_once

    def give(self, index: int, text: str) -> None:
        self._waiting.append((index, text))

    def take(self, _until: float | None = None) -> tuple[int, str | None, str]:
        index, text = self._waiting.pop(self._order)
        self.made.append(index)
        if self._dies(index):
            return index, None, "the process that made it was killed by signal 9"
        return index, self._worker.answer(text), ""

    def workers(self, *_: Any) -> Any:
        """What stands in for ``sweeping._workers``."""

        @contextmanager
        def given() -> Iterator[Here]:
            self._waiting.clear()
            yield self

        return given()
