"""Generators of features given a label: finite tables of rows with weights, and a discrete Gaussian around each label.

Values come from ``draw`` alone, by integer thresholds, so that they are the same bits everywhere.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import lcm
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core import InputError, kernels
from p2p_sim.core.exact import gaussian_thresholds
from p2p_sim.core.synthetic import STEPS, centres

Array = npt.NDArray[Any]

MOST_WEIGHT = 1 << 62
"""Sum of the weights of a label's rows, as whole numbers, up to which they are drawn."""


class Generator(ABC):
    """Draws features for given labels.  ``labels``: k, how many it knows; ``width``: how many features it gives.

    One of your own derives from this class and draws by ``draw`` only; it must not change during a run.
    """

    labels: int
    width: int

    @abstractmethod
    def drawn(self, draw: Any, name: str, labels: Array) -> Array:
        """Return features (n, width) for ``labels`` (n,), one row a party; ``name``: of the draw."""

    def finite(self) -> tuple[Array, list[list[Fraction]]] | None:
        """Return rows of features (m, width), and for each label the probabilities of all; None if there are too many.

        From it privacy is computed: it must say what ``drawn`` does.
        """
        return None

    def likelihood(self, x: Array) -> Array | None:
        """Return how likely each label's features are the rows ``x`` (n, width), as (n, labels).

        Up to a factor of each row, so that densities will do, and the largest of a row is above 0.  None if not known.
        Only learners that undo the noise use it.
        """
        return None


