"""Users and servers who deviate: no run has any, so their attack is on what the law says that they read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import p2p_sim
from p2p_sim import InputError, Population, privacy
from p2p_sim.leakage.advantage import by_enumeration, violations
from p2p_sim.leakage.attack import attack
from p2p_sim.leakage.eta import synthetic
from p2p_sim.learning import experiment
from p2p_sim.privacy import registry
from p2p_sim.privacy.bounds import unified2023
from p2p_sim.privacy.registered import known
from protocols import NetworkShuffle, PeerPermutation, PeerToPeer, SecureAggregation

USERS = 4000


@pytest.fixture(scope="module")
def people() -> Population:
    return Population.synthetic(users=USERS, cluster_size=20, features=1, positive=0.3, seed=3)


def table(protocol, people, view="user", users="deviating", **how):
    run = p2p_sim.run(protocol, people, seed=5, digest=False)
    law = synthetic(people.x, [0.7, 0.3], people.users)
    return attack(run, view, users=users, **{"eta": law, **how})


def rows(found):
    return {row.name: row for row in found.rows}


@pytest.mark.parametrize("protocol", [PeerToPeer(0.1), PeerPermutation(0.1)])
def test_a_peer_who_deviates_reads_the_noisy_label(protocol, people):
    """Clustering 2022's flip by 0.1 is a randomized response: Unified 2023, Theorem 3.7, has its advantage."""
    found = table(protocol, people, confidence=1 - 1e-9)
    eta = synthetic(people.x, [0.7, 0.3], USERS).rows[1:, 1]  # of all but the peer
    formula = unified2023.rr_advantage(eta, float(np.log(9))).value
    assert rows(found)["optimal, by its law"].advantage.value == pytest.approx(formula, abs=1e-12)
    optimal = rows(found)["optimal"].advantage
    assert optimal.lower < formula < optimal.upper
    assert found.groups == USERS - 1  # each answer is her own
    assert violations(found) == []
    curious = rows(table(protocol, people, users="curious"))["optimal"].advantage
    assert curious.upper < optimal.lower
    assert "no model" in rows(found)["simple-prediction"].why


def test_several_labels(people):
    several = Population.synthetic(users=USERS, cluster_size=20, labels=3, seed=1)
    found = rows(table(PeerToPeer(0.2, labels=3), several, eta=np.full((USERS, 3), 1 / 3)))
    right = found["optimal"].utility
    assert right.lower < 0.8 < right.upper


@pytest.mark.parametrize("epsilon", [float("inf"), 1.0])
def test_a_server_who_deviates_opens_each_value(people, epsilon):
    """Of a value with a share of the noise, the law's total variation is delta at 0; where labels are even, that is
    twice the advantage."""
    protocol = SecureAggregation(bag_size=10, epsilon=epsilon)
    even = np.full((USERS, 2), 0.5)
    channel = known(protocol).opened(
        protocol, p2p_sim.coalition.Coalition.parse("aggregator", protocol.roles()), people
    )
    law = privacy.profile(protocol, "aggregator", population=people, users="all deviating")
    gained = by_enumeration(even[:1], channel).advantage[0]
    assert gained == pytest.approx(law.delta(0.0) / 2, abs=1e-9)
    found = table(protocol, people, "aggregator", "all deviating", confidence=1 - 1e-9)
    assert violations(found) == []
    assert rows(found)["optimal"].advantage.lower <= rows(found)["optimal, by its law"].advantage.value
    assert rows(found)["optimal, by its law"].advantage.value <= rows(found)["optimal"].advantage.upper


def test_a_server_whose_law_is_wrong_is_found(people):
    """A broken twin: her room says that she reads every label, and the law that she reads noise."""
    protocol = SecureAggregation(bag_size=10, epsilon=0.1)
    entry = known(protocol)
    registry.REGISTERED[SecureAggregation] = replace(entry, opened=lambda *_: np.eye(2))
    try:
        found = table(protocol, people, "aggregator", "all deviating")
    finally:
        registry.REGISTERED[SecureAggregation] = entry
    assert {violation.row.name for violation in violations(found)} == {"optimal", "optimal, by its law"}


def test_where_the_law_is_of_no_single_answer_the_attack_says_so(people):
    found = table(SecureAggregation(bag_size=10, epsilon=1.0), people, "aggregator+3*user")
    assert "not about one answer of each victim" in rows(found)["optimal"].why
    assert [bound.holds for bound in found.bounds if "Theorem 2" in bound.source]
    joined = experiment.simulate(NetworkShuffle(1.0, 3), 60, graph="complete", seed=1)
    assert (
        "not about one answer"
        in rows(attack(joined, "learner+user", users="deviating", eta="prior"))["optimal"].why
    )
    alone = attack(joined, "user", users="deviating", eta="prior")
    assert rows(alone)["optimal"].advantage == (0, 0, 0)  # every report is sealed for the learner
    run = p2p_sim.run(PeerToPeer(0.1), people, seed=5, digest=False, faults=["loss=0.1"])
    assert rows(attack(run, "user", users="deviating", eta="prior"))["optimal"].basis == "refused"
    with pytest.raises(InputError, match="users = 'wild': must be one of curious, deviating, all deviating"):
        attack(run, "user", users="wild")


def test_small_bags_are_not_opened(people):
    """Of fewer users than must stay nobody hands in anything."""
    tiny = Population.synthetic(users=3, seed=1)
    protocol = SecureAggregation(bag_size=4, threshold=4)
    who = p2p_sim.coalition.Coalition.parse("aggregator", protocol.roles())
    assert known(protocol).opened(protocol, who, people) is not None
    assert known(protocol).opened(protocol, who, tiny) is None


def test_an_eta_that_rules_out_what_is_read_is_named(people):
    sure = np.tile([1.0, 0.0], (USERS, 1))
    optimal = rows(table(SecureAggregation(bag_size=10), people, "aggregator", "all deviating", eta=sure))[
        "optimal"
    ]
    first = int(np.flatnonzero(people.y)[0])
    assert optimal.why.startswith(f"eta: rules out what the view reads of user {first};")
