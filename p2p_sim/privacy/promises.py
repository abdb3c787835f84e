"""What theorems promise about the views of a protocol, and what a user's own coin does, as they are registered."""

from __future__ import annotations

from collections.abc import Sequence

from p2p_sim.core.protocol import Protocol
from p2p_sim.privacy.registry import known
from p2p_sim.privacy.theorems import Promise


def of(protocol: Protocol, view: str, sizes: Sequence[int], delta: float, reads: bool) -> list[Promise]:
    """Return the theorems on a view; of several cluster sizes the one with the weakest promise.

    ``reads``: whether the view can read anything that depends on a label.
    """
    if not reads:
        why = "nothing that this view can read depends on a label"
        return [
            Promise(
                name="nothing to read", epsilon=0.0, delta=0.0, holds=True, why="", basis="exact", source=why
            )
        ]
    found = known(protocol).theorems
    return [] if found is None else found(protocol, view, sizes, delta)


def local_epsilon(protocol: Protocol) -> float | None:
    """Return epsilon of the local randomizer in nats; None for a protocol whose randomizer is not known."""
    found = known(protocol).local_epsilon
    return None if found is None else found(protocol)
