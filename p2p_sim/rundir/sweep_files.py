"""The files of a sweep's folder, which no other output replaces; what they hold is of ``p2p_sim.sweep``."""

from __future__ import annotations

import os
from pathlib import Path

SWEEP, RUNS = "sweep.json", "runs.jsonl"
TABLE, TABLE_CSV = "table.parquet", "table.csv"
FILES = (SWEEP, RUNS, TABLE, TABLE_CSV)


def sweep_that_owns(path: Path) -> Path | None:
    """Return the folder of the sweep of which a file is a part, whether it is there or not; None for any other file."""
    real = Path(os.path.realpath(path))
    return real.parent if real.name in FILES and os.path.lexists(real.parent / SWEEP) else None
