"""``p2p-sim audit --run``: from a run to its audit, what is kept, and options that contradict it."""

from __future__ import annotations

import importlib
import json
import shlex

import numpy as np
import pytest

import p2p_sim
from p2p_sim import Population, privacy
from protocols import PeerToPeer
from tests.cli.conftest import below
from tests.cli.test_audit import OWN
from tests.cli.test_bad_input import refused
from tests.run_json_files import document_in

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
    assert told["defaults"] == ["theta", "retries", "over", "labels"]
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
    monkeypatch.setattr("p2p_sim.cli.audit._MANY_USERS", 19_999)
    done = cli(*AUDIT)
    assert done.status == 0
    assert "worlds of 10 users (the smallest cluster; " in done.err
    assert "20,000 users in all, which takes long; fewer --trials" in done.err


def test_other_code_than_the_run_s_is_said(cli, tmp_path):
    cli(*RUN)
    manifest = tmp_path / "made" / "run.json"
    told = document_in(manifest.parent)
    told["versions"]["numpy"] = "1.0"
    manifest.write_text(json.dumps(told))
    assert "audited by other code than the run's: numpy 1.0 then" in cli(*AUDIT).err


CAREFUL = '''
from dataclasses import dataclass

import numpy as np

from p2p_sim.core import Message, Party, Protocol, Rounds


@dataclass(frozen=True)
class Careful(Protocol):
    """Users who are marked flip a fair coin, all others tell their label."""

    report = Message("user", "learner", "hands in a label, maybe a coin", y=bool)

    def user(self, me: Party) -> Rounds:
        yield self.report(y=np.where(me.public["careful"], me.draw.bernoulli("coin", 0.5), me.y))

    def learner(self, me: Party) -> Rounds:
        reports = yield self.report.receive()
        return reports.columns()
'''


@pytest.fixture
def careful(tmp_path, monkeypatch):
    """A protocol whose users read a public column, in careful.py, and the folder of a run of it, made in Python."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "careful.py").write_text(CAREFUL)
    program = importlib.import_module("careful").Careful()
    people = Population.from_arrays(
        y=np.arange(6) % 2 == 0,
        cluster=[0, 0, 0, 1, 1, 1],
        public={"careful": [False, True, True, True, False, True]},
    )
    p2p_sim.run(program, people, seed=2**63, out=tmp_path / "made")
    return tmp_path / "made"


def test_public_columns_of_the_run_and_what_is_assumed(cli, careful):
    done = cli("audit", "careful:Careful", "--run", "made", "--trials", "1000", "--delta", "0", "--json")
    told, (row,) = done.json, done.json["views"]
    assert (done.status, done.err) == (0, "")
    assert row["lower"] > 3, "user 0 tells her label"
    assert told["world"].endswith(
        "; public columns are those of users of cluster 0 of the run, the victim's those of user 0"
    )
    (assumed,) = row["assumes"]
    assert assumed.startswith(
        "public column 'careful' of all users of a world is known to the view, and the same"
    )
    assert json.loads((careful / "audit.json").read_text())["audits"][0]["assumes"] == [assumed]
    again = cli(*shlex.split(told["command"])[1:]).out
    assert f"Assumes: {assumed}.\n" in again
    assert cli("report", "made").status == 0
    assert "; assumes: public column" in (careful / "report.html").read_text()


@pytest.mark.usefixtures("careful")
def test_without_a_run_the_column_and_the_way_out_are_named(cli):
    refused(
        cli("audit", "careful:Careful", "--cluster-size", "3", "--trials", "1000"),
        "a user's program reads public column 'careful', which the worlds of an audit do not have",
        "or audit a run whose population has it (privacy.audit(run), p2p-sim audit --run RUN)",
    )
