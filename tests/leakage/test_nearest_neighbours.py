"""Label shares of nearest neighbours: scikit-learn's neighbours, ties by enumeration, and the same from both ways."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.neighbors import NearestNeighbors

from p2p_sim.core.errors import InputError
from p2p_sim.leakage import nearest_neighbours
from p2p_sim.leakage.nearest_neighbours import label_shares, scaled

Table = npt.NDArray[np.float32]


WAYS = ("loops", "differences", "products")


@pytest.fixture(params=WAYS)
def way(request: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """Take one of the ways, whatever the number of rows."""
    take(request.param, monkeypatch)
    return str(request.param)


def take(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("P2P_SIM_NUMBA", "1" if way == "loops" else "0")
    monkeypatch.setattr(nearest_neighbours, "SMALL", 0 if way == "products" else 10**9)


def people(n: int, seed: int, numbers: int = 2) -> tuple[Table, npt.NDArray[np.int64]]:
    """Return a table with three categories, a flag and some numbers, and three labels."""
    rng = np.random.default_rng(seed)
    parts: list[Any] = [np.eye(c)[rng.integers(0, c, n)] for c in (3, 7, 40)]
    parts += [rng.integers(0, 2, (n, 1)), rng.normal(size=(n, numbers))]
    return np.hstack(parts).astype(np.float32), rng.integers(0, 3, n)


@pytest.mark.parametrize("exclude", [True, False])
@pytest.mark.parametrize("k", [1, 7, 400])
def test_neighbours_are_those_of_scikit_learn(k: int, exclude: bool, way: str) -> None:
    x, y = people(900, k)
    model = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(x)
    found = model.kneighbors(None if exclude else x, return_distance=False)
    expected = np.eye(3)[y][found].mean(axis=1)
    assert label_shares(x, y, k, exclude_self=exclude) == pytest.approx(expected, abs=1e-12)


def test_no_neighbour_is_of_the_own_group(way: str) -> None:
    x, y = people(600, 4)
    groups = np.random.default_rng(3).integers(0, 12, 600)
    far = ((x[:, None].astype(np.float64) - x[None]) ** 2).sum(axis=2)
    far[groups[:, None] == groups] = np.inf
    expected = np.eye(3)[y][np.argsort(far, axis=1, kind="stable")[:, :30]].mean(axis=1)
    assert label_shares(x, y, 30, groups=groups) == pytest.approx(expected, abs=1e-12)
    with pytest.raises(InputError, match="without its group"):
        label_shares(x, y, 590, groups=groups)
    assert (label_shares(x, y, 1, groups=y, labels=3)[np.arange(600), y] == 0).all()


def test_ties_share_what_is_left(way: str) -> None:
    """Four at distance 1 compete for the two places that the nearest leaves: each gets half a place."""
    x = np.array([[0.0], [0.1], [1.0], [1.0], [-1.0], [-1.0], [9.0]], np.float32)
    y = np.array([0, 1, 1, 0, 0, 0, 1])
    assert label_shares(x, y, 3)[0] == pytest.approx([(3 * 0.5) / 3, (1 + 0.5) / 3], abs=1e-12)


def test_neighbours_of_one_label_have_a_share_of_exactly_1(way: str) -> None:
    x, _ = people(400, 9, numbers=0)
    for k in (3, 7, 49, 93):
        shares = label_shares(x, np.ones(400, int), k, labels=2)
        assert (shares[:, 1] == 1).all()
        assert (shares[:, 0] == 0).all()
    same = label_shares(np.zeros((50, 1)), np.ones(50, int), 1)  # 49 (1/49) is not 1
    assert (same[:, 1] == 1).all()


@pytest.mark.parametrize("seed", range(3))
def test_all_ways_agree_where_categories_tie(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = people(700, seed, numbers=0)
    found = []
    for each in WAYS:
        take(each, monkeypatch)
        found.append(label_shares(x, y, 25, labels=5))
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])
    assert found[0].shape == (700, 5)
    assert found[0].sum(axis=1) == pytest.approx(1.0, abs=1e-12)


def test_a_sample_that_misleads_costs_time_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """The guess of the k-th distance is far too small where the sample is near and the rest is not."""
    take("loops", monkeypatch)
    monkeypatch.setattr(nearest_neighbours, "_SAMPLE", 8)
    x = np.random.default_rng(0).normal(size=(800, 1)).astype(np.float32)
    x[::100] = x[::100] * 1e-3
    y = np.arange(800) % 2
    expected = np.eye(2)[y][NearestNeighbors(n_neighbors=90).fit(x).kneighbors(return_distance=False)].mean(
        axis=1
    )
    assert label_shares(x, y, 90) == pytest.approx(expected, abs=1e-12)


def test_the_order_of_rows_decides_nothing(way: str) -> None:
    x, y = people(500, 5, numbers=0)
    order = np.random.default_rng(1).permutation(500)
    assert np.array_equal(label_shares(x[order], y[order], 40), label_shares(x, y, 40)[order])


def test_scaled_lets_columns_count_alike() -> None:
    x = np.column_stack([[0, 1, 1, 0], [1e300, 2e300, 3e300, 4e300], [7, 7, 7, 7]])
    found = scaled(x)
    assert np.array_equal(found[:, 0], [0, 1, 1, 0])
    assert float(found[:, 1].std()) == pytest.approx(1, abs=1e-6)
    assert not found[:, 2].any()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"k": 5}, "k = 5: must be a whole number from 1 to 4"),
        ({"k": 0}, "k = 0"),
        ({"k": True}, "k = True"),
        ({"k": 1.5}, "k = 1.5"),
        ({"y": [0, 1, 0, 1]}, "y of shape"),
        ({"y": [0.5, 1, 0, 1, 1]}, "y of shape"),
        ({"y": [0, 1, 2, 1, 1], "labels": 2}, "labels from 0 to 2"),
        ({"y": [0, -1, 1, 1, 1]}, "labels from -1"),
        ({"x": [[0.0], [1.0], [np.nan], [1.0], [2.0]]}, "NaN"),
        ({"x": [0.0, 1.0, 2.0, 3.0, 4.0]}, "x of shape"),
        ({"x": [[0.0], [1.0], [1e16], [1.0], [2.0]]}, "x holds a number of size 1e\\+16"),
        ({"labels": True}, "labels = True"),
        ({"labels": 70_000}, "at most 65,535"),
    ],
)
def test_bad_input_is_named(change: dict[str, Any], told: str) -> None:
    given: dict[str, Any] = {"x": [[0.0], [1.0], [2.0], [3.0], [4.0]], "y": [0, 1, 0, 1, 1], "k": 2} | change
    with pytest.raises(InputError, match=told):
        label_shares(given["x"], given["y"], given["k"], labels=given.get("labels"))
