"""Which statistic says all that a view says of the victim's label: one for each view whose law is known."""

from __future__ import annotations

import math
from typing import Any

from p2p_sim.privacy.accounts.shuffles import chain
from p2p_sim.privacy.auditing import aggregation, shuffles
from p2p_sim.privacy.auditing.answered import Answered
from p2p_sim.privacy.auditing.base import Blind, Statistic
from p2p_sim.privacy.auditing.peer_to_peer import Reported, Told
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
