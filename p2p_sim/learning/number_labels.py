"""Labels that are numbers: clipped to a protocol's public range before a run, and a regressor trained after it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.engine import Progress
from p2p_sim.core.errors import InputError
from p2p_sim.core.label_kinds import CLASSES
from p2p_sim.core.protocol import Protocol
from p2p_sim.learning.data.tables import number_text
from p2p_sim.learning.training import label_assignment, models, number_evaluation
from p2p_sim.rundir.outputs_folder import StoredOutputs

if TYPE_CHECKING:
    from p2p_sim.learning.data.datasets import Dataset
    from p2p_sim.learning.data_split import Examples
    from p2p_sim.run import Run

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

MOST_CLIPPED = 0.5
"""The share of labels outside a range from which it is taken for a wrong one, such as that of the defaults."""


def on_the_grid(protocol: Protocol, data: Dataset) -> tuple[Dataset, Floats, int]:
    """Return data whose classes are a protocol's numbers, the nearest for each row; every row's number; clipped rows.

    Raises InputError where a label is no number, or more than half of them are outside the protocol's range.
    """
    values, grid = _values(protocol, data), protocol.numbers()
    assert grid is not None  # the caller has asked
    low, high = float(grid[0]), float(grid[-1])
    of = f"low = {number_text(low)} to high = {number_text(high)}, the range of {protocol.command_name()}"
    inside = clipped_to(low, high, values, data.label, of, "--low, --high")
    clipped = int((inside != values).sum())
    meant = tuple(number_text(number) for number in grid.tolist())
    labels: npt.NDArray[Any] = protocol.label_of(inside)
    return (
        replace(data, y=labels, classes=meant, positive=meant[1], classes_from="", numeric=True),
        values,
        clipped,
    )


def clipped_to(low: float, high: float, values: Floats, label: str, of: str, options: str) -> Floats:
    """Return numbers clipped to a public range; ``of`` and ``options``: what it is called, and who says it.

    Raises InputError where more than half of them are outside.
    """
    inside = np.clip(values, low, high)
    clipped = int((inside != values).sum())
    if clipped > MOST_CLIPPED * len(values):
        raise InputError(
            f"label {label!r}: {clipped:,} of {len(values):,} numbers, the first {_first(values, inside)}, are outside "
            f"{of}: give the range of labels by public knowledge ({options}); it is not taken from the labels, which "
            "are private, and numbers outside it are clipped"
        )
    return inside


def released(outputs: Mapping[str, Mapping[str, Array]]) -> dict[str, Any] | None:
    """Return how many numbers the learner has, for a run's notes; None if it returns none."""
    if isinstance(outputs, StoredOutputs):
        there = "value" in outputs.names.get("learner", ())
        counted = outputs.counted("learner", "value") if there else None
        count = None if counted is None else counted[0]
    else:
        values = outputs.get("learner", {}).get("value")
        count = None if values is None or values.ndim != 1 else len(values)
    return None if count is None else {"labels": count, "positive_share": None, "numbers": True}


def train(
    run: Run, examples: Examples, model: str = models.REGRESSOR, progress: Progress | None = None
) -> number_evaluation.NumberComparison | None:
    """Train on the numbers that a run released and on the true ones; add errors and seconds to the run.

    None, and a note of the run says why, where the learner's numbers go with no features.
    """
    before, people = time.perf_counter(), examples.population
    run.notes["accuracy"] = None
    columns = label_assignment.returned(run)
    released, sender = columns.get("value"), columns.get("sender")
    values, tested = examples.values, examples.values_test
    if people.x is None or released is None or values is None or tested is None:
        return None
    if sender is None or len(sender) != len(released):
        run.notes["released"]["untrained"] = label_assignment.NO_FEATURES
        return None
    if progress is not None:
        progress(f"training {model}", 0, 0)
    found = number_evaluation.compare(people.x, values, examples.x_test, tested, sender, released, model)
    run.notes["regression"] = asdict(found)
    run.timings["training"] = time.perf_counter() - before
    return found


def _values(protocol: Protocol, data: Dataset) -> Floats:
    """Return the number that is each row's label; InputError: a label is none."""
    from p2p_sim.privacy.accepted_labels import protocols_for

    try:
        found = replace(data, numeric=True).values()
    except InputError as error:
        raise InputError(
            f"{protocol.command_name()} takes numbers: {error}, {protocols_for(CLASSES)}"
        ) from None
    assert found is not None  # they are numeric
    return found


def _first(values: Floats, inside: Floats) -> str:
    return number_text(float(values[int(np.argmax(values != inside))]))
