"""ALIBI: the law of a one-hot label with Laplace noise, of which two entries depend on a label.

*Source:* ``docs/laws.md``, "A one-hot label with noise".
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from p2p_sim.coalition import Coalition
from p2p_sim.privacy.auditing.common_statistics import readable
from p2p_sim.privacy.auditing.statistic import Blind, Statistic, WorldCounts, in_table
from p2p_sim.privacy.auditing.worlds import Seen
from p2p_sim.privacy.laws.finite import Atoms
from p2p_sim.privacy.mechanism_parts.one_report import read_by, reads, under_faults
from p2p_sim.privacy.mechanism_parts.two_entries import differences
from p2p_sim.privacy.profile import PrivacyProfile
from p2p_sim.privacy.registry import Accounting, register
from p2p_sim.privacy.setting import Setting
from protocols import Alibi

Array = npt.NDArray[np.float64]

SOURCE = "Esmaeili et al. 2021 with discrete noise; its losses, listed"


def law(protocol: Alibi, setting: Setting) -> PrivacyProfile:
    """Return what a view learns: of two noisy numbers, one that the label raises and one that it does not."""
    table = differences(float(protocol.epsilon), int(protocol.grid))
    law = Atoms(table[None], table[None, ::-1])
    return read_by(setting, law, SOURCE, "noise whose tails are not cut")


@dataclass(frozen=True)
class Difference(Statistic):
    """The victim's entry of the second label less that of the first, both cut to 0 .. grid; far off without a report.

    ``pair``: the two labels of the victim that are compared.
    """

    epsilon: float
    grid: int
    labels: int
    pair: tuple[int, int] = (0, 1)
    coordinates = ("difference",)

    @property
    def lowest(self) -> int:  # type: ignore[override]
        """Return the least difference."""
        return -self.grid

    def read(self, seen: Seen) -> WorldCounts:
        """Look up the victim's report; ``NONE`` if there is none, and ``SEVERAL`` if there are several."""
        found = np.full(seen.worlds, NONE, np.int32)
        reports = seen.kinds.get("report")
        if reports is not None:
            rows = readable(reports, "scores", reports.sender % seen.size == 0)
            world = reports.sender[rows] // seen.size
            if len(rows):
                cut = np.clip(reports.fields["scores"][rows], 0, self.grid)
                found[world] = cut[:, self.pair[1]] - cut[:, self.pair[0]]
            found[np.bincount(world, minlength=seen.worlds) > 1] = SEVERAL
        return {"difference": found}

    def between(self, labels: tuple[int, int]) -> Statistic | None:
        """Return the statistic of two other labels; None for one that the law lacks."""
        return replace(self, pair=labels) if max(labels) < self.labels else None

    def row_ratios(self, rows: WorldCounts) -> Array:
        """Return the log ratio, epsilon / grid a step at most; 0 where there is no report."""
        difference = rows["difference"]
        there = np.abs(difference) <= self.grid
        return np.where(there, difference * (self.epsilon / self.grid), 0.0)

    def few(self, label: int) -> Array:
        """Return the law of the difference, from ``lowest`` on."""
        table = differences(self.epsilon, self.grid)
        return table if label == self.pair[1] else table[::-1]

    def row_law(self, rows: WorldCounts, label: int) -> tuple[Array, Array]:
        """Return the law of the difference."""
        below, mass = in_table(self.few(label), rows["difference"] + self.grid)
        return below[:, None], mass[:, None]


NONE, SEVERAL = -(10**6), -(10**6) - 1
"""Stand for no report of the victim, and for more than one, which tells more; beyond any grid."""


def statistic(
    protocol: Alibi, coalition: Coalition, _size: int, _composition: int, channels: str
) -> Statistic:
    """Return what the victim's report says of two labels, for a view that reads it."""
    if not reads(coalition, channels):
        return Blind()
    return Difference(float(protocol.epsilon), int(protocol.grid), protocol.labels)


def local_epsilon(protocol: Alibi) -> float:
    """Return the budget."""
    return float(protocol.epsilon)


register(
    Alibi,
    Accounting(
        law=law,
        under_faults=under_faults,
        statistic=statistic,
        local_epsilon=local_epsilon,
        others_matter=False,
    ),
)
