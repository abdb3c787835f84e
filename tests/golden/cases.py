"""The runs that are frozen: every protocol, backend, fault, graph, mode of cryptography and level of trace, small.

A name is a path: what it varies, then of which protocol.  A run is what ``p2p_sim.run`` takes; every seed is given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np

from p2p_sim import Population
from p2p_sim.network import topologies
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

SEED = 7


@dataclass(frozen=True)
class Case:
    """One run: ``how`` is what else ``p2p_sim.run`` is given; ``change``: the user whose label a pair replaces."""

    protocol: Any
    people: Callable[[], Population]
    how: dict[str, Any] = field(default_factory=dict)
    seed: int = SEED
    change: int | None = None

    def on(self, **how: Any) -> Case:
        """The same run with other options."""
        return replace(self, how={**self.how, **how})

    def local(self) -> Case:
        """The same run in this process, which gives the same bits."""
        beside = ("backend", "shards")
        return replace(self, how={name: value for name, value in self.how.items() if name not in beside})

    @property
    def ray(self) -> bool:
        """Whether it starts Ray."""
        return self.how.get("backend", "local") != "local"


@cache
def even() -> Population:
    """Nine clusters of eleven consecutive ids: in each, every bag of a secure sum has enough users."""
    return Population.synthetic(users=99, cluster_size=11, positive=0.3, seed=5)


@cache
def uneven() -> Population:
    """Clusters spread over ids, with gaps in their numbers and one cluster of one user."""
    cluster = (np.arange(101) * 7) % 5 * 10 + 3
    cluster[50] = 99
    return Population.from_arrays(y=np.arange(101) % 3 == 0, cluster=cluster)


@cache
def together() -> Population:
    """Everybody in one cluster."""
    return Population.from_arrays(y=np.arange(60) % 2 == 0)


@cache
def many() -> Population:
    """More users than one block of words, in large clusters."""
    return Population.synthetic(users=20_000, cluster_size=1_000, positive=0.2, seed=6)


@cache
def several() -> Population:
    """Five labels in clusters of twelve."""
    return Population.from_arrays(y=(np.arange(84) * 11) % 5, cluster=np.arange(84) // 12)


@cache
def few() -> Population:
    """Few enough for one Ray actor a user."""
    return Population.synthetic(users=10, cluster_size=5, positive=0.4, seed=8)


@cache
def fitting(shape: str, within: bool) -> Population:
    """The even population joined by a graph, within clusters or over all; 100 users for a grid."""
    return topologies.join(even(), shape, 3, within_clusters=within)


@cache
def listed() -> Population:
    """The even population joined by a list of edges: a ring in each cluster, and a chord."""
    first = np.arange(99)
    ring = np.stack([first, first // 11 * 11 + (first + 1 - first // 11 * 11) % 11], axis=1)
    chords = np.stack([first[::11], first[::11] + 5], axis=1)
    return even().with_graph(np.concatenate([ring, chords]))


@cache
def joined(name: str) -> Population:
    """Everybody, or five labels, in one graph."""
    people = {"few": few, "several": several, "together": together}[name]()
    return topologies.join(people, "regular:4", 4)


@cache
def linked() -> Population:
    """A list of edges over everybody: a path with shortcuts."""
    first = np.arange(59)
    path = np.stack([first, first + 1], axis=1)
    return together().with_graph(np.concatenate([path, [[0, 30], [10, 50], [59, 5]]]))


@cache
def described() -> Population:
    """Five labels with three features."""
    return Population.synthetic(users=90, labels=5, features=3, seed=4)


TABLE = "3*0,1;1*1,1|1*0,0;3*1,1"

PLAIN: dict[str, tuple[Any, tuple[Callable[[], Population], ...]]] = {
    "peer-to-peer": (PeerToPeer(alpha=0.2, theta=0.6), (even, uneven, together, many)),
    "peer-to-peer, everybody reports": (PeerToPeer(alpha=0.0), (even, uneven)),
    "peer-to-peer, retries": (PeerToPeer(alpha=0.1, retries=2), (uneven,)),
    "peer-to-peer, 5 labels": (PeerToPeer(alpha=0.3, theta=0.6, labels=5), (several,)),
    "peer-to-peer, 5 labels, retries": (PeerToPeer(alpha=0.8, retries=2, labels=5), (several, uneven)),
    "randomized-response": (RandomizedResponse(1.0), (even, uneven, many)),
    "randomized-response, never lies": (RandomizedResponse(float("inf")), (even,)),
    "randomized-response, flipping": (RandomizedResponse.flipping(0.25), (together,)),
    "randomized-response, 5 labels": (RandomizedResponse(0.7, labels=5), (several,)),
    "prior-response": (PriorResponse(1.0, prior="0.7,0.3"), (even, uneven)),
    "binned-response, 5 labels": (BinnedResponse(2.0, 5), (several,)),
    "unbiased-response, 5 labels": (UnbiasedResponse(2.0, 5), (several,)),
    "interval-response, 5 labels": (IntervalResponse(2.0, 5, prior="0.02,0.38,0.3,0.2,0.1"), (several,)),
    "prior-response, 5 labels": (PriorResponse(1.5, 5, "0.3,0.25,0.05,0.3,0.1"), (several,)),
    "multi-stage": (MultiStage(1.0), (even, uneven, many)),
    "multi-stage, 5 labels, 3 stages": (MultiStage(1.5, 5, 3), (several,)),
    "alibi, 5 labels": (Alibi(2.0, 5, prior="0.3,0.25,0.05,0.3,0.1"), (several,)),
    "cluster-response": (ClusterResponse(1.0), (even, uneven, many)),
    "cluster-response, uniform": (ClusterResponse(1.0, preset="uniform"), (even,)),
    "cluster-response, 5 labels": (ClusterResponse(2.0, 5, phi=0.1, noise_share=0.5, grid=2), (several,)),
    "double-response": (DoubleResponse(0.4, TABLE, truth="0,1;1,1|1,1;1,0"), (even, uneven)),
    "double-response, own features": (DoubleResponse(0.4, "gaussian:3", 5), (described,)),
    "dummy-features": (DummyFeatures(0.4), (even, uneven)),
    "dummy-features, 5 labels": (DummyFeatures(0.7, 5), (several,)),
    "encrypted-shuffle": (EncryptedShuffle(1.0), (even, uneven, together, many)),
    "encrypted-shuffle, two of everybody": (
        EncryptedShuffle(0.7, labels=5, over="everybody", shufflers=2),
        (several,),
    ),
    "encrypted-shuffle, three": (EncryptedShuffle(1.0, shufflers=3), (uneven,)),
    "peer-permutation": (PeerPermutation(alpha=0.2), (even, uneven, together)),
    "label-proportions": (LabelProportions(4), (even, uneven, many)),
    "label-proportions, large bags": (LabelProportions(16), (even, together)),
    "laplace-label-proportions": (LaplaceLabelProportions(0.5, bag_size=4, grid=3), (even, uneven)),
    "laplace-label-proportions, one step": (LaplaceLabelProportions(2.0, bag_size=7), (together, many)),
}

WALKING = NetworkShuffle(1.0, steps=3)
WALKS: dict[str, tuple[Any, Callable[[], Population]]] = {
    "network-shuffle": (WALKING, lambda: joined("together")),
    "network-shuffle, 5 labels, one step": (
        NetworkShuffle(0.7, steps=1, labels=5),
        lambda: joined("several"),
    ),
    "network-shuffle, stands still": (NetworkShuffle(1.0, steps=0), lambda: joined("together")),
}

ASKING = PeerToPeer(alpha=0.2, theta=0.6, retries=1, over="neighbours")
SHAPES = ("regular:4", "small-world:4,0.2", "scale-free:2", "ring:4", "grid", "complete")

EACH: dict[str, Case] = {
    "peer-to-peer": Case(PeerToPeer(alpha=0.2, theta=0.6, retries=1), uneven),
    "peer-to-peer, neighbours": Case(ASKING, lambda: fitting("regular:4", True)),
    "randomized-response": Case(RandomizedResponse(1.0), uneven),
    "cluster-response": Case(ClusterResponse(1.0), uneven),
    "encrypted-shuffle": Case(EncryptedShuffle(1.0, shufflers=2), uneven),
    "peer-permutation": Case(PeerPermutation(alpha=0.2), uneven),
    "network-shuffle": Case(WALKING, lambda: joined("together")),
    "label-proportions": Case(LabelProportions(4), uneven),
    "laplace-label-proportions": Case(LaplaceLabelProportions(0.5, bag_size=4, grid=3), uneven),
}
"""One run of each protocol, but for secure aggregation, whose faults stay out."""

SEALING = ("encrypted-shuffle", "peer-permutation", "network-shuffle")
FAULTS = ("drop=0.1", "loss=0.1", "late=0.1", "duplicate=0.2", "lie=flip:0.2", "stop=learner:0")
SEALED_FAULTS = ("tamper=0.1", "misdirect=0.1", "replay=0.2")
STOPS = {
    "encrypted-shuffle": ("stop=shuffler:0", "stop=shuffler2:0"),
    "cluster-response": ("stop=curator:0",),
    "label-proportions": ("stop=aggregator:0",),
    "laplace-label-proportions": ("stop=aggregator:1",),
}
LIES = ("lie=constant1:0.3", "lie=random:0.3")
MIXED = ("drop=0.05", "loss=0.05", "late=0.05", "duplicate=0.1", "lie=random:0.1")

SUMS: dict[str, tuple[Any, Callable[[], Population]]] = {
    "plain": (SecureAggregation(4, threshold=3), even),
    "noisy": (SecureAggregation(5, epsilon=1.0, grid=2), even),
    "sparse and noisy": (SecureAggregation(9, degree=4, epsilon=0.5, grid=2), even),
    "one cluster": (SecureAggregation(16, degree=6), together),
}
"""Everybody is there, every bag has at least as many users as it needs, and nothing goes wrong."""


def _without_faults() -> dict[str, Case]:
    found = {}
    for name, (protocol, populations) in PLAIN.items():
        found |= {f"plain/{name}/{people.__name__}": Case(protocol, people) for people in populations}
    found |= {f"plain/{name}": Case(protocol, people) for name, (protocol, people) in WALKS.items()}
    for name, case in EACH.items():
        found[f"blocks/{name}, 5"] = case.on(blocks=5)
        found[f"costs/{name}"] = case.on(costs=True, trace="counts")
        found[f"trace/{name}, full"] = case.on(trace="full")
        found[f"seed/{name}, 2**60 + 1"] = replace(case, seed=2**60 + 1)
    for name in ("peer-to-peer", "encrypted-shuffle", "label-proportions"):
        for level in ("none", "counts", "sample=20"):
            found[f"trace/{name}, {level}"] = EACH[name].on(trace=level, blocks=3)
    found["digest/none asked for"] = EACH["peer-to-peer"].on(digest=False)
    found["blocks/peer-to-peer, 101"] = EACH["peer-to-peer"].on(blocks=101)
    return found


def _graphs() -> dict[str, Case]:
    found = {
        f"graph/peer-to-peer/{shape}": Case(ASKING, lambda s=shape: fitting(s, True)) for shape in SHAPES
    }
    found |= {
        f"graph/network-shuffle/{shape}": Case(WALKING, lambda s=shape: fitting(s, False)) for shape in SHAPES
    }
    found["graph/peer-to-peer/edges"] = Case(ASKING, listed)
    found["graph/network-shuffle/edges"] = Case(WALKING, linked)
    found["graph/network-shuffle/edges, costs"] = Case(WALKING, linked, {"costs": True, "blocks": 4})
    return found


def _faults() -> dict[str, Case]:
    found = {}
    for name, case in EACH.items():
        sealed = SEALED_FAULTS if name in SEALING else ()
        for fault in (*FAULTS, *sealed, *STOPS.get(name, ())):
            found[f"fault/{name}/{fault}"] = case.on(faults=[fault], trace="counts")
        found[f"fault/{name}/several"] = case.on(faults=[*MIXED, *sealed], trace="full", blocks=3, costs=True)
    for fault in LIES:
        found[f"fault/randomized-response, 5 labels/{fault}"] = Case(
            RandomizedResponse(0.7, labels=5), several, {"faults": [fault]}
        )
    found["fault/peer-to-peer, 5 labels/several"] = Case(
        PeerToPeer(0.3, theta=0.6, retries=1, labels=5),
        several,
        {"faults": list(MIXED), "trace": "full", "blocks": 3},
    )
    found["fault/peer-to-peer, many/loss=0.05"] = Case(PeerToPeer(0.1), many, {"faults": ["loss=0.05"]})
    return found


def _crypto() -> dict[str, Case]:
    found = {}
    for name in SEALING:
        case = EACH[name].on(crypto="real")
        found[f"crypto/{name}, real"] = case.on(trace="full")
        found[f"crypto/{name}, real, under faults"] = case.on(faults=["loss=0.1", *SEALED_FAULTS])
    found["crypto/encrypted-shuffle, three, real"] = Case(
        EncryptedShuffle(1.0, shufflers=3), even, {"crypto": "real", "costs": True, "blocks": 3}
    )
    found["crypto/peer-to-peer, real, with nothing to seal"] = EACH["peer-to-peer"].on(crypto="real")
    return found


def _pairs() -> dict[str, Case]:
    return {f"pair/{name}": replace(case, change=17) for name, case in EACH.items()} | {
        "pair/peer-to-peer, faults": replace(EACH["peer-to-peer"].on(faults=["loss=0.1"]), change=3)
    }


def _sums() -> dict[str, Case]:
    found = {}
    for name, (protocol, people) in SUMS.items():
        found[f"secure_aggregation/{name}"] = Case(protocol, people, {"costs": True})
        found[f"secure_aggregation/{name}, real"] = Case(protocol, people, {"crypto": "real", "blocks": 2})
    found["secure_aggregation/plain, full trace"] = Case(*SUMS["plain"], {"trace": "full", "blocks": 3})
    found["secure_aggregation/plain, shards"] = Case(*SUMS["plain"], {"backend": "shards", "shards": 2})
    return found


def _ray() -> dict[str, Case]:
    shards = {"backend": "shards", "shards": 2, "blocks": 2}
    found = {}
    for name in ("peer-to-peer", "encrypted-shuffle", "network-shuffle", "laplace-label-proportions"):
        found[f"shards/{name}"] = EACH[name].on(**shards, trace="full")
    found["shards/peer-permutation, real, three"] = EACH["peer-permutation"].on(
        backend="shards", shards=3, crypto="real"
    )
    found["shards/peer-to-peer, faults"] = EACH["peer-to-peer"].on(**shards, faults=list(MIXED), costs=True)
    found["shards/network-shuffle, faults"] = EACH["network-shuffle"].on(
        **shards, faults=[*MIXED, *SEALED_FAULTS]
    )
    actors = {"backend": "actors"}
    found["actors/peer-to-peer"] = Case(PeerToPeer(0.2, theta=0.6), few, actors)
    found["actors/network-shuffle"] = Case(WALKING, lambda: joined("few"), actors)
    found["actors/encrypted-shuffle, real"] = Case(EncryptedShuffle(1.0), few, {**actors, "crypto": "real"})
    found["actors/label-proportions, faults"] = Case(
        LabelProportions(2), few, {**actors, "faults": list(MIXED), "trace": "full"}
    )
    return found


CASES: dict[str, Case] = {
    **_without_faults(), **_graphs(), **_faults(), **_crypto(), **_pairs(), **_sums(), **_ray(),
}  # fmt: skip
