"""What experiments share: results as CSV, written whole."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows with one head, to a temporary name first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    building = path.with_name(f".{path.name}.{os.getpid()}")
    with building.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    building.replace(path)


def read_csv(path: Path) -> list[dict[str, str]]:
    """Read rows back, as text."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))
