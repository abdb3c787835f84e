"""Every task of a queue is done once, whatever becomes of the workers."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterator

import pytest

from p2p_sim.sweep import work_queue
from p2p_sim.sweep.time_budget import TimeBudget
from p2p_sim.sweep.work_queue import Ended, Task


class Hands:
    """Workers, two at a time, that end in the order ``last``-first or not; ``dies``: how often, by task."""

    def __init__(self, dies: dict[int, int] | None = None, last: bool = False, slow: int = -1):
        self._dies, self._last, self._slow = Counter(dies or {}), last, slow
        self._under_way: deque[tuple[int, str]] = deque()
        self.given: list[int] = []
        self.stopped: list[int] = []

    def free(self) -> bool:
        return len(self._under_way) < 2

    def give(self, index: int, text: str) -> None:
        self.given.append(index)
        self._under_way.append((index, text))

    def take(self, until: float | None = None) -> tuple[int, str | None, str] | None:
        quick = [each for each in self._under_way if each[0] != self._slow]
        if not quick:
            assert until is not None
            return None
        index, text = quick[-1 if self._last else 0]
        self._under_way.remove((index, text))
        if self._dies[index] > 0:
            self._dies[index] -= 1
            return index, None, "it was killed"
        return index, text.upper(), ""

    def stop(self, index: int) -> None:
        self.stopped.append(index)
        self._under_way = deque(each for each in self._under_way if each[0] != index)


def tasks(count: int, taken: list[int]) -> Iterator[Task]:
    for index in range(count):
        taken.append(index)
        yield Task(index, f"task {index}", "group")


@pytest.mark.parametrize("last", [False, True])
def test_each_is_done_once_and_taken_when_a_worker_is_free(last: bool) -> None:
    workers, taken = Hands(last=last), list[int]()
    ended = work_queue.ended(tasks(5, taken), workers)
    first = next(ended)
    assert len(taken) == 2
    found = [first, *ended]
    assert sorted(found, key=lambda each: each.index) == [Ended(i, f"TASK {i}") for i in range(5)]
    assert sorted(workers.given) == taken == [*range(5)]


def test_one_whose_worker_is_lost_is_given_to_another_one_once() -> None:
    workers = Hands({1: 1, 3: 2})
    found = {each.index: each for each in work_queue.ended(tasks(5, []), workers)}
    assert found[1] == Ended(1, "TASK 1")
    assert found[3] == Ended(3, None, "it was killed (2 times)")
    assert [each.answer is None for _, each in sorted(found.items())] == [False, False, False, True, False]
    assert Counter(workers.given) == {0: 1, 1: 2, 2: 1, 3: 2, 4: 1}


def test_one_that_is_out_of_time_is_stopped_and_not_tried_again() -> None:
    workers, budget = Hands(slow=2), TimeBudget(time.monotonic() + 60, workers=2)
    budget.begin(["group"] * 4)
    found = {each.index: each.out_of_time for each in work_queue.ended(tasks(4, []), workers, budget)}
    assert found == {0: False, 1: False, 2: True, 3: False}
    assert workers.stopped == [2]
    assert workers.given.count(2) == 1


def test_without_time_nothing_is_begun() -> None:
    workers, budget = Hands(), TimeBudget(time.monotonic() - 1, workers=2)
    budget.begin(["group"] * 3)
    assert list(work_queue.ended(tasks(3, []), workers, budget)) == []
    assert workers.given == []
