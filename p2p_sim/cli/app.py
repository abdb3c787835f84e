"""The command line program: commands register here.

``main`` runs one, prints errors and returns the exit status; ``command`` also ends the process.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
import typer.main
from typer.core import TyperCommand, TyperOption

from p2p_sim.cli import verbs
from p2p_sim.core.errors import InputError, ProtocolError, RunLostError
from p2p_sim.report import output_files, terminal

Command = Sequence[str]
"""The words of the command line, after the program's name."""

_ABOUT: dict[str, Any] = {
    "name": "p2p-sim", "add_completion": False, "rich_markup_mode": "rich", "pretty_exceptions_enable": False,
    "epilog": "Example: p2p-sim run peer-to-peer --data digits",
}  # fmt: skip
app = typer.Typer(**_ABOUT)


class OnceCommand(TyperCommand):
    """Refuses an option that is given twice; otherwise the first value would be dropped silently."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; raises InputError for a repeated option."""
        _, _, options = self.make_parser(ctx).parse_args(args=list(args))
        for number, given in enumerate(options):
            once = isinstance(given, TyperOption) and not (given.multiple or given.is_flag)
            if once and given in options[:number]:
                raise InputError(f"{given.opts[0]} is given twice: give it once")
        return super().parse_args(ctx, args)


class ProtocolCommand(OnceCommand):
    """Adds the parameters of all protocols to the help text."""

    def collect_usage_pieces(self, _ctx: Any) -> list[str]:
        """Return the usage of the command."""
        return ["PROTOCOL", "[OPTIONS]"]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help text, with the parameters of all protocols at the end."""
        from p2p_sim import catalogue
        from p2p_sim.cli import parameters

        own, described = self.epilog, parameters.describe(catalogue.everything())
        self.epilog = f"{described}\n\n{own}"
        try:
            super().format_help(ctx, formatter)
        finally:
            self.epilog = own  # the command serves again


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"p2p-sim {version('p2p-sim')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _no_verb(
    ctx: typer.Context,
    _shown: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """The lab for private labels: run a label-privacy protocol message by message, and see what each party learns."""
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


def _program(words: Sequence[str]) -> Any:
    """Return the command line as far as some words need it: their verb with its options, or the list of verbs."""
    first = words[1:2] if words[:1] == ["--"] else words[:1]
    if not first or first[0] not in verbs.VERBS:
        return _listing()
    return _commands(first[0])


@cache
def _commands(verb: str) -> Any:
    """Load a verb, and build the command line of what is loaded, once: this takes longer than most of what is done."""
    verbs.load(verb)
    return typer.main.get_command(app)


@cache
def _listing() -> Any:
    """Return a program that lists the verbs, and refuses other words."""
    listing = typer.Typer(**_ABOUT)
    listing.callback(invoke_without_command=True)(_no_verb)
    for name, verb in verbs.VERBS.items():
        listing.command(name, help=verb.help)(_listed)
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
            verb = _program(words)(words, prog_name="p2p-sim", standalone_mode=False)
            if verb == _INTERRUPTED:  # while typer read the words, it says nothing of Ctrl-C
                raise KeyboardInterrupt
            output_files.check_named_once(words, _outputs(verb))
            status = int(verb.execute(words) if hasattr(verb, "execute") else verb or 0)
        sys.stdout.flush()
    except (InputError, ProtocolError, RunLostError) as error:
        return _refused(str(error))
    except _UsageError as error:
        where = getattr(error.ctx, "command_path", "p2p-sim")
        message = error.format_message().replace("Value error, ", "")  # pydantic's word for ours
        return _refused(f"{message} (see {where} --help)")
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
                f"standard output cannot be written to its end ({error.strerror or error}): make room, or choose "
                "another place"
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
