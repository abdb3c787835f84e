"""Progress on stderr: a bar on a terminal, plain lines otherwise, nothing for short work."""

from __future__ import annotations

import os
import sys
import threading
import time
from types import TracebackType
from typing import TextIO

_BAR_AFTER, _BAR_STEP, _LINE_STEP, _HEARTBEAT = 0.5, 0.1, 2.0, 30.0


class Progress:
    """Called with (label, done, total); an empty label keeps the last one; total 0 means unknown.

    The label may change while the count goes on, for instance with a speed; then the bar's clock goes on too.
    A separate thread shows the latest call, so that calls are cheap and long steps are visible.
    """

    def __init__(self, stream: TextIO | None = None):
        self._stream = stream or sys.stderr
        self._bar = self._stream.isatty() and os.environ.get("TERM") != "dumb"
        self._state = ("", 0, 0)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._show, name="progress", daemon=True)

    def __call__(self, label: str, done: int, total: int) -> None:
        """Set the current state."""
        self._state = (label or self._state[0], done, total)

    def __enter__(self) -> Progress:
        self._start = time.monotonic()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _show(self) -> None:
        try:
            self._show_bar() if self._bar else self._show_lines()
        except (OSError, ValueError):  # stderr is closed: nobody looks
            return

    def _show_lines(self) -> None:
        shown, last = "", self._start
        while not self._stop.wait(_LINE_STEP):
            text, now = line(*self._state), time.monotonic()
            if text and (text != shown or now - last >= _HEARTBEAT):
                print(f"{text} [{now - self._start:.0f} s]", file=self._stream, flush=True)
                shown, last = text, now

    def _show_bar(self) -> None:
        if self._stop.wait(_BAR_AFTER):
            return
        from rich.console import Console
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
        )
        console = Console(file=self._stream)
        with Bar(*columns, console=console, transient=True, redirect_stdout=False, auto_refresh=False) as bar:
            shown = ("", 0, 0)
            while not self._stop.wait(_BAR_STEP):
                label, done, total = self._state
                same = (
                    total > 1 and total == shown[2] and done >= shown[1]
                )  # the count goes on: the same work
                if label != shown[0] and not same:
                    for old in bar.task_ids:
                        bar.remove_task(old)
                    task = bar.add_task(label, total=None)
                shown = (label, done, total)
                if label:
                    size = total if total > 1 else None
                    bar.update(task, description=label, completed=done, total=size, refresh=True)


def line(label: str, done: int, total: int) -> str:
    """Return a state as text: ``user, round 1: 3,000,000 of 10,000,000``."""
    return f"{label}: {done:,} of {total:,}" if total > 1 else label
