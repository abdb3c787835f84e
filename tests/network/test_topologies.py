"""Graphs from words: what they are, against networkx; their law; that they are a function of the seed."""

import hashlib
import re

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, poisson

from p2p_sim.core import groups
from p2p_sim.core.errors import InputError
from p2p_sim.core.population import Population
from p2p_sim.network import room, topologies
from p2p_sim.network.adjacency import matrix, require_connected
from p2p_sim.network.topologies import Topology, build, graph_of, join, parse

FALSE_ALARM = 1e-9


def networkx_of(graph):
    """The same graph in networkx; checks that neighbours ascend and that every edge is there both ways."""
    near = {user: graph.rows_of(user).tolist() for user in range(len(graph.codes))}
    assert all(list(them) == sorted(set(them)) for them in near.values())
    directed = nx.DiGraph(near)
    assert all(directed.has_edge(b, a) for a, b in directed.edges)
    return nx.Graph(near)


def edges_of(graph):
    return {frozenset(edge) for edge in graph.edges}


def likely(count, law):
    return law.ppf(FALSE_ALARM / 2) <= count <= law.isf(FALSE_ALARM / 2)


@pytest.mark.parametrize(
    ("users", "degree"),
    [
        (4, 3),
        (6, 3),
        (6, 4),
        (7, 4),
        (8, 3),
        (8, 5),
        (10, 7),
        (10, 8),
        (50, 20),
        (60, 40),
        (101, 4),
        (500, 21),
    ],
)
def test_regular_graphs_are_regular_simple_and_connected(users, degree):
    for seed in range(20):
        graph = networkx_of(build(f"regular:{degree}", users, seed))
        assert set(dict(graph.degree).values()) == {degree}
        assert nx.number_of_selfloops(graph) == 0
        assert nx.is_connected(graph)


@pytest.mark.slow
@pytest.mark.parametrize("users", [100_000, 1_000_000])
def test_a_large_regular_graph_is_regular_and_simple(users):
    graph = build("regular:20" if users < 1_000_000 else "regular:6", users, 1)
    assert bool((graph.size == graph.size[0]).all())
    owner = np.repeat(graph.codes, graph.size)
    assert not bool((graph.order == owner).any()), "a loop"
    inside = np.diff(owner) == 0
    assert bool((np.diff(graph.order)[inside] > 0).all()), "a double edge, or neighbours out of order"
    ones = matrix(graph)
    assert (ones != ones.T).nnz == 0


@pytest.mark.parametrize(("rows", "columns"), [(3, 3), (4, 5), (30, 31)])
def test_grid_is_that_of_networkx(rows, columns):
    there = nx.convert_node_labels_to_integers(nx.grid_2d_graph(rows, columns), ordering="sorted")
    assert edges_of(networkx_of(build("grid", rows * columns, 0))) == edges_of(there)


@pytest.mark.parametrize("users", [2, 3, 5, 7, 11, 12, 13])
def test_grid_of_any_number_is_connected(users):
    graph = networkx_of(build("grid", users, 0))
    assert nx.is_connected(graph)
    assert max(dict(graph.degree).values()) <= 4


@pytest.mark.parametrize(("users", "degree"), [(3, 2), (5, 4), (10, 2), (11, 4), (100, 10)])
def test_ring_is_that_of_networkx(users, degree):
    there = nx.watts_strogatz_graph(users, degree, 0)
    for word in (f"ring:{degree}", f"small-world:{degree},0"):
        assert edges_of(networkx_of(build(word, users, 5))) == edges_of(there)


