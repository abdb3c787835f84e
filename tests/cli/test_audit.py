"""Audits from the command line: the table, its JSON, exit statuses, refusals."""

from __future__ import annotations

import math
import shlex

import pytest

import protocols
from p2p_sim import privacy
from protocols import PeerToPeer
from tests.cli.conftest import below
from tests.cli.test_bad_input import refused

pytestmark = pytest.mark.slow

SMALL = ("audit", "peer-to-peer", "--alpha", "0.2", "--cluster-size", "10", "--trials", "4000")
COIN = ("audit", "randomized-response", "--epsilon", "1", "--trials", "4000")
OWN = """
from dataclasses import dataclass
from p2p_sim.core import Message, Party, Protocol, Rounds
@dataclass(frozen=True)
class Leaky(Protocol):
    flip: float = 0.25
    report = Message("user", "learner", "tells the label, or not", y=bool)
    def user(self, me: Party) -> Rounds:
        yield self.report(y=me.y ^ me.draw.bernoulli("flip", self.flip))
    def learner(self, me: Party) -> Rounds:
        return (yield self.report.receive()).columns()
"""


def test_figures_are_those_of_the_audit(cli):
    done = cli(*SMALL, "--delta", "0.01", "--seed", "3", "--json")
    found = privacy.audit(PeerToPeer(0.2), cluster_size=10, delta=0.01, trials=4000, seed=3)
    told, (row,) = done.json, done.json["views"]
    assert (done.status, done.err) == (0, "")
    assert (told["kind"], told["at"], told["cluster_size"], told["trials"]) == ("delta", 0.01, 10, 4000)
    assert told["parameters"] == {"alpha": 0.2, "theta": 1.0, "retries": 0, "over": "cluster", "labels": 2}
    assert told["defaults"] == ["theta", "retries", "over", "labels"]
    assert (row["lower"], row["exact"], row["cap"]) == (found.lower, found.exact, found.cap)
    assert 0 < row["lower"] < row["exact"] < math.log(4)
    assert (row["verdict"], row["failed"], row["law"]["rejected"]) == ("consistent", False, False)
    assert [claim["name"] for claim in row["claims"]] == [claim.name for claim in found.claims]
    assert {claim["name"]: claim["epsilon"] for claim in row["claims"]}["Theorem 3"] == "inf"
    assert (row["trials"], row["confidence"], told["verdict"]) == (4000, 0.95, "consistent")


def test_table_and_sentences(cli):
    out = cli(*SMALL, "--delta", "0.01").out
    assert out.startswith(
        "peer-to-peer: alpha = 0.2, theta = 1.0 (default), retries = 0 (default), over = cluster (default), "
        "labels = 2 (default)\n"
    )
    assert out.splitlines()[1].startswith("ε in nats of one label, measured at δ = 0.01:")
    head = out.splitlines()[3].split("   ")
    names = ["View", "ε at least (95 %)", "exact ε", "Theorem 3", "Lemma 9", "local ε", "law test", "verdict"]
    assert [name.strip() for name in head if name.strip()] == names
    assert "does not apply [1]" in out
    assert "[1] Theorem 3: alpha = 4 sqrt(2) ln s" in out
    assert "exact likelihood ratio" in out
    assert "its p is the smallest p of its tests times their number" in out
    assert "Verdict: consistent: no lower bound is above a claim" in out


def test_the_command_it_tells_gives_the_same(cli):
    words = (
        *COIN,
        "--view",
        "learner",
        "--at-epsilon",
        "0.5",
        "--seed",
        "9",
        "--statistic",
        "classifier",
        "--json",
    )
    first = cli(*words).json
    assert first["command"].endswith("--confidence 0.95 --seed 9 --statistic classifier")
    again = cli(*shlex.split(first["command"])[1:], "--json").json
    for told in (first, again):
        for row in told["views"]:
            del row["seconds"]
        del told["defaults"]
    assert first == again


def test_all_views_share_the_error(cli):
    told = cli(*SMALL, "--all-views", "--json").json
    names = [row["name"] for row in told["views"]]
    assert names == ["learner", "user", "learner+user", "learner+3*user", "user", "wire", "learner+wire"]
    deviating = told["views"].pop(4)
    assert deviating["view"] == "user: one deviating peer"
    assert deviating["refused"].startswith("not audited: an audit runs users who follow")
    assert told["confidence_each"] == pytest.approx(1 - 0.05 / 6)
    assert {row["confidence"] for row in told["views"]} == {told["confidence_each"]}
    assert told["at"] == 0.025
    assert all(row["exact"] <= math.log(4) for row in told["views"])
    assert told["verdict"] in ("consistent", "inconclusive")
    assert "--all-views" in told["command"]


