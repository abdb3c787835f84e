"""The statistic of a view that reads the victim's own answer to randomized response."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from p2p_sim.privacy.auditing.base import Array, Columns, Statistic, in_table
from p2p_sim.privacy.auditing.reading import readable
from p2p_sim.privacy.auditing.worlds import Seen
from p2p_sim.privacy.laws.randomized_response import LocalResponse
from protocols import RandomizedResponse


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
    def of(cls, protocol: RandomizedResponse, kind: str = "report") -> Answered:
        """Return the statistic of a protocol."""
        lying = protocol.lying()
        exact = protocol.lie is not None
        epsilon = LocalResponse.flipping(float(lying)).epsilon0 if exact else float(protocol.epsilon)
        return cls(epsilon, float(lying / (protocol.labels - 1)), protocol.labels, kind)

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

    def _ratio(self, rows: Columns) -> Array:
        return np.where(rows["y"] == 1, self.epsilon, np.where(rows["y"] == 0, -self.epsilon, 0.0))

    def few(self, label: int) -> Array:
        """Return the law of the labels that are said."""
        table = np.full(self.labels, self.lie)
        table[label] = 1 - self.lie * (self.labels - 1)
        return table

    def _law(self, rows: Columns, label: int) -> tuple[Array, Array]:
        below, mass = in_table(self.few(label), rows["y"])
        return below[:, None], mass[:, None]
