"""Labels without senders are dealt to the users of their cluster."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import p2p_sim
from p2p_sim import Population
from p2p_sim.core import Message, Party, Protocol, Rounds
from p2p_sim.leakage.attack import attack
from p2p_sim.learning import experiment
from p2p_sim.learning.training import cluster_effects, label_assignment
from protocols import (
    DoubleResponse,
    DummyFeatures,
    EncryptedShuffle,
    LabelProportions,
    MultiStage,
    PeerToPeer,
    RandomizedResponse,
)

CLUSTER = np.array([7, 3, 7, 30, 3, 7])
PEOPLE = Population.from_arrays(y=CLUSTER == 3, cluster=CLUSTER)


def test_each_cluster_s_labels_go_to_its_users_in_the_order_of_arrival() -> None:
    found = label_assignment.assign(PEOPLE, np.array([3, 7, 30, 7, 3, 7]), np.array([10, 20, 30, 21, 11, 22]))
    assert found is not None
    assert dict(zip(found.users.tolist(), found.y.tolist(), strict=True)) == {
        0: 20, 1: 10, 2: 21, 3: 30, 4: 11, 5: 22,
    }  # fmt: skip


def test_too_few_and_too_many_labels() -> None:
    found = label_assignment.assign(PEOPLE, np.array([30, 30, 3]), np.array([1, 2, 3]))
    assert found is not None
    assert list(zip(found.users, found.y, strict=True)) == [(1, 3), (3, 1)]
    nothing = label_assignment.assign(PEOPLE, np.zeros(0, np.int64), np.zeros(0))
    assert nothing is not None
    assert len(nothing.users) == 0


@pytest.mark.parametrize("other", [-1, 0, 5, 31])
def test_labels_of_no_cluster_are_nobody_s(other: int) -> None:
    assert label_assignment.assign(PEOPLE, np.array([3, other]), np.array([1, 1])) is None


def test_without_clusters_all_are_one() -> None:
    found = label_assignment.assign(
        Population.from_arrays(y=[True, False]), np.array([0, 0]), np.array([1, 0])
    )
    assert found is not None
    assert found.users.tolist() == [0, 1]


def test_what_a_learner_returns() -> None:
    assert label_assignment.pairs({"y": np.ones(3)}, PEOPLE) is None
    assert label_assignment.pairs({"cluster": np.ones(3)}, PEOPLE) is None
    named = label_assignment.pairs(
        {"sender": np.array([4]), "cluster": np.array([9]), "y": np.array([1])}, PEOPLE
    )
    assert named is not None
    assert (named.users.tolist(), named.note) == ([4], "")


def test_shuffled_labels_are_learned_from_cluster_by_cluster() -> None:
    found = experiment.learn(EncryptedShuffle(4.0), "digits", clusters=25, seed=0)
    assert found.comparison is not None
    assert found.comparison.accuracy_private > found.comparison.baseline + 0.15
    assert found.comparison.note == f"{label_assignment.NOTE}; {cluster_effects.ASSUMED}"
    everybody = experiment.learn(EncryptedShuffle(4.0, over="everybody"), "digits", seed=0)
    assert everybody.comparison is None
    assert everybody.run.notes["released"]["untrained"] == label_assignment.NO_FEATURES
    assert everybody.run.notes["clusters"] is None
    peers = experiment.learn(PeerToPeer(0.1), "digits", clusters=25, seed=0)
    assert peers.comparison is not None
    assert peers.comparison.note == cluster_effects.ASSUMED
    assert p2p_sim.run(EncryptedShuffle(4.0), found.examples.population, seed=0).digest == found.run.digest


@dataclass(frozen=True)
class Forwarded(Protocol):
    """Labels reach the learner by way of a server; ``named``: with the users they are from."""

    named: bool

    hand = Message("user", "shuffler", "hands in her label", y=bool)
    forward = Message("shuffler", "learner", "passes it on", y=bool, who=np.int32)

    def user(self, me: Party) -> Rounds:
        yield self.hand(y=me.y)

    def shuffler(self, me: Party) -> Rounds:
        hands = yield self.hand.receive()
        yield self.forward(y=hands.y, who=hands.sender)

    def learner(self, me: Party) -> Rounds:
        labels = (yield self.forward.receive()).columns()
        return labels | {"sender": labels["who"]} if self.named else labels


def test_a_server_that_passes_labels_on_is_not_taken_for_a_user() -> None:
    found = experiment.learn(Forwarded(named=False), "digits", seed=0)
    assert not found.run.outputs["learner"]["sender"].any()
    assert found.comparison is None
    assert found.run.notes["released"]["untrained"] == label_assignment.NO_FEATURES
    named = experiment.learn(Forwarded(named=True), "digits", seed=0)
    assert named.comparison is not None
    assert named.comparison.accuracy_private == named.comparison.accuracy_true


def test_a_model_is_trained_on_released_features() -> None:
    """Where all features are replaced, by those of another label, what is learned is the wrong way round."""
    kept = experiment.simulate(DoubleResponse(0.1, "gaussian:2"), 3_000, features=2, seed=1)
    assert kept.notes["accuracy"]["accuracy_private"] > 0.9
    assert "features were released with the labels" in kept.notes["accuracy"]["note"]
    turned = experiment.simulate(
        DoubleResponse(0.0, "9,9|-9,-9", truth="9,9|-9,-9"), 3_000, features=2, seed=1
    )
    assert turned.notes["accuracy"]["accuracy_private"] < 0.1
    assert turned.notes["accuracy"]["accuracy_true"] > 0.9


@pytest.mark.parametrize(
    ("protocol", "why"),
    [
        (DoubleResponse(0.1, "0|1", truth="0|1"), label_assignment.OTHER_FEATURES),
        (DummyFeatures(0.1), label_assignment.NO_FEATURES),
    ],
)
def test_without_fitting_features_no_model_is_trained(protocol: Protocol, why: str) -> None:
    run = experiment.simulate(protocol, 200, features=2, seed=1)
    assert run.notes["accuracy"] is None
    assert run.notes["released"]["untrained"] == why


def test_labels_of_a_part_of_the_users_go_to_their_own_rows() -> None:
    whole = Population.synthetic(users=300, cluster_size=30, features=2, positive=0.3, seed=1)
    part = whole.part(np.arange(95, 300))
    columns = label_assignment.returned(p2p_sim.run(RandomizedResponse(30.0), part, seed=1))
    by_sender = label_assignment.pairs(columns, part)
    assert by_sender is not None
    assert by_sender.users.tolist() == list(range(205))
    assert np.array_equal(by_sender.y, part.y)
    assert part.clusters is not None
    by_cluster = label_assignment.assign(part, part.clusters.codes, np.arange(205))
    assert by_cluster is not None
    assert by_cluster.users.tolist() == by_cluster.y.tolist() == list(range(205))


@pytest.mark.parametrize(
    "protocol", [RandomizedResponse(1.0), EncryptedShuffle(4.0), LabelProportions(10), MultiStage(1.0)]
)
def test_a_part_of_the_users_can_be_attacked(protocol: Protocol) -> None:
    part = Population.synthetic(users=300, cluster_size=30, features=2, positive=0.3, seed=1).part(
        np.arange(95, 300)
    )
    found = attack(p2p_sim.run(protocol, part, seed=1), attackers=["simple-prediction"])
    assert [row.basis for row in found.rows[:1]] == ["measured"]


def test_what_a_part_hides_is_refused_and_not_guessed() -> None:
    part = Population.synthetic(users=300, cluster_size=30, features=2, positive=0.3, seed=1).part(
        np.arange(95, 300)
    )
    (row,) = attack(p2p_sim.run(LabelProportions(10), part, seed=1), attackers=["optimal"]).rows
    assert row.basis == "refused"
    assert "only a part of a population took part in the run" in row.why
