"""What run.json tells, for tests that alter it: without the checksum, by which that would be noticed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from p2p_sim.trace.about import CHECKSUM


def told_in(run: Path) -> dict[str, Any]:
    """Return the fields of a run directory's run.json but its checksum."""
    told: dict[str, Any] = json.loads((run / "run.json").read_text())
    told.pop(CHECKSUM, None)  # gone already where a test altered it before
    return told
