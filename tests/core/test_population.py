"""Populations: columns, clusters, graphs, parts, order and hash."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from p2p_sim.core import Population
from p2p_sim.network import adjacency
from tests.exact import oracle
from tests.tiny import CLUSTERS, LABELS, people

Y, X = np.array(LABELS, np.bool_), np.arange(24.0).reshape(12, 2)


def members(population):
    """Each user's group, as lists of rows."""
    groups = population.clusters
    return [groups.rows_of(int(code)).tolist() for code in groups.codes]


def test_from_arrays_keeps_columns():
    population = people(x=X, public={"a": list(range(12))}, secret={"b": X})
    assert (population.users, population.labels) == (12, 2)
    assert population.y.dtype == np.bool_
    assert population.y.tolist() == LABELS
    assert population.x.tolist() == X.tolist()
    assert population.public["a"].tolist() == list(range(12))
    assert population.secret["b"].shape == (12, 2)


def test_labels_are_bits_or_bytes():
    assert Population.from_arrays(y=np.array([0, 3, 1], np.int64)).y.dtype == np.uint8
    assert Population.from_arrays(y=[0, 3, 1]).labels == 4
    assert Population.from_arrays(y=[0, 0]).labels == 2
    assert Population.from_arrays(y=[255]).labels == 256


@pytest.mark.parametrize(
    "cluster", [CLUSTERS, [0] * 12, list(range(12)), sorted(CLUSTERS), [10**12, *range(11)]]
)
@pytest.mark.parametrize("dtype", [np.int64, np.float64, np.uint64])
def test_clusters_group_users_in_ascending_row(cluster, dtype):
    population = Population.from_arrays(y=Y, cluster=np.array(cluster, dtype))
    assert members(population) == [[v for v in range(12) if cluster[v] == cluster[u]] for u in range(12)]
    assert population.clusters.label.tolist() == cluster
    assert sorted(population.sizes) == sorted(cluster.count(c) for c in set(cluster))
    contiguous = cluster == sorted(cluster)
    assert (population.clusters.order is None) == contiguous


def test_without_clusters_there_is_one_of_everyone():
    assert Population.from_arrays(y=Y).sizes.tolist() == [12]


TABLE = {"f": np.arange(12) * 0.5, "y": Y, "town": np.array(CLUSTERS), "g": np.arange(12)}


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pa.table], ids=("mapping", "pandas", "arrow"))
def test_from_table(make):
    population = Population.from_table(make(TABLE), label="y", cluster="town")
    assert (
        population.hash
        == Population.from_arrays(y=Y, x=np.column_stack([TABLE["f"], TABLE["g"]]), cluster=CLUSTERS).hash
    )
    only = Population.from_table(make({"label": np.arange(12) % 3}), label="label")
    assert only.x is None
    assert only.labels == 3


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_from_file(tmp_path, kind):
    path = tmp_path / f"people.{kind}"
    (csv.write_csv if kind == "csv" else parquet.write_table)(pa.table(TABLE), path)
    read = Population.from_file(path, label="y", cluster="town")
    assert read.hash == Population.from_table(TABLE, label="y", cluster="town").hash
    assert Population.from_file(str(path), label="g").y.tolist() == list(range(12))


