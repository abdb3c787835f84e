"""``p2p-sim run --graph``: what it makes, tells, keeps and refuses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import p2p_sim
from p2p_sim.network import topologies

STEPS = ("run", "network-shuffle", "--steps", "3")
WALK = (*STEPS, "--seed", "0")


def test_synthetic_users_on_a_graph(cli):
    told = cli(
        *STEPS, "--users", "300", "--graph", "regular:6", "--seed", "5", "--trace", "full", "--json"
    ).json
    assert told["graph"] == {
        "source": "regular:6", "over": "everybody", "complete": False, "minimum": 6, "median": 6.0, "maximum": 6,
    }  # fmt: skip
    assert told["clusters"] is None
    assert [row["messages"] for row in told["messages"]] == [900, 300]
    run = p2p_sim.load(Path(told["directory"]))
    assert run.notes["graph"] == told["graph"]
    expected = topologies.build("regular:6", 300, 5)
    assert np.array_equal(run.population.graph.order, expected.order)
    assert p2p_sim.run(run.source, run.population, seed=5).digest == told["digest"]
    hops = run.messages("hop")
    assert np.array_equal(run.replay(7).sent["hop"]["y"], hops["y"][hops["sender"] == 7])


@pytest.mark.slow
@pytest.mark.parametrize("graph", ["complete", "small-world:4,0.2", "scale-free:2", "grid", "ring:4"])
def test_every_kind_of_graph(cli, graph):
    done = cli(*WALK, "--users", "60", "--graph", graph)
    assert done.status == 0
    line = next(line for line in done.out.splitlines() if line.startswith("Graph"))
    assert line.split()[1:4] == [graph, "over", "everybody;"]
    assert ("60 each, herself included" in line) is (graph == "complete")
    kept = p2p_sim.load(Path("runs/latest").resolve())
    assert p2p_sim.run(kept.source, kept.population, seed=0).digest == kept.digest


def test_users_of_a_data_set(cli):
    told = cli(*WALK, "--data", "breast-cancer", "--graph", "regular:4", "--json").json
    assert (told["clusters"], told["graph"]["over"]) == (None, "everybody")
    assert "graph" in told["seconds"]
    assert p2p_sim.load(Path(told["directory"])).population.graph.size.max() == 4


def edges(tmp_path, pairs):
    (tmp_path / "edges.csv").write_text("one,two\n" + "".join(f"{a},{b}\n" for a, b in pairs))
    return "edges.csv"


def test_an_edge_list_of_synthetic_users(cli, tmp_path):
    ring = edges(tmp_path, [(u, (u + 1) % 20) for u in range(20)] + [(0, 10)])
    told = cli(*WALK, "--users", "20", "--graph", ring, "--json").json
    assert told["graph"] == {
        "source": "edges.csv", "over": "everybody", "complete": False, "minimum": 2, "median": 2.0, "maximum": 3,
    }  # fmt: skip


def test_an_edge_list_of_a_data_set_names_its_rows(cli, tmp_path):
    """Rows that test are left out, so the graph has many ways around them; users are told by their features."""
    from p2p_sim.learning import experiment
    from p2p_sim.learning.data import datasets
    from protocols import NetworkShuffle

    data = datasets.load("breast-cancer")
    rows = len(data.y)
    pairs = [(u, (u + step) % rows) for u in range(rows) for step in (1, 2, 3, 5, 8, 13)]
    result = experiment.learn(
        NetworkShuffle(1.0, 2), data, graph=tmp_path / edges(tmp_path, pairs), model="none", seed=0
    )
    of, graph = result.examples.rows, result.run.population.graph
    there = {tuple(sorted(pair)) for pair in pairs}
    users = set(of.tolist())
    found = {
        tuple(sorted((int(of[user]), int(of[other]))))
        for user in range(len(of))
        for other in graph.rows_of(user)
    }
    assert found == {pair for pair in there if users.issuperset(pair)}
    with pytest.raises(
        p2p_sim.InputError, match=r"1 edges name users who are not there \(users are 0 to 568\)"
    ):
        experiment.learn(
            NetworkShuffle(1.0, 2), data, graph=tmp_path / edges(tmp_path, [(0, 569)]), model="none", seed=0
        )


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("network-shuffle",), "NetworkShuffle needs a graph that joins everybody: give --graph regular:20"),
        (("peer-to-peer", "--graph", "grid"), "PeerToPeer uses no graph: leave out --graph grid"),
        (("peer-to-peer", "--graph", "grid"), "PeerToPeer uses one with over = neighbours"),
        (
            ("network-shuffle", "--graph", "regular"),
            "graph = 'regular': allowed are complete, regular:DEGREE",
        ),
        (("network-shuffle", "--graph", "none.csv"), "no edge list 'none.csv'"),
        (("network-shuffle", "--graph", "regular:20"), "the degree must be below the number of users, 20"),
        (("network-shuffle", "--graph", "ring:3"), "the degree must be even"),
        (("network-shuffle", "--graph", "small-world:4,2"), "the probability must lie from 0 to 1"),
    ],
)
def test_graphs_that_cannot_be(cli, tmp_path, words, error):
    done = cli("run", *words, "--users", "20")
    assert (done.status, done.out) == (2, "")
    assert error in done.err
    assert list(tmp_path.iterdir()) == []


RING = [(u, (u + 1) % 20) for u in range(20)]


@pytest.mark.parametrize(
    ("pairs", "error"),
    [
        ([*RING, (3, 20)], "1 edges name users who are not there (users are 0 to 19) (row 20: 3, 20)"),
        ([*RING, (-1, 2)], "1 edges name users who are not there"),
        ([*RING, (4, 4)], "1 edges join a user to herself (row 20: 4, 4): remove them"),
        ([*RING, (1, 0)], "1 edges repeat a pair (row 20: 1, 0)"),
        (RING[:10], "users 11, 12, 13, 14, 15, ... have no neighbour: 9 in all"),
        ([p for p in RING if p not in ((4, 5), (19, 0))], "the graph is not connected: it has 2 components"),
    ],
)
def test_edge_lists_that_are_wrong(cli, tmp_path, pairs, error):
    done = cli(*WALK, "--users", "20", "--graph", edges(tmp_path, pairs))
    assert (done.status, done.out) == (2, "")
    assert error in done.err
