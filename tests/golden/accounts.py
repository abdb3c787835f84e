"""Figures of the accountant: protocols, views, sizes, channels, deviating users, compositions, faults, graphs."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from p2p_sim import Population, privacy
from p2p_sim.network import topologies
from p2p_sim.privacy import PrivacyProfile
from protocols import (
    Alibi,
    BinnedResponse,
    ClusterResponse,
    DoubleResponse,
    DummyFeatures,
    EncryptedShuffle,
    IntervalResponse,
    LabelProportions,
    LaplaceLabelProportions,
    MultiStage,
    NetworkShuffle,
    PeerPermutation,
    PeerToPeer,
    PriorResponse,
    RandomizedResponse,
    SecureAggregation,
    UnbiasedResponse,
)

Figure = Callable[[], Any]

PEERS, RETRYING = PeerToPeer(0.1, theta=0.5), PeerToPeer(0.1, theta=0.5, retries=1)
SHUFFLE, CHAIN = EncryptedShuffle(1.0), EncryptedShuffle(1.0, labels=3, over="everybody", shufflers=3)
ASKING, WALKING = PeerToPeer(0.1, theta=0.5, over="neighbours"), NetworkShuffle(1.0, steps=5)
SUM = SecureAggregation(8, threshold=6, epsilon=1.0, grid=2)

DRAWN = DoubleResponse(0.4, "3*0,1;1*1,1|1*0,0;3*1,1", truth="2*0,1;1*1,1|1*1,1;1*0,0")

AMONG_PEERS = ("learner", "user", "3*user", "learner+user", "learner+3*user", "wire", "learner+wire")
SHUFFLED = ("learner", "shuffler", "user", "learner+3*user", "shuffler+learner", "wire", "learner+wire")
ADDED = ("learner", "aggregator", "user", "learner+3*user", "wire")

VIEWS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "peer-to-peer": (PEERS, AMONG_PEERS),
    "peer-to-peer, everybody reports": (PeerToPeer(0.05), ("learner", "user", "learner+user")),
    "peer-to-peer, retries": (RETRYING, ("learner", "user", "learner+user")),
    "randomized-response": (RandomizedResponse(1.0), ("learner", "user", "wire")),
    "randomized-response, 5 labels": (RandomizedResponse(0.7, labels=5), ("learner", "wire")),
    "randomized-response, flipping": (RandomizedResponse.flipping(0.25), ("learner",)),
    "binned-response, 7 labels": (BinnedResponse(2.0, 7), ("learner", "wire")),
    "unbiased-response, 7 labels": (UnbiasedResponse(2.0, 7), ("learner", "wire")),
    "unbiased-response, 30 labels": (UnbiasedResponse(1.0, 30), ("learner",)),
    "interval-response, 7 labels": (IntervalResponse(2.0, 7), ("learner", "wire")),
    "prior-response, 5 labels": (PriorResponse(1.5, 5, "0.3,0.25,0.05,0.3,0.1"), ("learner", "wire")),
    "multi-stage, 3 labels": (MultiStage(1.0, 3), ("learner", "user", "wire")),
    "multi-stage, public": (MultiStage(1.0, 2, 3, "public"), ("learner", "user")),
    "alibi": (Alibi(1.0), ("learner", "user", "wire")),
    "cluster-response": (ClusterResponse(1.0), ("learner", "curator", "user", "learner+3*user", "wire")),
    "cluster-response, uniform": (ClusterResponse(1.0, 5, "uniform"), ("learner",)),
    "double-response": (DRAWN, ("learner", "user", "wire")),
    "double-response, public features": (DoubleResponse(0.4, "gaussian:2", 3), ("learner",)),
    "double-response, perfect": (DoubleResponse(0.4, "gaussian:2", 3, "gaussian:2"), ("learner",)),
    "double-response, unknown": (DoubleResponse(0.4, "0|1", truth="unknown"), ("learner", "user")),
    "dummy-features, 3 labels": (DummyFeatures(0.4, 3), ("learner", "user", "wire")),
    "encrypted-shuffle": (SHUFFLE, SHUFFLED),
    "encrypted-shuffle, three, 3 labels": (CHAIN, (*SHUFFLED, "shuffler+shuffler2+shuffler3+learner")),
    "peer-permutation": (PeerPermutation(0.1), AMONG_PEERS),
    "label-proportions": (LabelProportions(8), ADDED),
    "laplace-label-proportions": (LaplaceLabelProportions(1.0, 8, 2), ADDED),
    "secure_aggregation": (SUM, ADDED),
    "network-shuffle": (WALKING, ("learner",)),  # refused: no graph
}
SIZES = (12, 100)

ENCRYPTED: dict[str, tuple[Any, tuple[str, ...]]] = {
    "peer-to-peer": (PEERS, ("wire", "learner+wire", "user+wire")),
    "randomized-response": (RandomizedResponse(1.0), ("wire",)),
    "peer-permutation": (PeerPermutation(0.1), ("wire", "learner+wire")),
    "encrypted-shuffle": (SHUFFLE, ("wire", "learner+wire")),
    "laplace-label-proportions": (LaplaceLabelProportions(1.0, 8, 2), ("wire",)),
}

DEVIATING: dict[str, tuple[Any, tuple[str, ...]]] = {
    "peer-to-peer": (PEERS, ("user", "3*user", "learner+user")),
    "peer-permutation": (PeerPermutation(0.1), ("user", "learner+user")),
}

COMPOSED_OF: dict[str, tuple[Any, tuple[str, ...]]] = {
    "peer-to-peer": (PEERS, ("learner", "learner+user")),
    "encrypted-shuffle": (SHUFFLE, ("learner",)),
    "peer-permutation": (PeerPermutation(0.1), ("learner",)),
}

FAULTS = ("drop=0.05", "loss=0.05", "late=0.1", "duplicate=0.1", "lie=flip:0.1")
SEALED_FAULTS = ("tamper=0.05", "misdirect=0.05", "replay=0.1")
UNDER_FAULTS: dict[str, tuple[Any, tuple[str, ...], tuple[str, ...]]] = {
    "peer-to-peer": (PEERS, ("learner", "wire"), FAULTS),
    "peer-to-peer, with a peer": (PEERS, ("learner+user",), FAULTS[1:2]),
    "peer-to-peer, retries": (RETRYING, ("learner", "user"), FAULTS[:3]),
    "randomized-response": (RandomizedResponse(1.0), ("learner",), (*FAULTS, "stop=learner:0")),
    "encrypted-shuffle": (SHUFFLE, ("learner",), (*FAULTS, *SEALED_FAULTS, "stop=shuffler:0")),
    "encrypted-shuffle, with a peer": (SHUFFLE, ("learner+user",), FAULTS[1:2]),
    "peer-permutation": (PeerPermutation(0.1), ("learner", "user"), (*FAULTS[:3], *SEALED_FAULTS)),
    "cluster-response": (ClusterResponse(1.0), ("learner",), FAULTS),
    "label-proportions": (LabelProportions(8), ("learner",), FAULTS[1:2]),
    "laplace-label-proportions": (LaplaceLabelProportions(1.0, 8, 2), ("learner", "aggregator"), FAULTS),
}  # fmt: skip

SHAPES = ("regular:4", "small-world:4,0.2", "scale-free:2", "ring:4", "grid", "complete")
ON_GRAPHS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "peer-to-peer": (ASKING, ("learner", "user", "learner+user", "wire")),
    "network-shuffle": (WALKING, ("learner", "user", "learner+user", "wire")),
    "network-shuffle, long": (NetworkShuffle(2.0, steps=30), ("learner",)),
}


@cache
def people() -> Population:
    """Five clusters of 5 to 25 users."""
    return Population.from_arrays(
        y=np.arange(75) % 3 == 0, cluster=np.repeat(np.arange(5), [5, 10, 15, 20, 25])
    )


@cache
def on_graph(shape: str, within: bool) -> Population:
    """Three clusters of 16 users, joined."""
    users = Population.synthetic(users=48, cluster_size=16, positive=0.3, seed=5)
    return topologies.join(users, shape, 3, within_clusters=within)


def told(found: PrivacyProfile, short: bool = False) -> dict[str, Any]:
    """Return the figures of a profile with their brackets, ``short``: one of epsilon and one of delta.

    Its texts may change.
    """
    if found.basis == "refused":
        return {"basis": found.basis}
    if short:
        epsilon, delta = found.epsilon_bracket(1e-6), found.delta_bracket(0.1)
        return {"basis": found.basis, "epsilon at 1e-6": list(epsilon), "delta at 0.1": list(delta)}
    return {
        "basis": found.basis,
        "epsilon at 1e-6": list(found.epsilon_bracket(1e-6)),
        "epsilon at 0.01": list(found.epsilon_bracket(0.01)),
        "pure epsilon": list(found.epsilon_bracket(0.0)),
        "delta at 0.1": list(found.delta_bracket(0.1)),
        "delta at 1": list(found.delta_bracket(1.0)),
        "directions at 0.1": list(found.directions(0.1)),
    }


def accounted(protocol: Any, view: str, *, short: bool = False, **how: Any) -> dict[str, Any]:
    """Account for a view; ``population`` may be a function, called only then."""
    if callable(how.get("population")):
        how["population"] = how["population"]()
    return told(privacy.profile(protocol, view, **how), short)


def compared(protocol: Any, view: str) -> dict[str, Any]:
    """Account for the smallest, the median and the largest cluster."""
    found = privacy.by_cluster(protocol, view, people())
    return {name: told(part) for name, part in found.items()}


def _named(
    group: str, table: dict[str, tuple[Any, tuple[str, ...]]], what: str, **how: Any
) -> dict[str, Figure]:
    return {
        f"{'secure_aggregation/' if name == 'secure_aggregation' else ''}{group}/{name}/{view}/{what}": partial(
            accounted, protocol, view, **how
        )
        for name, (protocol, views) in table.items()
        for view in views
    }


def _tables() -> dict[str, Figure]:
    found: dict[str, Figure] = {}
    for size in SIZES:
        found |= _named("profile", VIEWS, f"{size} users", cluster_size=size)
    found |= _named("encrypted", ENCRYPTED, "12 users", cluster_size=12, channels="encrypted")
    found |= _named("deviating", DEVIATING, "12 users", cluster_size=12, users="deviating")
    for ones in (0, 4, 8):
        found |= _named(
            "composition", COMPOSED_OF, f"12 users, {ones} ones", cluster_size=12, composition=ones
        )
    clustered = {name: (p, ("learner",)) for name, (p, _) in VIEWS.items() if name != "network-shuffle"}
    found |= _named("population", clustered, "worst", population=people)
    as_it_is = {name: clustered[name] for name in COMPOSED_OF}
    found |= _named("population", as_it_is, "as it is", population=people, composition="population")
    for name, (protocol, _) in clustered.items():
        group = "secure_aggregation/by_cluster" if name == "secure_aggregation" else "by_cluster"
        found[f"{group}/{name}/learner"] = partial(compared, protocol, "learner")
    found["by_cluster/peer-to-peer/learner+3*user"] = partial(compared, PEERS, "learner+3*user")
    found["large/peer-to-peer/learner/5,000 users"] = partial(
        accounted, PEERS, "learner", cluster_size=5_000, short=True
    )
    found["large/encrypted-shuffle/learner/1,000 users"] = partial(
        accounted, SHUFFLE, "learner", cluster_size=1_000, short=True
    )
    return found


def _under_faults() -> dict[str, Figure]:
    found: dict[str, Figure] = {}
    for name, (protocol, views, faults) in UNDER_FAULTS.items():
        for fault in faults:
            how = {"cluster_size": 12, "faults": [fault], "short": True}
            found |= _named("fault", {name: (protocol, views)}, fault, **how)
        several = [fault for fault in faults if not fault.startswith(("lie", "stop"))]
        if len(several) > 1:
            how = {"cluster_size": 12, "faults": several, "short": True}
            found |= _named("fault", {name: (protocol, views)}, "several", **how)
    return found


def _graphs() -> dict[str, Figure]:
    found: dict[str, Figure] = {}
    for shape in SHAPES:
        for name, (protocol, views) in ON_GRAPHS.items():
            where = partial(on_graph, shape, name == "peer-to-peer")
            found |= _named("graph", {name: (protocol, views)}, shape, population=where)
    where = partial(on_graph, "regular:4", False)
    short = {"network-shuffle": (WALKING, ("learner", "wire"))}
    for fault in ("drop=0.05", "loss=0.05", "late=0.05", "tamper=0.05"):
        found |= _named("graph", short, f"regular:4, {fault}", population=where, faults=[fault], short=True)
    return found


ACCOUNTS: dict[str, Figure] = {**_tables(), **_under_faults(), **_graphs()}
