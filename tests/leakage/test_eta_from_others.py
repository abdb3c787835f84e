"""P(y | x) of one crowd by people who are not in it: no label is counted twice, and the row is no lower one."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest

import p2p_sim
from p2p_sim import InputError, Population
from p2p_sim.core.random_words import stream, uniform, words
from p2p_sim.leakage import eta as priors
from p2p_sim.leakage import neighbour_search
from p2p_sim.leakage.attack import attack
from p2p_sim.leakage.eta_from_others import from_others
from protocols import EncryptedShuffle, RandomizedResponse


def part(low: int, high: int) -> Population:
    people = Population.synthetic(users=1000, features=3, positive=0.3, seed=3)
    return Population.from_arrays(y=people.y[low:high], x=people.x[low:high])


@pytest.mark.parametrize("kind", ["knn", "model", "prior"])
def test_it_is_close_to_the_law_and_hears_of_no_label_of_the_users(kind):
    users, others = part(0, 600), part(600, 1000)
    found = from_others(kind, users, others, 2)
    turned = from_others(kind, Population.from_arrays(y=~users.y, x=users.x), others, 2)
    assert np.array_equal(found.rows, turned.rows)
    assert "400 people who are not in the run" in found.source
    assert (found.rows > 0).all()
    true = priors.synthetic(users.x, [0.7, 0.3], 600).rows
    assert found.alike == (kind == "prior")
    if kind != "prior":
        assert np.abs(found.rows - true).mean() < 0.12
        assert found.from_half.shape == (600, 2)
        assert not np.array_equal(found.from_half, found.rows)


def test_neighbours_are_the_nearest_of_the_others():
    users, others = part(0, 50), part(50, 450)
    table = np.vstack([users.x, others.x])
    scaled = (table - table.mean(axis=0)) / table.std(axis=0)
    far = ((scaled[:50, None] - scaled[None, 50:]) ** 2).sum(axis=2)
    near = np.argsort(far, axis=1)[:, :20]  # the square root of 400
    ones = (others.y[near].sum(axis=1) + others.y.mean()) / 21
    assert np.allclose(from_others("knn", users, others, 2).rows[:, 1], ones, atol=1e-12)


class Index:
    """What pynndescent offers, exactly; the package itself compiles for minutes."""

    def __init__(self, rows, n_neighbors, random_state):
        self.rows = rows

    def query(self, at, k):
        far = ((at[:, None] - self.rows[None]) ** 2).sum(axis=2)
        return np.argsort(far, axis=1)[:, :k], None


def test_of_many_others_in_many_columns_the_search_is_approximate(monkeypatch):
    users, others = part(0, 50), part(50, 450)
    exact = from_others("knn", users, others, 2)
    monkeypatch.setattr(neighbour_search, "_FEW_COLUMNS", 0)
    monkeypatch.setattr(neighbour_search, "APPROXIMATE_FROM", 100)
    monkeypatch.setitem(sys.modules, "pynndescent", SimpleNamespace(NNDescent=Index))
    found = from_others("knn", users, others, 2)
    assert "approximately" in found.source
    assert np.allclose(found.rows, exact.rows, atol=1e-6)


def test_too_few_others_tell_nothing():
    users = part(0, 50)
    assert from_others("knn", users, part(50, 69), 2) is None
    same = Population.from_arrays(y=np.zeros(50, bool), x=part(50, 100).x)
    assert from_others("model", users, same, 2) is None


@pytest.mark.parametrize("kind", ["knn", "model", "prior"])
def test_of_one_crowd_the_row_is_measured_where_others_are_known(kind):
    users, others = part(0, 600), part(600, 1000)
    run = p2p_sim.run(EncryptedShuffle(epsilon=3.0), users, seed=1, trace="full")
    within, beyond = (attack(run, eta=kind, attackers=["optimal"], held_out=each) for each in (None, others))
    assert (within.rows[0].basis, beyond.rows[0].basis) == ("lower", "measured")
    assert "not in the run" in beyond.eta_from
    local = p2p_sim.run(RandomizedResponse(1.0), users, seed=1, trace="full")
    assert "not in the run" not in attack(local, eta=kind, attackers=["optimal"], held_out=others).eta_from


def test_a_crowd_tells_more_where_its_labels_are_not_in_the_estimate():
    """Of 21 fair labels of which all but one are the same, a shuffle without noise names the majority.

    The class shares of the users themselves know it already, so that the messages seem to add nothing.
    """
    y = np.arange(21) > 3
    users = Population.from_arrays(y=y)
    others = Population.from_arrays(y=uniform(words(1, stream("test", "others", 0), 0, 4000)) < 0.5)
    run = p2p_sim.run(EncryptedShuffle(epsilon=np.inf), users, seed=1, trace="full")
    within, beyond = (
        attack(run, eta="prior", attackers=["optimal"], held_out=each) for each in (None, others)
    )
    assert within.per_user.posterior.max() == pytest.approx(within.per_user.prior.max(), abs=0.05)
    assert beyond.per_user.posterior.max() == pytest.approx(17 / 21, abs=1e-9)
    assert beyond.per_user.prior.max() < 0.53


def test_others_who_are_described_otherwise_are_named():
    users = part(0, 50)
    with pytest.raises(InputError, match="held_out: has 2 features, and the users of the run have 3"):
        from_others("knn", users, Population.from_arrays(y=users.y, x=users.x[:, :2]), 2)
    with pytest.raises(InputError, match="held_out: has label 4, and the protocol handles 0 to 1"):
        from_others("prior", users, Population.from_arrays(y=np.arange(50) % 5, x=users.x), 2)
