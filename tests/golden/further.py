"""Further figures: composition, mechanisms, calibration, enumerated laws, audits, and what models learn."""

from __future__ import annotations

import hashlib
from functools import cache, partial
from typing import Any

import numpy as np

from p2p_sim import Population, privacy
from p2p_sim.network import topologies
from p2p_sim.privacy import LocalBudget, PrivacyProfile
from protocols import (
    EncryptedShuffle,
    LabelProportions,
    LaplaceLabelProportions,
    NetworkShuffle,
    PeerPermutation,
    PeerToPeer,
    RandomizedResponse,
    SecureAggregation,
)
from tests.golden.accounts import ASKING, WALKING, Figure, on_graph, people, told

RESPONSE = RandomizedResponse(1.0)
PEERS, SHUFFLE, COUNTED = PeerToPeer(0.2), EncryptedShuffle(1.0), LaplaceLabelProportions(1.0, 8)


def _profile(protocol: Any, view: str = "learner", users: int = 12) -> PrivacyProfile:
    return privacy.profile(protocol, view, cluster_size=users)


COMPOSED: dict[str, Figure] = {
    "compose/randomized-response, 10 times": lambda: told(privacy.composed(_profile(RESPONSE), 10)),
    "compose/randomized-response, 1,000 times": lambda: told(
        privacy.composed(_profile(RESPONSE), 1000), True
    ),
    "compose/randomized-response, 10 times, basic": lambda: told(
        privacy.composed(_profile(RESPONSE), 10, method="basic")
    ),
    "compose/peer-to-peer, wire, 3 times": lambda: told(privacy.composed(_profile(PEERS, "wire"), 3), True),
    "compose/encrypted-shuffle, 5 times, the same case": lambda: told(
        privacy.composed(_profile(SHUFFLE), 5, same_case=True), True
    ),
    "compose/laplace-label-proportions, 4 times": lambda: told(privacy.composed(_profile(COUNTED), 4)),
    "compose/gaussian, 100 times": lambda: told(privacy.composed(privacy.gaussian(5.0), 100)),
    "compose/laplace, 20 times": lambda: told(privacy.composed(privacy.laplace(3.0), 20), True),
    "compose/gaussian and laplace": lambda: told(
        privacy.compose([(privacy.gaussian(2.0), 3), privacy.laplace(2.0)]), True
    ),
    "compose/response and shuffle": lambda: told(
        privacy.compose([(_profile(RESPONSE), 2), _profile(SHUFFLE)], view="learner"), True
    ),
    "compose/response and laplace": lambda: told(
        privacy.compose([_profile(RESPONSE), (privacy.laplace(2.0), 2)], view="both"), True
    ),
    "compose/none": lambda: told(privacy.composed(_profile(RESPONSE), 0)),
    "compose/local budgets": lambda: (LocalBudget(0.25) + LocalBudget(0.5)).epsilon,
}

MECHANISMS: dict[str, Figure] = {
    **{f"laplace/{s}, {d}": partial(lambda s, d: told(privacy.laplace(s, d)), s, d)
       for s, d in ((1.0, 1.0), (3.0, 2.0), (0.5, 0.0))},
    **{f"gaussian/{s}, {d}": partial(lambda s, d: told(privacy.gaussian(s, d)), s, d)
       for s, d in ((1.0, 1.0), (4.0, 2.0**0.5), (0.3, 1.0))},
    **{f"shuffled_response/{n}, {e}, {k}, {c}": partial(
        lambda n, e, k, c: told(privacy.shuffled_response(n, e, k, colluders=c)), n, e, k, c)
       for n, e, k, c in ((10, 1.0, 2, 0), (200, 2.0, 2, 5), (12, 1.0, 3, 1), (300, 0.5, 4, 0), (50, 0.0, 2, 0))},
}  # fmt: skip


def _solved(kind: Any, **how: Any) -> dict[str, Any]:
    if callable(how.get("population")):
        how["population"] = how["population"]()
    found = privacy.calibrate(kind, **how)
    value = {"value": found.value, "achieved": list(found.achieved), "slack": found.slack}
    return value | {"basis": found.profile.basis, "views": sorted(found.views)}


