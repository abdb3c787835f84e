"""The bounds that theorems of the papers give for Algorithm 2."""

from __future__ import annotations

import math
from collections.abc import Sequence

from p2p_sim.privacy import theorems as shared
from p2p_sim.privacy.laws import randomized_response
from p2p_sim.privacy.laws.randomized_response import LocalResponse
from p2p_sim.privacy.theorems import Promise, promise
from protocols import PeerToPeer


def theorems(protocol: PeerToPeer, view: str, sizes: Sequence[int], delta: float) -> list[Promise]:
    """Return the theorems on the learner, who does not know who asked whom, or the local guarantee."""
    if view == "learner" and protocol.graph_over() is None and protocol.labels == 2:  # they are about bits
        third = [_theorem3(protocol, size, delta) for size in sizes]
        ninth = [_lemma9(protocol, size, delta) for size in sizes]
        return [max(found, key=lambda p: p["epsilon"]) for found in (third, ninth)]
    value = local_epsilon(protocol)
    if protocol.labels > 2:
        return [shared.local(value)]
    source = "Warner 1965: the victim's bit is flipped with probability alpha"
    holds = value != math.inf
    return [
        Promise(
            name="local ln((1-alpha)/alpha)", epsilon=value, delta=0.0, holds=holds, why="", basis="exact",
            source=source,
        )
    ]  # fmt: skip


def local_epsilon(protocol: PeerToPeer) -> float:
    """Return epsilon of what a user does to her own label."""
    return randomized_response.local_epsilon(float(protocol.alpha), protocol.labels)


def local_law(protocol: PeerToPeer) -> LocalResponse:
    """Return the law of one noisy label whose owner is known."""
    return LocalResponse(local_epsilon(protocol), protocol.labels)


def _theorem3(protocol: PeerToPeer, size: int, delta: float) -> Promise:
    from p2p_sim.privacy.bounds import clustering2022

    bound = clustering2022.theorem3(size, protocol.theta)
    asked = bound.parameters.get("alpha")
    why, value = bound.why, bound.epsilon
    if bound.holds and asked is not None and protocol.alpha < asked:
        why, value = f"asks for alpha >= {asked:.6g} at s = {size}; here alpha = {protocol.alpha:g}", math.inf
    elif bound.holds and bound.delta > delta:
        why, value = f"promises delta = 1/s^2 = {bound.delta:.3g} only, above {delta:g}", math.inf
    return Promise(
        name="Theorem 3", epsilon=value, delta=bound.delta, holds=math.isfinite(value), why=why, basis=bound.basis,
        source=bound.source,
    )  # fmt: skip


def _lemma9(protocol: PeerToPeer, size: int, delta: float) -> Promise:
    from p2p_sim.privacy.bounds import clustering2022

    return promise("Lemma 9", clustering2022.lemma9(size, protocol.alpha, protocol.theta, delta=delta))
