"""What each room says that a view tells of labels, against every way through its protocol."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim.coalition import Coalition
from p2p_sim.core import Population
from p2p_sim.core.protocol import Protocol
from p2p_sim.network.adjacency import complete
from p2p_sim.privacy.registered import accounting
from protocols import (
    BinnedResponse,
    ClusterResponse,
    DoubleResponse,
    DummyFeatures,
    EncryptedShuffle,
    IntervalResponse,
    LabelProportions,
    MultiStage,
    NetworkShuffle,
    PeerToPeer,
    PriorResponse,
    RandomizedResponse,
    UnbiasedResponse,
)
from tests.privacy.mechanisms.every_view import EveryWay, log_ratios

ETA = np.array([0.2, 0.55, 0.7, 0.4])
ETA_3 = np.array([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1], [0.1, 0.8, 0.1]])
TWO_CLUSTERS = [7, 3, 7, 7]

TABLE = "3*0;1*1|1*0;3*1"

PROTOCOLS: dict[str, tuple[Protocol, dict[str, Any]]] = {
    "randomized-response": (RandomizedResponse(0.7), {"users": 3}),
    "randomized-response-3": (RandomizedResponse(0.7, 3), {"users": 2}),
    "encrypted-shuffle": (EncryptedShuffle(0.7), {"users": 3, "cluster": [7, 3, 7]}),
    "encrypted-shuffle-everybody": (EncryptedShuffle(0.7, over="everybody", shufflers=2), {"users": 2}),
    "encrypted-shuffle-3": (EncryptedShuffle(0.7, 3), {"users": 2}),
    "network-shuffle": (NetworkShuffle(0.7, 1), {"users": 3, "edges": [(0, 1), (1, 2), (0, 2)]}),
    "network-shuffle-0": (NetworkShuffle(0.7, 0), {"users": 3, "edges": [(0, 1), (1, 2)]}),
    "network-shuffle-complete": (NetworkShuffle(0.7, 1), {"users": 2, "graph": complete(2)}),
    "peer-to-peer-path": (PeerToPeer(0.2, 0.6, over="neighbours"), {"users": 3, "edges": [(0, 1), (1, 2)]}),
    "peer-to-peer-3": (PeerToPeer(0.2, labels=3), {"users": 2}),
    "peer-to-peer": (PeerToPeer(0.2), {"users": 3}),
    "peer-to-peer-clusters": (PeerToPeer(0.2, 0.6), {"users": 3, "cluster": [2, 9, 2]}),
    "prior-response": (PriorResponse(0.7, 3, "0.6,0.3,0.1"), {"users": 2}),
    "prior-response-public": (
        PriorResponse(1.5, prior="public"),
        {"users": 2, "public": {"prior": np.array([[0.9, 0.1], [0.4, 0.6]])}},
    ),
    "multi-stage": (MultiStage(1.0), {"users": 2}),
    "interval-response": (IntervalResponse(0.7, 3), {"users": 2}),
    "binned-response": (BinnedResponse(0.7, 3), {"users": 2}),
    "unbiased-response": (UnbiasedResponse(1.0, 2), {"users": 2}),
    "dummy-features": (DummyFeatures(0.4, 3), {"users": 2}),
    "double-response": (DoubleResponse(0.4, TABLE, truth="2*0;1*1|1*0;5*1"), {"users": 1}),
    "double-response-public": (DoubleResponse(0.4, TABLE), {"users": 1, "x": np.array([[1.0]])}),
    "double-response-unknown": (
        DoubleResponse(0.4, TABLE, truth="unknown"),
        {"users": 1, "x": np.array([[1.0]])},
    ),
    "cluster-response": (ClusterResponse(1.0, preset="uniform"), {"users": 3, "cluster": [4, 5, 4]}),
    "label-proportions": (LabelProportions(2), {"users": 4, "cluster": TWO_CLUSTERS}),
}
VIEWS = (
    "learner",
    "user:0",
    "learner+user:0",
    "wire",
    "learner+wire",
    "user:0+wire",
    "learner+user:0+user:1",
)
FURTHER: dict[str, tuple[str, ...]] = {
    "cluster-response": ("curator", "learner+curator"),
    "label-proportions": ("aggregator", "learner+aggregator"),
    "encrypted-shuffle": ("shuffler", "learner+shuffler"),
    "encrypted-shuffle-everybody": ("learner+shuffler", "learner+shuffler2", "learner+shuffler+shuffler2"),
}
CASES = [
    (name, view, channels)
    for name in PROTOCOLS
    for view in (*VIEWS, *FURTHER.get(name, ()))
    for channels in ("plain", "encrypted")
    if (channels == "plain" or "wire" in view) and view.count("user:") <= PROTOCOLS[name][1]["users"] - 1
]
LOWER: dict[str, set[str]] = {
    "network-shuffle": {"learner", "learner+user:0", "learner+wire-encrypted"},
    "network-shuffle-complete": {"learner+wire-plain", "learner+wire-encrypted"},
    "double-response-unknown": {
        "learner",
        "learner+user:0",
        "wire-plain",
        "learner+wire",
        "user:0+wire-plain",
    },
    "multi-stage": {"user:0", "user:0+wire-encrypted"},
    "peer-to-peer-path": {"learner", "learner+user:0"},
}
"""Views of which part is left out, by protocol."""
SILENT = {"multi-stage"}
"""Of these, protocols whose room says nothing then; others must say something."""


@lru_cache(maxsize=1)  # views of one protocol come one after the other
def every_way(name: str) -> tuple[EveryWay, Any]:
    protocol, how = PROTOCOLS[name]
    users, labels = how["users"], protocol.label_count()
    y = np.zeros(users, bool if labels == 2 else np.uint8)
    columns = {key: value for key, value in how.items() if key not in ("users", "edges", "graph")}
    people = Population.from_arrays(y=y, **columns)
    if "edges" in how:
        people = people.with_graph(np.array(how["edges"]))
    if "graph" in how:
        people = replace(people, graph=how["graph"])
    eta = np.stack([1 - ETA, ETA], axis=1)[:users] if labels == 2 else ETA_3[:users]
    return EveryWay(protocol, people, labels), eta


@pytest.mark.parametrize(("name", "view", "channels"), CASES)
def test_posteriors_are_those_of_every_way(name: str, view: str, channels: str) -> None:
    ways, eta = every_way(name)
    protocol: Any = ways.protocol
    own = Coalition.parse(view, protocol.roles()).users
    certain = eta.copy()
    for user in own:
        certain[user] = np.eye(eta.shape[1])[-1]
    others = np.array([user for user in range(len(eta)) if user not in own], np.int64)
    entry: Any = accounting(type(protocol))
    lower = bool(LOWER.get(name, set()) & {view, f"{view}-{channels}"})
    right, best = np.zeros(len(others)), np.zeros(len(others))
    bases, alike, spoke = set[str](), dict[tuple[float, ...], Any](), False
    for seen, brute in ways.seen(view, channels, certain, most=10_000 if lower else 12):
        found = entry.attack(protocol, seen, certain)
        bases.add(found.basis)
        assert not set(found.users.tolist()) & own
        logs = np.zeros(eta.shape)
        logs[found.users] = found.log
        spoke |= bool(np.ptp(log_ratios(logs[others]), axis=1).max(initial=0.0) > 1e-6)
        if found.basis == "exact":
            with np.errstate(divide="ignore"):
                expected = log_ratios(np.log(brute[others]))
            np.testing.assert_allclose(log_ratios(logs[others]), expected, atol=1e-11)
        for user in others.tolist():
            group = (user, *np.round(log_ratios(logs)[user], 9).tolist())
            alike[group] = alike.get(group, np.zeros(eta.shape[1])) + brute[user]
        joint = (brute * certain)[others]
        guess = (np.exp(log_ratios(logs)) * certain)[others].argmax(axis=1)
        right += joint[np.arange(len(others)), guess]
        best += joint.max(axis=1)
    assert ("lower" in bases) == lower
    assert bases
    if lower:
        assert spoke == (name not in SILENT)
        # a likelihood of part of what is seen: never worse than no look, nor better than the best ...
        assert (right >= certain[others].max(axis=1) - 1e-12).all()
        assert (right <= best + 1e-12).all()
        # ... and right on average over all that look alike
        for (_, *ratios), likelihood in alike.items():
            with np.errstate(divide="ignore"):
                assert np.log(likelihood / likelihood.max()) == pytest.approx(ratios, abs=1e-8)


@pytest.mark.parametrize(
    "protocol",
    [PriorResponse(0.7, 3, "0.6,0.3,0.1"), MultiStage(1.0), IntervalResponse(0.7, 3), BinnedResponse(0.7, 3),
     UnbiasedResponse(0.7, 3)],
)  # fmt: skip
def test_the_source_of_a_likelihood_is_not_of_the_worst_pair_of_labels(protocol: Protocol) -> None:
    people = Population.synthetic(users=4, seed=0)
    view = p2p_sim.run(protocol, people, seed=0, trace="full", digest=False).view("learner")
    entry = accounting(type(protocol)).attack
    assert entry is not None
    labels = protocol.label_count()
    found = entry(protocol, view, np.full((4, labels), 1 / labels))
    assert "P(" in found.source
    assert "labels, see" not in found.source
