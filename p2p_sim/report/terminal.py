"""What goes to which stream: results to stdout, everything else to stderr."""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

_SPELT = {"ε": "eps", "δ": "delta", "α": "alpha", "θ": "theta", "√": "sqrt", "±": "+-", "…": "..."}


def _spelt(error: UnicodeError) -> tuple[str, int]:
    """Spell what an encoding does not have; the rest becomes question marks."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    return "".join(_SPELT.get(letter, "?") for letter in text), error.end


def visible(text: str) -> str:
    """Spell out what would steer a terminal: control characters, changes of direction, line ends."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def ready() -> None:
    """Make closed streams harmless, letters writable on any terminal, and SIGTERM as orderly as Ctrl-C."""

    def stop(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 (for the rest of the program)
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 (for the rest of the program)
    codecs.register_error("p2p-sim", _spelt)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and "utf" not in stream.encoding.lower():
            stream.reconfigure(errors="p2p-sim")
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, stop)


@contextlib.contextmanager
def stdout_kept() -> Iterator[None]:
    """Keep stdout free: whatever libraries print goes to stderr."""
    with contextlib.redirect_stdout(sys.stderr):
        yield


@contextlib.contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Show this project's warnings as one line on stderr."""
    with warnings.catch_warnings():
        usual = warnings.showwarning

        def show(
            message: Warning | str, category: type[Warning], filename: str, lineno: int,
            file: TextIO | None = None, line: str | None = None,
        ) -> None:  # fmt: skip
            if category is UserWarning:
                print(f"warning: {visible(str(message))}", file=sys.stderr)
            else:
                usual(message, category, filename, lineno, file, line)

        warnings.showwarning = show
        warnings.simplefilter("always", UserWarning)
        yield
