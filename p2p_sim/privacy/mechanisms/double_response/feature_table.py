"""Features that double randomized response may release, as a small table, and how likely each is."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from protocols import DoubleResponse
from protocols.double_response import FEATURES

Array = npt.NDArray[np.float64]

MOST_ENTRIES = 200_000
"""Entries of a table of features, rows times labels, up to which its law is computed."""


def perfect(protocol: DoubleResponse) -> bool:
    """Whether the generator draws features by their true law."""
    return protocol.truth == protocol.generator or protocol.model() == protocol.nature()


@dataclass(frozen=True, eq=False)
class Table:
    """The features that can be seen, (m, width) in multiples, and for each label how likely they are, (k, m).

    ``true``: before, ``made``: what the generator draws, ``shown``: what is released.  ``chances``: ``shown`` as exact
    fractions.
    """

    rows: npt.NDArray[Any]
    true: Array
    made: Array
    chances: tuple[tuple[Fraction, ...], ...]

    @property
    def shown(self) -> Array:
        """Return the probabilities of what is released, rounded once."""
        return np.array([[float(chance) for chance in row] for row in self.chances])


def joint(protocol: DoubleResponse) -> Table | None:
    """Return what can be seen of features and how likely it is; None if that is no small table."""
    return _joint(protocol.lam, protocol.labels, protocol.model(), protocol.nature())


@lru_cache(maxsize=8)
def _joint(lam: float, labels: int, model: Any, nature: Any) -> Table | None:
    tables = [None if each is None else each.finite() for each in (nature, model)]
    if any(table is None or labels * len(table[0]) > MOST_ENTRIES for table in tables):
        return None
    sides = [table for table in tables if table is not None]
    codes = [FEATURES.encoded(rows, "features") for rows, _ in sides]
    rows, place = np.unique(np.concatenate(codes), axis=0, return_inverse=True)
    places = np.split(place.ravel(), [len(codes[0])])
    true, made = (_merged(chances, at, len(rows)) for (_, chances), at in zip(sides, places, strict=True))
    rate = Fraction(lam)
    mean = [sum(column, Fraction(0)) / labels for column in zip(*made, strict=True)]
    shown = tuple(
        tuple((1 - rate) * own + rate * other for own, other in zip(side, mean, strict=True)) for side in true
    )
    return Table(rows, np.array(true, np.float64), np.array(made, np.float64), shown)


def _merged(chances: list[list[Fraction]], at: npt.NDArray[Any], count: int) -> list[list[Fraction]]:
    """Return the probabilities of distinct rows; ``at``: which of them each row is."""
    found = [[Fraction(0)] * count for _ in chances]
    for side, sums in zip(chances, found, strict=True):
        for place, chance in zip(at.tolist(), side, strict=True):
            sums[place] += chance
    return found


def places(table: npt.NDArray[Any], rows: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return which row of a sorted table each of some rows is, -1 for none; all in multiples."""
    both, back = np.unique(np.concatenate([table, rows]), axis=0, return_inverse=True)
    known = np.full(len(both), -1)
    known[back.ravel()[: len(table)]] = np.arange(len(table))
    return np.asarray(known[back.ravel()[len(table) :]])


def table_of(generator: Any) -> tuple[npt.NDArray[Any], Array] | None:
    """Return the distinct rows of a generator in multiples, (r, width), and their probabilities (k, r), or None."""
    found = _joint(0.0, generator.labels, generator, generator)
    return None if found is None else (found.rows, found.made)
