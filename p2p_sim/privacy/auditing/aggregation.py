"""Statistics of label proportions: the victim's own report, or the count of her bag."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from p2p_sim.network.bags import bags_of, smallest
from p2p_sim.privacy.auditing.answered import Answered
from p2p_sim.privacy.auditing.base import NEVER, Array, Blind, Columns, Statistic, in_table
from p2p_sim.privacy.auditing.worlds import Seen
from p2p_sim.privacy.laws.shares import table
from p2p_sim.views import Coalition
from protocols import LabelProportions, LaplaceLabelProportions

AGGREGATOR, LEARNER = "aggregator", "learner"


def trusted(protocol: Any, coalition: Coalition, size: int, composition: int, channels: str) -> Statistic:
    """Return the statistic of a view of label proportions by a trusted aggregator, noisy or not."""
    if AGGREGATOR in coalition.servers or (coalition.wire and channels == "plain"):
        return Answered(np.inf, 0.0, 2)
    return _count(protocol, coalition, size, composition, "proportion") if _told(coalition) else Blind()


def secure(
    protocol: Any, coalition: Coalition, size: int, composition: int, channels: str
) -> Statistic | None:
    """Return the statistic of a view of sums; None with colluders, whose shares of the noise no message shows."""
    bag = smallest(size, protocol.bag_size)
    sees = _told(coalition) or AGGREGATOR in coalition.servers or (coalition.wire and channels == "plain")
    if not sees or bag < protocol.least:
        return Blind()
    alone = coalition.servers == {LEARNER} and not coalition.user_count and not coalition.wire
    return _count(protocol, coalition, size, composition, "total") if alone else None


def _told(coalition: Coalition) -> bool:
    return LEARNER in coalition.servers


def _count(protocol: Any, coalition: Coalition, size: int, composition: int, kind: str) -> BagCount:
    bag = smallest(size, protocol.bag_size)
    honest = bag - 1 - min(coalition.user_count, bag - 1)
    others, bags = min(composition, honest), bags_of(size, protocol.bag_size)
    if isinstance(protocol, LabelProportions) or not getattr(protocol, "noisy", True):
        return BagCount(kind, bags, others, 1, np.ones(1))
    parts = 1.0 if isinstance(protocol, LaplaceLabelProportions) else bag / protocol.least
    noise, _, _ = table(protocol.epsilon / protocol.grid, parts)
    return BagCount(kind, bags, others, int(protocol.grid), noise)


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

    def _ratio(self, rows: Columns) -> Array:
        with np.errstate(divide="ignore"):
            logs = [np.maximum(np.log(self._at(rows, label)[1]), NEVER) for label in (0, 1)]
        return np.where(logs[0] == logs[1], 0.0, np.where(logs[0] <= NEVER, np.inf, logs[1] - logs[0]))

    def _law(self, rows: Columns, label: int) -> tuple[Array, Array]:
        below, mass = self._at(rows, label)
        return below[:, None], mass[:, None]
