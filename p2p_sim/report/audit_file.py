"""``audit.json`` in a run directory: the audits of the run, the newest one of each view."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from types import NoneType
from typing import Any

from p2p_sim.core.errors import InputError
from p2p_sim.report import output_files, terminal
from p2p_sim.rundir import integrity, run_json
from p2p_sim.rundir.run_record import RunRecord

FORMAT = 1
NAME = "audit.json"

_ADVICE = "delete it, and audit the run again"

_COMMON = (
    "kind", "at", "channels", "cluster_size", "world", "faults", "graph", "crypto", "seed", "command",
)  # fmt: skip
_NUMBER = (int, float)
_TYPES: dict[str, Any] = {
    "view": str, "name": str, "channels": str, "when": str, "version": str, "kind": str, "at": _NUMBER,
    "lower": _NUMBER, "cap": _NUMBER, "true_positive": _NUMBER, "false_positive": _NUMBER, "confidence": _NUMBER,
    "trials": int, "cluster_size": int, "composition": int, "world": str, "statistic": str, "verdict": str, "why": str,
    "failed": bool, "claims": list, "command": str, "law": (dict, NoneType), "needed": (int, NoneType),
    "assumes": (list, NoneType), "not_varied": (list, NoneType), "looks": (list, NoneType),
}  # fmt: skip
_LAW = {"why": str}
_CLAIM = {
    "name": str, "basis": str, "holds": bool, "verdict": str, "epsilon": (*_NUMBER, str), "delta": (*_NUMBER, str),
}  # fmt: skip


def read(folder: Path, run: RunRecord) -> list[dict[str, Any]]:
    """Return the saved audits of a run, oldest first; an empty list if there is no file.

    Raises InputError naming the file if it is damaged, was altered, has a newer format, or belongs to another run.
    """
    file = folder / NAME
    if file.exists() and not file.is_file():  # reading a FIFO would wait forever
        raise _damaged(file, "it is no file")
    try:
        document = json.loads(file.read_text(), parse_constant=_no_number)
    except FileNotFoundError:
        return []
    except (ValueError, OSError) as error:
        raise _damaged(file, f"{type(error).__name__}: {error}") from error
    if not isinstance(document, dict) or not isinstance(document.get("format"), int):
        raise _damaged(file, "it has no format")
    if document["format"] > FORMAT:
        raise InputError(
            f"{str(file)!r} has format {document['format']}; this version reads up to {FORMAT}: read it with the "
            "version that wrote it, or a newer one"
        )
    _check(file, document)
    if integrity.was_altered(document):
        raise InputError(
            f"{str(file)!r} was altered since it was written: its checksum does not match; {_ADVICE}"
        )
    other = [name for name, value in _run_identity(run).items() if document.get(name) != value]
    if other:
        raise InputError(
            f"{str(file)!r} is of another run ({', '.join(other)} differ): delete it, and audit this run again"
        )
    found: list[dict[str, Any]] = document["audits"]
    return found


def check(folder: Path, run: RunRecord) -> None:
    """Check, before any work, that an audit can be saved; raises InputError."""
    read(folder, run)
    if not os.access(folder, os.W_OK):
        raise InputError(
            f"{str(folder / NAME)!r} cannot be written, and audits of a run are saved there: copy the run"
        )


def add(folder: Path, run: RunRecord, document: Mapping[str, Any]) -> Path:
    """Add an audit to the file, and return its path; an earlier audit of the same view is replaced.

    ``document``: the result of ``p2p-sim audit``, as it is printed as JSON.
    """
    stamp = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"), "version": metadata.version("p2p-sim"),
        **{name: document[name] for name in _COMMON},
    }  # fmt: skip
    fresh = [stamp | row for row in document["views"] if not row["refused"]]
    replaced = {(row["view"], row["channels"]) for row in fresh}
    rows = [row for row in read(folder, run) if (row["view"], row["channels"]) not in replaced] + fresh
    whole = terminal.plain({"format": FORMAT, **_run_identity(run), "audits": rows})
    output_files.write(folder / NAME, run_json.text_of(whole))
    return folder / NAME


def _run_identity(run: RunRecord) -> dict[str, Any]:
    """Return what identifies the run that audits belong to."""
    found: dict[str, Any] = terminal.plain(
        {"protocol": run.protocol, "parameters": run.parameters, "digest": run.digest}
    )
    return found


def _check(file: Path, document: Mapping[str, Any]) -> None:
    """Check that the file has everything that is displayed."""
    audits = document.get("audits")
    if not isinstance(audits, list) or not all(isinstance(row, dict) for row in audits):
        raise _damaged(file, "it has no list of audits")
    for row in audits:
        _check_row(file, row, _TYPES)
        _check_row(file, row["law"] or {"why": ""}, _LAW)
        for claim in row["claims"]:
            _check_row(file, claim if isinstance(claim, dict) else {}, _CLAIM)


def _check_row(file: Path, row: Mapping[str, Any], types: Mapping[str, Any]) -> None:
    for name, kind in types.items():
        value = row.get(name)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise _damaged(file, f"{name} = {value!r}")


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _damaged(file: Path, what: str) -> InputError:
    return InputError(f"{str(file)!r} is damaged ({what}): {_ADVICE}")
