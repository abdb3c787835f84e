"""The option ``--protocol`` of verbs that read saved runs.

A run's folder may come from anybody: code that it names is imported only if the option names it too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from p2p_sim import catalogue
from p2p_sim.cli.app import Command
from p2p_sim.cli.options import EXECUTION
from p2p_sim.core.errors import InputError
from p2p_sim.report import terminal
from p2p_sim.rundir import saved_program

if TYPE_CHECKING:
    from p2p_sim.core.protocol import Protocol
    from p2p_sim.rundir.run_directory import LazyRun

_WHAT = "The run's own protocol, if p2p-sim run --help does not list it: its code is imported."
Program = Annotated[
    str | None,
    typer.Option(
        "--protocol", metavar="MODULE:CLASS", rich_help_panel=EXECUTION, show_default=False, help=_WHAT
    ),
]  # fmt: skip
Programs = Annotated[
    list[str] | None,
    typer.Option(
        "--protocol", metavar="MODULE:CLASS", rich_help_panel=EXECUTION, show_default=False,
        help=f"{_WHAT}  May be repeated.",
    ),
]  # fmt: skip

Verb = TypeVar("Verb")
VerbBody = Callable[[Verb, Command], int]


def with_programs(*fields: str) -> Callable[[VerbBody[Verb]], VerbBody[Verb]]:
    """Let a verb use the programs that its ``--protocol`` names; ``fields``: which of its own hold paths of runs.

    Raises InputError for a name that leads nowhere, or is not that of a run there.
    """

    def decorate(work: VerbBody[Verb]) -> VerbBody[Verb]:
        @functools.wraps(work)
        def within(verb: Verb, command: Command) -> int:
            given = vars(verb)["protocol"] or []
            names = [given] if isinstance(given, str) else given
            if not names:
                return work(verb, command)
            with terminal.stdout_to_stderr():
                classes = _classes(names, [path for field in fields for path in _listed(vars(verb)[field])])
            with catalogue.naming(*classes):
                return work(verb, command)

        return within

    return decorate


def _listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def _classes(names: Iterable[str], paths: Iterable[str]) -> list[type[Protocol]]:
    """Return the classes that are named, each of a run in these folders."""
    runs = {str(run.folder): run for path in paths for run in _runs(Path(path))}
    classes = []
    for name in names:
        kind = catalogue.named(name)
        class_name = catalogue.class_name(kind)
        own = {place: run for place, run in runs.items() if run.protocol == class_name}
        if not own:
            there = "; ".join(f"run {place!r} is of {run.protocol}" for place, run in list(runs.items())[:4])
            raise InputError(
                f"--protocol {name} is {class_name}, but {there or 'no run is there'}: name its class, or none"
            )
        for place, run in own.items():
            _check(name, kind, place, run)
        classes.append(kind)
    return classes


def _runs(path: Path) -> Iterator[LazyRun]:
    """Yield the run at a path, or those in a folder of runs, of which a damaged one is reported when it is opened."""
    from p2p_sim.rundir.run_directory import LazyRun
    from p2p_sim.rundir.run_json import RUN

    inside = sorted(file.parent for file in path.glob(f"*/{RUN}")) if not (path / RUN).exists() else []
    if not inside:
        yield LazyRun(path)
    for folder in inside:
        with suppress(InputError):
            yield LazyRun(folder)


def _check(name: str, kind: type[Protocol], place: str, run: LazyRun) -> None:
    """Check that a class takes the parameters of a run; of one that was cut off they are not known."""
    if run.cut_off:
        return
    try:
        saved_program.remade(kind, run.parameters, place, run.versions)
    except InputError as error:
        raise InputError(f"--protocol {name}: {error}") from error
