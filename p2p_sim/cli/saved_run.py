"""Saved runs that a verb with a protocol's words looks at: which program they have, and what contradicts them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

from p2p_sim import catalogue
from p2p_sim.cli.options import number, option, whole
from p2p_sim.cli.table_options import TableOptions
from p2p_sim.core.errors import InputError
from p2p_sim.rundir import saved_program

if TYPE_CHECKING:
    from p2p_sim.core.protocol import Protocol
    from p2p_sim.rundir.run_record import RunRecord


def program_of(given: list[str] | None, path: str, run: RunRecord, verb: str) -> Protocol:
    """Return the protocol of a run; raises InputError if the arguments contradict it, or must name it and do not."""
    from p2p_sim.cli import parameters

    words, offered = parameters.resolve(given)
    if not words:
        if run.source is None:
            raise InputError(
                f"{run.protocol} is not a shipped protocol: name it, p2p-sim {verb} {run.protocol} --run {path}"
            )
        return run.source
    if run.source is not None and words[0].startswith("-"):
        words = [run.source.command_name(), *words]
    named, _, values = parameters.parse(words, offered, verb)
    if catalogue.class_name(named) != run.protocol:
        raise contradicts(named.command_name(), path, run.protocol)
    for name, value in values.items():
        if value != run.parameters.get(name):
            raise contradicts(f"{option(name)} {value}", path, f"{run.parameters.get(name)}")
    return saved_program.remade(named, run.parameters, path, run.versions)


Options = TypeVar("Options", bound=TableOptions)


def read_as_run(command: Options, path: str, run: RunRecord) -> Options:
    """Return a command with ``--data`` that reads it as a run did; raises InputError for options that contradict it.

    A run that was not made on the command line does not say how its data were read: the command stays as it is.
    """
    words = run.notes.get("command")
    if not words:
        return command
    names = (
        "label",
        "positive",
        "cluster_column",
        "clusters",
        "test",
        *(f.name for f in fields(TableOptions)),
    )
    own = {name: _value_in(words, name) for name in names}
    defaults = {each.name: each.default for each in fields(command)}
    own = {name: defaults[name] if value is None else value for name, value in own.items()}
    for name in names:
        given = getattr(command, name)
        if given != defaults[name] and _shown(given) != _shown(own[name]):
            had = f"no {option(name)}" if own[name] == defaults[name] else _shown(own[name])
            raise contradicts(f"{option(name)} {_shown(given)}", path, had)
    return replace(command, **own)


def _value_in(words: Sequence[str], name: str) -> Any:
    """Return what the words of a command say of an option, as the command would hold it; None: nothing."""
    flag, pairs = option(name), zip(words, [*words[1:], ""], strict=True)
    values = [
        word.partition("=")[2] if word.startswith(f"{flag}=") else following
        for word, following in pairs
        if word == flag or word.startswith(f"{flag}=")
    ]
    if not values:
        return None
    if name in ("drop", "numeric", "categorical"):
        return values
    if name == "no_header":
        return True
    return {"clusters": whole, "test": number, "sample": whole, "hashed": whole}.get(name, str)(values[0])


def _shown(value: Any) -> str:
    return ",".join(value) if isinstance(value, list) else str(value)


def contradicts(given: str, path: str, own: str) -> InputError:
    """Return what to say of an argument that a run has otherwise."""
    return InputError(f"{given} contradicts run {path!r}, which has {own}: leave it out")
