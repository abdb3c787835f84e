"""Own edge lists: arrays, files, networkx graphs, and every way in which they are wrong."""

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from p2p_sim.core import groups
from p2p_sim.core.errors import InputError
from p2p_sim.network.adjacency import induced, require_connected, require_nobody_alone
from p2p_sim.network.edges import from_edges, read
from p2p_sim.network.topologies import build, graph_of

PATH = [[0, 1], [2, 1], [3, 2]]


def near(graph):
    return [graph.rows_of(int(code)).tolist() for code in graph.codes]


def test_an_array_gives_neighbours_in_order():
    assert near(from_edges(PATH, 4)) == [[1], [0, 2], [1, 3], [2]]
    assert near(from_edges(np.array(PATH, np.uint8), 4)) == [[1], [0, 2], [1, 3], [2]]


@pytest.mark.parametrize("header", ["", "from, to\n"])
def test_csv_with_and_without_a_header(tmp_path, header):
    file = tmp_path / "edges.csv"
    file.write_text(header + "0,1\n2,1\n3,2\n")
    assert near(graph_of(str(file), 4, 0)) == near(from_edges(PATH, 4))


@pytest.mark.parametrize("first", ["\ufeff0,1", '"0","1"', " 0, 1", "0,1\r"])
def test_a_first_edge_is_never_taken_for_a_header(tmp_path, first):
    file = tmp_path / "edges.csv"
    file.write_text(f"{first}\n2,1\n3,2\n3,0\n", encoding="utf-8", newline="")
    assert near(graph_of(file, 4, 0)) == near(from_edges([*PATH, [0, 3]], 4))


def test_parquet(tmp_path):
    file = tmp_path / "edges.parquet"
    parquet.write_table(pa.table({"a": [0, 2, 3], "b": [1, 1, 2]}), file)
    assert near(graph_of(file, 4, 0)) == near(from_edges(PATH, 4))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("a,b\n0,1.5\n", "type double"),
        ("a,b\n0,1\n2,\n", "1 missing"),
        ("a,b,c\n0,1,2\n", "columns"),
        ("a,b\n0,x\n", "type string"),
        ("a,b\n0,1\n2\n", "cannot be read"),
        ("", "cannot be read"),
        ("a,b\n", "has no edges"),
        ("+0,+1\n2,1\n", "type double"),
        ("0.0,1.0\n2,1\n", "type double"),
    ],
)
def test_files_that_are_no_edge_list(tmp_path, text, what):
    file = tmp_path / "edges.csv"
    file.write_text(text)
    with pytest.raises(InputError, match=what):
        graph_of(file, 4, 0)


@pytest.mark.parametrize("name", ["missing.csv", "missing.parquet"])
def test_a_missing_file(name):
    with pytest.raises(InputError, match=f"no edge list '{name}'"):
        graph_of(name, 4, 0)


def test_a_networkx_graph():
    there = nx.karate_club_graph()
    graph = graph_of(there, 34, 0)
    assert near(graph) == [sorted(there[user]) for user in range(34)]
    with pytest.raises(InputError, match="directed"):
        graph_of(nx.DiGraph([(0, 1)]), 2, 0)
    with pytest.raises(InputError, match=r"first 'a': give networkx.relabel_nodes\(graph, users, where"):
        graph_of(nx.Graph([("a", "b")]), 2, 0)
    with pytest.raises(InputError, match="is no user"):
        graph_of(nx.Graph([(0, 2**64)]), 2, 0)


def test_advice_on_a_networkx_graph_of_text_keeps_its_edges():
    """Nodes in another order than their numbers: numbering them as they appear would join others."""
    as_text = nx.parse_edgelist(["2 0", "0 3", "3 1"])
    with pytest.raises(InputError, match=r"give networkx.relabel_nodes\(graph, int\)"):
        graph_of(as_text, 4, 0)
    assert near(graph_of(nx.relabel_nodes(as_text, int), 4, 0)) == [[2, 3], [3], [0], [0, 1]]


