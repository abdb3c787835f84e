"""Beyond Theorem 3 of Clustering 2022: runs, other mechanisms, every composition, groups, more labels, graphs.

Each row has what the accountant finds for the learner at some delta, what follows from the theorem by itself (runs,
and other mechanisms on the same labels, add up; a group of m labels is a chain of m neighbours), and what randomizing
her own label gives a user without any peer.  ``summed``: the exact epsilons of the runs, each at its own share of
delta, added (basic composition).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

from experiments import _theorem3_mixed as mixed
from experiments._rows import ONE_LABEL, Case
from p2p_sim import Population, privacy
from p2p_sim.network import topologies
from p2p_sim.privacy.profile import PrivacyProfile
from protocols import PeerToPeer

Row = dict[str, Any]

FIXED = 0.1
ONES = ("0 %", "25 %", "50 %", "75 %", "100 %", "worst")
"""Compositions: the share of the cluster's other users who have label 1, and the worst of all."""
TIMES, GROUPS, LABELS = (1, 4, 16, 64), (2, 4, 8), (2, 4, 10)
GRAPHS = (
    "complete",
    "regular:1000",
    "regular:100",
    "regular:20",
    "small-world:20,0.1",
    "ring:20",
    "scale-free:10",
)
SIZE, GRAPH_SIZE = 30_000, 11_200
"""Users of a cluster: of compositions, and of graphs, where Theorem 3 just applies."""

theorem3 = privacy.bounds.clustering2022.theorem3


def cases(*, quick: bool) -> Iterator[Case]:
    """Yield the settings of each row, and what computes it."""
    rules = ("fixed",) if quick else ("fixed", "Theorem 3")
    for rule in rules:
        for times in TIMES[:1] if quick else TIMES:
            yield _case("runs", rule, times)
        for members in GROUPS[:1] if quick else GROUPS:
            yield _case("labels changed together", rule, members)
        for then in list(mixed.THEN)[:1] if quick else mixed.THEN:
            yield _case("then", rule, then)
    for rule in ("fixed", "Theorem 3"):
        for ones in ONES:
            yield _case("composition", rule, ones)
        for labels in LABELS:
            yield _case("label values", rule, labels)
        for graph in ("complete", "regular:20") if quick else GRAPHS:
            yield _case("graph", rule, graph)


def _case(what: str, rule: str, value: int | str) -> Case:
    return {"what": what, "rule": rule, "value": value}, partial(_row, what, rule, value)


def _row(what: str, rule: str, value: int | str) -> list[Row]:
    size = GRAPH_SIZE if what == "graph" else SIZE
    bound = theorem3(size, 1.0)
    asked = mixed.alpha_of(str(value), size) if what == "then" else bound.parameters["alpha"]
    alpha, summed = FIXED if rule == "fixed" else asked, ""
    local = math.log((1 - alpha) / alpha)
    promised, delta = bound.epsilon, bound.delta
    if what == "graph":
        found = _on_graph(alpha, str(value))
    elif what == "composition":
        others = "worst" if value == "worst" else (size - 1) * int(str(value).removesuffix(" %")) // 100
        found = privacy.profile(PeerToPeer(alpha), cluster_size=size, composition=others)
    elif what == "label values":
        found = privacy.profile(PeerToPeer(alpha, labels=int(value)), cluster_size=size)
        local += math.log(int(value) - 1)
    elif what == "then":
        parts = mixed.parts(str(value), alpha, size)
        found = privacy.compose([part.profile for part in parts])
        promised, delta, local = (
            sum(getattr(part, name) for part in parts) for name in ("epsilon", "delta", "local")
        )
        summed = f"{sum(part.profile.epsilon(part.delta) for part in parts):.5g}"
    else:
        number = int(value)
        one = privacy.profile(PeerToPeer(alpha), cluster_size=size)
        together = what == "labels changed together"
        found = privacy.grouped(one, number) if together else privacy.composed(one, number)
        delta = _chained(bound, number) if together else number * delta
        promised, local = number * promised, number * local
        summed = "" if together else f"{number * one.epsilon(bound.delta):.5g}"
    return [
        {
            "what": what, "value": value, "rule": rule, "cluster_size": size, "theta": 1.0,
            "alpha": f"{alpha:.5g}", "delta": f"{delta:.5g}", "epsilon": f"{found.epsilon(delta):.5g}",
            "basis": found.basis, "theorem3": f"{promised:.5g}" if rule != "fixed" else "",
            "local": f"{local:.5g}", "summed": summed,
            "includes": ONE_LABEL if what != "labels changed together" else "that many labels",
        }
    ]  # fmt: skip


def _chained(bound: Any, members: int) -> float:
    """Return delta of a chain of neighbours at members * epsilon."""
    return float(bound.delta * math.expm1(members * bound.epsilon) / math.expm1(bound.epsilon))


def _on_graph(alpha: float, graph: str) -> PrivacyProfile:
    people = topologies.join(Population.synthetic(users=GRAPH_SIZE, cluster_size=GRAPH_SIZE), graph, seed=1)
    return privacy.profile(PeerToPeer(alpha, over="neighbours"), population=people)
