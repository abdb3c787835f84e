"""``attack.json`` in a run directory: attacks on its labels, the newest of each view, utility, P(y | x) and seed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from p2p_sim.report.kept_file import KeptFile
from p2p_sim.rundir.run_record import RunRecord

FORMAT = 1
NAME = "attack.json"

_FILE = KeptFile(
    NAME,
    FORMAT,
    "attacks",
    "attack the run",
    "AttackFile",
    ("view", "name", "channels", "utility", "eta_from", "seed"),
)
_COMMON = ("channels", "eta", "command")


def read(folder: Path, run: RunRecord) -> list[dict[str, Any]]:
    """Return the saved attacks on a run, oldest first; raises InputError as ``KeptFile.read`` does."""
    return _FILE.read(folder, run)


def check(folder: Path, run: RunRecord) -> None:
    """Check, before any work, that an attack can be saved; raises InputError."""
    _FILE.check(folder, run)


def add(folder: Path, run: RunRecord, document: Mapping[str, Any]) -> Path:
    """Add attacks to the file, and return its path.

    ``document``: the result of ``p2p-sim attack``, as it is printed as JSON.
    """
    common = {name: document[name] for name in _COMMON}
    return _FILE.add(folder, run, [common | row for row in document["views"] if not row["refused"]])
