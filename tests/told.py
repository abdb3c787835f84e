"""What run directories tell, for tests that alter it or cut a run off."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from p2p_sim.rundir import integrity, manifest
from p2p_sim.rundir.integrity import CHECKSUM


def told_in(run: Path, name: str = "run.json") -> dict[str, Any]:
    """Return what a JSON file of a run directory tells but its checksum, which would notice."""
    told: dict[str, Any] = json.loads((run / name).read_text())
    told.pop(CHECKSUM, None)  # gone already where a test altered it before
    return told


def cut_off(messages: Path) -> None:
    """Make a whole trace one of a run that was killed: its files are noted as far as they are there, no more."""
    told = manifest.read(messages)
    for entry in told["files"]:
        if (messages / entry["file"]).exists():
            integrity.add(messages, 0, entry)
    manifest.write(messages, {**told, "complete": False, "counts": [], "files": []})
