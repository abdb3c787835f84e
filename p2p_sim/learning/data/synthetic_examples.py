"""Features and labels of synthetic users, drawn a batch of rows at a time."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core import synthetic

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class SyntheticExamples:
    """The users of ``Population.synthetic`` with ``width`` features; ``shares``: the probability of each label."""

    users: int
    width: int
    shares: tuple[Fraction, ...]
    seed: int

    @property
    def labels(self) -> int:
        """How many label values there can be."""
        return len(self.shares)

    def batches(self, edges: Sequence[int]) -> Iterator[tuple[Array, Array]]:
        """Draw the rows between neighbouring ``edges``: features (n, d) and labels (n,)."""
        for low, high in itertools.pairwise(edges):
            y = synthetic.draw_labels(high - low, self.shares, self.seed, low)
            x = synthetic.draw_features(y, self.labels, self.width, self.seed, low)
            yield x, y.astype(np.uint8)

    def rows(self, low: int, high: int) -> tuple[Array, Array]:
        """Draw the rows ``low .. high - 1``."""
        return next(self.batches([low, high]))
