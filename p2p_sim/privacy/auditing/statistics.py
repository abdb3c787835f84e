"""Which statistic says all that a view says of the victim's label: one for each view whose law is known."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from p2p_sim.privacy.accounts.shuffles import chain
from p2p_sim.privacy.auditing.base import Array, Blind, Columns, Statistic, in_table
from p2p_sim.privacy.auditing.peer_to_peer import Reported, Told
from p2p_sim.privacy.auditing.reading import readable
from p2p_sim.privacy.auditing.worlds import Seen
from p2p_sim.privacy.laws.randomized_response import LocalResponse
from p2p_sim.views import Coalition
from protocols import (
    EncryptedShuffle,
    LabelProportions,
    LaplaceLabelProportions,
    PeerPermutation,
    PeerToPeer,
    RandomizedResponse,
    SecureAggregation,
)


def statistic(
    protocol: Any, coalition: Coalition, *, size: int, composition: int, channels: str = "plain"
) -> Statistic | None:
    """Return the statistic of a view with the exact law of it, or None for a protocol without one.

    ``coalition``: its users are ``size`` - 1 at most, and never the victim.  ``size``: users of a world.
    ``composition``: honest others with label 1.  ``channels``: "plain" or "encrypted", towards the wire.

    *Source:* claims.md section 1.  *Assumes:* users follow the protocol.
    """
    reads = "learner" in coalition.servers or (coalition.wire and channels == "plain")
    if type(protocol) is RandomizedResponse:
        return Answered.of(protocol) if reads else Blind()
    if type(protocol) is not PeerToPeer:
        return _others(protocol, coalition, size, composition, channels)
    if protocol.over != "cluster":
        return None
    colluders = coalition.user_count
    alpha, theta = float(protocol.alpha), float(protocol.theta)
    if coalition.wire or "learner" not in coalition.servers:
        chance = _told(coalition, size, theta, reads, channels)
        return Told(alpha, chance, coalition.wire and reads) if chance else Blind()
    return Reported(alpha, theta, size, colluders, composition)


def _others(
    protocol: Any, coalition: Coalition, size: int, composition: int, channels: str
) -> Statistic | None:
    """Return the statistic of a protocol whose statistics are in a file of their own."""
    from p2p_sim.privacy.auditing import aggregation, shuffles

    if type(protocol) is EncryptedShuffle:
        if chain(protocol) | {"learner"} <= coalition.servers:
            return Answered.of(protocol.randomizer, shuffles.ENTRIES[protocol.shufflers - 1])
        return shuffles.mixed(protocol, coalition, size, composition)
    if type(protocol) is PeerPermutation:
        return shuffles.permuted(protocol, coalition, size, composition, channels)
    if type(protocol) in (LabelProportions, LaplaceLabelProportions):
        return aggregation.trusted(protocol, coalition, size, composition, channels)
    if type(protocol) is SecureAggregation:
        return aggregation.secure(protocol, coalition, size, composition, channels)
    return None


def _told(coalition: Coalition, size: int, theta: float, reads: bool, channels: str) -> float:
    """Return the chance that a view that knows who asks whom, or only colluders' asks, is told the victim's bit."""
    asking = coalition.user_count
    if coalition.wire and channels == "plain":
        asking = size - 1  # whoever asks her is heard
    reporting = (
        size - asking if coalition.wire and reads else 0
    )  # whoever else asks her is known by the report
    miss = math.log1p(-1 / size) * asking if asking else 0.0
    if reporting:
        miss += math.log1p(-theta / size) * reporting if theta < size else -math.inf
    return -math.expm1(miss)


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
