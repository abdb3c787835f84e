"""Threads that do the work of a site side by side, block by block, with the results in the order of the blocks."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from queue import SimpleQueue
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from p2p_sim.core.errors import InputError

if TYPE_CHECKING:
    from concurrent.futures import Future

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
    """Up to ``count`` threads; the end of a ``with`` block ends them.  One is the calling thread: none is started.

    They are daemons, so that a program that does not end does not keep Ctrl-C from ending the process.
    """

    def __init__(self, count: int = 1):
        self.count = count
        self._todo: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._running: list[threading.Thread] = []

    def map(self, work: Callable[[Item], Result], items: Sequence[Item]) -> Generator[Result, None, None]:
        """Yield ``work(item)`` of each item, in order.

        Raises what the first failing item in order raises, as doing one after the other does.  Before an error leaves,
        and before ``close`` of the iterator returns, whatever was begun has ended; Ctrl-C waits at most two seconds.
        """
        if self.count == 1 or len(items) < 2:
            yield from map(work, items)
            return
        self._start(min(self.count, len(items)))
        waiting: deque[Future[Result]] = deque()
        patient = True
        try:
            for item in items:
                waiting.append(self._submit(work, item))
                if len(waiting) > AHEAD * self.count:
                    yield _result(waiting.popleft())
            while waiting:
                yield _result(waiting.popleft())
        except KeyboardInterrupt:
            patient = False
            raise
        finally:
            begun = [future for future in waiting if not future.cancel()]
            if patient:
                _wait(begun)

    def _submit(self, work: Callable[[Item], Result], item: Item) -> Future[Result]:
        from concurrent.futures import Future  # it loads much else, which few runs need

        future: Future[Result] = Future()

        def task() -> None:
            if future.set_running_or_notify_cancel():
                try:
                    result = work(item)
                except BaseException as error:  # raised where the result is asked for
                    future.set_exception(error)
                else:
                    future.set_result(result)

        self._todo.put(task)
        return future

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
        last = time.monotonic() + _LAST_SECONDS
        for thread in self._running:
            if isinstance(error, KeyboardInterrupt):
                thread.join(max(0.0, last - time.monotonic()))
            else:
                thread.join()
        self._running.clear()


def _result(future: Future[Result]) -> Result:
    _wait([future])
    return future.result()


def _wait(futures: Sequence[Future[Any]]) -> None:
    """Wait until all are done.  Ctrl-C is heard: one that comes just before a wait without end would not be."""
    from concurrent.futures import wait

    while not all(future.done() for future in futures):
        wait(futures, timeout=_LOOK_SECONDS)


def _serve(todo: SimpleQueue[Callable[[], None] | None]) -> None:
    """Do what there is to do until told to end; keeps nothing of what it has done."""
    while (task := todo.get()) is not None:
        task()
        del task


ALONE = Threads()
"""One after the other, in the calling thread."""
