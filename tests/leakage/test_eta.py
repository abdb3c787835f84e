"""P(y | x), known and estimated: never with the user's own label."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from p2p_sim import InputError, Population
from p2p_sim.leakage import eta as priors
from p2p_sim.leakage import neighbour_search


@pytest.fixture(scope="module")
def people() -> Population:
    return Population.synthetic(users=600, features=3, positive=0.3, cluster_size=20, seed=3)


def brute(x, y, labels, count):
    """Label shares of the nearest others, by all distances."""
    scaled = (x - x.mean(axis=0)) / x.std(axis=0)
    far = ((scaled[:, None] - scaled[None]) ** 2).sum(axis=2)
    np.fill_diagonal(far, np.inf)
    near = np.argsort(far, axis=1)[:, :count]
    counts = np.stack([(y[near] == label).sum(axis=1) for label in range(labels)], axis=1)
    return (counts + neighbour_search.shares_of(y, labels)) / (count + 1)


def test_neighbours_by_a_tree_and_by_loops_are_those_of_all_distances(people, monkeypatch):
    expected = brute(people.x, people.y.astype(int), 2, 15)
    assert np.allclose(priors.nearest(people.x, people.y, 2, 15).rows, expected, atol=1e-12)
    monkeypatch.setattr(neighbour_search, "_FEW_COLUMNS", 0)
    monkeypatch.setenv("P2P_SIM_NUMBA", "0")
    assert np.abs(priors.nearest(people.x, people.y, 2, 15).rows - expected).mean() < 1e-3  # in float32


class Index:
    """What pynndescent offers, exactly; the package itself compiles for minutes."""

    def __init__(self, rows, n_neighbors, random_state):
        assert n_neighbors <= 61
        far = ((rows[:, None] - rows[None]) ** 2).sum(axis=2)
        self.neighbor_graph = np.argsort(far, axis=1)[:, :n_neighbors], None


def test_neighbours_of_many_are_found_approximately(people, monkeypatch):
    monkeypatch.setattr(neighbour_search, "_FEW_COLUMNS", 0)
    monkeypatch.setattr(neighbour_search, "APPROXIMATE_FROM", 100)
    monkeypatch.setitem(sys.modules, "pynndescent", SimpleNamespace(NNDescent=Index))
    found = priors.nearest(people.x, people.y, 2, 15)
    assert "approximately" in found.source
    assert np.abs(found.rows - brute(people.x, people.y.astype(int), 2, 15)).mean() < 1e-3
    assert priors.nearest(people.x, people.y, 2, 500).source.startswith("60 nearest")
    monkeypatch.setitem(sys.modules, "pynndescent", None)
    monkeypatch.setenv("P2P_SIM_NUMBA", "0")
    assert "exactly (with the extra leakage" in priors.nearest(people.x, people.y, 2, 15).source


@pytest.mark.parametrize("kind", ["knn", "model"])
def test_labels_that_are_pure_noise_are_not_remembered(kind):
    """Whoever is judged by her own label is guessed right more often than half the time."""
    noise = Population.synthetic(users=2000, features=2, seed=1)
    y = Population.synthetic(users=2000, seed=77).y
    found = priors.of_population(kind, Population.from_arrays(y=y, x=noise.x), 2)
    assert abs(float((found.rows.argmax(axis=1) == y).mean()) - 0.5) < 6.1 * 0.5 / 2000**0.5
    assert found.from_half is not None
    assert found.from_half.shape == (2000, 2)


@pytest.mark.parametrize("columns", [8, 0])
@pytest.mark.parametrize("size", [2, 40, 300])
def test_no_estimate_hears_of_the_own_group(people, monkeypatch, columns, size):
    """Whatever labels a group has, what is estimated of its users is the same, but for where folds are cut."""
    monkeypatch.setattr(neighbour_search, "_FEW_COLUMNS", columns)
    groups = np.arange(600) // size
    other = np.where(groups == 0, ~people.y, people.y)
    for estimate in (
        lambda y: priors.nearest(people.x, y, 2, 15, groups=groups),
        lambda y: priors.from_shares(y, 2, groups),
        lambda y: priors.from_cluster_shares(y, 2, np.arange(600) // 300, groups=groups),
    ):
        one, two = estimate(people.y), estimate(other)
        assert np.array_equal(one.rows[groups == 0], two.rows[groups == 0])
        assert not np.array_equal(one.rows, two.rows)
    assert priors.modelled(people.x, people.y, 2, groups=groups).rows.shape == (600, 2)


def test_cluster_shares_leave_the_user_out():
    """In clusters of two, of pure noise, a share with the own label would guess it three times in four."""
    y = Population.synthetic(users=4000, seed=8).y
    found = priors.from_cluster_shares(y, 2, np.arange(4000) // 2)
    assert abs(float((found.rows.argmax(axis=1) == y).mean()) - 0.5) < 6.1 * 0.5 / 4000**0.5
    different = priors.from_cluster_shares(np.arange(4000) < 2000, 2, np.arange(4000) // 1000)
    assert (different.rows[:2000, 1] > 0.95).all()
    assert (different.rows[2000:, 1] < 0.05).all()


def test_the_model_is_close_to_the_law():
    people = Population.synthetic(users=4000, features=1, positive=0.3, seed=3)
    true = priors.synthetic(people.x, [0.7, 0.3], 4000)
    for kind in ("knn", "model"):
        found = priors.of_population(kind, people, 2)
        assert np.abs(found.rows - true.rows).mean() < 0.04
        assert np.abs(found.from_half - true.rows).mean() < 0.05
        assert (found.rows > 0).all()
    assert true.rows[:, 1].mean() == pytest.approx(people.y.mean(), abs=0.02)


def test_users_without_features_have_shares(people):
    bare = Population.from_arrays(y=people.y)
    found = priors.of_population("knn", bare, 3)
    assert np.allclose(found.rows, [1 - people.y.mean(), people.y.mean(), 0.0])
    assert "as there are none" in found.source
    assert "clusters" in priors.of_population("prior", people, 2).source


def test_what_is_known_of_some_users_is_certain(people):
    found = priors.from_shares(people.y, 2).knowing(np.array([3, 5]), people.y[[3, 5]])
    assert found.rows[[3, 5]].max(axis=1).tolist() == [1.0, 1.0]
    assert (found.rows[[3, 5]].argmax(axis=1) == people.y[[3, 5]]).all()
    assert found.rows[4].max() < 1


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda x, y: priors.nearest(x, y, 2, 600), "neighbours = 600"),
        (lambda x, y: priors.nearest(x, y, 2, 0), "neighbours = 0"),
        (lambda x, y: priors.nearest(x[:3], y[:3], 2), "3 users"),
        (lambda x, y: priors.nearest(x, y[:3], 2), "y (3,)"),
        (lambda x, y: priors.modelled(x, y & False, 2), "all 600 users have one label"),
        (lambda x, y: priors.modelled(x, np.arange(600) < 3, 2), "rarest label has 3 users"),
        (lambda x, y: priors.modelled(x, y, 2, "PCA"), "PCA"),
        (lambda x, y: priors.checked([[0.5, 0.5], [1.2, -0.2]]), "row 1"),
        (lambda x, y: priors.checked([[0.5, 0.4]]), "sums to 0.9"),
        (lambda x, y: priors.checked([0.5, 0.5]), "shape (2,)"),
        (lambda x, y: priors.checked([["a", "b"]]), "eta of type list"),
        (lambda x, y: priors.synthetic(x, [0.5, 0.6], 600), "sum to 1.1"),
    ],
)  # fmt: skip
def test_bad_input_is_named(people, call, told):
    with pytest.raises(InputError) as error:
        call(people.x, people.y)
    assert told in str(error.value)


def test_the_label_of_a_single_user_is_not_in_her_own_estimate():
    one = Population.from_arrays(y=np.array([True]))
    assert priors.of_population("prior", one, 2).rows.tolist() == [[0.5, 0.5]]
    shares = priors.from_cluster_shares(one.y, 2, np.zeros(1, np.int64))
    assert shares.rows.tolist() == [[0.5, 0.5]]