def test_synthetic_labels_are_keyed_draws():
    population = Population.synthetic(users=100, cluster_size=30, positive=0.3, seed=9)
    chance = oracle.Chance(9, "synthetic")
    assert population.y.tolist() == [oracle.bernoulli(chance.word("label", 0, u), 0.3) for u in range(100)]
    assert population.clusters.label.tolist() == [u // 30 for u in range(100)]
    assert population.sizes.tolist() == [30, 30, 30, 10]


def test_a_larger_synthetic_population_begins_with_the_same_users():
    small, large = (Population.synthetic(users=n, positive=0.4, seed=3) for n in (10, 2**20 + 11))
    assert large.y[:10].tolist() == small.y.tolist()
    assert 0.39 < large.y.mean() < 0.41
    assert (
        Population.synthetic(users=50, seed=1).y.tolist() != Population.synthetic(users=50, seed=2).y.tolist()
    )


@pytest.mark.parametrize(
    ("users", "size", "sizes"), [(10, 5, [5, 5]), (10, 4, [4, 4, 2]), (10, 99, [10]), (3, 1, [1] * 3)]
)
def test_synthetic_cluster_sizes(users, size, sizes):
    assert Population.synthetic(users=users, cluster_size=size).sizes.tolist() == sizes


@pytest.mark.parametrize(("positive", "share"), [(0, 0), (1, 1), (0.0, 0), (1.0, 1)])
def test_synthetic_with_one_label(positive, share):
    assert Population.synthetic(users=40, positive=positive).y.tolist() == [bool(share)] * 40


def test_sorted_by_cluster_is_the_same_users_in_another_order():
    population = people(x=X, public={"a": np.arange(12)}, secret={"b": np.arange(12) * 2})
    tidy, old = population.sorted_by_cluster()
    assert old.tolist() == sorted(range(12), key=lambda u: (CLUSTERS[u], u))
    assert tidy.clusters.order is None
    assert tidy.clusters.label.tolist() == sorted(CLUSTERS)
    assert members(tidy) == [
        [v for v in range(12) if CLUSTERS[old[v]] == CLUSTERS[old[u]]] for u in range(12)
    ]
    for one, other in (
        (tidy.y, population.y),
        (tidy.x, population.x),
        (tidy.public["a"], population.public["a"]),
    ):
        assert one.tolist() == other[old].tolist()
    assert tidy.secret["b"].tolist() == (old * 2).tolist()
    again, same = tidy.sorted_by_cluster()
    assert again is tidy
    assert same.tolist() == list(range(12))


def test_a_population_with_a_graph_is_not_sorted():
    with pytest.raises(ValueError, match="before it gets a graph"):
        people().with_graph([[0, 1]]).sorted_by_cluster()


def test_part_keeps_ids_and_the_clusters_of_the_whole():
    population = people(x=X, public={"a": np.arange(12)}, secret={"b": np.arange(12)})
    part = population.part(np.array([0, 2, 3, 8, 11]))
    assert part.ids.tolist() == [0, 2, 3, 8, 11]
    assert part.y.tolist() == [LABELS[u] for u in part.ids]
    assert part.x.tolist() == X[part.ids].tolist()
    assert part.secret["b"].tolist() == part.public["a"].tolist() == part.ids.tolist()
    assert part.clusters.label.tolist() == [4, 4, 0, 9, 9]
    whole = members(population)
    assert members(part) == [whole[u] for u in part.ids]
    assert part.clusters.size.tolist() == [len(whole[u]) for u in part.ids]
    smaller = part.part(np.array([1, 3]))
    assert smaller.ids.tolist() == [2, 8]
    assert smaller.clusters.label.tolist() == [4, 9]


def test_part_of_a_population_without_clusters_knows_everybody():
    part = Population.from_arrays(y=LABELS).part(np.array([3, 7]))
    assert part.clusters.size.tolist() == [12, 12]


def test_with_graph_joins_both_ways_without_loops_or_doubles():
    graph = people().with_graph(np.array([[3, 1], [1, 3], [5, 5], [0, 3], [3, 11]])).graph
    near = [graph.rows_of(u).tolist() for u in range(12)]
    assert near == [[3], [3], [], [0, 1, 11], [], [], [], [], [], [], [], [3]]
    assert people().with_graph(np.zeros((0, 2), np.int64)).graph.size.tolist() == [0] * 12


def test_part_keeps_the_neighbours_of_the_whole():
    population = people().with_graph([[0, 3], [3, 7], [1, 2]])
    part = population.part(np.array([0, 3]))
    assert part.graph.size.tolist() == [1, 2]
    assert [part.graph.rows_of(int(code)).tolist() for code in part.graph.codes] == [[3], [0, 7]]
    with pytest.raises(ValueError, match="keep the ids of the whole"):
        part.with_graph([[0, 1]])


def variants():
    """Populations that all differ from each other."""
    flipped = [not LABELS[0], *LABELS[1:]]
    yield "plain", people()
    yield "a label", Population.from_arrays(y=flipped, cluster=CLUSTERS)
    yield "no clusters", Population.from_arrays(y=LABELS)
    yield "a cluster", Population.from_arrays(y=LABELS, cluster=[0, *CLUSTERS[1:]])
    yield (
        "a cluster's number",
        Population.from_arrays(y=LABELS, cluster=[31 if c == 30 else c for c in CLUSTERS]),
    )
    yield "features", people(x=X)
    yield "a feature", people(x=np.where(X == 7, 7.5, X))
    yield "shape of features", people(x=X[:, :1])
    for part in ("public", "secret"):
        yield f"{part} column", people(**{part: {"a": np.arange(12)}})
        yield f"{part} column's name", people(**{part: {"b": np.arange(12)}})
        yield f"{part} column's value", people(**{part: {"a": np.arange(12)[::-1]}})
        yield f"{part} words", people(**{part: {"a": np.array(list("abcdefghijkl"))}})
    yield "graph", people().with_graph([[0, 1]])
    yield "an edge", people().with_graph([[0, 2]])
    yield "another edge", people().with_graph([[0, 1], [2, 3]])
    yield "a user less", Population.from_arrays(y=LABELS[:-1], cluster=CLUSTERS[:-1])
    yield "a part", people().part(np.arange(11))
    yield "another part", people().part(np.arange(1, 12))


def test_any_change_changes_the_hash():
    hashes = {}
    for name, population in variants():
        assert population.hash not in hashes, f"{name} hashes like {hashes[population.hash]}"
        hashes[population.hash] = name


def test_equal_populations_hash_alike_in_another_process():
    assert [p.hash for _, p in variants()] == [p.hash for _, p in variants()]
    code = "from tests.tiny import people; print(people().hash)"
    root = Path(__file__).parents[2]
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root
    )
    assert printed.stdout.strip() == people().hash


