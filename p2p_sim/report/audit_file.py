"""``audit.json`` in a run directory: the audits of the run, the newest one of each view."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from p2p_sim.core.errors import InputError
from p2p_sim.report import output_files, terminal
from p2p_sim.rundir import integrity, regular_files, run_json
from p2p_sim.rundir.run_record import RunRecord

FORMAT = 1
NAME = "audit.json"

_ADVICE = "delete it, and audit the run again"

_COMMON = (
    "kind", "at", "channels", "cluster_size", "world", "faults", "graph", "crypto", "seed", "command",
)  # fmt: skip


def read(folder: Path, run: RunRecord) -> list[dict[str, Any]]:
    """Return the saved audits of a run, oldest first; an empty list if there is no file.

    Raises InputError naming the file if it is damaged, was altered, has a newer format, or belongs to another run.
    """
    from p2p_sim.rundir import json_declarations

    file = folder / NAME
    document = regular_files.json_of(folder, NAME, _ADVICE)
    if document is None:
        return []
    if type(document.get("format")) is not int:
        raise InputError(f"{str(file)!r} is damaged: it does not say which format it has; {_ADVICE}")
    if document["format"] > FORMAT:
        raise InputError(
            f"{str(file)!r} has format {document['format']}; this version reads up to {FORMAT}: read it with the "
            "version that wrote it, or a newer one"
        )
    json_declarations.check(file, json_declarations.AuditFile, document, _ADVICE)
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
