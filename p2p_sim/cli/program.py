"""The command line program: ``main`` runs a verb, prints errors and returns the exit status; ``command`` also ends."""

from __future__ import annotations

import atexit
import os
import re
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import typer
import typer.main

from p2p_sim.cli import first_screen
from p2p_sim.cli.app import ABOUT, app, no_verb
from p2p_sim.cli.verbs import VERBS, first_paragraph
from p2p_sim.core import write_errors
from p2p_sim.core.errors import InputError, ProtocolError, RunLostError, UnknownOptionError, near
from p2p_sim.report import output_files, terminal


def _program(words: Sequence[str]) -> Any:
    """Return the command line as far as some words need it: their verb with its options, or the list of verbs."""
    first = words[1:2] if words[:1] == ["--"] else words[:1]
    if not first or first[0] not in VERBS:
        return _listing()
    return _commands(first[0])


@cache
def _commands(verb: str) -> Any:
    """Load a verb, and build the command line of what is loaded, once: this takes longer than most of what is done."""
    VERBS[verb]()
    return typer.main.get_command(app)


def options_of(verb: str) -> list[str]:
    """Return the long options of a verb; none for a word that is no verb."""
    if verb not in VERBS:
        return []
    return [
        name for each in _commands(verb).commands[verb].params for name in each.opts if name.startswith("--")
    ]


@cache
def _listing() -> Any:
    """Return a program that lists the verbs, and refuses other words."""
    listing = typer.Typer(**ABOUT)
    listing.callback(invoke_without_command=True)(no_verb)
    for name, verb in VERBS.items():
        listing.command(name, help=first_paragraph(verb))(_listed)
    return typer.main.get_command(listing)


def _listed() -> None:
    """Stand for a verb in the list; a command with a verb has its own."""
    raise AssertionError("a verb is loaded before it is called")


_INTERRUPTED = 130  # exit status

_UsageError: Any = typer.BadParameter.__bases__[0]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    terminal.ready()
    try:
        with terminal.warnings_as_lines():
            if not words:
                sys.stdout.write(first_screen.text(VERBS, terminal.columns()))
                sys.stdout.flush()
                return 0
            verb = _program(words)(words, prog_name="p2p-sim", standalone_mode=False)
            if verb == _INTERRUPTED:  # while typer read the words, it says nothing of Ctrl-C
                raise KeyboardInterrupt
            output_files.check_named_once(words, _outputs(verb))
            status = int(verb.execute(words) if hasattr(verb, "execute") else verb or 0)
        sys.stdout.flush()
    except UnknownOptionError as error:
        return _refused(f"{error}{near(error.option, [*error.known, *options_of(words[0])])}")
    except (InputError, ProtocolError, RunLostError) as error:
        return _refused(str(error))
    except _UsageError as error:
        where = getattr(error.ctx, "command_path", "p2p-sim")
        message = error.format_message().replace("Value error, ", "")  # pydantic's word for ours
        return _refused(f"{message} (see {where} --help)")
    except ModuleNotFoundError as error:
        package = installed_by(error.name or "")
        if package is None:
            raise
        return _refused(f"this needs {package}, which is not there: python -m pip install '{package}'")
    except (KeyboardInterrupt, typer.Abort):
        print("interrupted", file=sys.stderr)
        return _INTERRUPTED
    except MemoryError as error:
        return _refused(
            f"not enough memory{f' ({error})' if str(error) else ''}; use a smaller size or --limit"
        )
    except UnicodeError as error:
        return _refused(f"{type(error).__name__}: {error}; use a plain name")
    except BrokenPipeError:
        terminal.drop_stdout()
        return 141
    except OSError as error:
        if error.filename == terminal.STDOUT:
            terminal.drop_stdout()
            return _refused(
                f"standard output cannot be written to its end ({error.strerror or error}): "
                f"{write_errors.remedy(error)}, or choose another place"
            )
        what = error.filename or _gone()
        return _refused(f"{error.strerror or error}{f': {what}' if what else ''}")
    return status


def command() -> NoReturn:
    """Run the command line, and end the process with its exit status.

    A thread may still be at work: one that reads a run ahead, or answers a browser.  Python stops it wherever it is,
    which aborts the process if that is inside compiled code (`terminate called`).  Then the process ends at once.
    """
    status = main()
    if any(thread.daemon for thread in threading.enumerate()):
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):  # closed, or nobody reads it: main has said so
                stream.flush()
        os._exit(status)
    sys.exit(status)


_DISTRIBUTED_AS = {"sklearn": "scikit-learn", "PIL": "pillow"}


def installed_by(module: str) -> str | None:
    """Return the package of this program's own requirements that brings a module, as pip takes it; None for another."""
    top = module.partition(".")[0]
    name = _DISTRIBUTED_AS.get(top, top.replace("_", "-"))
    from importlib import metadata

    try:
        asked = metadata.requires("p2p-sim") or ()
    except metadata.PackageNotFoundError:  # found, not installed
        return None
    wanted = (each.partition(";")[0].strip() for each in asked)
    return next((each for each in wanted if re.match(rf"{re.escape(name)}(?![A-Za-z0-9.-])", each)), None)


def _outputs(verb: Any) -> dict[str, str]:
    """Return the files that a command is asked to write, by option."""
    found = {name: getattr(verb, name, None) for name in ("out", "plot", "per_user", "export", "log")}
    return {"--" + name.replace("_", "-"): each for name, each in found.items() if isinstance(each, str)}


def _gone() -> str:
    """Return an error text if the current folder was removed, otherwise nothing."""
    try:
        Path.cwd()
    except FileNotFoundError:
        return "the current folder was removed; change to one that exists"
    return ""


def _refused(message: str) -> int:
    if sys.stderr is not None:
        print("error: " + terminal.visible(" ".join(message.split())), file=sys.stderr)
    return 2
