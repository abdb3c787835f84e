"""What experiments share: a model's accuracy; results as CSV, written whole."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from p2p_sim.learning import models
from p2p_sim.learning.experiment import Examples
from p2p_sim.learning.threads import one_thread


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


def accuracy(examples: Examples, rows: Any, y: Any) -> float:
    """Train logistic regression on some users' features with labels ``y``; return its share of right test rows."""
    x = examples.population.x
    assert x is not None
    with one_thread():
        predicted = models.make().fit(x[rows], y).predict(examples.x_test)
    return float((predicted == examples.y_test).mean())