AIM: dict[str, Any] = {"epsilon": 0.5, "delta": 1e-6}
CALIBRATED: dict[str, Figure] = {
    f"calibrate/{name}": partial(_solved, kind, **how)
    for name, kind, how in (
        ("peer-to-peer, alpha", PeerToPeer, {"vary": "alpha", "cluster_size": 100, **AIM}),
        ("peer-to-peer, alpha, a peer", PeerToPeer,
         {"vary": "alpha", "view": "user", "cluster_size": 12, "epsilon": 1.0, "delta": 0.001}),
        ("peer-to-peer, theta", PeerToPeer, {"vary": "theta", "alpha": 0.2, "cluster_size": 100, **AIM}),
        ("peer-to-peer, cluster_size", PeerToPeer,
         {"vary": "cluster_size", "alpha": 0.3, "epsilon": 0.6, "delta": 1e-3}),
        ("peer-to-peer, alpha, population", PeerToPeer, {"vary": "alpha", "population": people, **AIM}),
        ("randomized-response, epsilon", RandomizedResponse, {"vary": "epsilon", **AIM}),
        ("randomized-response, epsilon, 5 labels", RandomizedResponse,
         {"vary": "epsilon", "labels": 5, "epsilon": 1.0, "delta": 0.01}),
        ("encrypted-shuffle, epsilon", EncryptedShuffle, {"vary": "epsilon", "cluster_size": 100, **AIM}),
        ("randomized-response, epsilon, loss", RandomizedResponse,
         {"vary": "epsilon", "faults": ["loss=0.1"], "epsilon": 0.5, "delta": 0.01}),
        ("peer-permutation, alpha", PeerPermutation, {"vary": "alpha", "cluster_size": 100, **AIM}),
        ("laplace-label-proportions, epsilon", LaplaceLabelProportions, {"vary": "epsilon", "bag_size": 8, **AIM}),
        ("network-shuffle, epsilon, regular:4", NetworkShuffle,
         {"vary": "epsilon", "steps": 4, "population": partial(on_graph, "regular:4", False),
          "epsilon": 0.5, "delta": 0.01}),
    )
}  # fmt: skip


def _noise(mechanism: Any, **how: Any) -> dict[str, Any]:
    found = privacy.calibrate_noise(mechanism, **how)
    return {"scale": found.scale, "achieved": list(found.achieved), "slack": found.slack}


CALIBRATED |= {
    f"calibrate_noise/{name}, {epsilon}, {delta}, {times} times": partial(
        _noise, mechanism, epsilon=epsilon, delta=delta, times=times, sensitivity=moved
    )
    for name, mechanism, epsilon, delta, times, moved in (
        ("laplace", privacy.laplace, 1.0, 0.0, 1, 1.0),
        ("laplace", privacy.laplace, 0.5, 1e-6, 1, 2.0),
        ("laplace", privacy.laplace, 1.0, 0.0, 4, 1.0),
        ("gaussian", privacy.gaussian, 1.0, 1e-6, 1, 1.0),
        ("gaussian", privacy.gaussian, 0.5, 1e-9, 10, 1.4),
    )
}


@cache
def _three(joined: bool) -> Population:
    three = Population.from_arrays(y=np.array([0, 1, 1]) == 1)
    return topologies.join(three, "complete", 3) if joined else three


def _enumerated(protocol: Any, view: str, joined: bool = False, **how: Any) -> dict[str, Any]:
    """Return a law by its weights, and δ at three ratios, as fractions."""
    found = privacy.enumerate_view(protocol, _three(joined), view=view, **how)
    pairs = sorted(found.pairs())
    text = "\n".join(f"{one} {other}" for one, other in pairs)
    deltas = {f"delta at ratio {ratio}": found.delta_at(ratio) for ratio in (1, 2, 4)}
    return {"sights": len(pairs), "law": hashlib.sha256(text.encode()).hexdigest(), **deltas}


ENUMERATED: dict[str, Figure] = {
    f"enumerate/{name}/{view}{', ' + ' '.join(how.get('faults', ['encrypted'])) if how else ''}": partial(
        _enumerated, protocol, view, name in ("network-shuffle", "peer-to-peer, neighbours"), **how
    )
    for name, protocol, view, how in (
        ("peer-to-peer", PeerToPeer(0.25), "learner", {}),
        ("peer-to-peer", PeerToPeer(0.25), "user", {}),
        ("peer-to-peer", PeerToPeer(0.25), "learner+user", {}),
        ("peer-to-peer", PeerToPeer(0.25), "wire", {}),
        ("peer-to-peer", PeerToPeer(0.25), "wire", {"channels": "encrypted"}),
        ("peer-to-peer, neighbours", PeerToPeer(0.25, over="neighbours"), "learner", {}),
        ("randomized-response", RandomizedResponse.flipping(0.25), "learner", {}),
        ("randomized-response", RandomizedResponse.flipping(0.25), "learner", {"faults": ["loss=0.25"]}),
        ("randomized-response", RandomizedResponse.flipping(0.25), "wire", {"faults": ["drop=0.25"]}),
        ("encrypted-shuffle", EncryptedShuffle(1.0), "learner", {}),
        ("encrypted-shuffle", EncryptedShuffle(1.0), "shuffler", {}),
        ("encrypted-shuffle", EncryptedShuffle(1.0), "learner+user", {}),
        ("network-shuffle", NetworkShuffle(1.0, steps=1), "learner", {}),
        ("network-shuffle", NetworkShuffle(1.0, steps=1), "user", {}),
        ("label-proportions", LabelProportions(3), "learner", {}),
        ("label-proportions", LabelProportions(3), "learner", {"faults": ["lie=flip:0.25"]}),
    )
}

