"""Attackers of one's own stand beside the shipped ones, see what they see, and are told what they do wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import p2p_sim
from p2p_sim import InputError, Population
from p2p_sim.core.errors import ProtocolError
from p2p_sim.leakage import attackers
from p2p_sim.leakage.advantage import violations
from p2p_sim.leakage.attack import attack
from p2p_sim.leakage.attack_results import LabelInference
from p2p_sim.leakage.attackers import Guesses, Knowledge
from p2p_sim.leakage.eta import Eta
from protocols import PeerToPeer, RandomizedResponse

USERS = 2000


@pytest.fixture(scope="module")
def run() -> p2p_sim.Run:
    people = Population.synthetic(users=USERS, positive=0.4, features=1, seed=3)
    return p2p_sim.run(RandomizedResponse(1.0), people, seed=5, trace="full")


def says_what_was_reported(knowledge: Knowledge) -> np.ndarray:
    reports = knowledge.view.messages["report"]
    guess = np.zeros(knowledge.people.users, np.int64)
    guess[reports["sender"]] = reports["y"]
    return guess


def rows(found: LabelInference) -> dict[str, tuple[float, float, float]]:
    return {row.name: row.utility for row in found.rows}


def test_one_of_ones_own_is_measured_as_the_shipped_ones_are(run):
    people = run.population
    found = attack(run, eta="prior", attackers=[says_what_was_reported, "optimal", "prior"])
    assert list(rows(found)) == ["prior", "optimal", "says_what_was_reported"]
    own = found.rows[-1]
    assert own.utility.value == (says_what_was_reported(knowledge_of(run)) == people.y).mean()
    assert own.source == "one's own"


def knowledge_of(run: p2p_sim.Run) -> Knowledge:
    seen: list[Knowledge] = []

    def keeps(knowledge: Knowledge) -> np.ndarray:
        seen.append(knowledge)
        return np.zeros(knowledge.people.users, int)

    attack(run, eta="prior", attackers=[keeps])
    return seen[0]


def test_it_sees_no_label_and_can_change_nothing(run):
    had = knowledge_of(run)
    assert not had.people.y.any()
    assert had.people.x is None  # --eta prior: an attacker without features
    for column in (had.people.y, had.eta, had.utility, *had.returned.values()):
        with pytest.raises(ValueError, match="read-only"):
            column[...] = 0


def test_one_that_knows_the_labels_is_held_against_the_same_bounds(run):
    def cheats(_knowledge: Knowledge) -> Guesses:
        return Guesses(run.population.y.astype(np.int64), None, "a leak")

    found = attack(run, eta="prior", attackers=["optimal", cheats])
    assert {each.row.name for each in violations(found)} == {"cheats"}
    assert found.rows[-1].source == "a leak"


def learns_a_product(knowledge: Knowledge) -> np.ndarray:
    """An honest attacker: which of two rules of three features fits what was reported best."""
    reports = knowledge.view.messages["report"]
    product = (knowledge.people.x.prod(axis=1) > 0).astype(np.int64)
    fits = (product[reports["sender"]] == reports["y"]).mean() > 0.5
    return product if fits else 1 - product


def test_one_who_learns_more_of_features_than_was_estimated_is_no_violation():
    """Labels are the sign of a product of three features, which no linear model has: the bounds are not of that."""
    x = np.random.default_rng(1).choice([-1.0, 1.0], (USERS, 3))
    truth = (x.prod(axis=1) > 0).astype(np.int64)
    honest = p2p_sim.run(RandomizedResponse(1.0), Population.from_arrays(y=truth, x=x), seed=5, trace="full")
    found = attack(honest, eta="model", attackers=[learns_a_product])
    (row,) = found.rows
    assert row.advantage.lower > min(bound.value for bound in found.bounds if bound.holds)
    assert violations(found) == []
    assert "no bound is held against it" in row.source
    known = attack(honest, eta=Eta(np.eye(2)[truth], "known", exact=True), attackers=[learns_a_product])
    assert known.rows[0].advantage.value == 0
    assert "no bound" not in known.rows[0].source


def test_what_a_view_lacks_is_a_refused_row(run):
    def needs(knowledge: Knowledge) -> np.ndarray:
        if knowledge.returned is None:
            raise InputError("needs: what the learner returned")
        return np.zeros(knowledge.people.users, int)

    (row,) = attack(run, "user", eta="prior", attackers=[needs]).rows
    assert (row.basis, row.why) == ("refused", "needs: what the learner returned")


def test_where_users_deviate_there_is_nothing_to_show_it():
    people = Population.synthetic(users=60, cluster_size=20, seed=3)
    made = p2p_sim.run(PeerToPeer(0.1), people, seed=5, digest=False)
    asked = ["prior", says_what_was_reported]
    shipped, own = attack(made, "user", users="deviating", eta="prior", attackers=asked).rows
    assert (shipped.basis, own.name, own.basis) == ("measured", "says_what_was_reported", "refused")
    assert "no run has users or servers who deviate" in own.why


def broken(_knowledge: Knowledge) -> np.ndarray:
    return np.array([1, 2, 3])[7]


def canaries(knowledge: Knowledge) -> np.ndarray:
    return np.zeros(knowledge.people.users, int)


@pytest.mark.parametrize(
    ("own", "error", "told"),
    [
        (broken, ProtocolError, r"attacker broken: it raises IndexError: .*test_attacker_names.py, line \d+\): mend"),
        (lambda k: np.zeros(3, int), ProtocolError, r"shape \(3,\) and type int64; needed: a label for each"),
        (lambda k: np.zeros(USERS), ProtocolError, "type float64"),
        (lambda k: np.full(USERS, 2), ProtocolError, "it guesses 2; needed: labels from 0 to 1"),
        (lambda k: np.full(USERS, -1), ProtocolError, "it guesses -1"),
        (lambda k: k.eta.__setitem__(0, 1.0), ProtocolError, "read-only"),
        ("best", InputError, r"attackers = \['best'\]: give a list of some of prior, .* or MODULE:FUNCTION"),
        ("nowhere:f", InputError, "attacker 'nowhere:f': No module named 'nowhere'; give MODULE:FUNCTION"),
        ("math:pi", InputError, "attacker 'math:pi' is 3.14.*; needed is a function"),
        (attackers.prior, InputError, "a shipped one is called so; give the function another name"),
        (canaries, InputError, "a shipped one is called so; give the function another name"),
        (7, InputError, "attacker 'int' is 7; needed is a function"),
    ],
)  # fmt: skip
def test_what_is_no_attacker_is_named(run, own, error, told):
    with pytest.raises(error, match=told):
        attack(run, eta="prior", attackers=[own])


def test_two_of_one_name_are_refused(run):
    one, other = (lambda k: np.zeros(USERS, int)), (lambda k: np.ones(USERS, int))
    with pytest.raises(InputError, match="two functions are called <lambda>"):
        attack(run, eta="prior", attackers=[one, other])


def test_they_decide_nothing_of_the_others(run):
    alone, beside = (
        attack(run, eta="knn", attackers=which)
        for which in (["optimal"], ["optimal", says_what_was_reported])
    )
    assert beside.rows[0] == alone.rows[0]
    assert replace(beside, rows=(), per_user=None).bounds == alone.bounds
