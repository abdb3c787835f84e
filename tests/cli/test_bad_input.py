"""Bad input: exit 2, one line on stderr that names thing, value and what is allowed, and nothing written."""

from __future__ import annotations

import socket
import time

import pytest

import p2p_sim
from tests.cli.conftest import below

FILES = {
    "good.csv": "a,y,c\n" + "".join(f"{i},{i % 2},{i % 3}\n" for i in range(12)),
    "one-class.csv": "a,y\n" + "".join(f"{i},1\n" for i in range(12)),
    "three.csv": "a,y\n" + "".join(f"{i},{i % 3}\n" for i in range(12)),
    "nan.csv": "a,y\n1,0\nnan,1\n3,0\n",
    "mixed.csv": "a,y\n1,0\nx,1\n3,0\n",
    "missing-label.csv": "a,y\n1,0\n2,\n3,1\n",
    "no-rows.csv": "a,y\n",
    "empty.csv": "",
    "negative.csv": "a,y,c\n1,0,-4\n2,1,0\n3,0,1\n",
    "missing-cluster.csv": "a,y,c\n1,0,1\n2,1,\n3,0,1\n",
}
RUN = ("run", "peer-to-peer")
GOOD = (*RUN, "--data", "good.csv")
MANY = (*RUN, "--users", "10")

