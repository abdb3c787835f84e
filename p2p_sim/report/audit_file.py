"""``audit.json`` in a run directory: the audits of the run, the newest one of each view."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from p2p_sim.report.kept_file import KeptFile
from p2p_sim.rundir.run_record import RunRecord

FORMAT = 1
NAME = "audit.json"

_FILE = KeptFile(NAME, FORMAT, "audits", "audit the run", "AuditFile", ("view", "channels"))
_COMMON = (
    "kind", "at", "channels", "cluster_size", "world", "faults", "graph", "crypto", "seed", "command",
)  # fmt: skip


def read(folder: Path, run: RunRecord) -> list[dict[str, Any]]:
    """Return the saved audits of a run, oldest first; raises InputError as ``KeptFile.read`` does."""
    return _FILE.read(folder, run)


def check(folder: Path, run: RunRecord) -> None:
    """Check, before any work, that an audit can be saved; raises InputError."""
    _FILE.check(folder, run)


def add(folder: Path, run: RunRecord, document: Mapping[str, Any]) -> Path:
    """Add an audit to the file, and return its path; an earlier audit of the same view is replaced.

    ``document``: the result of ``p2p-sim audit``, as it is printed as JSON.
    """
    common = {name: document[name] for name in _COMMON}
    return _FILE.add(folder, run, [common | row for row in document["views"] if not row["refused"]])