def test_views_without_room_are_said_to_be(cli):
    done = cli("audit", "peer-to-peer", "--cluster-size", "2", "--all-views", "--trials", "500")
    assert done.status == 0
    assert "refused [" in done.out
    assert "the largest cluster has 2 users: at most 1 beside the victim" in done.out
    assert "With confidence 95 % all bounds hold at once" in done.out


def test_a_false_claim_ends_with_status_1(cli):
    done = cli(*COIN, "--claim", "0.5")
    assert (done.status, done.err) == (1, "")
    assert "0.5 (claimed) violated" in done.out
    assert "; --claim claims 0.5" in done.out
    assert "Verdict: violated; exit status 1" in done.out
    told = cli(*COIN, "--claim", "0.5", "--json")
    assert (told.status, told.json["verdict"], told.json["views"][0]["failed"]) == (1, "violated", True)
    assert cli(*COIN, "--claim", "1").status == 0
    assert cli(*COIN, "--at-epsilon", "0.5", "--claim", "0.01").status == 1


def test_a_protocol_of_one_s_own_is_held_to_a_claim(cli, tmp_path):
    (tmp_path / "leaky.py").write_text(OWN)
    (tmp_path / "ids.py").write_text(
        OWN.replace("me.y ^", "(me.id < 0) ^ me.y ^")
    )  # of which no law is found
    words = ("audit", "leaky:Leaky", "--trials", "4000", "--flip", "0.25")
    nothing = cli("audit", "ids:Leaky", *words[2:])
    assert nothing.status == 0
    assert "measured; nothing is claimed: to check a figure of your own, give --claim" in nothing.out
    assert "nothing is contradicted, and not everything could have been; exit status 0" in nothing.out
    true = cli(*words, "--claim", math.log(3) + 1e-9)
    assert (true.status, "classifier (" in true.out) == (0, True)
    false = cli(*words, "--claim", "0.5", "--json")
    assert false.status == 1
    assert false.json["views"][0]["exact"] == pytest.approx(
        math.log(3), abs=0.1
    )  # found on the program, at its delta
    assert "audit leaky:Leaky --flip 0.25 " in false.json["command"]


def test_a_program_that_does_not_follow_its_law_ends_with_status_1(cli, monkeypatch):
    """Users flip with half of the probability they should: the law of the protocol is not theirs."""

    def user(self, me):
        y_hat = me.y ^ me.draw.bernoulli("flip", self.alpha / 2)
        asks = yield self.ask(to=me.draw.member("peer", me.cluster))
        labels = yield self.label.reply(asks, y_hat=y_hat)
        kept = me.draw.bernoulli("subsample", self.theta)
        yield self.report(y=labels.y_hat, when=kept)

    monkeypatch.setattr(protocols.PeerToPeer, "user", user)
    done = cli(*SMALL[:-1], "20000", "--view", "wire")
    assert done.status == 1
    assert ", rejected [" in done.out
    assert "exit status 1" in done.out


def test_a_delta_too_small_is_measured_along_the_curve(cli):
    words = ("audit", "peer-to-peer", "--cluster-size", "10", "--trials", "20000", "--delta", "1e-9")
    told = cli(*words, "--json").json
    (row,) = told["views"]
    assert row["delta_too_small"]
    assert len(row["points"]) == 5
    assert all(0 <= point["lower"] <= point["exact"] for point in row["points"])
    out = cli(*words).out
    assert "δ = 1e-09 is too small to be measured: of 20,000 trials it is 2e-05" in out
    assert "Instead, δ at several ε, beside the exact curve" in out
    few = cli(*SMALL[:-1], "100", "--delta", "1e-9").out
    assert "Too few trials, or no law, to measure δ at any ε instead: learner." in few


def test_inconclusive_says_how_many_trials_would_decide(cli):
    done = cli(
        "audit",
        "peer-to-peer",
        "--alpha",
        "0.4",
        "--cluster-size",
        "100",
        "--trials",
        "200",
        "--delta",
        "0.01",
    )
    assert done.status == 0
    assert "learner: inconclusive: too few trials" in done.out
    assert " a label would decide" in done.out


