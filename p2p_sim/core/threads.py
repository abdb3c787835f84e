"""Threads that do the work of a site side by side, block by block, with the results in the order of the blocks."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Sequence
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Generic, TypeVar

from p2p_sim.core.errors import InputError

Item = TypeVar("Item")
Result = TypeVar("Result")

AHEAD = 2
"""Items a thread that are taken up before the first of them is done: so many results wait at most for their turn."""


_LOOK_SECONDS = 0.2
_LAST_SECONDS = (
    2.0  # after Ctrl-C: Python stops a thread wherever it is, which aborts the process inside compiled code
)


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Threads:
    """Up to ``count`` threads, of which the calling one is one; the end of a ``with`` block ends the others.

    It works where it would wait: to wake it for each result would cost more than the short work of a block.  The others
    are daemons, so that a program that does not end does not keep Ctrl-C from ending the process.
    """

    def __init__(self, count: int = 1):
        self.count = count
        self._todo: SimpleQueue[Callable[[], bool] | None] = SimpleQueue()
        self._running: list[threading.Thread] = []

    def map(self, work: Callable[[Item], Result], items: Sequence[Item]) -> Generator[Result, None, None]:
        """Yield ``work(item)`` of each item, in order.

        Raises what the first failing item in order raises, as doing one after the other does.  Before an error leaves,
        and before ``close`` of the iterator returns, whatever was begun has ended; Ctrl-C ends what the calling thread
        does, and waits at most two seconds for the others.
        """
        if self.count == 1 or len(items) < 2:
            yield from map(work, items)
            return
        self._start(min(self.count, len(items)) - 1)
        waiting: deque[_Task[Result]] = deque()
        patient = True
        try:
            for item in items:
                task = _Task(work, item)
                waiting.append(task)
                self._todo.put(task.run)
                if len(waiting) > AHEAD * self.count:
                    yield self._first(waiting)
            while waiting:
                yield self._first(waiting)
        except KeyboardInterrupt:
            patient = False
            raise
        except GeneratorExit as closing:  # Ctrl-C may also come while the caller has a result
            patient = not isinstance(closing.__context__, KeyboardInterrupt)
            raise
        finally:
            begun = [task for task in waiting if not task.cancel()]
            for task in begun if patient else ():
                task.wait()

    @staticmethod
    def _first(waiting: deque[_Task[Result]]) -> Result:
        """Take the first task out and return its result; until it is there, do one after the other nobody has begun."""
        while not waiting[0].done and any(task.run() for task in waiting):
            pass
        return waiting.popleft().result()

    def _start(self, wanted: int) -> None:
        """Start threads until there are as many as wanted; raises InputError if the system has none to give."""
        while len(self._running) < wanted:
            thread = threading.Thread(
                target=_serve, args=(self._todo,), name=f"blocks-{len(self._running)}", daemon=True
            )
            try:
                thread.start()
            except RuntimeError as error:
                raise InputError(
                    f"threads = {self.count}: the system starts {len(self._running)} threads and no more ({error}): "
                    "give fewer"
                ) from error
            self._running.append(thread)

    def __enter__(self) -> Threads:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for _ in self._running:
            self._todo.put(None)
        interrupted = isinstance(error, KeyboardInterrupt)
        for thread in self._running:
            thread.join(_LAST_SECONDS / len(self._running) if interrupted else None)
        self._running.clear()


class _Task(Generic[Result]):
    """Work on one item: begun by whoever takes it first, a thread or the one who calls it off."""

    def __init__(self, work: Callable[[Any], Result], item: Any):
        self._work, self._item = work, item
        self._taken, self._under_way = threading.Lock(), threading.Lock()  # a fraction of what a Future costs
        self._under_way.acquire()
        self.done = False
        self._result: Result | None = None
        self._error: BaseException | None = None

    def run(self) -> bool:
        """Do it, unless somebody has begun it or called it off; return whether it was done here."""
        if not self._taken.acquire(blocking=False):
            return False
        try:
            self._result = self._work(self._item)
        except KeyboardInterrupt:  # it comes to the calling thread, whatever that does
            raise
        except BaseException as error:  # raised where the result is asked for
            self._error = error
        finally:
            self.done = True
            self._under_way.release()
        return True

    def cancel(self) -> bool:
        """Call it off; return whether it had not begun."""
        return self._taken.acquire(blocking=False)

    def wait(self) -> None:
        """Wait until it is done.  Ctrl-C is heard: one that comes just before a wait without end would not be."""
        while not self._under_way.acquire(timeout=_LOOK_SECONDS):
            pass
        self._under_way.release()  # for whoever waits next

    def result(self) -> Result:
        """Wait, and return what it gave or raise what it raised.  Once: it may stay in line for long."""
        self.wait()
        if self._error is not None:
            try:
                raise self._error
            finally:
                self._error = None  # it holds this frame, which holds it
        result, self._result = self._result, None
        return result  # type: ignore[return-value]


def _serve(todo: SimpleQueue[Callable[[], bool] | None]) -> None:
    """Do what there is to do until told to end; keeps nothing of what it has done."""
    while (task := todo.get()) is not None:
        task()
        del task


ALONE = Threads()
"""One after the other, in the calling thread."""
