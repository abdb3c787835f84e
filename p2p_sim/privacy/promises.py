"""What theorems promise about the views of a protocol; a new protocol adds a line to ``PROMISES``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from p2p_sim.privacy.accounts.shuffles import shuffled
from p2p_sim.privacy.bounds.bound import Bound
from p2p_sim.privacy.laws import randomized_response
from p2p_sim.views import Coalition
from protocols import (
    EncryptedShuffle,
    LaplaceLabelProportions,
    NetworkShuffle,
    PeerPermutation,
    PeerToPeer,
    RandomizedResponse,
    SecureAggregation,
)

Promise = dict[str, Any]
"""name, epsilon (nats), delta, holds, why, basis, source."""


def of(protocol: Any, view: str, sizes: Sequence[int], delta: float, reads: bool) -> list[Promise]:
    """Return the theorems on a view; of several cluster sizes the one with the weakest promise.

    ``reads``: whether the view can read anything that depends on a label.
    """
    if not reads:
        why = "nothing that this view can read depends on a label"
        return [_promise("nothing to read", 0.0, 0.0, True, "", "exact", why)]
    found = PROMISES.get(type(protocol))
    return [] if found is None else found(protocol, view, sizes, delta)


def local_epsilon(protocol: Any) -> float | None:
    """Return epsilon of the local randomizer in nats; None for a protocol whose randomizer is not known."""
    if type(protocol) in (PeerToPeer, PeerPermutation):
        return randomized_response.local_epsilon(float(protocol.alpha))
    if type(protocol) not in (EncryptedShuffle, NetworkShuffle, RandomizedResponse):
        return None
    said = protocol if type(protocol) is RandomizedResponse else protocol.randomizer
    return float(protocol.epsilon) if said.lying() else math.inf


def _peer_to_peer(protocol: Any, view: str, sizes: Sequence[int], delta: float) -> list[Promise]:
    if view == "learner" and protocol.graph_over() is None:
        third = [_theorem3(protocol, size, delta) for size in sizes]
        ninth = [_lemma9(protocol, size, delta) for size in sizes]
        return [max(found, key=lambda p: p["epsilon"]) for found in (third, ninth)]
    value = local_epsilon(protocol)
    source = "Warner 1965: the victim's bit is flipped with probability alpha"
    return [_promise("local ln((1-alpha)/alpha)", value, 0.0, value != math.inf, "", "exact", source)]


def _theorem3(protocol: Any, size: int, delta: float) -> Promise:
    from p2p_sim.privacy.bounds import clustering2022

    bound = clustering2022.theorem3(size, protocol.theta)
    asked = bound.parameters.get("alpha")
    why, value = bound.why, bound.epsilon
    if bound.holds and asked is not None and protocol.alpha < asked:
        why, value = f"asks for alpha >= {asked:.6g} at s = {size}; here alpha = {protocol.alpha:g}", math.inf
    elif bound.holds and bound.delta > delta:
        why, value = f"promises delta = 1/s^2 = {bound.delta:.3g} only, above {delta:g}", math.inf
    name = "Theorem 3"
    return _promise(name, value, bound.delta, math.isfinite(value), why, bound.basis, bound.source)


def _lemma9(protocol: Any, size: int, delta: float) -> Promise:
    from p2p_sim.privacy.bounds import clustering2022

    b = clustering2022.lemma9(size, protocol.alpha, protocol.theta, delta=delta)
    return _promise("Lemma 9", b.epsilon, b.delta, b.holds, b.why, b.basis, b.source)


def _randomized_response(protocol: Any, _view: str, _sizes: Sequence[int], _delta: float) -> list[Promise]:
    from p2p_sim.privacy.bounds import clustering2022

    if math.isinf(protocol.epsilon):
        return [_promise("Corollary 1", math.inf, 0.0, False, "epsilon = inf: nobody lies", "upper", "")]
    b = clustering2022.corollary1(protocol.epsilon, protocol.labels)
    return [_promise("Corollary 1", b.epsilon, b.delta, b.holds, b.why, b.basis, b.source)]


def _laplace(protocol: Any, view: str, _sizes: Sequence[int], _delta: float) -> list[Promise]:
    """Return the guarantee of the noise; whoever sees labels has none."""
    sees = "aggregator" in view or "wire" in view
    why = "the aggregator, and a plain wire to her, see labels as they are" if sees else ""
    return [_noise(protocol, why, "Unified 2023, section 6: Laplace(1/(k epsilon)) on a proportion")]


def _shares(protocol: Any, view: str, _sizes: Sequence[int], _delta: float) -> list[Promise]:
    """Return the guarantee of the shares of the noise, of which colluders take theirs away."""
    few = "colluding users take their shares of the noise away" if "user" in view else ""
    why = few if protocol.noisy else "epsilon = inf: no noise is added"
    source = f"Unified 2023, section 6; {protocol.least} users' shares are the whole noise"
    return [_noise(protocol, why, source)]


def _noise(protocol: Any, why: str, source: str) -> Promise:
    value = math.inf if why else float(protocol.epsilon)
    return _promise("noise on the count", value, 0.0, not why, why, "upper", source)


def _shuffle(protocol: Any, view: str, sizes: Sequence[int], delta: float) -> list[Promise]:
    """Return the amplification by shuffling where a view sees labels shuffled, and otherwise the local guarantee."""
    from p2p_sim.privacy.bounds import shuffle

    who, local = Coalition.parse(view, protocol.roles()), local_epsilon(protocol)
    crowds = [size for size in sizes if size > who.user_count]
    if local is None or not crowds or not shuffled(protocol, who):
        return [_local(local)]
    bounds: dict[str, Callable[..., Bound]] = {
        "FMT 2021": shuffle.fmt2021_theorem, "clone": shuffle.clone, "stronger clone": shuffle.clone_stronger,
    }  # fmt: skip
    found = []
    for name, bound in bounds.items():
        if not math.isfinite(local):
            found.append(_promise(name, math.inf, delta, False, "epsilon = inf: nobody lies", "upper", ""))
            continue
        b = bound(min(crowds), local, delta, colluders=who.user_count)  # fewer users hide worse
        found.append(_promise(name, b.epsilon, b.delta, b.holds, b.why, b.basis, b.source))
    return found


def _local(value: float | None) -> Promise:
    finite = value is not None and math.isfinite(value)
    source = "Warner 1965: the label is randomized before anybody sees it"
    return _promise("local", value, 0.0, finite, "" if finite else "nobody lies", "exact", source)


def _promise(
    name: str, epsilon: float | None, delta: float, holds: bool, why: str, basis: str, source: str
) -> Promise:
    return {
        "name": name, "epsilon": epsilon, "delta": delta, "holds": holds, "why": why, "basis": basis,
        "source": source,
    }  # fmt: skip


PROMISES: dict[type, Callable[[Any, str, Sequence[int], float], list[Promise]]] = {
    NetworkShuffle: lambda protocol, _view, _sizes, _delta: [_local(local_epsilon(protocol))],
    PeerToPeer: _peer_to_peer,
    RandomizedResponse: _randomized_response,
    EncryptedShuffle: _shuffle,
    PeerPermutation: _shuffle,
    LaplaceLabelProportions: _laplace,
    SecureAggregation: _shares,
}
