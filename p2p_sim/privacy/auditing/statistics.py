"""Which statistic says all that a view says of the victim's label: one for each view whose law is known."""

from __future__ import annotations

from p2p_sim.core.protocol import Protocol
from p2p_sim.privacy.auditing.base import Statistic
from p2p_sim.privacy.registry import known
from p2p_sim.views import Coalition


def statistic(
    protocol: Protocol, coalition: Coalition, *, size: int, composition: int, channels: str = "plain"
) -> Statistic | None:
    """Return the statistic of a view with the exact law of it, or None for a protocol without one.

    ``coalition``: its users are ``size`` - 1 at most, and never the victim.  ``size``: users of a world.
    ``composition``: honest others with label 1.  ``channels``: "plain" or "encrypted", towards the wire.
    """
    found = known(protocol).statistic
    return None if found is None else found(protocol, coalition, size, composition, channels)
