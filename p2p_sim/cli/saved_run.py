"""Saved runs that a verb with a protocol's words looks at: which program they have, and what contradicts them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from p2p_sim import catalogue
from p2p_sim.cli.options import option
from p2p_sim.core.errors import InputError

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
    return named(**run.parameters)


def contradicts(given: str, path: str, own: str) -> InputError:
    """Return what to say of an argument that a run has otherwise."""
    return InputError(f"{given} contradicts run {path!r}, which has {own}: leave it out")
