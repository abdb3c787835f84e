"""Bad input to a population: each is refused by an InputError that names the column, the value and the fix."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from p2p_sim.core import InputError, Population
from p2p_sim.core.population import check_seed

Y = [True, False, True]


def refused(text, make, *args, **how):
    with pytest.raises(InputError, match=text):
        make(*args, **how)


@pytest.mark.parametrize(
    ("y", "text"),
    [
        ([], r"y has shape \(0,\).*at least one user"),
        ([[0, 1]], r"y has shape \(1, 2\)"),
        (1, r"y has shape \(\)"),
        ([0.0, 1.0], "y has type float64: labels are bool, or integers"),
        ([0, float("nan")], "y has type float64"),
        (["a", "b"], "y has type <U1"),
        (np.array([True, None]), "y has type object"),
        ([-1, 0], "y holds values from -1 to 0: labels are 0 to k - 1"),
        ([0, 256], "y holds values from 0 to 256"),
    ],
)
def test_labels(y, text):
    refused(text, Population.from_arrays, y=y)


@pytest.mark.parametrize(
    ("cluster", "text"),
    [
        ([0, -2, 1], "cluster of user 1 is -2"),
        ([0, 1, np.nan], "cluster of user 2 is missing"),
        ([np.inf, 0, 1], "cluster of user 0 is missing"),
        ([0, 1, 0.5], "cluster holds fractions"),
        (["a", "b", "a"], "cluster has type <U1"),
        (np.array([0, None, 1]), "cluster has type object"),
        ([[0], [1], [2]], r"cluster has shape \(3, 1\)"),
        ([0, 1], "cluster has 2 rows, y has 3"),
        ([], "cluster has 0 rows, y has 3"),
    ],
)
def test_clusters(cluster, text):
    refused(text, Population.from_arrays, y=Y, cluster=cluster)


@pytest.mark.parametrize(
    ("how", "text"),
    [
        ({"x": np.zeros((2, 2))}, "x has 2 rows, y has 3"),
        ({"x": [[1.0], [np.nan], [2.0]]}, "x of user 1 is not finite"),
        ({"x": [[1.0], [2.0], [-np.inf]]}, "x of user 2 is not finite"),
        ({"x": [["a"], ["b"], ["c"]]}, "x has type <U1: features are numbers"),
        ({"public": {"town": [1, 2]}}, "public column 'town' has 2 rows, y has 3"),
        ({"secret": {"age": [1, 2, 3, 4]}}, "secret column 'age' has 4 rows, y has 3"),
    ],
)
def test_columns(how, text):
    refused(text, Population.from_arrays, y=Y, **how)


def test_features_have_two_dimensions():
    refused(r"x has shape \(3,\)", Population.from_arrays, y=Y, x=[1.0, 2.0, 3.0])


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pa.table], ids=("mapping", "pandas", "arrow"))
def test_tables(make):
    table = make({"y": Y, "f": [1, 2, 3], "name": ["a", "b", "c"]})
    refused(
        r"no column 'label'; the table has \['y', 'f', 'name'\]", Population.from_table, table, label="label"
    )
    refused("no column 'town'", Population.from_table, table, cluster="town")
    refused("column 'name' has type .*encode it first", Population.from_table, table)
    holes = make({"y": Y, "f": [1.0, np.nan, 3.0]})
    refused("x of user 1 is not finite", Population.from_table, holes)


def test_a_table_with_columns_of_different_lengths():
    refused("'f'|'g'", Population.from_table, {"y": [0, 1], "f": [1, 2, 3], "g": [1, 2]})


def test_files(tmp_path):
    refused("no file .*nowhere.csv", Population.from_file, tmp_path / "nowhere.csv")
    refused("no file", Population.from_file, tmp_path)
    other = tmp_path / "people.xlsx"
    other.write_bytes(b"")
    refused(r"people.xlsx.*only \.csv and \.parquet", Population.from_file, other)
    parquet.write_table(pa.table({"y": Y, "a": ["p", "q", "r"]}), tmp_path / "words.parquet")
    refused("column 'a' has type", Population.from_file, tmp_path / "words.parquet")
    nulls = tmp_path / "nulls.csv"
    nulls.write_text("y,c\n1,0\n0,\n1,2\n")
    refused("cluster of user 1 is missing", Population.from_file, nulls, cluster="c")
    refused("y has type float64", Population.from_file, nulls, label="c")


@pytest.mark.parametrize(
    ("name", "content"), [("a.csv", ""), ("a.csv", "y,b\n1\n1,2,3\n"), ("a.parquet", "junk")]
)
def test_a_file_that_cannot_be_read_is_named(tmp_path, name, content):
    path = tmp_path / name
    path.write_text(content)
    refused(name, Population.from_file, path)


@pytest.mark.parametrize("users", [0, -1, 2**31, 2.0, True, "10", None])
def test_synthetic_users(users):
    refused("users = .*1 to 2,147,483,647", Population.synthetic, users=users)


@pytest.mark.parametrize("size", [0, -3, True, 2.5, "4", 2**31])
def test_synthetic_cluster_size(size):
    refused("cluster_size = ", Population.synthetic, users=10, cluster_size=size)


@pytest.mark.parametrize("positive", [-0.1, 1.5, float("nan"), True, "0.5"])
def test_synthetic_positive(positive):
    refused("positive = ", Population.synthetic, users=10, positive=positive)


@pytest.mark.parametrize("seed", [-1, 2**64, 1.0, True, "7", None])
def test_seeds(seed):
    refused(r"seed = .*0 to 2\^64 - 1", check_seed, seed)
    refused(r"seed = ", Population.synthetic, users=3, seed=seed)


def test_seeds_that_are_fine():
    assert [check_seed(seed) for seed in (0, 2**64 - 1, np.uint64(2**63), np.int32(5))] == [
        0,
        2**64 - 1,
        2**63,
        5,
    ]


@pytest.mark.parametrize(
    ("edges", "text"),
    [
        ([[0, 3]], "edges name users from 0 to 3: users are 0 to 2"),
        ([[-1, 0]], "edges name users from -1 to 0"),
        ([[0.0, 1.0]], "type float64: needed are integers"),
        ([0, 1], r"edges of shape \(2,\)"),
        ([[0, 1, 2]], r"edges of shape \(1, 3\)"),
    ],
)
def test_edges(edges, text):
    refused(text, Population.from_arrays(y=Y).with_graph, edges)


@pytest.mark.parametrize("name", ["y", "clusters", "graph"])
def test_what_the_constructor_cannot_take_is_named_with_what_can(name):
    """Clusters as an array were taken, and the run ended in an AttributeError."""
    columns = {"y": np.array([True, False])} | {name: [0, 1]}
    with pytest.raises(InputError, match=rf"{name} of a Population is a list, .*Population\.from_arrays"):
        Population(**columns)