CASES = {
    "unknown verb": (("walk",), ["walk"]),
    "no protocol": (("run", "--users", "10"), ["which protocol", "peer-to-peer", "randomized-response"]),
    "unknown protocol": (
        ("run", "telepathy", "--users", "9"),
        ["'telepathy'", "peer-to-peer, randomized-response"],
    ),
    "two protocols": ((*MANY, "randomized-response"), ["'randomized-response'", "one protocol"]),
    "unknown option": ((*MANY, "--beta", "1"), ["'--beta'", "--alpha, --theta", "--help"]),
    "another protocol's option": (
        (*MANY, "--epsilon", "1"),
        ["'--epsilon'", "peer-to-peer has --alpha, --theta"],
    ),
    "internal field": (
        ("run", "randomized-response", "--users", "9", "--lie", "0"),
        ["'--lie'", "--epsilon, --labels"],
    ),
    "short option": ((*MANY, "-x"), ["'-x'", "--alpha"]),
    "option without value": ((*MANY, "--alpha"), ["--alpha needs a value", "[0, 1/2]"]),
    "option twice": ((*MANY, "--alpha", "0", "--alpha=0.1"), ["--alpha", "twice"]),
    "a verb's option twice": ((*MANY, "--seed", "1", "--seed=2"), ["--seed is given twice"]),
    "alpha not a number": ((*MANY, "--alpha", "small"), ["--alpha 'small'", "a number"]),
    "alpha nan": ((*MANY, "--alpha", "nan"), ["--alpha 'nan'", "must be a number"]),
    "alpha negative": ((*MANY, "--alpha", "-0.1"), ["alpha = -0.1", "[0, 0.5]"]),
    "alpha above": ((*MANY, "--alpha", "0.51"), ["alpha = 0.51", "[0, 0.5]"]),
    "theta zero": ((*MANY, "--theta", "0"), ["theta = 0.0", "(0, 1]"]),
    "theta above": ((*MANY, "--theta", "1.5"), ["theta = 1.5", "(0, 1]"]),
    "labels not whole": (
        ("run", "randomized-response", "--users", "9", "--labels", "2.5"),
        ["--labels '2.5'", "whole"],
    ),
    "labels out of range": (
        ("run", "randomized-response", "--users", "9", "--labels", "1"),
        ["labels = 1", "2 to 256"],
    ),
    "epsilon negative": (
        ("run", "randomized-response", "--users", "9", "--epsilon=-1"),
        ["epsilon = -1.0", "[0, inf]"],
    ),
    "nothing to run on": (RUN, ["--data", "--users"]),
    "data and users": ((*GOOD, "--users", "5"), ["--data and --users"]),
    "label without data": ((*MANY, "--label", "y"), ["--label needs --data"]),
    "clusters without data": ((*MANY, "--clusters", "3"), ["--clusters needs --data"]),
    "share with data": ((*GOOD, "--share", "0.5"), ["--share needs --users"]),
    "shares with data": ((*GOOD, "--shares", "0.5,0.5"), ["--shares needs --users"]),
    "features with data": ((*GOOD, "--features", "3"), ["--features needs --users"]),
    "model without features": (
        (*MANY, "--model", "none"),
        ["--model needs --data, --population, or --users with --features"],
    ),
    "model of a population without test rows": (
        (*RUN, "--population", "p", "--model", "sgd"),
        ["--test-population PLACE"],
    ),
    "two sources of test rows": (
        (*RUN, "--population", "p", "--model", "sgd", "--test", "0.2", "--test-population", "t"),
        ["--test and --test-population are both given"],
    ),
    "split seed of a population without test rows": (
        (*RUN, "--population", "p", "--split-seed", "3"),
        ["--split-seed draws test rows, and --test is missing"],
    ),
    "k-means of a population": (
        (*RUN, "--population", "p", "--clusters", "3"),
        ["--clusters needs --data"],
    ),
    "three classes of a population for a protocol of two": (
        (*RUN, "--population", "p", "--classes", "a,b,c"),
        ["set to 2 labels", "label 'y' is 3 classes", "(--labels 3)"],
    ),
    "positive classes of a population, and several": (
        (*RUN, "--population", "p", "--labels", "3", "--positive", "a"),
        ["positive is ['a'], which makes two labels", "leave positive"],
    ),
    "classes of numbers of a population": (
        ("run", "unbiased-response", "--population", "p", "--classes", "a,b"),
        ["--classes says that labels are classes", "stand for numbers"],
    ),
    "missing values of a population": (
        (*RUN, "--population", "p", "--missing", "drop"),
        ["--missing needs --data"],
    ),
    "model that needs all rows": (
        (*RUN, "--population", "p", "--model", "random-forest", "--test-population", "t"),
        ["'random-forest' needs all rows in memory", "logistic-regression"],
    ),
    "test rows without a model": (
        (*RUN, "--population", "p", "--test-population", "t"),
        ["--test-population needs --model: give that too, or leave out --test-population"],
    ),
    "test rows without a population": (
        (*MANY, "--test-population", "t"),
        ["--test-population needs --population and --model: give that too"],
    ),
    "columns to drop without a model": (
        (*RUN, "--population", "p", "--drop", "f0"),
        ["--drop needs --model: give that too, or leave out --drop"],
    ),
    "two sources of clusters": (
        (*GOOD, "--cluster-column", "c", "--clusters", "2"),
        ["--cluster-column and --clusters"],
    ),
    "unknown data set": ((*RUN, "--data", "nonesuch"), ["'nonesuch'", "digits, breast-cancer, mnist"]),
    "missing file": ((*RUN, "--data", "gone.csv"), ["'gone.csv'", "digits"]),
    "folder": ((*RUN, "--data", "."), ["folder"]),
    "no such label": ((*GOOD, "--label", "income"), ["'income'", "'y'"]),
    "no such positive": ((*GOOD, "--positive", "7"), ["'7'", "'0', '1'"]),
    "empty positive": ((*GOOD, "--positive", ""), ["positive", "none"]),
    "one class": ((*RUN, "--data", "one-class.csv"), ["'y'", "one class"]),
    "three classes": ((*RUN, "--data", "three.csv"), ["3 classes", "'0', '1', '2'", "--positive"]),
    "positive for many labels": (
        ("run", "randomized-response", "--labels", "3", "--data", "three.csv", "--positive", "1"),
        ["positive", "'1'", "not both"],
    ),
    "too few labels": (
        ("run", "randomized-response", "--labels", "4", "--data", "digits"),
        ["10 classes", "4"],
    ),
    "nan": ((*RUN, "--data", "nan.csv"), ["'a'", "row 2"]),
    "mixed types": ((*RUN, "--data", "mixed.csv"), ["'a'", "'x'"]),
    "missing label value": ((*RUN, "--data", "missing-label.csv"), ["'y'", "row 2"]),
    "no rows": ((*RUN, "--data", "no-rows.csv"), ["no-rows.csv", "no rows"]),
    "empty file": ((*RUN, "--data", "empty.csv"), ["empty.csv", "empty"]),
    "no such cluster column": ((*GOOD, "--cluster-column", "town"), ["'town'", "'c'"]),
    "negative cluster": ((*RUN, "--data", "negative.csv", "--cluster-column", "c"), ["'c'", "-4", "row 1"]),
    "missing cluster": ((*RUN, "--data", "missing-cluster.csv", "--cluster-column", "c"), ["'c'", "row 2"]),
    "cluster is label": ((*GOOD, "--cluster-column", "y"), ["'y'", "label"]),
    "no clusters": ((*GOOD, "--clusters", "0"), ["clusters = 0", "from 1 to the 10 users"]),
    "more clusters than users": ((*GOOD, "--clusters", "11"), ["clusters = 11", "from 1 to the 10 users"]),
    "clusters not whole": ((*GOOD, "--clusters", "2.5"), ["--clusters", "2.5"]),
    "test share": ((*GOOD, "--test", "1.5"), ["1.5", "between 0 and 1"]),
    "unknown model": ((*GOOD, "--model", "oracle"), ["'oracle'", "scikit-learn classifier"]),
    "no users": ((*RUN, "--users", "0"), ["users = 0", "from 1"]),
    "negative users": ((*RUN, "--users", "-5"), ["users = -5", "from 1"]),
    "users not whole": ((*RUN, "--users", "1e-7"), ["--users", "1e-7"]),
    "cluster size": ((*MANY, "--cluster-size", "0"), ["cluster_size = 0", "from 1 to"]),
    "share": ((*MANY, "--share", "1.1"), ["1.1", "share", "in [0, 1]"]),
    "shares with a gap": ((*MANY, "--shares", "0.5,,0.5"), ["--shares 0.5,,0.5", "0.5,0.3,0.2"]),
    "shares that are none": (
        (*MANY, "--shares", "a,b"),
        ["--shares a,b: 'a' must be a number", "0.5,0.3,0.2"],
    ),
    "too few shares": ((*MANY, "--shares", "1"), ["shares = [1.0]", "2 probabilities"]),
    "shares beyond 1": ((*MANY, "--shares", "0.5,0.6"), ["shares = [0.5, 0.6]", "sum to 1.1"]),
    "share and shares": ((*MANY, "--share", "0.5", "--shares", "0.5,0.5"), ["0.5", "leave it out"]),
    "share of several labels": (
        ("run", "randomized-response", "--users", "9", "--labels", "3", "--share", "0.5"),
        ["share = 0.5", "--shares", "3 numbers"],
    ),
    "no number of features": ((*MANY, "--features", "-1"), ["features = -1", "0 to 10,000"]),
    "unknown backend": ((*MANY, "--backend", "moon"), ["'moon'", "local, shards, actors"]),
    "shards of local": ((*MANY, "--shards", "2"), ["shards = 2", "'local'"]),
    "no blocks": ((*MANY, "--blocks", "0"), ["blocks = 0", "at least 1"]),
    "address of local": ((*MANY, "--address", "127.0.0.1:1"), ["127.0.0.1:1", "'local'"]),
    "seed": ((*MANY, "--seed", "-1"), ["seed = -1", "0 to 2^64 - 1"]),
    "seed not a number": ((*MANY, "--seed", "x"), ["--seed", "'x' must be a whole number"]),
    "trace": ((*MANY, "--trace", "loud"), ["trace = 'loud'", "none, counts, full"]),
    "format": ((*MANY, "--format", "xml"), ["'xml'", "text, json"]),
    "force without out": ((*MANY, "--force"), ["--force", "--out"]),
    "out in a file": ((*MANY, "--out", "good.csv/run"), ["good.csv", "is a file"]),
    "out is latest": ((*MANY, "--out", "runs/latest"), ["'runs/latest'", "name of a folder"]),
    "unknown option of data": (("data", "--loud"), ["--loud", "p2p-sim data --help"]),
    "unknown benchmark": (("bench", "sleep"), ["'sleep'", "engine"]),
    "unknown case": (("bench", "engine", "--users", "100", "--cases", "moon"), ["'moon'", "local"]),
}


