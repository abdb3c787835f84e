"""Algorithm 2 among neighbours: whom users ask, and what graphs a run refuses."""

from __future__ import annotations

import numpy as np
import pytest

import p2p_sim
from p2p_sim import InputError, Population
from p2p_sim.network import topologies
from protocols import PeerToPeer

NEAR = PeerToPeer(0.1, over="neighbours")


def test_users_ask_neighbours_and_hear_them() -> None:
    people = topologies.join(
        Population.synthetic(users=120, cluster_size=40), "small-world:4,0.3", 1, within_clusters=True
    )
    run = p2p_sim.run(NEAR, people, seed=3, trace="full")
    asks, reports = run.messages("ask"), run.messages("report")
    assert people.graph is not None
    for one, other in zip(asks["sender"], asks["recipient"], strict=True):
        assert other in people.graph.rows_of(int(one))
    assert len(set(asks["recipient"].tolist())) > 60  # not always the same neighbour
    labels = {
        int(to): bool(y)
        for to, y in zip(run.messages("label")["recipient"], run.messages("label")["y_hat"], strict=True)
    }
    assert all(labels[int(who)] == y for who, y in zip(reports["sender"], reports["y"], strict=True))


def test_a_complete_graph_gives_the_bits_of_clusters() -> None:
    people = Population.synthetic(users=90, cluster_size=30, seed=2)
    whole = topologies.join(people, "complete", 1, within_clusters=True)
    assert p2p_sim.run(NEAR, whole, seed=5).digest == p2p_sim.run(PeerToPeer(0.1), people, seed=5).digest


@pytest.mark.parametrize(
    ("edges", "said"),
    [
        (None, "needs a graph within each cluster"),
        ([(0, 1), (1, 2), (2, 3)], "user 0 of cluster 0 and user 2 of cluster 1"),
        ([(0, 1)], "users 2, 3 have no neighbour"),
    ],
)
def test_graphs_that_do_not_fit_are_named(edges: list[tuple[int, int]] | None, said: str) -> None:
    people = Population.from_arrays(y=np.zeros(4, bool), cluster=[0, 0, 1, 1])
    people = people if edges is None else people.with_graph(np.array(edges))
    with pytest.raises(InputError, match=said):
        p2p_sim.run(NEAR, people, seed=0)


def test_without_over_a_graph_changes_nothing() -> None:
    people = Population.synthetic(users=60, cluster_size=20, seed=2)
    joined = topologies.join(people, "ring:2", 1, within_clusters=True)
    assert (
        p2p_sim.run(PeerToPeer(0.1), joined, seed=5).digest
        == p2p_sim.run(PeerToPeer(0.1), people, seed=5).digest
    )
