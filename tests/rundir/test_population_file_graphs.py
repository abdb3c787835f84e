"""Graphs of every kind: their hash, on disk and back, and the closed world that they make."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim import Population
from p2p_sim.core import Message, Protocol
from p2p_sim.core.closed_world import closed_world
from p2p_sim.core.groups import Members
from p2p_sim.network import topologies
from p2p_sim.rundir import population_file as kept
from protocols import NetworkShuffle

CLUSTERS = [4, 0, 4, 0, 4, 9, 0, 4, 9, 0, 30, 9]


def users(cluster: Any = CLUSTERS) -> Population:
    return Population.from_arrays(y=np.arange(12) % 3 == 0, cluster=cluster)


def graphs() -> dict[str, Population]:
    one = Population.from_arrays(y=[True])
    alone = Population.from_arrays(y=[True, False], cluster=[1, 0])
    return {
        "none": users(),
        "regular": topologies.join(users(), "regular:4", 1),
        "another seed": topologies.join(users(), "regular:4", 2),
        "edges": users().with_graph([[0, 3], [3, 7]]),
        "no edges": users().with_graph(np.zeros((0, 2), np.int64)),
        "complete": topologies.join(users(), "complete", 1),
        "complete in clusters": topologies.join(users(), "complete", 1, within_clusters=True),
        "complete in clusters of consecutive ids": topologies.join(
            users(np.arange(12) // 5), "complete", 1, within_clusters=True
        ),
        "one user": one,
        "one user, complete": topologies.join(one, "complete", 1),
        "users alone, complete": topologies.join(alone, "complete", 1, within_clusters=True),
        "users alone": alone,
        "without clusters, complete": topologies.join(users(None), "complete", 1),
        "without clusters": users(None),
    }


def test_hashes_tell_graphs_apart() -> None:
    hashes = [population.hash for population in graphs().values()]
    assert len(set(hashes)) == len(hashes)


def test_the_hash_does_not_depend_on_how_a_complete_graph_is_held() -> None:
    whole = graphs()["complete"]
    assert whole.graph is not None
    other = replace(whole, graph=Members(whole.graph.codes, whole.graph.starts, None))
    assert other.hash == whole.hash


@pytest.mark.parametrize("name", graphs())
def test_on_disk_and_back(name: str, tmp_path: Path) -> None:
    population = graphs()[name]
    kept.write(tmp_path, population)
    back = kept.read(tmp_path, population.hash)
    assert back is not None
    if population.graph is None:
        assert back.graph is None
        return
    assert back.graph is not None
    for user, (one, other) in enumerate(zip(population.graph.codes, back.graph.codes, strict=True)):
        assert np.array_equal(population.graph.rows_of(one), back.graph.rows_of(other)), user


def test_an_edge_is_written_once(tmp_path: Path) -> None:
    from pyarrow import parquet

    kept.write(tmp_path, graphs()["regular"])
    assert parquet.read_table(tmp_path / "graph.parquet").num_rows == 12 * 4 // 2


class Telling(Protocol):
    """Users who talk to users."""

    tell = Message("user", "user", "tells something")


def worlds(population: Population, start: int) -> set[int]:
    """Everybody who is joined to a user, one look at a time."""
    graph, clusters = population.graph, population.clusters
    assert clusters is not None
    found, front = {start}, [start]
    while front:
        user = front.pop()
        near = set(clusters.rows_of(int(clusters.codes[user])).tolist())
        near |= set() if graph is None else set(graph.rows_of(int(graph.codes[user])).tolist())
        front += near - found
        found |= near
    return found


@pytest.mark.parametrize("name", [n for n, p in graphs().items() if p.clusters is not None])
def test_the_closed_world_of_every_user(name: str) -> None:
    population = graphs()[name]
    for user in range(population.users):
        found = closed_world(Telling(), population, np.array([user]))
        assert found.tolist() == sorted(worlds(population, user))


@pytest.mark.parametrize("name", ["complete", "regular", "without clusters, complete"])
def test_replay_equals_the_run(name: str) -> None:
    run = p2p_sim.run(NetworkShuffle(1.0, 3), graphs()[name], seed=4, trace="full")
    for user in range(12):
        life = run.replay(user)
        for kind in ("hop", "report"):
            rows = run.messages(kind)["sender"] == user
            assert all(np.array_equal(life.sent[kind][n], c[rows]) for n, c in run.messages(kind).items())
