"""``--graph`` of account, calibrate and audit."""

from __future__ import annotations

import pytest

from p2p_sim import Population, privacy
from p2p_sim.network import topologies
from protocols import NetworkShuffle, PeerToPeer

pytestmark = pytest.mark.slow


def rows(told):
    return {row["name"]: row for row in told["views"] if row["users"] == "curious"}


def test_account_walks(cli):
    words = ("account", "network-shuffle", "--epsilon", "2", "--steps", "10", "--users", "80")
    told = cli(*words, "--graph", "regular:8", "--seed", "3", "--json").json
    people = topologies.join(Population.synthetic(users=80), "regular:8", 3)
    found = privacy.profile(NetworkShuffle(2.0, 10), population=people)
    assert rows(told)["learner"]["exact"]["epsilon"] == found.epsilon(1e-6) < 2
    assert rows(told)["learner"]["exact"]["basis"] == "upper"
    assert rows(told)["wire"]["exact"]["epsilon"] == 0
    assert told["graph"]["source"] == "regular:8"
    assert told["local_epsilon"] == 2
    text = cli(*words, "--graph", "regular:8", "--seed", "3").out
    assert "channels; 80 users; graph regular:8 over everybody; neighbours: 8 each" in text


def test_clusters_do_not_matter_to_walks(cli):
    words = (
        "account",
        "network-shuffle",
        "--users",
        "60",
        "--graph",
        "regular:8",
        "--view",
        "learner",
        "--json",
    )
    apart, whole = (cli(*words, *more).json for more in (("--cluster-size", "20"), ()))
    assert rows(apart)["learner"]["exact"] == rows(whole)["learner"]["exact"]


def test_account_neighbours(cli, tmp_path):
    words = ("account", "peer-to-peer", "--over", "neighbours", "--users", "40", "--cluster-size", "20")
    told = cli(*words, "--graph", "regular:4", "--plot", "a.svg", "--delta", "0.01", "--json").json
    assert rows(told)["user"]["exact"]["source"].endswith("with probability 0.25, or not at all")
    assert told["graph"]["over"] == "cluster"
    assert not any(theorem["name"] == "Theorem 3" for theorem in rows(told)["learner"]["theorems"])
    assert (tmp_path / "a.svg").read_bytes().startswith(b"<?xml")


def test_account_one_cluster_and_data(cli):
    one = cli(
        "account",
        "peer-to-peer",
        "--over",
        "neighbours",
        "--cluster-size",
        "30",
        "--graph",
        "complete",
        "--json",
    )
    plain = cli("account", "peer-to-peer", "--cluster-size", "30", "--json")
    assert rows(one.json)["learner"]["exact"] == rows(plain.json)["learner"]["exact"]
    data = cli(
        "account", "peer-to-peer", "--over", "neighbours", "--data", "breast-cancer", "--clusters", "3",
        "--graph", "regular:6", "--view", "user", "--json",
    )  # fmt: skip
    assert rows(data.json)["user"]["exact"]["basis"] == "exact"


def test_calibrate_on_a_graph(cli):
    told = cli(
        "calibrate", "network-shuffle", "--vary", "epsilon", "--steps", "12", "--cluster-size", "60", "--epsilon", "1",
        "--graph", "regular:8", "--json",
    ).json  # fmt: skip
    assert told["value"] > 1
    assert told["views"]["learner+user"]["basis"] == "upper"
    near = cli(
        "calibrate", "peer-to-peer", "--over", "neighbours", "--view", "user", "--cluster-size", "20", "--epsilon", "1",
        "--delta", "0.01", "--graph", "regular:4", "--json",
    ).json  # fmt: skip
    people = topologies.join(Population.synthetic(users=20), "regular:4", 0)
    again = privacy.profile(PeerToPeer(near["value"], over="neighbours"), "user", population=people)
    assert again.epsilon(0.01) <= 1 + 1e-9


def test_audit_on_a_graph(cli):
    done = cli(
        "audit", "network-shuffle", "--epsilon", "2", "--steps", "3", "--cluster-size", "6", "--graph", "regular:3",
        "--trials", "2000", "--at-epsilon", "0.2", "--json",
    )  # fmt: skip
    assert done.status == 0, done
    row = done.json["views"][0]
    assert 0 < row["lower"] <= row["exact"]
    assert "--graph regular:3" in done.json["command"]


def test_a_run_says_where_its_law_is(cli):
    told = cli(
        "run", "network-shuffle", "--users", "1500", "--graph", "regular:8", "--json", "--seed", "0"
    ).json
    found = rows(told["privacy"])
    assert "see p2p-sim account" in found["learner"]["refused"]
    assert found["wire"]["exact"]["epsilon"] == 0
    assert found["learner+user"]["exact"]["epsilon"] == pytest.approx(1.0, rel=1e-5)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("account", "network-shuffle", "--users", "9"), "needs a graph that joins everybody"),
        (("account", "network-shuffle", "--graph", "grid"), "there are no users to account for: give --cluster-size N"),
        (("account", "encrypted-shuffle", "--users", "9", "--graph", "grid"), "uses no graph"),
        (("account", "network-shuffle", "--users", "9", "--graph", "regular:x"), "allowed are complete"),
        (("audit", "network-shuffle", "--graph", "grid"), "the size of a world is missing: give --cluster-size N"),
        (("audit", "network-shuffle", "--cluster-size", "6"), "needs a graph that joins everybody"),
        (("calibrate", "network-shuffle", "--vary", "epsilon", "--epsilon", "1", "--graph", "grid"),
         "--graph joins users"),
        (("calibrate", "network-shuffle", "--vary", "epsilon", "--epsilon", "1", "--cluster-size", "9"),
         "depends on who is joined to whom"),
    ],
)  # fmt: skip
def test_bad_input(words, said, cli):
    done = cli(*words)
    assert done.status == 2
    assert said in done.err, done.err
