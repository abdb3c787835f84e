"""Synthetic users with several labels, and with features on which a model is trained."""

from __future__ import annotations

import numpy as np
import pytest

import p2p_sim
from p2p_sim import Population
from p2p_sim.learning import experiment
from protocols import EncryptedShuffle, RandomizedResponse

RESPONSE = ("run", "randomized-response", "--epsilon", "3", "--seed", "1")


def test_as_many_labels_as_the_protocol_handles(cli, tmp_path):
    words = (*RESPONSE, "--labels", "5", "--users", "3000")
    told = cli(*words, "--json", "--out", "five").json
    assert told["data"] == {"name": "synthetic", "source": "drawn by seed, labels 0 to 4 with equal shares"}
    assert told["accuracy"] is None
    people = p2p_sim.load(tmp_path / "five").population
    assert people.hash == Population.synthetic(users=3000, labels=5, seed=1).hash
    text = cli(*words).out
    assert "synthetic, drawn by seed, labels 0 to 4 with equal shares" in text
    assert "of them not 0" in text
    assert "of them not 0" in cli("report", "five", "--format", "md").out


def test_shares_of_labels(cli, tmp_path):
    words = (*RESPONSE, "--labels", "3", "--users", "2000", "--shares", "0.7, .2,1e-1")
    told = cli(*words, "--json", "--out", "three").json
    assert told["data"]["source"] == "drawn by seed, labels 0 to 2 with shares 0.7, 0.2, 0.1"
    people = p2p_sim.load(tmp_path / "three").population
    assert np.array_equal(
        people.y, Population.synthetic(users=2000, labels=3, shares=[0.7, 0.2, 0.1], seed=1).y
    )
    repeated = p2p_sim.load(tmp_path / "three").notes["command"]
    assert cli(*repeated[1:], "--json").json["digest"] == told["digest"]


def test_features_train_a_model(cli):
    words = (*RESPONSE, "--labels", "4", "--users", "4000", "--features", "6")
    told = cli(*words, "--json", "--out", "featured").json
    assert told["data"]["features"] == 6
    assert told["data"]["test_rows"] == told["accuracy"]["test_rows"] == 1000
    assert told["accuracy"]["of"] == 4000
    # three features a digit: Φ(√3)² = 91.8 %; 1,000 test rows are right within 4.9 deviations of 0.87 %
    assert told["accuracy"]["accuracy_true"] > 0.918 - 0.043
    assert told["accuracy"]["baseline"] < 0.25 + 0.068
    text = " ".join(cli(*words).out.split())
    assert "4,000, one row each; 1,000 further rows test the model (synthetic users of the same kind)" in text
    assert "trained on the 4,000 labels released" in text
    page = cli("report", "featured", "--format", "md").out
    assert "labels 0 to 3 with equal shares, 6 features" in page
    bare = cli(*words, "--model", "none", "--json").json
    assert bare["accuracy"] is None
    assert bare["digest"] == told["digest"]


def test_users_are_the_same_with_features_or_without(tmp_path):
    how = {"seed": 2, "trace": "full"}
    plain, featured = (experiment.simulate(RandomizedResponse(1.0), 100, features=d, **how) for d in (0, 3))
    assert plain.digest == featured.digest
    assert featured.population.x.shape == (100, 3)
    assert plain.notes["data"]["source"] == "drawn by seed, each positive with probability 0.5"
    blocks = experiment.simulate(RandomizedResponse(1.0), 100, features=3, blocks=7, **how)
    assert blocks.digest == featured.digest
    assert blocks.notes["accuracy"] == featured.notes["accuracy"]


def test_a_wrong_model_shows_before_the_run(monkeypatch):
    monkeypatch.setattr(experiment, "start", None)
    with pytest.raises(p2p_sim.InputError, match="'oracle'"):
        experiment.simulate(RandomizedResponse(1.0), 100, features=2, model="oracle")


@pytest.mark.parametrize(
    "protocol", [EncryptedShuffle(2.0, labels=4), EncryptedShuffle(2.0, labels=4, over="everybody")]
)
def test_several_labels_through_shuffles(protocol):
    run = experiment.simulate(protocol, 600, cluster_size=100, features=4, seed=3)
    assert set(np.unique(run.output("learner")["y"])) == set(range(4))
    assert (run.notes["accuracy"] is None) == (protocol.over == "everybody")


def test_accounts_of_several_labels_take_as_many(cli):
    table = cli(
        "account", "encrypted-shuffle", "--labels", "3", "--users", "200", "--cluster-size", "20", "--json"
    ).json
    plain = cli("account", "encrypted-shuffle", "--labels", "3", "--cluster-size", "20", "--json").json
    assert table["views"][0]["exact"]["epsilon"] == plain["views"][0]["exact"]["epsilon"]
