"""What ``p2p-sim audit --run`` audits: the protocol, users and faults of a run, which no option may contradict."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

from p2p_sim import catalogue
from p2p_sim.core.errors import InputError
from p2p_sim.core.faults import Faults
from p2p_sim.report.options import option

_LONG = 10**10
"""Users of all worlds, from which on an audit is said to take long."""


def told(command: Any, kind: str, at: float, progress: Any) -> tuple[dict[str, Any], Any]:
    """Return what an audit of the run ``command.run`` tells, and the run; ``command``: the verb with its options.

    Raises InputError for options that contradict the run, and for a file of kept audits that cannot be added to.
    """
    from p2p_sim.privacy.auditing.of_run import world_of
    from p2p_sim.report import kept
    from p2p_sim.report.parameters import Chosen
    from p2p_sim.run import load
    from p2p_sim.trace import code

    progress(f"reading {command.run}", 0, 0)
    path = Path(command.run)
    run = load(path)
    kept.check(path, run)
    program = _program(command, run)
    _check(command, run)
    world = world_of(run, _views(command, program), command.cluster_size, protocol=program)
    other = code.other_code(run, program)
    if other:
        warnings.warn(f"audited by other code than the run's: {'; '.join(other)}", stacklevel=2)
    users = 2 * command.trials * world.cluster_size
    if users > _LONG:
        warnings.warn(
            f"worlds of {world.cluster_size:,} users ({world.about}): {users:,} users in all, which takes long; "
            "fewer --trials show less and are done sooner",
            stacklevel=2,
        )
    texts = None if world.faults is None else world.faults.texts()
    changed = replace(
        command, cluster_size=world.cluster_size, fault=texts, graph=world.graph, crypto=world.crypto
    )
    found = changed.told(Chosen(world.protocol, tuple(run.notes.get("defaults", ()))), kind, at, progress)
    again = command.again(world.protocol, {}, kind, at)
    found |= {"run": command.run, "world": world.about, "graph": _graph(run), "command": again}
    return found, run


def _program(command: Any, run: Any) -> Any:
    """Return the protocol of a run; raises InputError if words contradict it, or have to name it and do not."""
    from p2p_sim.report import parameters

    words, offered = parameters.own(command.words or [], catalogue.everything())
    if run.source is None and not words:
        raise InputError(
            f"{run.protocol} is not a shipped protocol: name it, p2p-sim audit {run.protocol} --run {command.run}"
        )
    if not words:
        return run.source
    if run.source is not None and words[0].startswith("-"):
        words = [run.source.command_name(), *words]
    named, _, values = parameters.given(words, offered, "audit")
    if f"{named.__module__}:{named.__name__}" != run.protocol:
        raise _contradicts(named.command_name(), command.run, run.protocol)
    for name, value in values.items():
        if value != run.parameters.get(name):
            raise _contradicts(f"{option(name)} {value}", command.run, f"{run.parameters.get(name)}")
    return named(**run.parameters)


def _check(command: Any, run: Any) -> None:
    """Check options of which the run has its own; one that says the same may be there."""
    faults = Faults.of(command.fault)
    if command.fault and faults != run.faults:
        own = "none" if run.faults is None else ", ".join(run.faults.texts())
        raise _contradicts(f"--fault {', '.join(command.fault)}", command.run, own)
    for name, kept in {"graph": _graph(run) or "none", "crypto": run.crypto}.items():
        value = getattr(command, name)
        if value is not None and value != kept:
            raise _contradicts(f"{option(name)} {value}", command.run, kept)


def _contradicts(given: str, run: str, own: str) -> InputError:
    return InputError(f"{given} contradicts run {run!r}, which has {own}: leave it out")


def _graph(run: Any) -> str | None:
    """Return where the graph of a run comes from, in a word."""
    told = run.notes.get("graph")
    if told is not None:
        return str(told["source"])
    return None if run.population is None or run.population.graph is None else "given from Python"


def _views(command: Any, program: Any) -> list[str]:
    """Return the names of the views that are asked for."""
    from p2p_sim.privacy.rows import rows

    if command.all_views:
        return [view.name for view in rows(program)]
    return command.view or ["learner"]
