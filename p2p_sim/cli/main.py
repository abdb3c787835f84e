"""From words to an exit status; the errors of every verb end here.

Exit status: 0; 1 a check failed; 2 bad usage or input, said on stderr; 130 interrupted; 141 nobody reads on.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from p2p_sim.cli.app import app
from p2p_sim.core.errors import InputError, ProtocolError, RunLostError
from p2p_sim.report import terminal

_UsageError: Any = typer.BadParameter.__bases__[0]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    terminal.ready()
    try:
        with terminal.warnings_as_lines():
            verb = app(words, prog_name="p2p-sim", standalone_mode=False)
            status = int(verb.work(words) if hasattr(verb, "work") else verb or 0)
        sys.stdout.flush()
    except (InputError, ProtocolError, RunLostError) as error:
        return _refused(str(error))
    except _UsageError as error:
        where = getattr(error.ctx, "command_path", "p2p-sim")
        message = error.format_message().replace("Value error, ", "")  # pydantic's word for ours
        return _refused(f"{message} (see {where} --help)")
    except (KeyboardInterrupt, typer.Abort):
        print("interrupted", file=sys.stderr)
        return 130
    except MemoryError as error:
        return _refused(
            f"not enough memory{f' ({error})' if str(error) else ''}; use a smaller size or --limit"
        )
    except UnicodeError as error:
        return _refused(f"{type(error).__name__}: {error}; use a plain name")
    except BrokenPipeError:
        with contextlib.suppress(OSError, ValueError):  # or Python complains when it closes stdout
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        what = error.filename or _gone()
        return _refused(f"{error.strerror or error}{f': {what}' if what else ''}")
    return status


def _gone() -> str:
    """Say that the current folder is not there any more, if so: no path of it has a name then."""
    try:
        Path.cwd()
    except FileNotFoundError:
        return "the current folder was removed; change to one that exists"
    return ""


def _refused(message: str) -> int:
    if sys.stderr is not None:
        print("error: " + terminal.visible(" ".join(message.split())), file=sys.stderr)
    return 2
