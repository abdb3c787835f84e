"""What goes to which stream: results to stdout, everything else to stderr."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO


def ready() -> None:
    """Make closed streams harmless, and an end by SIGTERM as orderly as one by Ctrl-C."""

    def stop(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 (for the rest of the program)
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 (for the rest of the program)
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
                print(f"warning: {message}", file=sys.stderr)
            else:
                usual(message, category, filename, lineno, file, line)

        warnings.showwarning = show
        warnings.simplefilter("always", UserWarning)
        yield
