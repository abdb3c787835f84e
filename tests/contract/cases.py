"""The protocols and populations that the battery runs over."""

from __future__ import annotations

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

PROTOCOLS: dict[str, Any] = {
    "peer-to-peer": PeerToPeer(alpha=0.2, theta=0.6),
    "peer-to-peer, everybody reports": PeerToPeer(alpha=0.0),
    "peer-to-peer, neighbours": PeerToPeer(alpha=0.2, theta=0.6, retries=1, over="neighbours"),
    "peer-to-peer, 3 labels": PeerToPeer(alpha=0.3, theta=0.6, retries=1, labels=3),
    "randomized response": RandomizedResponse(1.0),
    "randomized response, 5 labels": RandomizedResponse(0.7, labels=5),
    "randomized response, flipping": RandomizedResponse.flipping(0.25),
    "binned response, 5 labels": BinnedResponse(5.0, 5),
    "unbiased response, 5 labels": UnbiasedResponse(2.0, 5),
    "interval response, 5 labels": IntervalResponse(1.0, 5, prior="0.38,0.3,0.28,0.02,0.02"),
    "prior response": PriorResponse(1.0, prior="0.7,0.3"),
    "prior response, 5 labels, 3 of them reported": PriorResponse(1.5, 5, "0.3,0.25,0.05,0.3,0.1"),
    "multi-stage": MultiStage(1.0),
    "multi-stage, 5 labels, 3 stages": MultiStage(1.5, 5, 3),
    "ALIBI, 3 labels": Alibi(2.0, 3, grid=2),
    "cluster response": ClusterResponse(1.0),
    "cluster response, 5 labels": ClusterResponse(2.0, 5, phi=0.1, noise_share=0.5, grid=2),
    "cluster response, uniform, 3 labels": ClusterResponse(1.0, 3, preset="uniform"),
    "dummy features": DummyFeatures(0.4),
    "double response": DoubleResponse(0.4, "3*0,1;1*1,1|1*0,0;3*1,1", truth="0,1;1,1|1,1;1,0"),
    "double response, Gaussian": DoubleResponse(0.4, "gaussian:2", truth="gaussian:2"),
    "encrypted shuffle": EncryptedShuffle(1.0),
    "encrypted shuffle of everybody, 5 labels": EncryptedShuffle(
        0.7, labels=5, over="everybody", shufflers=2
    ),
    "encrypted shuffle by three": EncryptedShuffle(1.0, shufflers=3),
    "network shuffle": NetworkShuffle(1.0, steps=3),
    "network shuffle, 5 labels, one step": NetworkShuffle(0.7, steps=1, labels=5),
    "network shuffle that stands still": NetworkShuffle(1.0, steps=0),
    "peer permutation": PeerPermutation(alpha=0.2),
    "label proportions": LabelProportions(4),
    "Laplace label proportions": LaplaceLabelProportions(0.5, bag_size=4, grid=3),
    "secure aggregation": SecureAggregation(4, threshold=3),
    "secure aggregation, sparse and noisy": SecureAggregation(9, degree=4, epsilon=0.5, grid=2),
}


def contiguous(users: int) -> Population:
    """Clusters of consecutive ids; the last is smaller."""
    return Population.synthetic(users=users, cluster_size=11, positive=0.3, seed=5)


def scattered(users: int) -> Population:
    """Clusters spread over ids, with gaps in their numbers and one cluster of one user."""
    cluster = (np.arange(users) * 7) % 5 * 10 + 3
    cluster[users // 2] = 99
    return Population.from_arrays(y=np.arange(users) % 3 == 0, cluster=cluster)


def unclustered(users: int) -> Population:
    """Everybody in one cluster."""
    return Population.from_arrays(y=np.arange(users) % 2 == 0)


POPULATIONS = {"contiguous": contiguous, "scattered": scattered, "unclustered": unclustered}

IN_TURN = [(name, list(POPULATIONS)[i % len(POPULATIONS)]) for i, name in enumerate(PROTOCOLS)]
"""Every protocol with one population, every population with many protocols: where their product adds nothing."""


def joined(protocol: Any, people: Population) -> Population:
    """The same users, with a graph if the protocol needs one: even, uneven, or complete."""
    over = protocol.graph_over()
    if over is None:
        return people
    if people.clusters is None or (over == "cluster" and int(people.sizes.min()) == 1):
        return topologies.join(people, "complete", 3, within_clusters=over == "cluster")
    shape = "regular:4" if people.clusters.order is None else "scale-free:2"
    return topologies.join(people, shape, 3, within_clusters=over == "cluster")


def people_of(protocol: Any, name: str, users: int) -> Population:
    """The population of a name, such as "scattered", for a protocol."""
    return joined(protocol, POPULATIONS[name](users))
