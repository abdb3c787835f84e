"""A queue of tasks that workers take, each task once: those of a sweep, of a comparison, of any other long list."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass

from p2p_sim.sweep.processes import Processes, Workers
from p2p_sim.sweep.time_budget import OUT_OF_TIME, TimeBudget, TimedWorkers
from p2p_sim.sweep.worker import Answering

_TRIES = 2
"""Of a task whose worker is lost: it may be the task that ends a worker."""


@dataclass(frozen=True)
class Task:
    """What a worker is asked: one line of ``text``.  ``group``: which tasks share a part of the time."""

    index: int
    text: str
    group: str = ""


@dataclass(frozen=True)
class Ended:
    """What came of a task: its ``answer``, or None and ``why`` there is none."""

    index: int
    answer: str | None
    why: str = ""

    @property
    def out_of_time(self) -> bool:
        """Whether it was stopped, as its part of the time was over."""
        return self.why == OUT_OF_TIME


def workers(
    worker: Callable[[], Answering], most: int, address: str | None, nbytes: int = 0
) -> AbstractContextManager[Workers]:
    """Return at most ``most`` workers: processes here, or of the Ray cluster at ``address`` (host:port).

    ``worker``: a class, at the top level of a module that can be imported there; ``nbytes``: memory that each takes on
    a cluster, 0 where that is in no doubt.  Raises InputError if Ray does not answer, or has no room for one.
    """
    if address is None:
        return Processes(most, worker)
    from p2p_sim.backends import ray_workers

    return ray_workers.workers(address, worker, most, nbytes)


def ended(tasks: Iterable[Task], workers: Workers, budget: TimeBudget | None = None) -> Iterator[Ended]:
    """Have all tasks done, and yield each as it ends; one whose worker is lost is given to another one once.

    Tasks are taken from ``tasks`` when a worker is free.  ``budget``: those that it leaves no time to begin are not
    yielded; None: there is time for all.  Raises RunLostError where no worker begins.
    """
    following = iter(tasks)
    timed = TimedWorkers(workers, budget)
    lost: deque[Task] = deque()
    under_way: dict[int, Task] = {}
    tries: Counter[int] = Counter()
    while True:
        while workers.free() and (task := lost.popleft() if lost else next(following, None)):
            if timed.give(task.index, task.text, task.group):
                under_way[task.index] = task
                tries[task.index] += 1
        if not under_way:
            return
        index, answer, how = timed.take()
        task = under_way.pop(index)
        if answer is None and how != OUT_OF_TIME:
            if tries[index] < _TRIES:
                lost.append(task)
                continue
            how = f"{how} ({_TRIES} times)"
        del tries[index]
        yield Ended(index, answer, how)
