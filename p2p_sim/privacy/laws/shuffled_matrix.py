"""Shuffled reports of any randomizer with finitely many outputs: all compositions for few users, else a bound."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from p2p_sim.privacy import bounds
from p2p_sim.privacy.law import Bracket, Law

Array = npt.NDArray[np.float64]


def histograms(rows: Array, users: int) -> tuple[Array, Array]:
    """Return the laws of the histogram of all reports under the first and the second label of each case.

    A case is a pair of labels of the victim and one number of the others with each label.  ``rows``: shape (labels,
    outputs), P(output | label).  Shapes (cases, histograms).  *Source:* convolution, user by user.
    """
    first, second = [], []
    for others in _compositions(users - 1, len(rows)):
        law = np.zeros((users + 1,) * (rows.shape[1] - 1))
        law[(0,) * law.ndim] = 1.0
        for label, count in enumerate(others):
            for _ in range(count):
                law = _one_more(law, rows[label])
        ends = [_one_more(law, row).ravel() for row in rows]
        for one, two in itertools.combinations(ends, 2):
            first.append(one)
            second.append(two)
    return np.stack(first), np.stack(second)


def table_size(labels: int, outputs: int, users: int) -> int:
    """Return how many numbers ``histograms`` computes."""
    cases = math.comb(users - 1 + labels - 1, labels - 1) * math.comb(labels, 2)
    return cases * int((users + 1) ** (outputs - 1))


def _compositions(total: int, labels: int) -> Iterator[tuple[int, ...]]:
    """Yield how many users have each label, in every way."""
    if labels == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in _compositions(total - first, labels - 1):
            yield (first, *rest)


def _one_more(law: Array, row: Array) -> Array:
    """Return the law with one more report; the last output is counted by what is missing from the others."""
    out: Array = law * row[-1]
    for axis in range(law.ndim):
        out = out + row[axis] * np.roll(law, 1, axis)  # the last layer of every axis is empty
    return out


@dataclass(frozen=True)
class Clones(Law):
    """An upper bound for the shuffled reports of ``users`` users whose randomizer has pure epsilon ``epsilon0``, nats.

    *Source:* Feldman, McMillan, Talwar 2021: e^-epsilon0 clones, summed exactly.  *Assumes:* an honest shuffler.
    """

    users: int
    epsilon0: float
    closed = False

    def directions(self, epsilon: float) -> tuple[Bracket, Bracket]:
        """Return the bound twice, with nothing below it."""
        most = bounds.shuffle.clone(self.users, self.epsilon0, epsilon=epsilon).delta
        return (Bracket(0.0, most, most),) * 2

    def pure(self) -> float:
        """Return the local budget."""
        return self.epsilon0
