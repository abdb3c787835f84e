"""Progress of long work: a bar in a terminal or a notebook, plain lines elsewhere, nothing for short work.

Commands always show it, on stderr.  Functions called from Python show it only in a terminal or a notebook.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import copy_context
from html import escape
from types import TracebackType
from typing import Any, ParamSpec, TextIO, TypeVar

from p2p_sim.core.engine import Progress as Reporter
from p2p_sim.core.errors import InputError

Asked = Reporter | bool | None
"""What ``progress=`` takes: None shows it in a terminal and in a notebook, True everywhere, False nowhere; or a
function that is called with (label, done, total)."""

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_shown = threading.Semaphore()
"""Taken while a bar is on the screen: what is called meanwhile shows none of its own."""

_BAR_AFTER, _BAR_STEP, _CELL_STEP, _LINE_STEP, _HEARTBEAT = 0.5, 0.1, 0.25, 2.0, 30.0


class Progress:
    """Called with (label, done, total); an empty label keeps the last one; total 0 means unknown.

    The label may change while the count goes on, for instance with a speed; then the bar's clock goes on too.
    A separate thread shows the latest call, so that calls are cheap and long steps are visible.
    """

    def __init__(self, stream: TextIO | None = None):
        self._stream = stream or sys.stderr
        self._state = ("", 0, 0)
        self._stop = threading.Event()
        # A notebook knows by its context which cell the output belongs to.
        shown = functools.partial(copy_context().run, self._show)
        self._thread = threading.Thread(target=shown, name="progress", daemon=True)

    def __call__(self, label: str, done: int, total: int) -> None:
        """Set the current state."""
        self._state = (label or self._state[0], done, total)

    def __enter__(self) -> Progress:
        self._start = time.monotonic()
        self._alone = _shown.acquire(blocking=False)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        if self._alone:
            _shown.release()

    def _show(self) -> None:
        try:
            if _in_notebook():
                self._show_in_notebook()
            else:
                self._show_bar() if _is_terminal(self._stream) else self._show_lines()
        except (OSError, ValueError):  # stderr is closed: nobody looks
            return

    def _show_in_notebook(self) -> None:
        """Show HTML's own bar below the cell, where rich's would need ipywidgets; it is taken away at the end."""
        if self._stop.wait(_BAR_AFTER):
            return
        from IPython.display import display

        place = display(_cell(""), raw=True, display_id=True)
        while not self._stop.wait(_CELL_STEP):
            place.update(_cell(as_html(*self._state), line(*self._state)), raw=True)
        place.update(_cell(""), raw=True)

    def _show_lines(self) -> None:
        shown, last, pace = "", self._start, Pace()
        while not self._stop.wait(_LINE_STEP):
            text, now = line(*self._state), time.monotonic()
            left = pace.left(*self._state, now)
            if text and (text != shown or now - last >= _HEARTBEAT):
                print(f"{text}{left} [{now - self._start:.0f} s]", file=self._stream, flush=True)
                shown, last = text, now

    def _show_bar(self) -> None:
        if self._stop.wait(_BAR_AFTER):
            return
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            TaskProgressColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )
        from rich.progress import Progress as Bar

        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
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


class Pace:
    """How long what is counted will still take, as far as it went on evenly since its count began."""

    def __init__(self) -> None:
        self._label, self._done, self._at = "", 0, 0.0

    def left(self, label: str, done: int, total: int, now: float) -> str:
        """Return the time that is left, as text to put behind a state; nothing where that is not known."""
        if label != self._label or done < self._done:
            self._label, self._done, self._at = label, done, now
        fresh, seconds = done - self._done, now - self._at
        if total <= 1 or fresh <= 0 or seconds <= 0:
            return ""
        return f", about {seconds * (total - done) / fresh:.0f} s left"


def line(label: str, done: int, total: int) -> str:
    """Return a state as text: ``user, round 1: 3,000,000 of 10,000,000``."""
    return f"{label}: {done:,} of {total:,}" if total > 1 else label


def _cell(html: str, plain: str = "") -> dict[str, str]:
    """Return an output of a cell; ``plain``: for frontends that show no HTML."""
    return {"text/html": html, "text/plain": plain}


def as_html(label: str, done: int, total: int) -> str:
    """Return a state as HTML, with the browser's bar: of work of unknown length, one that moves."""
    size = f'max="{total}" value="{min(done, total)}"' if total > 1 else ""
    return f"<div><progress {size}></progress> {escape(line(label, done, total))}</div>"


def showing(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Decorate a function with an argument ``progress`` as in ``Asked``, given by name.

    A bar is shown while it runs, unless one is on the screen already.  Inside, the function takes its reporter from
    ``reporter_of(progress)``, and passes ``tell or False`` to other decorated functions, so that they show no second
    bar.
    """

    @functools.wraps(function)
    def shown(*arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
        with reporting(named.get("progress")) as tell:
            named["progress"] = tell
            return function(*arguments, **named)

    return shown


@contextmanager
def reporting(asked: Any) -> Iterator[Reporter | None]:
    """Show progress as is asked; yield the function to call, None where nobody looks.  Raises InputError."""
    if asked is None:
        asked = _in_notebook() or (sys.stderr is not None and _is_terminal(sys.stderr))
    if callable(asked):
        yield asked
    elif not isinstance(asked, bool):
        raise InputError(
            f"progress = {asked!r}: give True, False, None (shown where somebody looks), or a function of "
            "(label, done, total)"
        )
    elif not asked or _is_shown():
        yield None
    else:
        with Progress() as bar:
            yield bar


def reporter_of(progress: Asked) -> Reporter | None:
    """Return the function to call inside a function that is decorated by ``showing``."""
    return None if progress is None or isinstance(progress, bool) else progress


def silent(_label: str, _done: int, _total: int) -> None:
    """Show nothing: a reporter where nobody looks."""


def _is_shown() -> bool:
    free = _shown.acquire(blocking=False)
    if free:
        _shown.release()
    return not free


def _is_terminal(stream: TextIO) -> bool:
    with suppress(ValueError):  # it is closed
        return stream.isatty() and os.environ.get("TERM") != "dumb"
    return False


def _in_notebook() -> bool:
    """Whether this is a kernel of a notebook, which shows HTML; IPython is loaded then."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return any(kind.__name__ == "ZMQInteractiveShell" for kind in type(shell).__mro__)
