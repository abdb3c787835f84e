"""Ctrl-C while the command line is still being imported, which takes a moment: it ends as it would later, in one line.

In any other program that imports this package nothing is done.
"""

from __future__ import annotations

import os
import signal
import sys


def _end(_number: int, _frame: object) -> None:
    """End at once: nothing has been begun yet, and an import that is cut short may say anything."""
    os.write(2, b"interrupted\n")
    os._exit(130)


def _is_command_line() -> bool:
    """Whether this process is ``p2p-sim`` or ``python -m p2p_sim.cli``; that module is then not yet found."""
    started = sys.argv[0] if sys.argv else ""
    return os.path.basename(started) == "p2p-sim" or (started == "-m" and "p2p_sim.cli" in sys.orig_argv)  # noqa: PTH119


def done() -> None:
    """From now on let Ctrl-C be raised, as anywhere in Python."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


if _is_command_line() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, _end)
