"""What experiments share: a model's accuracy; results as CSV, written whole."""

from __future__ import annotations

import csv
import io
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from p2p_sim.core.errors import InputError
from p2p_sim.learning.experiment import Examples
from p2p_sim.learning.training import models
from p2p_sim.learning.training.models import one_thread
from p2p_sim.report import output_files


def check(parser: ArgumentParser, *places: Path) -> None:
    """Make the folders of results, and check that these can be written there; ends the program if not.

    For before any work: results of an hour need a place.
    """
    for place in places:
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            output_files.check(str(place))
        except InputError as error:
            parser.error(str(error))
        except OSError as error:
            parser.error(f"{str(place.parent)!r} cannot be a folder ({error.strerror}): choose another --out")


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows with one head, whole or not at all; raises InputError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    page = io.StringIO(newline="")
    writer = csv.DictWriter(page, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    output_files.write(path, page.getvalue())


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
