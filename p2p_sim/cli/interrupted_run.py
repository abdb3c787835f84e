"""``p2p-sim run --resume``: the command of a run that was interrupted, once more."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from p2p_sim.cli.app import Command
from p2p_sim.cli.options import option
from p2p_sim.cli.run_folders import RunFolder
from p2p_sim.cli.saved_run import contradicts
from p2p_sim.cli.table_options import TableOptions
from p2p_sim.core import seeds
from p2p_sim.core.errors import InputError, near
from p2p_sim.core.protocol import Protocol
from p2p_sim.rundir import under_way
from p2p_sim.rundir.run_directory import check_free

_PLACES = ("backend", "shards", "blocks", "address", "threads")
"""Options that decide where a run takes place, and no bit of it."""

_OF_THE_DAY = ("resume", "verbose", "json", "format", "force", "log")
"""Options of a command that need not be those of the one that was cut off."""

_SHOWN = 4

Options = TypeVar("Options", bound=TableOptions)


def options_of(command: TableOptions) -> dict[str, Any]:
    """Return the options of a command that are not their defaults, as JSON values."""
    return {
        each.name: getattr(command, each.name)
        for each in fields(command)
        if each.name not in ("resume", "verbose", "json", "format", "log")
        and getattr(command, each.name) != each.default
    }


def files_of(command: TableOptions, protocol: Protocol) -> list[Path]:
    """Return the files that a run reads whole: data, graph, and those that parameters of its protocol name."""
    from p2p_sim.learning.data.files import read_with

    data, graph = (getattr(command, name) for name in ("data", "graph"))
    named = [graph, *protocol.parameters().values()]
    found = [Path(name) for name in named if isinstance(name, str) and _is_file(name)]
    return found if data is None or not _is_file(data) else [*read_with(Path(data)), *found]


def _is_file(name: str) -> bool:
    try:
        return Path(name).is_file()
    except (OSError, ValueError):  # too long for a name, or no path at all
        return False


@dataclass(frozen=True)
class InterruptedRun:
    """A run that was interrupted: its folder, and what was asked of it."""

    folder: Path
    asked: dict[str, Any]

    @classmethod
    def at(cls, path: str) -> InterruptedRun:
        """Return the run that a path names; raises InputError if there is none, or its file is damaged."""
        if not path:  # an empty shell variable would be the folder that one stands in
            raise InputError("--resume '': name the run that was cut off; p2p-sim ls lists such runs")
        folder = under_way.find(Path(path).expanduser())
        return cls(folder, under_way.read(folder))

    def command(self, given: Options, words: Command) -> Options:
        """Return the command of the run, with the places and the output format of the given one.

        ``words``: of the given command.  Raises InputError for an option that contradicts the run.
        """
        from p2p_sim.cli import parameters

        had = self._options(given)
        names = [each.name for each in fields(given) if _is_given(words, option(each.name))]
        if "backend" in names:
            had |= {name: None for name in had if name in _PLACES}
        for name in names:
            value = getattr(given, name)
            if name not in (*_PLACES, *_OF_THE_DAY) and value != had[name]:
                own = f"no {option(name)}" if had[name] in (None, False) else str(had[name])
                said_as = option(name) if value is True else f"{option(name)} {value}"
                raise contradicts(said_as, str(self.folder), own)
        changed = {name: getattr(given, name) for name in names if name in (*_PLACES, *_OF_THE_DAY)}
        made = replace(given, **{**had, **changed, "words": had["words"]})
        resolved = parameters.resolve(had["words"])
        try:
            program = parameters.choose(*resolved).protocol
        except InputError as error:
            raise self._of_another_version(str(error)) from error
        if vars(given)["words"]:
            self._check_words(program, given, had["words"])
        return made

    def _of_another_version(self, why: str) -> InputError:
        """Return what to say of a run whose options or protocol are not those here."""
        writer = self.asked["versions"].get("p2p-sim", "unknown")
        return InputError(
            f"run {str(self.folder)!r} cannot go on: {why}; it was begun by another version of p2p-sim, or of its "
            f"protocol ({writer} then): go on with that version, or begin a new run"
        )

    def _options(self, given: TableOptions) -> dict[str, Any]:
        """Return the options that were asked for; raises InputError for one that is not of this version."""
        known = {each.name: each.default for each in fields(given)}
        for name in self.asked["options"]:
            if name not in known:
                nearest = near(option(name), map(option, known))
                raise self._of_another_version(f"p2p-sim run has no {option(name)} here{nearest}")
        options: dict[str, Any] = known | self.asked["options"]
        if self.asked["seed_source"] == seeds.FRESH:
            options["seed"] = seeds.Fresh(options["seed"])
        return options

    def _check_words(self, own: Protocol, given: TableOptions, had: list[str]) -> None:
        """Raise InputError if the words of the given command name another protocol, or other parameters."""
        from p2p_sim.cli import parameters

        words = list(vars(given)["words"])
        name = parameters.custom_name(had) or own.command_name()
        words, offered = parameters.resolve([name, *words] if words[0].startswith("-") else words)
        kind, _, values = parameters.parse(words, offered)
        if kind is not type(own):
            raise contradicts(kind.command_name(), str(self.folder), name)
        for field, value in values.items():
            if value != own.parameters()[field]:
                raise contradicts(f"{option(field)} {value}", str(self.folder), str(own.parameters()[field]))

    def place(self, force: bool) -> RunFolder:
        """Return where the run is saved: where it was to be."""
        name = self.folder.name.partition(under_way.PARTIAL)[0]
        path = self.folder.parent / name if "out" in self.asked["options"] else None
        if path is not None:
            try:
                check_free(path, force)
            except InputError as error:
                raise InputError(
                    f"{error}; if that is the same run, begun anew and whole, remove what was cut off: "
                    f"p2p-sim rm {shlex.quote(str(self.folder))}"
                ) from error
        return RunFolder(path, name, force, self.folder.parent)

    @contextmanager
    def begun_elsewhere(self) -> Iterator[None]:
        """Add to an InputError of files that are not found in which folder the run was begun, if not in this one."""
        try:
            yield
        except InputError as error:
            there = self.asked["folder"]
            if there == under_way.here():
                raise
            raise InputError(f"{error}; the run was begun in {there!r}: go on with it there") from error

    def check(self, now: Mapping[str, Any]) -> None:
        """Raise InputError if code or data have changed, naming what has; ``now``: what is asked this time."""
        found = under_way.differences(self.asked, now)
        if not found:
            return
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        there = (
            "" if self.asked["folder"] == now["folder"] else f" (it was begun in {self.asked['folder']!r})"
        )
        raise InputError(
            f"run {str(self.folder)!r} cannot go on{there}, its result would be another: {'; '.join(found[:_SHOWN])}"
            f"{more}; restore this, or begin a new run"
        )


def _is_given(words: Command, flag: str) -> bool:
    return any(word == flag or word.startswith(f"{flag}=") for word in words)