def test_composition_and_channels(cli):
    told = cli(*SMALL, "--composition", "4", "--view", "wire", "--channels", "encrypted", "--json").json
    (row,) = told["views"]
    assert (row["composition"], row["exact"], row["lower"]) == (4, 0, 0)
    assert row["law"]["tested"] is True, "a classifier looked at what the law does not speak of"
    assert (
        cli(*shlex.split(told["command"])[1:], "--statistic", "exact", "--json").json["views"][0]["law"][
            "tested"
        ]
        is False
    )
    assert "--composition 4 --channels encrypted" in told["command"]


CASES = {
    "nothing": (("audit",), ["which protocol?"]),
    "no size": (("audit", "peer-to-peer"), ["--cluster-size N"]),
    "unknown protocol": (("audit", "telepathy"), ["'telepathy'", "peer-to-peer"]),
    "unknown option": ((*SMALL, "--beta", "1"), ["'--beta'", "p2p-sim audit --help"]),
    "epsilon": ((*SMALL, "--epsilon", "1"), ["--at-epsilon"]),
    "unknown view": ((*SMALL, "--view", "moon"), ["'moon'", "learner"]),
    "user outside": ((*SMALL, "--view", "learner", "--view", "user:10"), ["user 10", "10"]),
    "too many colluders": ((*SMALL, "--view", "learner+10*user"), ["10*user", "9"]),
    "view and all": ((*SMALL, "--view", "wire", "--all-views"), ["--all-views and --view"]),
    "too few trials": ((*SMALL[:-1], "2"), ["trials = 2: too few", "give at least"]),
    "no trials": ((*SMALL[:-1], "0"), ["trials = 0"]),
    "confidence": ((*SMALL, "--confidence", "1"), ["confidence = 1.0", "below 1"]),
    "confidence nan": (
        (*SMALL, "--all-views", "--confidence", "nan"),
        ["'--confidence': 'nan' must be a number"],
    ),
    "two points": ((*SMALL, "--delta", "0.1", "--at-epsilon", "1"), ["--delta and --at-epsilon"]),
    "delta 1": ((*SMALL, "--delta", "1"), ["delta = 1.0", "below 1"]),
    "epsilon negative": ((*SMALL, "--at-epsilon", "-1"), ["epsilon = -1.0"]),
    "claim": ((*SMALL, "--claim", "nan"), ["--claim", "nan"]),
    "composition": ((*SMALL, "--composition", "most"), ["'most'", "worst"]),
    "composition too large": ((*SMALL, "--composition", "10"), ["composition = 10", "9"]),
    "channels": ((*SMALL, "--channels", "tin"), ["'tin'", "plain, encrypted"]),
    "statistic": ((*SMALL, "--statistic", "luck"), ["'luck'", "auto, exact, classifier"]),
    "backend": ((*SMALL, "--backend", "moon"), ["'moon'", "local"]),
    "shards": ((*SMALL, "--shards", "2"), ["shards = 2"]),
    "cluster 0": (("audit", "peer-to-peer", "--cluster-size", "0"), ["cluster_size = 0"]),
    "seed": ((*SMALL, "--seed", "-1"), ["seed = -1"]),
}


@pytest.mark.parametrize("case", CASES)
def test_refuses(case, cli, tmp_path):
    words, parts = CASES[case]
    refused(cli(*words), *parts)
    assert below(tmp_path) == {}


def test_views_that_cannot_be_audited_are_refused_and_the_others_are_audited(cli):
    words = (
        "audit",
        "cluster-response",
        "--epsilon",
        2,
        "--phi-share",
        0.2,
        "--cluster-size",
        4,
        "--trials",
        500,
    )
    done = cli(*words, "--all-views", "--json")
    assert done.status == 0, done.err
    rows = {row["view"]: row for row in done.json["views"]}
    for name, row in rows.items():
        unseen = "learner" in name and "curator" not in name and "wire" not in name
        assert ("phi is estimated from all clusters" in (row["refused"] or "")) == unseen, name
    done = cli(*words, "--view", "learner", "--view", "user")
    assert "phi is estimated from all clusters" in done.out
    done = cli(*words, "--view", "learner")
    assert (done.status, "no view can be audited" in done.err, "phi is estimated" in done.err) == (
        2,
        True,
        True,
    )
