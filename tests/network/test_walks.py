"""Walks against brute force: powers of the matrix, all eigenvalues, the bound of the sum of squares, mixing."""

import networkx as nx
import numpy as np
import pytest

from p2p_sim.core import groups
from p2p_sim.core.errors import InputError
from p2p_sim.network import walks
from p2p_sim.network.adjacency import induced
from p2p_sim.network.topologies import build

WORDS = ["regular:4", "small-world:4,0.3", "scale-free:2", "grid", "ring:2", "ring:4", "complete"]


def transition(graph):
    users = len(graph.codes)
    p = np.zeros((users, users))
    for user, code in enumerate(graph.codes.tolist()):
        p[user, graph.rows_of(code)] = 1
    return p / p.sum(1, keepdims=True)


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("users", [9, 30])
def test_the_law_of_a_walk_is_a_row_of_the_power(word, users):
    graph = build(word, users, 3)
    p = transition(graph)
    for steps in (0, 1, 2, 7):
        for start in (0, users - 1):
            law = walks.distribution(graph, start, steps)
            np.testing.assert_allclose(law, np.linalg.matrix_power(p, steps)[start], atol=1e-14)
            assert walks.collision(law) == pytest.approx(float((law**2).sum()))
    shares = walks.stationary(graph)
    np.testing.assert_allclose(shares @ p, shares, atol=1e-15)
    assert shares.sum() == pytest.approx(1)


@pytest.mark.parametrize("word", WORDS)
def test_stepping_is_a_power_and_its_transpose(word):
    graph = build(word, 9, 3)
    for steps in (0, 1, 3):
        power = np.linalg.matrix_power(transition(graph), steps)
        ahead, back = walks.stepping(graph, steps)
        for column in (np.arange(9.0), np.arange(18.0).reshape(9, 2) ** 2):
            np.testing.assert_allclose(ahead(column), power.T @ column, rtol=1e-13)
            np.testing.assert_allclose(back(column), power @ column, rtol=1e-13)


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("users", [9, 30])
def test_gap_bound_and_mixing_against_all_eigenvalues(word, users):
    graph = build(word, users, 3)
    p = transition(graph)
    values = np.sort(np.abs(np.linalg.eigvals(p)))
    gap, shares = walks.spectral_gap(graph), walks.stationary(graph)
    assert gap == pytest.approx(1 - values[-2], abs=1e-7)
    if nx.is_bipartite(nx.from_numpy_array(p > 0)):
        assert gap == 0
        with pytest.raises(InputError, match="never mixes"):
            walks.mixing_steps(shares, gap, 0.25)
        return
    for steps in range(1, 12):
        worst = max(walks.collision(walks.distribution(graph, user, steps)) for user in range(users))
        assert worst <= walks.collision_bound(shares, gap, steps) * (1 + 1e-12)
    for distance in (0.25, 1e-3):
        steps = walks.mixing_steps(shares, gap, distance)
        power = np.linalg.matrix_power(p, steps)
        assert np.abs(power - shares).sum(1).max() / 2 <= distance + 1e-12


def test_the_bound_is_tight_where_it_can_be():
    """On a complete graph without loops every eigenvalue but one is -1/(n - 1): the bound is met."""
    graph = build("ring:4", 5, 0)
    gap, shares = walks.spectral_gap(graph), walks.stationary(graph)
    for steps in (1, 2, 3):
        law = walks.distribution(graph, 0, steps)
        assert walks.collision_bound(shares, gap, steps) == pytest.approx(walks.collision(law))


@pytest.mark.parametrize("word", ["regular:6", "small-world:8,0.5", "scale-free:3", "ring:80"])
def test_the_sparse_solver_agrees_with_the_dense_one(word, monkeypatch):
    graph = build(word, 900, 3)
    dense = walks.spectral_gap(graph)
    monkeypatch.setattr(walks, "DENSE", 10)
    sparse = walks.spectral_gap(graph)
    assert dense - 3e-6 <= sparse <= dense + 1e-9
    assert sparse == walks.spectral_gap(graph), "a fixed start, so the same again"


def test_a_large_regular_graph_has_nearly_the_gap_of_its_tree():
    """Friedman: the second eigenvalue of a random d-regular graph is near 2 sqrt(d - 1) / d."""
    graph = build("regular:20", 20_000, 1)
    assert walks.spectral_gap(graph) == pytest.approx(1 - 2 * np.sqrt(19) / 20, abs=0.01)


@pytest.mark.parametrize("word", ["regular:6", "small-world:8,0.5", "scale-free:3", "ring:80", "grid"])
def test_power_iteration_never_says_that_a_gap_is_below_one_that_it_has(word):
    graph = build(word, 900, 3)
    gap = walks.spectral_gap(graph)
    assert not walks.gap_is_below(graph, gap)
    assert walks.gap_is_below(graph, gap + 0.2)


def test_a_gap_that_is_not_found_is_refused(monkeypatch):
    monkeypatch.setattr(walks, "_RESTARTS", 2)
    with pytest.raises(InputError, match="mixes too slowly"):
        walks.spectral_gap(build("ring:4", 5001, 0))


def test_without_a_connection_or_an_odd_cycle_the_gap_is_exactly_0():
    clusters = groups.clusters(np.arange(40) // 20)
    for word in ("complete", "regular:4"):
        graph = build(word, 40, 0, clusters=clusters)
        assert walks.spectral_gap(graph) == 0
        assert walks.spectral_gap(induced(graph, clusters.rows_of(1))) > 0
    assert walks.spectral_gap(build("grid", 2500, 0)) == 0


def test_complete_mixes_in_one_step():
    graph = build("complete", 50, 0)
    assert walks.spectral_gap(graph) == 1
    assert walks.mixing_steps(walks.stationary(graph), 1.0, 1e-9) == 1
    np.testing.assert_allclose(walks.distribution(graph, 3, 1), 1 / 50)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda g: walks.distribution(g, 9, 1), "start = 9"),
        (lambda g: walks.distribution(g, 0, -1), "steps = -1"),
        (lambda g: walks.mixing_steps(walks.stationary(g), 1.5, 0.1), "gap = 1.5"),
        (lambda g: walks.mixing_steps(walks.stationary(g), 0.5, 0.0), "distance = 0"),
    ],
)
def test_refusals(call, text):
    with pytest.raises(InputError, match=text):
        call(build("ring:2", 9, 0))