def test_the_hash_of_a_column_of_objects_is_that_of_its_values():
    names = [f"user {u}" for u in range(12)]
    hashes = set()
    keep = []  # so that no address is used again
    for _ in range(3):
        column = np.array(["".join(list(name)) for name in names], object)
        keep.append(column)
        try:
            hashes.add(people(public={"name": column}).hash)
        except ValueError:
            hashes.add("refused")
    assert len(hashes) == 1


def test_a_column_of_dates_has_a_hash():
    days = np.arange("2024-01-01", "2024-01-13", dtype="M8[D]")
    assert people(public={"day": days}).hash != people(public={"day": days + np.timedelta64(1, "D")}).hash


def test_the_hash_of_a_part_tells_its_graph() -> None:
    one, other = (
        Population.from_arrays(y=np.zeros(4, np.bool_)).with_graph(edges)
        for edges in ([(0, 1), (1, 2), (2, 3)], [(0, 1), (1, 3), (2, 3)])
    )
    rows = np.arange(1, 4)
    assert one.part(rows).hash != other.part(rows).hash


def test_a_part_of_a_complete_graph_is_one_of_a_complete_graph() -> None:
    clusters = Population.from_arrays(y=np.zeros(4, np.bool_), cluster=[0, 0, 1, 1]).clusters
    assert clusters is not None
    for graph in (clusters, adjacency.complete(4, clusters)):
        assert graph.complete
        assert graph.block(2, 4).complete
        assert graph.pick(np.array([3])).complete
    path = Population.from_arrays(y=np.zeros(3, np.bool_)).with_graph([(0, 1), (1, 2)]).graph
    assert path is not None
    assert not path.complete
    assert not path.block(1, 3).complete
    assert not path.pick(np.array([1])).complete
