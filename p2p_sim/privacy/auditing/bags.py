"""The statistic of sums of bags: the count of the victim's."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from p2p_sim.network.bags import bags_of, smallest
from p2p_sim.privacy.accounts.bags import AGGREGATOR
from p2p_sim.privacy.auditing.base import NEVER, Array, Columns, Statistic, in_table
from p2p_sim.privacy.auditing.worlds import Seen
from p2p_sim.privacy.laws.shares import table
from p2p_sim.views import Coalition


@dataclass(frozen=True)
class BagCount(Statistic):
    """What is told of the victim's bag, the first of her world: its noisy count in steps.

    ``kind``: of message; ``bags``: in a world; ``others``: ones among the others of her bag; ``steps``: a label;
    ``noise``: probabilities of -J .. J steps.
    """

    kind: str
    bags: int
    others: int
    steps: int
    noise: Array = field(repr=False)
    coordinates = ("total",)

    @classmethod
    def exact(cls, kind: str, k: int, colluders: int, size: int, composition: int) -> BagCount:
        """Return the statistic of exact counts; ``k``: users a bag; ``composition``: others of her world with 1."""
        return cls(kind, bags_of(size, k), _ones(k, colluders, size, composition), 1, np.ones(1))

    @classmethod
    def noisy(
        cls,
        kind: str,
        k: int,
        colluders: int,
        size: int,
        composition: int,
        epsilon: float,
        steps: int,
        parts: float = 1.0,
    ) -> BagCount:
        """Return the statistic of counts with discrete Laplace noise, of which there are so many parts."""
        noise, _, _ = table(epsilon / steps, parts)
        return cls(kind, bags_of(size, k), _ones(k, colluders, size, composition), int(steps), noise)

    def read(self, seen: Seen) -> Columns:
        """Look up the count of the first bag of each world; one that nobody can have stands for none."""
        total = np.full(seen.worlds, np.iinfo(np.int32).min, np.int64)
        told = seen.kinds.get(self.kind)
        if told is not None:
            mine = told.fields["bag"] % self.bags == 0
            total[seen.world_of(told)[mine]] = told.fields["total"][mine]
        return {"total": total}

    def _at(self, rows: Columns, label: int) -> tuple[Array, Array]:
        start = self.steps * (self.others + label) - len(self.noise) // 2
        return in_table(self.noise, rows["total"] - start)

    def row_ratios(self, rows: Columns) -> Array:
        """Return the log ratios of two shifts of the noise."""
        with np.errstate(divide="ignore"):
            logs = [np.maximum(np.log(self._at(rows, label)[1]), NEVER) for label in (0, 1)]
        return np.where(logs[0] == logs[1], 0.0, np.where(logs[0] <= NEVER, np.inf, logs[1] - logs[0]))

    def row_law(self, rows: Columns, label: int) -> tuple[Array, Array]:
        """Return the law of the noise, shifted."""
        below, mass = self._at(rows, label)
        return below[:, None], mass[:, None]


def trusts(coalition: Coalition, channels: str) -> bool:
    """Whether a view is shown the labels that a trusted aggregator is shown."""
    return AGGREGATOR in coalition.servers or (coalition.wire and channels == "plain")


def _ones(k: int, colluders: int, size: int, composition: int) -> int:
    """Return how many honest others of the victim's bag, the smallest, have label 1."""
    bag = smallest(size, k)
    return min(composition, bag - 1 - min(colluders, bag - 1))
