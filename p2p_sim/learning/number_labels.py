"""Labels that are numbers: each user's number is clipped to the public range of a protocol, and becomes a label."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.core.label_kinds import CLASSES
from p2p_sim.core.protocol import Protocol
from p2p_sim.learning.data.tables import number_text

if TYPE_CHECKING:
    from p2p_sim.learning.data.datasets import Dataset

Floats = npt.NDArray[np.float64]

MOST_CLIPPED = 0.5
"""The share of labels outside a range from which it is taken for a wrong one, such as that of the defaults."""


def on_the_grid(protocol: Protocol, data: Dataset) -> tuple[Dataset, Floats, int]:
    """Return data whose classes are a protocol's numbers, of each row the nearest; every row's number; clipped rows.

    Raises InputError where a label is no number, or more than half of them are outside the protocol's range.
    """
    values, grid = _values(protocol, data), protocol.numbers()
    assert grid is not None  # the caller has asked
    low, high = float(grid[0]), float(grid[-1])
    inside = np.clip(values, low, high)
    clipped = int((inside != values).sum())
    if clipped > MOST_CLIPPED * len(values):
        raise InputError(
            f"label {data.label!r}: {clipped:,} of {len(values):,} numbers, the first {_first(values, inside)}, are "
            f"outside low = {number_text(low)} to high = {number_text(high)}, the range of "
            f"{protocol.command_name()}: say between which numbers labels are by public knowledge (--low, --high); it "
            "is not looked up in the labels, which are private, and what lies outside is clipped"
        )
    meant = tuple(number_text(number) for number in grid.tolist())
    labels: npt.NDArray[Any] = protocol.label_of(inside)
    return (
        replace(data, y=labels, classes=meant, positive=meant[1], classes_from="", numeric=True),
        values,
        clipped,
    )


def _values(protocol: Protocol, data: Dataset) -> Floats:
    """Return the number that is each row's label; InputError: a label is none."""
    from p2p_sim.privacy.label_kinds import protocols_for

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
