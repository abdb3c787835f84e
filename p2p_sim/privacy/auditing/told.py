"""The statistic of a view that is told the victim's noisy bit, or is not: seen with a known chance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from p2p_sim.privacy.auditing import reading
from p2p_sim.privacy.auditing.base import Array, Columns, Statistic, in_table
from p2p_sim.privacy.auditing.reading import UNSEEN
from p2p_sim.privacy.auditing.worlds import Seen
from p2p_sim.privacy.laws.randomized_response import local_epsilon


@dataclass(frozen=True)
class Told(Statistic):
    """The victim's noisy bit, if it is seen; that it is seen has probability ``seen``, whatever her label.

    ``through_reports``: whether the view knows who asks whom and reads reports.

    *Source:* claims.md section 1, one curious peer and wire.
    """

    flip: float
    seen: float
    through_reports: bool
    coordinates = ("bit",)
    lowest = UNSEEN

    def read(self, seen: Seen) -> Columns:
        """Return ``bit``: -1 where it is not seen."""
        return {"bit": reading.bit_of_victim(seen, through_reports=self.through_reports)}

    def few(self, label: int) -> Array:
        """Return the law of unseen, 0 and 1."""
        return told_law(self.seen, self.flip, label)

    def row_ratios(self, rows: Columns) -> Array:
        """Return plus or minus the budget, 0 where nothing is seen."""
        return told_ratio(rows["bit"], self.flip)

    def row_law(self, rows: Columns, label: int) -> tuple[Array, Array]:
        """Return the law of the bit."""
        below, mass = in_table(self.few(label), rows["bit"] - UNSEEN)
        return below[:, None], mass[:, None]


def told_ratio(bit: Array, flip: float) -> Array:
    """Return the log ratios of the victim's two labels; ``bit``: as it was seen."""
    epsilon = local_epsilon(flip)
    return np.where(bit == 1, epsilon, np.where(bit == 0, -epsilon, 0.0))


def told_law(seen: float, flip: float, label: int) -> Array:
    """Return the law of unseen, 0, 1."""
    one = 1 - flip if label else flip
    return np.array([1 - seen, seen * (1 - one), seen * one])
