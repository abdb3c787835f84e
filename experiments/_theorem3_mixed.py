"""Mixed compositions beyond Theorem 3 of Clustering 2022: a peer-to-peer run, then other mechanisms on the same labels.

The learner holds both views.  The theorem says nothing of it; what follows from it is that the other mechanisms' own
promises are added to its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from p2p_sim import privacy
from p2p_sim.privacy.profile import PrivacyProfile
from protocols import Alibi, LaplaceLabelProportions, PeerToPeer, RandomizedResponse

EPSILON, BAG = 0.5, 4
"""What each of the other mechanisms promises, in nats, at delta = 0; and the users of a bag of proportions."""
OTHER_SIZE = 11_200
"""Users of a cluster where clusters are drawn anew."""

theorem3 = privacy.bounds.clustering2022.theorem3


@dataclass(frozen=True)
class Part:
    """A run of another mechanism: its profile for the learner, and what is promised of it, epsilon at delta.

    ``local``: what each user's own randomness promises by itself.
    """

    profile: PrivacyProfile
    epsilon: float
    delta: float
    local: float


def _pure(profile: PrivacyProfile) -> Part:
    return Part(profile, EPSILON, 0.0, EPSILON)


def _response(_alpha: float, _size: int) -> list[Part]:
    return [_pure(privacy.profile(RandomizedResponse(EPSILON), view="learner"))]


def _alibi(_alpha: float, _size: int) -> list[Part]:
    return [_pure(privacy.profile(Alibi(EPSILON), view="learner"))]


def _proportions(_alpha: float, size: int) -> list[Part]:
    protocol = LaplaceLabelProportions(EPSILON, BAG)
    found = _pure(privacy.profile(protocol, view="learner", cluster_size=size))
    return [Part(found.profile, EPSILON, 0.0, math.inf)]  # the noise is the aggregator's


def _both(alpha: float, size: int) -> list[Part]:
    return _response(alpha, size) + _proportions(alpha, size)


def _clusters_anew(alpha: float, _size: int) -> list[Part]:
    """Return a second run in clusters of another size, at the same alpha; where that is the theorem's, a promise."""
    bound = theorem3(OTHER_SIZE, 1.0)
    found = privacy.profile(PeerToPeer(alpha), view="learner", cluster_size=OTHER_SIZE)
    return [Part(found, bound.epsilon, bound.delta, math.log((1 - alpha) / alpha))]


THEN: dict[str, Callable[[float, int], list[Part]]] = {
    "randomized response": _response,
    "ALIBI": _alibi,
    "Laplace label proportions": _proportions,
    "randomized response and Laplace label proportions": _both,
    "peer-to-peer in other clusters": _clusters_anew,
}


def alpha_of(then: str, size: int) -> float:
    """Return the alpha at which Theorem 3 holds for every peer-to-peer run."""
    sizes = (size, OTHER_SIZE) if THEN[then] is _clusters_anew else (size,)
    return max(float(theorem3(each, 1.0).parameters["alpha"]) for each in sizes)


def parts(then: str, alpha: float, size: int) -> list[Part]:
    """Return what runs on the same labels: peer-to-peer in clusters of ``size``, then the others."""
    bound = theorem3(size, 1.0)
    first = privacy.profile(PeerToPeer(alpha), view="learner", cluster_size=size)
    return [
        Part(first, bound.epsilon, bound.delta, math.log((1 - alpha) / alpha)),
        *THEN[then](alpha, size),
    ]