@dataclass(frozen=True, eq=False)
class Prototypes(Generator):
    """A finite table: for each label rows of features, of which one is drawn by its weight.

    ``table``: one entry a label, each with pairs (weight, row); weights are numbers from 0 up, not all 0, rows as long
    as each other.  Raises InputError for other tables, and for weights that do not fit into 62 bits as whole numbers.
    """

    table: Sequence[Sequence[tuple[Any, Sequence[float]]]] = field(repr=False)
    where: str = "prototypes"
    labels: int = field(init=False)
    width: int = field(init=False)
    _rows: Array = field(init=False, repr=False)
    _starts: Array = field(init=False, repr=False)
    _sums: list[list[int]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if len(self.table) < 2:
            raise InputError(f"{self.where}: has rows of {len(self.table)} label; give rows of at least two")
        for label, entries in enumerate(self.table):
            if not entries:
                raise InputError(f"{self.where}: label {label} has no row; give every label at least one")
            self._check(label, entries)
        rows = np.array([row for entries in self.table for _, row in entries], np.float64)
        made = {
            "labels": len(self.table), "width": rows.shape[1], "_rows": rows,
            "_starts": np.cumsum([0, *map(len, self.table)]),
            "_sums": [self._whole(label) for label in range(len(self.table))],
        }  # fmt: skip
        for name, value in made.items():
            object.__setattr__(self, name, value)

    def _check(self, label: int, entries: Sequence[tuple[Any, Sequence[float]]]) -> None:
        width = len(self.table[0][0][1])
        for weight, row in entries:
            if len(row) != width or not len(row):
                raise InputError(
                    f"{self.where}: a row of label {label} has {len(row)} features, the first of label 0 {width}; "
                    "give all rows the same number of features, at least one"
                )
            if not np.isfinite(np.array(row, np.float64)).all():
                raise InputError(f"{self.where}: row {list(row)} of label {label} is not finite")
            if not 0 <= weight < float("inf"):
                raise InputError(f"{self.where}: weight {weight!r} of label {label}: give a number from 0 up")
        if not any(weight for weight, _ in entries):
            raise InputError(f"{self.where}: all weights of label {label} are 0; give one that is above 0")

    def _whole(self, label: int) -> list[int]:
        """Return the running sums of a label's weights as whole numbers."""
        weights = [Fraction(weight) for weight, _ in self.table[label]]
        unit = lcm(*(weight.denominator for weight in weights))
        sums, running = [], 0
        for weight in weights:
            running += int(weight * unit)
            sums.append(running)
        if running > MOST_WEIGHT:
            raise InputError(
                f"{self.where}: the weights of label {label} are whole numbers of up to {running:.2g} in all, more "
                "than 2^62; give smaller whole numbers"
            )
        return sums

    @property
    def rows(self) -> Array:
        """The rows of all labels, (m, width), those of label 0 first."""
        return self._rows

    @property
    def shares(self) -> list[npt.NDArray[np.float64]]:
        """The probabilities of the rows of each label among themselves."""
        return [np.diff([0, *sums]) / float(sums[-1]) for sums in self._sums]

    def drawn(self, draw: Any, name: str, labels: Array) -> Array:
        """Return one row of its label a party."""
        return np.asarray(self._rows[self.places(draw, name, labels)])

    def places(self, draw: Any, name: str, labels: Array) -> npt.NDArray[np.intp]:
        """Draw which of ``rows`` each party has, one of its label."""
        totals = np.array([sums[-1] for sums in self._sums])
        words = draw.below(name, totals[labels])
        place = np.empty(len(labels), np.intp)
        for label, sums in enumerate(self._sums):
            mine = labels == label
            place[mine] = self._starts[label] + np.searchsorted(np.array(sums), words[mine], side="right")
        return place

    def finite(self) -> tuple[Array, list[list[Fraction]]]:
        """Return the table itself."""
        chances = [[Fraction(0)] * len(self._rows) for _ in self._sums]
        for label, sums in enumerate(self._sums):
            for i, (low, high) in enumerate(zip([0, *sums[:-1]], sums, strict=True)):
                chances[label][int(self._starts[label]) + i] = Fraction(high - low, sums[-1])
        return self._rows, chances


@dataclass(frozen=True)
class GaussianClasses(Generator):
    """The features of made-up users, ``Population.synthetic(features=width)``: of each label its mean, plus noise.

    ``labels``: k, from 2 to 256; ``width``: from 1 to 10,000.  The noise is discrete Gaussian of variance 1, on
    multiples of 1/256.
    """

    labels: int
    width: int

    def drawn(self, draw: Any, name: str, labels: Array) -> Array:
        """Return the centre of each label with noise on every feature."""
        weights, steps = _gaussian()
        noise = draw.categorical(name, weights, times=self.width, values=steps)
        x = noise.data.reshape(len(labels), self.width)
        kernels.at_hand(len(labels)).add_rows(centres(self.labels, self.width), labels, x)
        return np.asarray(x)

    def likelihood(self, x: Array) -> Array:
        """Return the densities of the Gaussians, of which the largest of each row is 1."""
        away = [((x - centre) ** 2).sum(axis=1) / 2 for centre in centres(self.labels, self.width)]
        distance = np.stack(away, axis=1)
        return np.asarray(np.exp(distance.min(axis=1, keepdims=True) - distance))


@lru_cache(maxsize=1)
def _gaussian() -> tuple[tuple[int, ...], npt.NDArray[np.float64]]:
    """Return the weights of the noise, in words, and its values."""
    bounds, least = gaussian_thresholds(STEPS)
    ends = [0, *map(int, bounds), 1 << 64]
    weights = tuple(high - low for low, high in pairwise(ends))
    steps = (np.arange(len(weights)) + least) / STEPS
    steps.setflags(write=False)
    return weights, steps


def features_of(name: str, generator: Generator, draw: Any, labels: Array, steps: str) -> Array:
    """Draw features (n, width); ``steps``: the draw's name.  Raises InputError if the generator gives other shapes."""
    found = np.asarray(generator.drawn(draw, steps, labels))
    if found.shape != (len(labels), generator.width) or found.dtype.kind not in "buif":
        raise InputError(
            f"{name}: gave {found.dtype} of shape {found.shape} for {len(labels)} labels; a generator of width "
            f"{generator.width} gives numbers of shape {(len(labels), generator.width)}"
        )
    return found
