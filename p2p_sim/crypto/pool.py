"""Work on many rows in worker processes; threads do not help, since the library holds the interpreter's lock.

The workers are plain child processes that answer over pipes.  ``multiprocessing`` would import the caller's main
module again, and so run a script without a guard, or fail in a notebook; a fork would copy the locks of Ray and numba.
A worker lives for one call: it is ended on the way out, and ends by itself when its parent dies.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core import module_finder
from p2p_sim.core.errors import InputError, RunLostError
from p2p_sim.core.threads import cores

Array = npt.NDArray[Any]
Work = Callable[..., tuple[Array, ...]]

LEAST = 2000
"""Rows of a piece at least: below that, starting a process costs more than it saves."""

PIECES = 4
"""Pieces a worker, so that a worker on a busy core holds up the others little."""


def spread(work: Work, *columns: Any, workers: int | None = None) -> tuple[Array, ...]:
    """Call ``work(*columns)`` piece by piece, in processes where there are enough rows, and join what it returns.

    ``work``: a function of a module; returns arrays with one entry a row.  Columns: arrays and lists of n entries are
    cut, bytes go to every piece.  ``workers``: processes, by default one a core; 1 stays in this process.
    The result does not depend on ``workers``.  Raises InputError for columns of different lengths, what ``work``
    raises, and RunLostError when a worker dies.
    """
    lengths = {len(column) for column in columns if not isinstance(column, bytes)}
    if len(lengths) != 1:
        raise InputError(f"columns of different lengths: {sorted(lengths)}; each needs one entry a row")
    if workers is not None and workers < 1:
        raise InputError(f"workers = {workers}: needs at least 1")
    rows = lengths.pop()
    workers = min(workers or cores(), rows // LEAST)
    if workers <= 1:
        return work(*columns)
    bounds = _bounds(rows, workers)
    tasks = [(work, _cut(columns, bounds[at], bounds[at + 1])) for at in range(len(bounds) - 1)]
    parts = _in_processes(tasks, workers)
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))


def _bounds(rows: int, workers: int) -> list[int]:
    pieces = min(workers * PIECES, rows // LEAST)
    return [rows * at // pieces for at in range(pieces + 1)]


def _cut(columns: Sequence[Any], start: int, stop: int) -> tuple[Any, ...]:
    return tuple(column if isinstance(column, bytes) else column[start:stop] for column in columns)


def _in_processes(tasks: Sequence[tuple[Work, tuple[Any, ...]]], workers: int) -> list[tuple[Array, ...]]:
    todo: SimpleQueue[int] = SimpleQueue()
    for number in range(len(tasks)):
        todo.put(number)
    results: list[tuple[Array, ...]] = [()] * len(tasks)

    def serve(process: subprocess.Popen[bytes]) -> None:
        with suppress(Empty):
            while True:
                number = todo.get_nowait()
                results[number] = _ask(process, tasks[number])

    # the processes end before the threads are waited for, so that an error or Ctrl-C does not wait for the rest
    with ThreadPoolExecutor(workers) as threads, ExitStack() as stack:
        processes = [stack.enter_context(_worker()) for _ in range(workers)]
        futures = [threads.submit(serve, process) for process in processes]
        wait(futures, return_when=FIRST_EXCEPTION)
        for future in [f for f in futures if f.done()]:
            future.result()
    return results


def _ask(process: subprocess.Popen[bytes], task: tuple[Work, tuple[Any, ...]]) -> tuple[Array, ...]:
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(pickle.dumps(task, protocol=5))
        process.stdin.flush()
        done, answer = pickle.load(process.stdout)
    except (EOFError, OSError, ValueError, pickle.UnpicklingError) as error:
        raise RunLostError(
            f"a worker process for cryptography was lost (exit status {process.poll()}), killed or out of memory: run "
            "again, with fewer users if memory is short"
        ) from error
    if not done:
        raise answer
    return answer  # type: ignore[no-any-return]


@contextmanager
def _worker() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "p2p_sim.crypto.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(module_finder.folders())},
        start_new_session=True,  # Ctrl-C reaches the parent alone, which ends its workers
    )
    assert process.stdin is not None
    process.stdin.write(pickle.dumps(module_finder.opened()))  # goes with the first task
    try:
        yield process
    finally:
        process.kill()
        with suppress(BrokenPipeError), process:
            pass
