"""The protocol of a saved run, made again of the parameters in its file, which another version may have written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from p2p_sim import catalogue
from p2p_sim.core.errors import InputError, near
from p2p_sim.core.module_finder import in_one_line
from p2p_sim.core.protocol import Protocol
from p2p_sim.rundir import manifest, run_json
from p2p_sim.rundir.regular_files import RESTORE
from p2p_sim.rundir.trace_writer import MESSAGES


def remade(
    kind: type[Protocol], parameters: Mapping[str, Any], run: str | Path, versions: Mapping[str, str]
) -> Protocol:
    """Return ``kind(**parameters)``; raises InputError naming run, protocol and parameter, and what to do.

    ``run``: its folder; ``versions``: of what wrote it.
    """
    why = _unknown(kind, parameters) or _missing(kind, parameters)
    cause: Exception | None = None
    if not why:
        try:
            return kind(**parameters)
        except InputError as error:
            why, cause = str(error), error
        except Exception as error:  # whatever a class of another version raises
            given = ", ".join(f"{name} = {value!r}" for name, value in parameters.items())
            why, cause = f"with {given} it raises {in_one_line(error)}", error
    file, name = str(Path(run) / run_json.RUN), catalogue.class_name(kind)
    raise InputError(
        f"{file!r} has parameters that {name} does not take here: {why}; {_advice(versions)}"
    ) from cause


def check_kinds(
    program: Protocol, stored: Mapping[str, Mapping[str, Any]], run: str | Path, versions: Mapping[str, str]
) -> None:
    """Check that a program declares the message kinds of a trace; raises InputError naming the first that it does not.

    ``stored``: of the trace's manifest.  What its texts say, and how large messages are, makes no trace unreadable.
    """
    here = manifest.kinds_of(program)
    for name in dict.fromkeys([*stored, *here]):
        then, now = stored.get(name), here.get(name)
        if then is None or now is None or any(then[part] != now[part] for part in _READ_BY):
            how = "is not here" if now is None else "is new" if then is None else "is declared otherwise here"
            file, protocol = str(Path(run) / MESSAGES), catalogue.class_name(type(program))
            raise InputError(
                f"{file!r} has the message kinds {', '.join(stored)}, and {protocol} has {', '.join(here)}: "
                f"{name} {how}; {_advice(versions)}"
            )


_READ_BY = ("sender", "recipient", "sealed_for", "layers", "fields")
"""What of a message kind decides how its messages are read."""


def _advice(versions: Mapping[str, str]) -> str:
    writer = versions.get("p2p-sim")
    which = f" (p2p-sim {writer})" if writer else ""
    return (
        f"another version of the protocol made the run: read it with that version{which}, or "
        f"if the file was changed since, {RESTORE}"
    )


def _unknown(kind: type[Protocol], parameters: Mapping[str, Any]) -> str:
    """Return which parameter the class here does not have; empty if it has all."""
    known = [each.name for each in fields(kind) if each.init]  # type: ignore[arg-type]
    gone = [name for name in parameters if name not in known]
    if not gone:
        return ""
    has = f"it has {', '.join(known)}" if known else "it has none"
    return f"there is no {gone[0]} (= {parameters[gone[0]]!r}), {has}{near(gone[0], known)}"


def _missing(kind: type[Protocol], parameters: Mapping[str, Any]) -> str:
    """Return which parameter the class here needs, and the run does not have; empty if it has all."""
    needed = [
        each.name
        for each in fields(kind)  # type: ignore[arg-type]
        if each.init and each.default is MISSING and each.default_factory is MISSING
    ]
    return next((f"{name} is missing" for name in needed if name not in parameters), "")