def test_edges_of_parquet_stay_whole_numbers(tmp_path):
    ends = pa.table({"a": pa.array([0, 1], pa.int64()), "b": pa.array([1, 2], pa.uint64())})
    parquet.write_table(ends, tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet").tolist() == [[0, 1], [1, 2]]
    parquet.write_table(
        ends.set_column(1, "b", pa.array([1, 2**64 - 1], pa.uint64())), tmp_path / "b.parquet"
    )
    with pytest.raises(InputError, match="ids that no user has"):
        read(tmp_path / "b.parquet")
    ends.to_pandas().iloc[::-1].to_parquet(tmp_path / "c.parquet")  # the index is no end of an edge
    assert read(tmp_path / "c.parquet").tolist() == [[1, 2], [0, 1]]


@pytest.mark.parametrize(
    ("edges", "users", "text"),
    [
        (
            [[0, 1], [1, 7], [-1, 0]],
            2,
            r"2 edges name users who are not there \(users are 0 to 1\).*row 1: 1, 7, row 2",
        ),
        ([[0, 1], [1, 1]], 2, "1 edges join a user to herself .row 1: 1, 1"),
        ([[0, 1], [1, 0], [0, 1]], 2, "2 edges repeat a pair .row 1: 1, 0, row 2"),
        ([[0, 1]], 9, r"users 2, 3, 4, 5, 6, ... have no neighbour: 7 in all"),
        ([[0, 1]], 3, "user 2 has no neighbour"),
        ([[0, 3], [1, 2], [2, 4]], 5, r"2 components: 2 users \(from user 0\), 3 users \(from user 1\)"),
        ([[0, 1, 2]], 3, "shape"),
        ([[0.0, 1.0]], 3, "type float64"),
        ([], 3, "shape"),
    ],
)
def test_what_is_wrong_is_named(edges, users, text):
    with pytest.raises(InputError, match=text):
        from_edges(edges, users)


def test_within_clusters_only_edges_inside_count():
    clusters = groups.clusters(np.array([0, 0, 1, 1]))
    assert near(from_edges(PATH, 4, clusters)) == [[1], [0], [3], [2]]
    with pytest.raises(InputError, match="users 0, 3 have no neighbour"):
        from_edges(PATH, 4, groups.clusters(np.array([0, 1, 1, 0])))
    pairs = [[0, 1], [2, 3], [4, 5], [1, 4]]
    with pytest.raises(InputError, match=r"within cluster 8 .one of 1 such clusters. is not connected"):
        from_edges(pairs, 6, groups.clusters(np.array([8, 8, 8, 8, 3, 3])))


@given(st.integers(1, 8), st.lists(st.tuples(st.integers(-1, 8), st.integers(-1, 8)), max_size=20))
def test_any_list_is_a_connected_graph_or_refused(users, pairs):
    edges = np.array(pairs, np.int64).reshape(-1, 2)
    there = nx.Graph(pairs)
    there.add_nodes_from(range(users))
    fine = (
        set(there.nodes) == set(range(users))
        and all(a != b for a, b in pairs)
        and there.number_of_edges() == len(pairs)
        and min(dict(there.degree).values()) > 0
        and nx.is_connected(there)
    )
    if fine:
        assert near(from_edges(edges, users)) == [sorted(there[user]) for user in range(users)]
    else:
        with pytest.raises(InputError):
            from_edges(edges, users)


def test_components_are_those_of_networkx():
    there = nx.gnm_random_graph(200, 130, seed=4)
    graph = groups.joined(np.array(there.edges), 200)
    labels = graph.components
    ours = {frozenset(np.flatnonzero(labels == label).tolist()) for label in set(labels.tolist())}
    assert ours == {frozenset(part) for part in nx.connected_components(there)}
    with pytest.raises(InputError, match=f"it has {len(ours)} components.* and {len(ours) - 5} more"):
        require_connected(graph)
    with pytest.raises(InputError, match="no neighbour"):
        require_nobody_alone(graph)


def test_the_graph_of_some_users():
    there = nx.gnm_random_graph(60, 200, seed=4)
    users = np.arange(0, 60, 3)
    part = induced(groups.joined(np.array(there.edges), 60), users)
    wanted = nx.convert_node_labels_to_integers(there.subgraph(users.tolist()), ordering="sorted")
    assert near(part) == [sorted(wanted[user]) for user in range(20)]


def test_the_complete_graph_of_some_users():
    clusters = groups.clusters(np.array([0, 1, 2, 0, 1, 2, 0]))
    part = induced(build("complete", 7, 0, clusters=clusters), np.array([0, 2, 5, 6]))
    assert near(part) == [[0, 3], [1, 2], [1, 2], [0, 3]]