SMALL: dict[str, Any] = {"trials": 600, "seed": 5, "cluster_size": 6, "delta": 0.05}


def _audited(protocol: Any, view: str, **how: Any) -> dict[str, Any]:
    found = privacy.audit(protocol, view, **{**SMALL, **how})
    return {
        "lower": found.lower, "cap": found.cap, "exact": found.exact, "at": found.at, "kind": found.kind,
        "verdict": found.verdict, "failed": found.failed, "trials": found.trials, "needed": found.needed,
        "composition": found.composition, "rates": [found.true_positive, found.false_positive],
        "law": None if found.law is None else [found.law.p_value, found.law.rejected],
        "claims": {claim.name: claim.verdict for claim in found.claims},
    }  # fmt: skip


EXACT: dict[str, Any] = {"statistic": "exact"}
LEARNING: dict[str, Any] = {"statistic": "classifier", "trials": 800}
AUDITS: dict[str, Figure] = {
    f"{'secure_aggregation/' if name == 'secure_aggregation' else ''}audit/{name}/{view}"
    f"{', ' + what if what else ''}": partial(_audited, protocol, view, **how)
    for name, protocol, view, what, how in (
        ("peer-to-peer", PEERS, "learner", "", EXACT),
        ("peer-to-peer", PEERS, "user", "", EXACT),
        ("peer-to-peer", PEERS, "learner+user", "", EXACT),
        ("peer-to-peer", PEERS, "wire", "", EXACT),
        ("peer-to-peer", PEERS, "learner", "classifier", LEARNING),
        ("peer-to-peer", PEERS, "learner", "loss", {"faults": ["loss=0.1"], "trials": 800}),
        ("peer-to-peer", PEERS, "learner", "at epsilon", {"epsilon": 0.2, "delta": None, **EXACT}),
        ("peer-to-peer", PEERS, "learner", "against less noise", {"against": PeerToPeer(0.05), **EXACT}),
        ("peer-to-peer", PeerToPeer(0.0), "wire", "a false claim", {"claims": {"mine": 0.1}, **EXACT}),
        ("peer-to-peer, neighbours", ASKING, "learner", "regular:3", {"graph": "regular:3"}),
        ("randomized-response", RESPONSE, "learner", "", EXACT),
        (
            "randomized-response",
            RandomizedResponse(0.7, labels=5),
            "wire",
            "5 labels",
            {"pair": (0, 1), **EXACT},
        ),
        ("encrypted-shuffle", EncryptedShuffle(3.0), "learner", "", EXACT),
        ("encrypted-shuffle", EncryptedShuffle(3.0, shufflers=2), "shuffler+learner", "", LEARNING),
        (
            "encrypted-shuffle",
            EncryptedShuffle(3.0),
            "learner",
            "real",
            {"crypto": "real", "trials": 200, **EXACT},
        ),
        ("peer-permutation", PeerPermutation(0.2), "learner", "", EXACT),
        ("peer-permutation", PeerPermutation(0.2), "user", "", EXACT),
        ("network-shuffle", WALKING, "learner", "regular:3", {"graph": "regular:3"}),
        ("label-proportions", LabelProportions(3), "learner", "", EXACT),
        ("laplace-label-proportions", LaplaceLabelProportions(1.0, 3), "learner", "", EXACT),
        ("laplace-label-proportions", LaplaceLabelProportions(1.0, 3), "aggregator", "", EXACT),
        ("secure_aggregation", SecureAggregation(3, threshold=2, epsilon=1.0), "learner", "", EXACT),
    )
}

FURTHER: dict[str, Figure] = {**COMPOSED, **MECHANISMS, **CALIBRATED, **ENUMERATED, **AUDITS}
