"""Examples that are read in batches, kept in a scratch folder by the first pass, as numbers that need no decoding."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core import write_errors
from p2p_sim.core.engine import Progress
from p2p_sim.learning.training.models_in_batches import Examples

Array = npt.NDArray[Any]

ROOM = 2
"""Nothing is kept unless so many times the room is free: then every pass reads the examples anew."""


def bytes_a_row(width: int) -> int:
    """Return how many bytes are kept of a row with so many features: those, and its label."""
    return width * 8 + 1


class ScratchExamples:
    """Examples with a copy of their features and labels in ``folder``, if that has room; ``name``: of what they train.

    What is read is the same with and without.  ``progress``: called with how far each pass is.
    """

    def __init__(self, examples: Examples, folder: Path, name: str, progress: Progress | None = None):
        self._examples, self._name, self._progress = examples, name, progress
        self._x, self._y = folder / "features", folder / "true"
        self._whole, self._passes = False, 0

    @property
    def users(self) -> int:
        """How many rows there are."""
        return self._examples.users

    @property
    def labels(self) -> int:
        """How many label values there can be."""
        return self._examples.labels

    @property
    def width(self) -> int:
        """How many features there are."""
        return self._examples.width

    def batches(self, edges: list[int]) -> Iterator[tuple[Array, Array]]:
        """Return features (n, d) and labels (n,) of the rows between neighbouring edges, from 0 to all."""
        self._passes += 1
        label = f"training {self._name}, pass {self._passes}"
        found = self._stored(edges) if self._whole else self._kept(edges)
        for low, batch in zip(edges, found, strict=False):
            if self._progress is not None:
                self._progress(label, low, self.users)
            yield batch

    def _stored(self, edges: list[int]) -> Iterator[tuple[Array, Array]]:
        with self._x.open("rb") as xs, self._y.open("rb") as ys:
            for low, high in itertools.pairwise(edges):
                x = np.fromfile(xs, np.float64, (high - low) * self.width)
                yield x.reshape(high - low, self.width), np.fromfile(ys, np.uint8, high - low)

    def _kept(self, edges: list[int]) -> Iterator[tuple[Array, Array]]:
        """Read the examples, and keep them where there is room."""
        found, row = self._examples.batches(edges), bytes_a_row(self.width)
        if shutil.disk_usage(self._x.parent).free < ROOM * row * self.users:
            yield from found
            return
        what, elsewhere = f"features, {row} bytes a row,", "another folder by the variable TMPDIR"
        with write_errors.translated(what, self._x.parent, elsewhere):
            for path in (self._x, self._y):
                path.write_bytes(b"")
        for x, y in found:
            with write_errors.translated(what, self._x.parent, elsewhere):
                _append(self._x, np.ascontiguousarray(x, np.float64))
                _append(self._y, np.ascontiguousarray(y, np.uint8))
            yield x, y
        self._whole = True


def _append(path: Path, numbers: Array) -> None:
    """Write and close: a file left open would try once more as it is closed, with an error that nobody has named."""
    with path.open("ab") as file:
        file.write(numbers.data)