def refused(done, *parts):
    assert done.status == 2, done
    assert done.out == ""
    assert done.err.startswith("error: ")
    assert 1 <= done.err.count("\n") <= 2
    assert "Traceback" not in done.err
    for part in parts:
        assert part in done.err, (part, done.err)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_refuses(case, cli, tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    words, parts = CASES[case]
    before = below(tmp_path)
    refused(cli(*words), *parts)
    refused(cli(*words, "--json"), *parts[1:])
    assert below(tmp_path) == before


def test_protocol_that_breaks_the_rules(cli, tmp_path, monkeypatch):
    def stuck(*_words, **_more):
        raise p2p_sim.ProtocolError("no role can go on:\n'user' waits")

    monkeypatch.setattr("p2p_sim.learning.experiment.start", stuck)
    refused(cli(*MANY), "no role can go on: 'user' waits")
    assert below(tmp_path) == {}


def test_other_errors_keep_their_traceback(cli, monkeypatch):
    def broken(*_words, **_more):
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("p2p_sim.learning.experiment.start", broken)
    with pytest.raises(ZeroDivisionError):
        cli(*MANY)


def test_existing_output_is_refused_before_any_work(cli, tmp_path, monkeypatch):
    assert cli(*MANY, "--out", "runs/a").status == 0
    before = below(tmp_path)
    monkeypatch.setattr("p2p_sim.learning.experiment.simulate", None)
    refused(cli(*MANY, "--out", "runs/a"), "'runs/a'", "exists", "--force")
    assert below(tmp_path) == before


@pytest.mark.parametrize("name", ["notes", "notes/todo.txt"])
def test_force_replaces_runs_only(name, cli, tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/todo.txt").write_text("precious")
    refused(cli(*MANY, "--out", name, "--force"), "not a run directory")
    assert (tmp_path / "notes/todo.txt").read_text() == "precious"


def test_force_replaces_no_link(cli, tmp_path):
    assert cli(*MANY, "--out", "runs/a").status == 0
    (tmp_path / "b").symlink_to("runs/a")
    refused(cli(*MANY, "--out", "b", "--force"), "'b'")


@pytest.mark.parametrize("backend", ["shards", "actors"])
def test_address_that_does_not_answer(backend, cli, tmp_path):
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # bound, not listening
        address = f"127.0.0.1:{held.getsockname()[1]}"
        start = time.monotonic()
        refused(cli(*MANY, "--backend", backend, "--address", address), address, "nothing answers")
    assert time.monotonic() - start < 20
    assert below(tmp_path) == {}


def test_address_without_port(cli):
    refused(cli(*MANY, "--backend", "shards", "--address", "nowhere"), "'nowhere'", "host:port")
