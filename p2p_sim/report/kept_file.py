"""Files in a run directory that keep results on the run, the newest of each view: audits, and attacks on labels."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from p2p_sim.core.errors import InputError
from p2p_sim.report import output_files, terminal
from p2p_sim.rundir import integrity, regular_files, run_json
from p2p_sim.rundir.run_record import RunRecord

Row = Mapping[str, Any]


@dataclass(frozen=True)
class KeptFile:
    """What a file is called, and how its results are.

    ``rows``: what they are called, also in the file.  ``again``: how to make them again.  ``declared``: the name of
    the file's declaration.  ``same``: columns in which a result equals the one that it replaces.  ``common``: what a
    printed document says once for all its results.
    """

    name: str
    format: int
    rows: str
    again: str
    declared: str
    same: tuple[str, ...]
    common: tuple[str, ...]

    @property
    def _advice(self) -> str:
        return f"delete it, and {self.again} again"

    def read(self, folder: Path, run: RunRecord) -> list[dict[str, Any]]:
        """Return the saved results on a run, oldest first; an empty list if there is no file.

        Raises InputError naming the file if it is damaged, was altered, has a newer format, or belongs to another run.
        """
        from p2p_sim.rundir import json_declarations

        file = folder / self.name
        document = regular_files.json_of(folder, self.name, self._advice)
        if document is None:
            return []
        if type(document.get("format")) is not int:
            raise InputError(f"{str(file)!r} is damaged: it does not say which format it has; {self._advice}")
        if document["format"] > self.format:
            raise InputError(
                f"{str(file)!r} has format {document['format']}; this version reads up to {self.format}: read it with "
                "the version that wrote it, or a newer one"
            )
        json_declarations.check(file, getattr(json_declarations, self.declared), document, self._advice)
        if integrity.was_altered(document):
            raise InputError(
                f"{str(file)!r} was altered since it was written: its checksum does not match; {self._advice}"
            )
        other = [name for name, value in _run_identity(run).items() if document.get(name) != value]
        if other:
            raise InputError(
                f"{str(file)!r} is of another run ({', '.join(other)} differ): "
                f"{self._advice.replace('the run', 'this run')}"
            )
        found: list[dict[str, Any]] = document[self.rows]
        return found

    def check(self, folder: Path, run: RunRecord) -> None:
        """Check, before any work, that a result can be saved; raises InputError."""
        self.read(folder, run)
        if not os.access(folder, os.W_OK):
            raise InputError(
                f"{str(folder / self.name)!r} cannot be written, and {self.rows} of a run are saved there: copy the run"
            )

    def add(self, folder: Path, run: RunRecord, document: Row) -> Path:
        """Add results to the file, and return its path; earlier ones of the same are replaced.

        ``document``: the result of ``p2p-sim audit`` or ``attack``, as it is printed as JSON.
        """
        common = {name: document[name] for name in self.common}
        fresh = [common | row for row in document["views"] if not row["refused"]]
        now = {
            "when": datetime.now(UTC).isoformat(timespec="seconds"), "version": metadata.version("p2p-sim")
        }  # fmt: skip
        replaced = {self._what(terminal.plain(row)) for row in fresh}
        rows = [row for row in self.read(folder, run) if self._what(row) not in replaced]
        whole = terminal.plain(
            {
                "format": self.format,
                **_run_identity(run),
                self.rows: [*rows, *(now | row for row in fresh)],
            }
        )
        output_files.write(folder / self.name, run_json.text_of(whole), private=True)  # it tells seeds
        return folder / self.name

    def _what(self, row: Row) -> tuple[Any, ...]:
        return tuple(row.get(name) for name in self.same)


ATTACKS = KeptFile(
    "attack.json", 1, "attacks", "attack the run", "AttackFile",
    same=("view", "name", "channels", "utility", "eta_from", "seed"),
    common=("channels", "eta", "command"),
)  # fmt: skip
"""Attacks on the labels of a run: the newest of each view, utility, P(y | x) and seed."""

AUDITS = KeptFile(
    "audit.json", 1, "audits", "audit the run", "AuditFile",
    same=("view", "channels"),
    common=(
        "kind", "at", "channels", "cluster_size", "world", "faults", "graph", "crypto", "seed", "command",
    ),
)  # fmt: skip
"""Audits of a run: the newest of each view."""


def _run_identity(run: RunRecord) -> dict[str, Any]:
    """Return what identifies the run that results belong to."""
    found: dict[str, Any] = terminal.plain(
        {"protocol": run.protocol, "parameters": run.parameters, "digest": run.digest}
    )
    return found
