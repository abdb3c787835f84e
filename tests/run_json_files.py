"""The JSON files of run directories, for tests that alter them or cut a run off."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from p2p_sim.rundir import integrity, manifest
from p2p_sim.rundir.integrity import CHECKSUM


def document_in(run: Path, name: str = "run.json") -> dict[str, Any]:
    """Return a JSON file of a run directory without its checksum, which would notice a change."""
    document: dict[str, Any] = json.loads((run / name).read_text())
    document.pop(CHECKSUM, None)  # gone already where a test altered it before
    return document


def cut_off(messages: Path) -> None:
    """Make a whole trace one of a run that was killed: its files are noted as far as they are there, no more."""
    document = manifest.read(messages)
    for entry in document["files"]:
        if (messages / entry["file"]).exists():
            integrity.add(messages, 0, entry)
    manifest.write(messages, {**document, "complete": False, "counts": [], "files": []})
