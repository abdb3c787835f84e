"""What run.json, audit.json and manifests tell, for tests that alter it: without the checksum, which would notice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from p2p_sim.rundir.integrity import CHECKSUM


def told_in(run: Path, name: str = "run.json") -> dict[str, Any]:
    """Return the fields of a run directory's run.json, or of another such file, but its checksum."""
    told: dict[str, Any] = json.loads((run / name).read_text())
    told.pop(CHECKSUM, None)  # gone already where a test altered it before
    return told