@pytest.mark.parametrize("moved", [0.1, 0.5, 1.0])
def test_small_world_moves_the_stated_share(moved):
    users, degree = 4000, 10
    graph = build(f"small-world:{degree},{moved}", users, 3)
    apart = np.abs(np.repeat(np.arange(users), graph.size) - graph.order)
    far = int((np.minimum(apart, users - apart) > degree // 2).sum()) // 2
    assert len(graph.order) == users * degree
    assert graph.size.min() >= degree // 2
    assert likely(far, binom(users * degree // 2, moved))
    assert not likely(far, binom(users * degree // 2, max(0.0, moved - 0.05)))


def test_scale_free_has_its_exact_law():
    """With one link the third user joins either of the first, and the fourth the hub with probability 1/2."""
    worlds = 20_000
    graph = build("scale-free:1", 4 * worlds, 11, clusters=groups.clusters(np.arange(4 * worlds) // 4))
    degree = graph.size.reshape(worlds, 4)
    assert likely(int((degree.max(1) == 3).sum()), binom(worlds, 0.5))
    assert not likely(int((degree.max(1) == 3).sum()), binom(worlds, 1 / 3)), "power: joining uniformly"
    assert likely(int((degree[:, 0] > degree[:, 1]).sum()), binom(worlds, 3 / 8))  # 1/2 (hub 0) x 3/4


def test_regular_graphs_have_as_many_triangles_as_they_should():
    """A random cubic graph has about Poisson((d - 1)^3 / 6) triangles; 1,000 clusters are independent worlds."""
    worlds, size = 1000, 200
    graph = build("regular:3", worlds * size, 5, clusters=groups.clusters(np.arange(worlds * size) // size))
    ones = matrix(graph)
    triangles = int((ones @ ones).multiply(ones).sum()) // 6
    assert likely(triangles, poisson(worlds * 8 / 6))
    assert not likely(triangles, poisson(worlds * 8 / 6 * 1.25))


GOLDEN = {
    "regular:6": "04946c9a4405d79d", "regular:60": "3c8503d81434bc83", "small-world:4,0.3": "761253ead371b9d3",
    "scale-free:3": "a911af03f031bd67", "ring:4": "417bf80da5af5c4b", "grid": "1e5ce81c862ba4c7",
}  # fmt: skip


@pytest.mark.parametrize("word", GOLDEN)
def test_a_graph_is_a_function_of_the_seed_on_every_machine(word):
    graph, again, other = (build(word, 100, seed) for seed in (7, 7, 8))
    assert np.array_equal(graph.order, again.order)
    assert np.array_equal(graph.order, other.order) == (word in ("ring:4", "grid"))
    pairs = np.concatenate([graph.starts, graph.order]).astype("<i8")
    assert hashlib.sha256(pairs.tobytes()).hexdigest()[:16] == GOLDEN[word]


@pytest.mark.parametrize("word", ["regular:4", "small-world:4,0.2", "scale-free:2", "ring:4", "grid"])
@pytest.mark.parametrize("scattered", [False, True])
def test_within_clusters_nobody_leaves_and_each_cluster_is_connected(word, scattered):
    sizes = [2, 3, 5, 6, 7, 40, 100]
    labels = np.repeat(np.arange(len(sizes)) * 3, sizes)
    if scattered:
        labels = labels[np.argsort(np.sin(np.arange(len(labels))))]
    clusters = groups.clusters(labels)
    graph = networkx_of(build(word, len(labels), 9, clusters=clusters))
    assert all(labels[a] == labels[b] for a, b in graph.edges)
    for code, size in enumerate(sizes):
        part = graph.subgraph(clusters.rows_of(code).tolist())
        assert nx.is_connected(part)
        if word != "grid" and size <= Topology("ring", 4).degree // (2 if "free" in word else 1) + 1:
            assert part.number_of_edges() == size * (size - 1) // 2


def test_complete_is_not_written_out_and_draws_everybody():
    graph = build("complete", 1_000_000, 0)
    assert graph.complete
    assert len(graph.order) == 1_000_000
    assert set(graph.size.tolist()) == {1_000_000}
    clusters = groups.clusters(np.array([5, 2, 5, 2, 2]))
    within = build("complete", 5, 0, clusters=clusters)
    assert [within.rows_of(int(code)).tolist() for code in within.codes] == [
        [0, 2], [1, 3, 4], [0, 2], [1, 3, 4], [1, 3, 4],
    ]  # fmt: skip


def test_clusters_that_fall_apart_are_drawn_anew(monkeypatch):
    labels = np.arange(8000) // 8  # about 2 in 1,000 cubic graphs of 8 users are two tetrahedra
    clusters = groups.clusters(labels)
    graph = build("regular:3", 8000, 1, clusters=clusters)
    require_connected(graph, clusters)
    assert set(graph.size.tolist()) == {3}
    monkeypatch.setattr(topologies, "TRIES", 1)
    with pytest.raises(
        InputError, match=r"within cluster \d+ .* not connected: it has 2 components: 4 users"
    ):
        build("regular:3", 8000, 1, clusters=clusters)


def test_a_graph_that_falls_apart_is_drawn_anew_or_named(monkeypatch):
    require_connected(build("small-world:2,1", 3000, 0))
    monkeypatch.setattr(topologies, "TRIES", 1)
    with pytest.raises(
        InputError, match=r"not connected: it has 2 components: [0-9,]+ users \(from user 0\)"
    ):
        build("small-world:2,1", 3000, 0)


def test_join_gives_neighbours():
    people = Population.synthetic(users=60, cluster_size=20)
    everyone = join(people, "regular:4", 1)
    within = join(people, Topology("regular", 4), 1, within_clusters=True)
    assert set(everyone.graph.size.tolist()) == set(within.graph.size.tolist()) == {4}
    assert bool((within.graph.order // 20 == np.repeat(np.arange(60) // 20, 4)).all())
    with pytest.raises(InputError, match="the whole population"):
        join(people.part(np.arange(5)), "grid", 1)


@pytest.mark.parametrize(
    ("word", "users", "text"),
    [
        ("regular:3", 9, "degree times users is odd"),
        ("regular:9", 9, "below the number of users, 9"),
        ("scale-free:12", 9, "below the number of users"),
        ("regular:2", 9, "falls into pieces: choose a degree of 3"),
        ("regular:1", 2000, "falls into pieces"),
        ("grid", 1, "one user alone has no neighbour"),
        ("scale-free:3", 3, "the links of a new user must be below the number of users, 3"),
        ("regular:2", 6, "falls into pieces"),
    ],
)
def test_graphs_that_do_not_exist_are_refused(word, users, text):
    with pytest.raises(InputError, match=text):
        build(word, users, 0)


def test_what_is_wrong_in_clusters_is_named():
    clusters = groups.clusters(np.array([4] * 7 + [9] + [2] * 6))
    with pytest.raises(InputError, match=r"1 users would have no neighbour.*\(user 7\)"):
        build("ring:2", 14, 0, clusters=clusters)
    with pytest.raises(InputError, match="no such graph has cluster 4 of 7 users"):
        build("regular:3", 13, 0, clusters=groups.clusters(np.array([4] * 7 + [2] * 6)))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("regular", "allowed are complete, regular:DEGREE"),
        ("regular:-1", "allowed"),
        ("regular:0", "degree must be 1 or more"),
        ("ring:3", "must be even"),
        ("small-world:4", "allowed"),
        ("small-world:4,1.5", "from 0 to 1"),
        ("small-world:4,nan", "must be a number"),
        ("grid:3", "allowed"),
        ("", "allowed"),
        ("regular:²", "allowed"),
    ],
)
def test_words_that_are_no_topology(text, what):
    with pytest.raises(InputError, match=what):
        parse(text)
    with pytest.raises(InputError):
        graph_of(text, 10, 0)


@pytest.mark.slow
@given(st.one_of(st.text(), st.from_regex(r"(regular|small-world|scale-free|grid|ring):[0-9.,e-]{0,12}")))
def test_any_text_is_a_topology_or_refused(text):
    try:
        topology = parse(text)
    except InputError:
        return
    assert parse(str(topology)) == topology


def test_a_topology_made_by_hand_is_checked():
    with pytest.raises(InputError, match="'star' is not known"):
        Topology("star", 3)
    with pytest.raises(InputError, match="seed"):
        build("grid", 9, -1)


@pytest.mark.parametrize("users", [3, 4, 5])
def test_up_to_five_users_with_two_neighbours_each_are_a_circle(users: int) -> None:
    for seed in range(20):
        graph = build("regular:2", users, seed)
        assert (graph.size == 2).all()
        assert int(graph.components.max()) == 0


@pytest.mark.parametrize(
    ("graph", "users", "fewer", "smaller"),
    [
        ("scale-free:5000", 100_000, "scale-free:5000", "scale-free:{}"),
        ("regular:400", 100_000, "regular:400", "regular:{}"),
        ("ring:2", 10_000_000, "ring:2", None),
        ("complete", 200_000_000, "complete", None),
    ],
)
def test_a_graph_that_memory_cannot_hold_is_refused_with_numbers_that_fit(
    graph, users, fewer, smaller, monkeypatch
):
    monkeypatch.setattr(room, "memory", lambda: 10**9)
    with pytest.raises(
        InputError, match=r"takes [0-9,.]+ GB of memory or more, and this machine has 1.0 GB"
    ) as told:
        build(graph, users, 0)
    text = str(told.value)
    numbers = {
        name: int(found[1].replace(",", ""))
        for name, found in (
            ("users", re.search(r"take at most ([0-9,]+) users", text)),
            ("number", re.search(r"a number of at most ([0-9,]+)", text)),
        )
        if found
    }
    kind = parse(fewer)
    if "users" in numbers:
        assert numbers["users"] > users / 100
        room.require(kind.kind, kind.degree, np.array([numbers["users"]]), graph)
    if smaller is not None:
        kind = parse(smaller.format(numbers["number"]))
        room.require(kind.kind, kind.degree, np.array([users]), graph)
    else:
        assert "users" in numbers


def test_edges_are_counted_before_they_are_there():
    for graph in ("ring:4", "grid", "regular:4", "small-world:4,0.3", "scale-free:3"):
        kind = parse(graph)
        there = len(build(graph, 400, 0).order) // 2
        assert there <= room.edges(kind.kind, kind.degree, np.array([400])) <= there * 1.06


def test_building_a_graph_tells_how_far_it_is():
    told = []
    build("scale-free:3", 1000, 0, progress=lambda *state: told.append(state))
    joined = [(done, total) for label, done, total in told if label.endswith("users joined")]
    assert joined == [(256, 1000), (512, 1000), (768, 1000)]
    assert [done for label, done, _ in told if label.endswith("steps done")] == [0, 1, 2]
