"""The statistic of a view that reads the victim's own answer to randomized response."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from p2p_sim.privacy.auditing.base import Array, Columns, Statistic, in_table
from p2p_sim.privacy.auditing.reading import readable
from p2p_sim.privacy.auditing.worlds import Seen


@dataclass(frozen=True)
class Answered(Statistic):
    """The victim's own answer ``y`` to randomized response, -1 if there is none and -2 if there are several.

    ``epsilon``: at least 0, in nats.  ``lie``: the chance of any one other label.  ``labels``: k.  ``kind``: of report.

    *Source:* Warner 1965; Kairouz, Oh, Viswanath 2014.
    """

    epsilon: float
    lie: float
    labels: int
    kind: str = "report"
    coordinates = ("y",)

    @classmethod
    def of(cls, epsilon: float, lying: Fraction, labels: int, kind: str = "report") -> Answered:
        """Return the statistic of a budget, whose chance of any lie is ``lying``."""
        return cls(epsilon, float(lying / (labels - 1)), labels, kind)

    def read(self, seen: Seen) -> Columns:
        """Look up the victim's report."""
        y = np.full(seen.worlds, -1, np.int16)
        reports = seen.kinds.get(self.kind)
        if reports is not None:
            rows = readable(reports, "y", reports.sender % seen.size == 0)
            world = reports.sender[rows] // seen.size
            y[world] = reports.fields["y"][rows] if len(rows) else 0
            y[np.bincount(world, minlength=seen.worlds) > 1] = -2  # two answers tell more than one
        return {"y": y}

    def row_ratios(self, rows: Columns) -> Array:
        """Return plus or minus the budget, 0 where there is no answer."""
        return np.where(rows["y"] == 1, self.epsilon, np.where(rows["y"] == 0, -self.epsilon, 0.0))

    def few(self, label: int) -> Array:
        """Return the law of the labels that are said."""
        table = np.full(self.labels, self.lie)
        table[label] = 1 - self.lie * (self.labels - 1)
        return table

    def row_law(self, rows: Columns, label: int) -> tuple[Array, Array]:
        """Return the law of the answer."""
        below, mass = in_table(self.few(label), rows["y"])
        return below[:, None], mass[:, None]
