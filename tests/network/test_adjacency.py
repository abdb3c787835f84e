"""What a protocol needs of a graph, against networkx: nobody alone, all connected, or each cluster by its own edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import p2p_sim
from p2p_sim import InputError, Population
from p2p_sim.core import groups
from p2p_sim.network import topologies
from p2p_sim.network.adjacency import require
from protocols import PeerToPeer


@dataclass(frozen=True)
class Clustered(PeerToPeer):
    """A protocol that needs a graph within each cluster."""

    def graph_over(self) -> str:
        """Return so."""
        return "cluster"


def people(cluster: Any, edges: Any) -> Population:
    return Population.from_arrays(y=np.arange(len(cluster)) % 2 == 0, cluster=cluster).with_graph(edges)


@pytest.mark.parametrize(
    ("edges", "words"),
    [
        (
            [[0, 1], [2, 3], [1, 2]],
            r"links users of different clusters \(user 0 of cluster 5 and user 2 of cluster 9\)",
        ),
        ([[0, 1]], "users 2, 3 have no neighbour"),
        ([[0, 1], [2, 3]], None),
    ],
)
def test_a_graph_within_clusters(edges: Any, words: str | None) -> None:
    users = people([5, 5, 9, 9], edges)
    if words is None:
        assert p2p_sim.run(Clustered(0.1), users, seed=0).digest
        return
    with pytest.raises(InputError, match=words):
        p2p_sim.run(Clustered(0.1), users, seed=0)


def test_a_part_that_hangs_apart_is_named_by_its_cluster() -> None:
    with pytest.raises(InputError, match=r"within cluster 7 .one of 1 such clusters. is not connected"):
        p2p_sim.run(Clustered(0.1), people([7, 7, 7, 7, 2, 2], [[0, 1], [2, 3], [4, 5]]), seed=0)


def test_no_graph_at_all_names_how_to_get_one() -> None:
    users = Population.from_arrays(y=[True, False], cluster=[0, 0])
    with pytest.raises(
        InputError, match=r"within each cluster: give --graph regular:20.*within_clusters=True\)"
    ):
        p2p_sim.run(Clustered(0.1), users, seed=0)


def test_complete_graphs() -> None:
    users = Population.from_arrays(y=np.arange(6) % 2 == 0, cluster=[1, 1, 1, 4, 4, 8])
    inside = topologies.join(users, "complete", 0, within_clusters=True)
    assert p2p_sim.run(Clustered(0.1), inside, seed=0).digest
    with pytest.raises(InputError, match="links users of different clusters"):
        p2p_sim.run(Clustered(0.1), topologies.join(users, "complete", 0), seed=0)


PAIRS = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=16)


@given(st.integers(1, 8), PAIRS, st.lists(st.integers(0, 2), min_size=8, max_size=8), st.booleans())
def test_any_graph_is_fine_or_refused(users: int, pairs: Any, cluster: list[int], within: bool) -> None:
    edges = [(a, b) for a, b in pairs if a < users and b < users]
    there = nx.Graph([(a, b) for a, b in edges if a != b])
    there.add_nodes_from(range(users))
    codes = cluster[:users] if within else [0] * users
    parts = [[u for u in range(users) if codes[u] == code] for code in set(codes)]
    fine = (
        min(dict(there.degree).values()) > 0
        and all(codes[a] == codes[b] for a, b in there.edges)
        and all(nx.is_connected(there.subgraph(part)) for part in parts)
    )
    graph = groups.neighbours(np.array(edges, np.int64).reshape(-1, 2), users)
    clusters = groups.clusters(np.array(codes)) if within else None
    if fine:
        require(graph, clusters)
        return
    with pytest.raises(InputError, match=r"no neighbour|not connected|different clusters"):
        require(graph, clusters)
