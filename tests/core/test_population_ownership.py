"""Whose memory a population's columns are: nobody can change them, and masked values are refused."""

from __future__ import annotations

import numpy as np
import pytest

from p2p_sim.core import InputError, Population

Y = [True, False, True]


def test_every_column_is_read_only():
    people = Population.from_arrays(
        y=Y, x=[[1.0], [2.0], [3.0]], public={"a": [1, 2, 3]}, secret={"s": np.arange(3)}
    )
    for column in (
        people.y,
        people.x,
        people.public["a"],
        people.secret["s"],
        Population.synthetic(users=3).y,
    ):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 0


@pytest.mark.parametrize("kind", ["owned", "view", "read-only view"])
def test_later_changes_do_not_reach_a_population(kind):
    whole = np.arange(6.0).reshape(3, 2)
    x = whole if kind == "owned" else whole[:]
    if kind == "read-only view":
        x.setflags(write=False)
    people = Population.from_arrays(y=Y, x=x, public={"a": x[:, 0]}, secret={"s": x[:, 1]})
    before = people.hash
    whole[:] = 9
    assert people.x.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert people.public["a"].tolist() == [0, 2, 4]
    assert people.secret["s"].tolist() == [1, 3, 5]
    assert Population.from_arrays(y=Y, x=people.x, public=people.public, secret=people.secret).hash == before


def test_an_array_that_nobody_can_write_to_is_not_copied():
    x = np.zeros((3, 2))
    x.setflags(write=False)
    assert np.shares_memory(Population.from_arrays(y=Y, x=x).x, x)
    assert np.shares_memory(Population.from_arrays(y=Y, x=x[:, :1], public={"a": x}).public["a"], x)


MASKED = np.ma.masked_array([1, 2, 3], mask=[False, True, False])


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("y", {"y": MASKED}),
        ("x", {"x": MASKED[:, None]}),
        ("cluster", {"cluster": MASKED}),
        ("public column 'a'", {"public": {"a": MASKED}}),
        ("secret column 's'", {"secret": {"s": MASKED}}),
    ],
)
def test_masked_values_are_refused(name, columns):
    with pytest.raises(InputError, match=f"^{name} is a masked array"):
        Population.from_arrays(**{"y": Y} | columns)


def test_masked_columns_of_tables_and_edges():
    with pytest.raises(InputError, match="column 'a' is a masked array"):
        Population.from_table({"y": Y, "a": MASKED})
    with pytest.raises(InputError, match="edges is a masked array"):
        Population.from_arrays(y=Y).with_graph(np.ma.masked_array([[0, 1]], mask=[[0, 1]]))


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        ({"y": [[1], [1, 2]]}, "y is no array with one row a user .*inhomogeneous"),
        ({"x": [[1], [1, 2], [1]]}, "x is no array with one row a user"),
        ({"x": 5}, "x has shape"),
        ({"cluster": [[1], [1, 2], [1]]}, "cluster is no array"),
        ({"public": 5}, "public = 5: give columns by name"),
        ({"public": {1: [1, 2, 3]}}, "public = .*give columns by name"),
        ({"secret": {"s": 5}}, "secret column 's' = 5: give one row a user"),
        ({"secret": {"s": [None, "a", 1]}}, "secret column 's' holds objects"),
    ],
)
def test_what_is_no_column(columns, text):
    with pytest.raises(InputError, match=text):
        Population.from_arrays(**{"y": Y} | columns)


@pytest.mark.parametrize("table", [None, 5, [1, 2]])
def test_what_is_no_table(table):
    with pytest.raises(InputError, match="give a mapping of columns"):
        Population.from_table(table)
