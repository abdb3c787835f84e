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
from p2p_sim.rundir import run_json
from p2p_sim.rundir.regular_files import RESTORE


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
    writer = versions.get("p2p-sim")
    raise InputError(
        f"{file!r} has parameters that {name} does not take here: {why}; "
        f"another version of it made the run: read it with that version{f' (p2p-sim {writer})' if writer else ''}, or "
        f"if the file was changed since, {RESTORE}"
    ) from cause


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
