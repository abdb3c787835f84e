"""Network shuffling: its law on three users against brute force, what it refuses, walks that stop halfway."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim import InputError, Population, privacy
from p2p_sim.network import topologies
from protocols import NetworkShuffle, RandomizedResponse
from tests.contract.cases import contiguous

GRAPHS = {"triangle": [[0, 1], [1, 2], [2, 0]], "path": [[0, 1], [1, 2]]}
RATIOS = (Fraction(1), Fraction(5, 4), Fraction(2))


def people(y: list[int], edges: Any) -> Population:
    return Population.from_arrays(y=np.array(y, np.bool_)).with_graph(edges)


def walks(near: list[list[int]], steps: int) -> Iterator[tuple[Fraction, tuple[int, ...]]]:
    """Every way in which all reports can walk, one a user: its probability, and who holds each at the end."""
    paths = []
    for user in range(len(near)):
        ways = [(Fraction(1), user)]
        for _ in range(steps):
            ways = [(p / len(near[at]), to) for p, at in ways for to in near[at]]
        paths.append(ways)
    for together in itertools.product(*paths):
        weight = Fraction(1)
        for p, _ in together:
            weight *= p
        yield weight, tuple(at for _, at in together)


def reported(y: list[int], near: list[list[int]], steps: int, lie: Fraction) -> dict[Any, Fraction]:
    """The law of what the learner sees: the noisy labels that each user hands in, in a uniform order."""
    law: dict[Any, Fraction] = {}
    for lies in itertools.product((0, 1), repeat=len(y)):
        coins = Fraction(1)
        for flip in lies:
            coins *= lie if flip else 1 - lie
        for weight, at in walks(near, steps):
            held = [[y[u] ^ lies[u] for u in range(len(y)) if at[u] == v] for v in range(len(y))]
            orders = list(itertools.product(*(itertools.permutations(labels) for labels in held)))
            for seen in orders:
                law[seen] = law.get(seen, Fraction(0)) + coins * weight / len(orders)
    return law


@pytest.mark.slow
@pytest.mark.parametrize(("graph", "steps"), [("triangle", 1), ("path", 0), ("path", 1), ("path", 2)])
@pytest.mark.parametrize("rest", [[0, 0], [1, 0]])
def test_the_learner_s_law_by_brute_force(graph: str, steps: int, rest: list[int]) -> None:
    edges = GRAPHS[graph]
    near = [sorted({a + b - u for a, b in edges if u in (a, b)}) for u in range(3)]
    lie = RandomizedResponse(1.0).lying()
    for change in (0, 1):
        one, other = ([*rest[:change], bit, *rest[change:]] for bit in (0, 1))
        first, second = (reported(y, near, steps, lie) for y in (one, other))
        truth = privacy.enumerate_view(NetworkShuffle(1.0, steps), people(one, edges), change=change)
        for ratio in RATIOS:
            zero = Fraction(0)
            ways = (first, second), (second, first)
            expected = max(sum((max(zero, p[s] - ratio * q[s]) for s in p), zero) for p, q in ways)
            assert truth.delta_at(ratio) == expected


@pytest.mark.slow
def test_users_and_the_encrypted_wire_see_sealed_labels() -> None:
    triangle = people([0, 1, 0], GRAPHS["triangle"])
    for view, channels in (
        ("user", "plain"),
        ("user:1+user:2", "plain"),
        ("wire", "encrypted"),
        ("wire", "plain"),
    ):
        found = privacy.enumerate_view(NetworkShuffle(1.0, 1), triangle, view=view, channels=channels)
        assert found.delta_at(1) == 0


def test_on_a_complete_graph_reports_go_to_anybody_of_all() -> None:
    """Loops included: with one user there is nobody else, and hers come back."""
    everybody = topologies.join(Population.from_arrays(y=[True]), "complete", 0)
    run = p2p_sim.run(NetworkShuffle(float("inf"), 3), everybody, trace="full", seed=0)
    assert run.messages("hop")["recipient"].tolist() == [0, 0, 0]
    assert run.by_kind()["hop"].travelled == 0
    assert run.output("learner")["y"].tolist() == [1]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: NetworkShuffle(-1.0), ["epsilon", "-1.0", "[0, inf]"]),
        (lambda: NetworkShuffle(1.0, steps=-1), ["steps", "-1", "from 0 to 10,000"]),
        (lambda: NetworkShuffle(1.0, steps=10_001), ["steps", "10001", "from 0 to 10,000"]),
        (lambda: NetworkShuffle(1.0, steps=1.5), ["steps", "1.5"]),  # type: ignore[arg-type]
        (lambda: NetworkShuffle(1.0, steps=True), ["steps", "True"]),
        (lambda: NetworkShuffle(1.0, labels=1), ["labels", "1", "from 2 to 256"]),
    ],
)
def test_parameters_out_of_range(make: Any, words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        make()
    assert all(word in str(caught.value) for word in words), caught.value


@pytest.mark.parametrize(
    ("edges", "words"),
    [
        (None, r"NetworkShuffle needs a graph that joins everybody: give --graph regular:20"),
        ([[0, 1], [1, 2]], r"users 3, 4, 5, 6, 7, \.\.\. have no neighbour: 8 in all"),
        (
            [[u, u ^ 1] for u in range(10)] + [[10, 0]],
            r"not connected: it has 5 components: 3 users \(from user 0\)",
        ),
    ],
)
@pytest.mark.parametrize(
    "start",
    [p2p_sim.run, partial(p2p_sim.paired, change=0), privacy.enumerate_view],
    ids=["run", "paired", "law"],
)
def test_a_population_that_does_not_hang_together(edges: Any, words: str, start: Any) -> None:
    users = Population.from_arrays(y=np.arange(11) % 2 == 0)
    users = users if edges is None else users.with_graph(edges)
    with pytest.raises(InputError, match=words):
        start(NetworkShuffle(1.0), users)


def test_components_are_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from scipy.sparse import csgraph

    users = topologies.join(contiguous(60), "regular:4", 1)
    monkeypatch.setattr(csgraph, "connected_components", None)  # whoever looks again, fails
    p2p_sim.run(NetworkShuffle(1.0), users, seed=0)
    p2p_sim.run(NetworkShuffle(1.0, steps=2), users, seed=0).replay(3)


def test_reports_that_are_lost_on_the_way_are_missing() -> None:
    users = topologies.join(contiguous(60), "regular:4", 1)
    run = p2p_sim.run(
        NetworkShuffle(1.0, 5), users, seed=2, faults=["loss=0.1", "duplicate=0.2"], trace="full"
    )
    lost = sum(count for (what, _, _), count in run.faults_seen.items() if what == "lost")
    assert lost > 10
    assert len(run.output("learner")["y"]) == 60 - lost
