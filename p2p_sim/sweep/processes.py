"""Worker processes of this machine, which do the tasks of a queue, such as the runs of a sweep."""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Protocol

from p2p_sim.core import module_finder
from p2p_sim.core.errors import RunLostError
from p2p_sim.sweep import worker
from p2p_sim.sweep.worker import Answering, Worker

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
"""Each worker computes in one thread: there is a worker for each processor."""

_SECONDS = 5.0  # to wait for the end of a process that was asked to end
_LONGEST_WAIT = 3600.0  # seconds: the system takes no more than 24 days at once


class Workers(Protocol):
    """What makes runs: processes here, or actors of a Ray cluster."""

    def free(self) -> bool:
        """Whether a run can be given."""

    def give(self, index: int, text: str) -> None:
        """Have a run made; ``text``: as ``Worker.answer`` takes it."""

    def take(self, until: float | None = None) -> tuple[int, str | None, str] | None:
        """Wait for the next run that ends; return its number and answer, or None and how its worker ended.

        ``until``: a time by ``time.monotonic``, at which None is returned if no run has ended.
        """

    def stop(self, index: int) -> None:
        """End the worker of a run, of which no answer is wanted any more."""


@dataclass
class _Process:
    popen: subprocess.Popen[bytes]
    index: int | None = None
    ready: bool = False
    read: bytes = b""
    ended: bool = False

    def line(self) -> bytes | None:
        """Return the next whole line that was read, None if there is none."""
        found, end, rest = self.read.partition(b"\n")
        if not end:
            return None
        self.read = rest
        return found + end

    def receive(self) -> None:
        """Read what there is, or that there will be no more."""
        assert self.popen.stdout is not None
        more = os.read(self.popen.stdout.fileno(), 1 << 16)
        self.read += more
        self.ended = not more

    def close(self) -> None:
        """Close both pipes."""
        for stream in (self.popen.stdin, self.popen.stdout):
            with suppress(OSError):  # what nobody read is not wanted
                assert stream is not None
                stream.close()


@dataclass
class Processes:
    """``count`` worker processes, started when there is a run for them, and ended with the ``with`` block.

    ``worker``: the class, at the top level of a module, of what answers in each of them.
    """

    count: int
    worker: Callable[[], Answering] = Worker
    _running: list[_Process] = field(default_factory=list)
    _selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)

    def __enter__(self) -> Processes:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for each in self._running:
            with suppress(OSError):
                each.popen.kill()  # nothing that it makes is wanted any more
        for each in self._running:
            with suppress(subprocess.TimeoutExpired):
                each.popen.wait(_SECONDS)
            each.close()
        self._selector.close()

    def free(self) -> bool:
        """Whether a run can be given."""
        return len(self._running) < self.count or any(each.index is None for each in self._running)

    def give(self, index: int, text: str) -> None:
        """Have a run made by a process that is idle, or by a new one."""
        idle = next((each for each in self._running if each.index is None), None) or self._start()
        idle.index = index
        assert idle.popen.stdin is not None
        with suppress(OSError):  # it has ended: ``take`` says so
            idle.popen.stdin.write(text.encode() + b"\n")
            idle.popen.stdin.flush()

    def take(self, until: float | None = None) -> tuple[int, str | None, str] | None:
        """Wait for the next run that ends; return its number and answer, or None and how its process ended.

        ``until``: a time by ``time.monotonic``, at which None is returned if no run has ended.
        Raises RunLostError if a process ends before it has begun.
        """
        while True:
            for process in self._running:
                while (line := process.line()) is not None:
                    if line != worker.READY:
                        return self._done(process), line.decode(), ""
                    process.ready = True
                if process.ended:
                    return self._lost(process)
            left = None if until is None else until - time.monotonic()
            if left is not None and left <= 0:
                return None
            for key, _ in self._selector.select(None if left is None else min(left, _LONGEST_WAIT)):
                key.data.receive()

    def stop(self, index: int) -> None:
        """End the process of a run, of which no answer is wanted any more."""
        process = next(each for each in self._running if each.index == index)
        self._selector.unregister(process.popen.stdout)  # type: ignore[arg-type]
        self._running.remove(process)
        process.popen.kill()
        process.popen.wait()
        process.close()

    def _done(self, process: _Process) -> int:
        index, process.index = process.index, None
        assert index is not None  # it answers what it was asked
        return index

    def _lost(self, process: _Process) -> tuple[int, None, str]:
        self._selector.unregister(process.popen.stdout)  # type: ignore[arg-type]
        self._running.remove(process)
        status = process.popen.wait()
        process.close()
        how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
        memory = ""
        if status == -9:
            memory = ", as the system does when memory runs out: then give a smaller --workers, or end other programs"
        if not process.ready:
            raise RunLostError(
                f"a worker {how} before it began{memory}.  What it said is above; what was done is kept: give the same "
                "command again"
            )
        return self._done(process), None, f"the process that made it {how}{memory}"

    def _start(self) -> _Process:
        name = self.worker.__name__
        start = (
            f"from {self.worker.__module__} import {name}; from {worker.__name__} import serve; serve({name})"
        )
        code = f"import sys; sys.path[:] = {module_finder.folders()!r}; {start}"
        environment: dict[str, Any] = {**os.environ, **dict.fromkeys(_THREADS, "1")}
        popen = subprocess.Popen(
            [sys.executable, "-P", "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        )
        process = _Process(popen)
        self._running.append(process)
        assert popen.stdout is not None
        self._selector.register(popen.stdout, selectors.EVENT_READ, process)
        return process
