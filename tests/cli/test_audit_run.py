"""``p2p-sim audit --run``: from a run to its audit, what is kept, and options that contradict it."""

from __future__ import annotations

import json
import shlex

import pytest

from p2p_sim import privacy
from protocols import PeerToPeer
from tests.cli.conftest import below
from tests.cli.test_audit import OWN
from tests.cli.test_bad_input import refused
from tests.told import told_in

pytestmark = pytest.mark.slow

RUN = (
    "run", "peer-to-peer", "--users", "50", "--cluster-size", "20", "--alpha", "0.2", "--fault", "loss=0.1", "--out",
    "made", "--seed", "0",
)  # fmt: skip
AUDIT = ("audit", "--run", "made", "--trials", "1000", "--delta", "0.02")


def test_from_a_run_to_its_report(cli, tmp_path):
    cli(*RUN)
    done = cli(*AUDIT, "--json")
    found = privacy.audit(PeerToPeer(0.2), cluster_size=10, delta=0.02, trials=1000, faults=["loss=0.1"])
    told, (row,) = done.json, done.json["views"]
    assert (done.status, done.err) == (0, "")
    assert (row["lower"], row["exact"], row["statistic"]) == (found.lower, found.exact, found.statistic)
    assert (row["true_positive"], row["false_positive"]) == (found.true_positive, found.false_positive)
    assert (told["run"], told["cluster_size"], told["faults"]) == ("made", 10, ["loss=0.1"])
    assert told["world"] == "the smallest cluster; the 3 clusters have 10 to 20 users"
    assert told["defaults"] == ["theta", "retries", "over"]
    (kept,) = json.loads((tmp_path / "made" / "audit.json").read_text())["audits"]
    assert {name: kept[name] for name in row if name != "seconds"} == {
        name: row[name] for name in row if name != "seconds"
    }
    again = cli(*shlex.split(told["command"])[1:])
    assert "Worlds of run made: the smallest cluster; the 3 clusters have 10 to 20 users" in again.out
    assert again.out.endswith(f"Again: {told['command']}\nKept in made/audit.json\n")
    assert cli("report", "made").status == 0
    report = (tmp_path / "made" / "report.html").read_text()
    assert 'id="attacks"' in report
    assert told["command"] in report


def test_options_that_say_the_same_are_welcome(cli):
    cli(*RUN)
    same = (
        "peer-to-peer",
        "--alpha",
        "0.2",
        "--fault",
        "loss=0.1",
        "--crypto",
        "modelled",
        "--cluster-size",
        "10",
    )
    first, second = cli(*AUDIT, "--json").json, cli(*AUDIT, *same, "--json").json
    assert first["views"][0]["lower"] == second["views"][0]["lower"]
    assert cli(*AUDIT, "--alpha", "0.2", "--cluster-size", "20", "--json").json["cluster_size"] == 20


def test_a_violated_claim_ends_with_status_1_and_is_kept(cli, tmp_path):
    cli(*RUN)
    assert cli(*AUDIT, "--view", "wire", "--claim", "0.1").status == 1
    (kept,) = json.loads((tmp_path / "made" / "audit.json").read_text())["audits"]
    assert (kept["verdict"], kept["failed"]) == ("violated", True)


def test_all_views_keep_what_was_measured(cli, tmp_path):
    cli(*RUN)
    told = cli(*AUDIT, "--all-views", "--json").json
    assert sum(bool(row["refused"]) for row in told["views"]) == 1
    kept = json.loads((tmp_path / "made" / "audit.json").read_text())["audits"]
    assert [row["view"] for row in kept] == [row["view"] for row in told["views"] if not row["refused"]]


def test_real_cryptography_and_a_graph_of_the_run(cli):
    cli(
        "run",
        "encrypted-shuffle",
        "--users",
        "12",
        "--cluster-size",
        "4",
        "--crypto",
        "real",
        "--out",
        "sealed",
        "--seed",
        "0",
    )
    told = cli("audit", "--run", "sealed", "--trials", "50", "--view", "shuffler", "--json").json
    assert (told["crypto"], told["cluster_size"]) == ("real", 4)
    assert "--crypto" not in told["command"]
    cli(
        "run",
        "network-shuffle",
        "--users",
        "20",
        "--steps",
        "3",
        "--graph",
        "regular:4",
        "--out",
        "walk",
        "--seed",
        "0",
    )
    told = cli("audit", "--run", "walk", "--trials", "100", "--graph", "regular:4", "--json").json
    assert (told["graph"], told["cluster_size"]) == ("regular:4", 20)
    refused(
        cli("audit", "--run", "walk", "--graph", "regular:6"), "--graph regular:6", "regular:4: leave it out"
    )


def test_a_protocol_of_one_s_own_is_named(cli, tmp_path):
    (tmp_path / "leaky.py").write_text(OWN)
    cli("run", "leaky:Leaky", "--users", "40", "--flip", "0.1", "--out", "own", "--seed", "0")
    refused(
        cli("audit", "--run", "own"), "leaky:Leaky is not a shipped protocol", "audit leaky:Leaky --run own"
    )
    told = cli("audit", "leaky:Leaky", "--run", "own", "--trials", "200", "--claim", "3", "--json").json
    assert (told["parameters"], told["cluster_size"]) == ({"flip": 0.1}, 40)
    assert told["command"].startswith("p2p-sim audit leaky:Leaky --run own --view learner")


CASES = {
    "no run": (("audit", "--run", "moon"), ["'moon' is not a run directory"]),
    "protocol": (
        (*AUDIT, "randomized-response"),
        ["randomized-response contradicts run 'made'", "PeerToPeer"],
    ),
    "parameter": (
        (*AUDIT, "--alpha", "0.3"),
        ["--alpha 0.3 contradicts run 'made', which has 0.2: leave it out"],
    ),
    "unknown": ((*AUDIT, "--beta", "0.3"), ["unknown option '--beta'", "--alpha"]),
    "fault": ((*AUDIT, "--fault", "loss=0.2"), ["--fault loss=0.2", "which has loss=0.1"]),
    "crypto": ((*AUDIT, "--crypto", "real"), ["--crypto real", "which has modelled"]),
    "graph": ((*AUDIT, "--graph", "grid"), ["--graph grid", "which has none"]),
    "size": ((*AUDIT, "--cluster-size", "15"), ["cluster_size = 15", "10 to 20"]),
    "view": ((*AUDIT, "--view", "learner+20*user"), ["20 users", "at most 19"]),
}


@pytest.mark.parametrize("case", CASES)
def test_refuses(case, cli, tmp_path):
    cli(*RUN)
    before = below(tmp_path)
    given, parts = CASES[case]
    refused(cli(*given), *parts)
    assert below(tmp_path) == before


def test_many_users_in_a_world_are_said_to_take_long(cli, monkeypatch):
    cli(*RUN)
    monkeypatch.setattr("p2p_sim.cli.audit._LONG", 19_999)
    done = cli(*AUDIT)
    assert done.status == 0
    assert "worlds of 10 users (the smallest cluster; " in done.err
    assert "20,000 users in all, which takes long; fewer --trials" in done.err


def test_other_code_than_the_run_s_is_said(cli, tmp_path):
    cli(*RUN)
    manifest = tmp_path / "made" / "run.json"
    told = told_in(manifest.parent)
    told["versions"]["numpy"] = "1.0"
    manifest.write_text(json.dumps(told))
    assert "audited by other code than the run's: numpy 1.0 then" in cli(*AUDIT).err
