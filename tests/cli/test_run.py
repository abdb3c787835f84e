"""The main job: what is told, in text and JSON, and what is left in the run's directory."""

from __future__ import annotations

import json
import os
import re
import warnings

import numpy as np
import pytest

import p2p_sim
from p2p_sim.learning.data import datasets
from p2p_sim.learning.training import evaluation, noise_correction
from p2p_sim.learning.training.kmeans import kmeans
from p2p_sim.report import terminal
from protocols import PeerToPeer, RandomizedResponse

pytestmark = pytest.mark.slow

KEYS = {
    "protocol", "parameters", "defaults", "seed", "seed_source", "backend", "crypto", "trace", "messages_kept", "data",
    "users", "clusters", "messages", "seconds", "peak_memory", "released", "accuracy", "digest", "directory", "privacy",
    "graph", "faults", "faulty_users", "faults_seen", "costs",
}  # fmt: skip
MANY = ("run", "peer-to-peer", "--users", "500", "--cluster-size", "100", "--seed", "0")


MAIN_JOB = ("run", "peer-to-peer", "--data", "digits", "--seed", "0")


def test_main_job_needs_nothing_else(cli, tmp_path):
    done = cli(*MAIN_JOB)
    assert (done.status, done.err) == (0, "")
    for part in (
        "peer-to-peer; seed 0, backend local",
        "by default alpha = 0.1, theta = 1.0, retries = 0, over = cluster, labels = 2",
        "digits, bundled with scikit-learn; 1,797 rows, 64 features",
        "label digit: 1 means digit >= 5, 0 means digit < 5",
        "1,438, one row each; 359 further rows test the model (20 % of the rows, drawn by seed)",
        "9 by k-means (default: one for 150 users, at most 200); users in each: minimum",
        "What was learnt, by logistic-regression            test accuracy   balanced",
        "trained on the 1,438 labels released               74.93 %",
        "the same, matched by cluster, corrected for lies",
        "trained on the 1,438 true labels",
        "always the true labels' majority",
        "What it cost each   parties    sent   received   bytes up   bytes down",
        "user                  1,438   2.983      1.983      49.72        32.72",
        "4,290 messages, 71,504 bytes, 0.06",
        "Who knows what of one label   ε in nats, δ = 1e-06   basis   right of 100",
        "user: one deviating peer      2.197                  exact   90",
        "Digest      ",
        "Saved in    runs/peer-to-peer-digits-1",
        "p2p-sim report runs/peer-to-peer-digits-1",
    ):
        assert part in done.out, part
    assert "[1]" not in done.out
    assert os.readlink(tmp_path / "runs/latest") == "peer-to-peer-digits-1"  # noqa: PTH115
    lines = done.out.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= terminal.WIDTH


def test_without_a_name_it_is_the_main_job_with_a_fresh_seed(cli):
    one, seeded = cli("run"), cli("run", "--seed", "0", "--alpha", "0.1")
    assert (one.status, seeded.status) == (0, 0)
    assert one.err == seeded.err == "nothing is named: this is p2p-sim run peer-to-peer --data digits\n"
    assert re.match(r"peer-to-peer; seed [0-9]+ \(a fresh one\), backend local\n", one.out)
    digest = "Digest      12f6a6eef30458ecbdc4b35b8ae4adc0"
    assert digest in seeded.out
    assert digest not in one.out
    assert cli("run", "--data", "digits").err.startswith("error: which protocol? ")
    assert cli("run", "peer-to-peer").err.startswith("error: there are no users: ")


def test_verbose_prints_every_table_note_and_source(cli):
    done = cli(*MAIN_JOB, "--verbose")
    assert (done.status, done.err) == (0, "")
    for part in (
        "peer-to-peer: alpha = 0.1 (default), theta = 1.0 (default), retries = 0 (default), "
        "over = cluster (default), labels = 2 (default); seed 0, backend local",
        "digits, bundled with scikit-learn; 1,797 rows, 64 features",
        "label digit: 1 means digit >= 5, 0 means digit < 5",
        "1,438, one row each; 359 further rows test the model (20 % of the rows, drawn by seed)",
        "9 by k-means (default: one for 150 users, at most 200); users in each: minimum",
        "Messages   delivered   travelled",
        "report         1,438       1,438",
        "Seconds     load",
        "Peak memory",
        "Test accuracy, logistic-regression",
        "trained on the 1,438 labels released",
        "the same, matched by cluster, corrected for lies",
        "trained on the 1,438 true labels",
        "always the true labels' majority",
        "Digest      ",
        "Saved in    runs/peer-to-peer-digits-1",
        "Privacy of one label, ε in nats at δ = 1e-06, plain channels; clusters of 59 to 320",
        "user: one deviating peer   2.197    exact",
        "note: matching by cluster assumes",
        "[1] Clustering 2022, Algorithm 2: exact law",
    ):
        assert part in done.out, part


def test_figures_are_those_of_the_library(cli, tmp_path):
    words = (
        "--data",
        "digits",
        "--alpha",
        "0.05",
        "--theta=0.7",
        "--clusters",
        "12",
        "--seed",
        "7",
        "--json",
    )
    told = cli("run", "peer-to-peer", *words).json
    assert set(told) == KEYS
    data = datasets.load("digits")
    test = evaluation.split(len(data.y), 7, 0.2)
    cluster = kmeans(data.x[~test], 12, 7)
    order = np.argsort(cluster, kind="stable")
    x, y = data.x[~test][order], data.y[~test][order]
    run = p2p_sim.run(
        PeerToPeer(0.05, 0.7), p2p_sim.Population.from_arrays(y=y, x=x, cluster=cluster[order]), seed=7
    )
    got = run.output("learner")
    expected = evaluation.compare(x, y, data.x[test], data.y[test], got["sender"], got["y"])
    assert told["digest"] == run.digest
    knowing = noise_correction.add_corrected(expected, run, run.population, data.x[test], data.y[test])
    assert knowing.accuracy_corrected is not None
    assert told["accuracy"] == vars(knowing)
    assert told["messages"] == [
        {"kind": kind, "messages": c.messages, "travelled": c.travelled, "bytes": c.nbytes}
        for kind, c in run.by_kind().items()
    ]
    sizes = np.bincount(cluster)
    low, middle, high = int(sizes.min()), float(np.median(sizes)), int(sizes.max())
    assert told["clusters"] == {
        "count": 12, "origin": "by k-means", "minimum": low, "median": middle, "maximum": high, "of_one_user": 0,
    }  # fmt: skip
    assert (told["parameters"], told["defaults"]) == (
        {"alpha": 0.05, "theta": 0.7, "retries": 0, "over": "cluster", "labels": 2},
        ["retries", "over", "labels"],
    )
    assert set(told["seconds"]) == {"load", "cluster", "rounds", "training", "privacy", "saving"}
    assert told["peak_memory"]["bytes"] > 10_000_000
    assert (
        told["released"]["labels"] == told["accuracy"]["trained_on"] < told["users"] == told["accuracy"]["of"]
    )
    kept = json.loads((tmp_path / told["directory"] / "run.json").read_text())
    assert kept["notes"]["accuracy"] == told["accuracy"]
    assert kept["notes"]["data"] == told["data"]
    assert " ".join(kept["notes"]["command"]) == (
        "p2p-sim run peer-to-peer --alpha 0.05 --theta 0.7 --retries 0 --over cluster --labels 2 --data digits "
        "--clusters 12 --seed 7"
    )
    again = p2p_sim.load(tmp_path / told["directory"])
    assert again.digest == run.digest
    assert np.array_equal(again.output("learner")["y"], got["y"])


def test_same_bits_for_any_blocks_and_place_of_options(cli):
    one = cli("run", "peer-to-peer", "--data", "digits", "--alpha", "0.2", "--json", "--seed", "0").json
    other = cli(
        "run", "--alpha=0.2", "--json", "peer-to-peer", "--blocks", "7", "--data", "digits", "--seed", "0"
    ).json
    assert one["digest"] == other["digest"]
    assert one["accuracy"] == other["accuracy"]
    assert (
        cli("run", "peer-to-peer", "--data", "digits", "--seed", "1", "--json").json["digest"]
        != one["digest"]
    )


def test_synthetic_users(cli, tmp_path):
    done = cli("run", "peer-to-peer", "--users", "2e3", "--share", "0.25", "--alpha", "0", "--seed", "0")
    assert (done.status, done.err) == (0, "")
    assert "synthetic, drawn by seed, each positive with probability 0.25" in done.out
    assert "2 of 1,000 users (default); users in each: minimum 1,000, median 1,000, maximum 1,000" in done.out
    assert "Released    2,000 labels, " in done.out
    assert "Test accuracy" not in done.out
    told = cli(
        "run", "peer-to-peer", "--users", "2000", "--share", "0.25", "--alpha", "0", "--json", "--seed", "0"
    ).json
    assert told["digest"] in done.out
    assert told["accuracy"] is None
    assert told["directory"] == "runs/peer-to-peer-synthetic-2"
    run = p2p_sim.load(tmp_path / told["directory"])
    assert told["released"]["positive_share"] == run.output("learner")["y"].mean()


def test_randomized_response(cli):
    done = cli("run", "randomized-response", "--data", "digits", "--seed", "0")
    assert done.status == 0
    assert "Parameters  by default epsilon = 1.0, labels = 2" in done.out
    assert "Clusters    none" in done.out
    told = cli(
        "run", "randomized-response", "--users", "50", "--epsilon", "inf", "--json", "--seed", "0"
    ).json
    assert told["parameters"] == {"epsilon": "inf", "labels": 2}
    assert told["clusters"] is None
    people = p2p_sim.Population.synthetic(users=50, positive=0.5)
    assert told["released"] == {"labels": 50, "positive_share": people.y.mean()}


@pytest.mark.parametrize("shufflers", [1, 2, 3])
def test_shufflers_without_work_are_left_out(cli, shufflers):
    asked = ["--users", "40", "--cluster-size", "20", "--epsilon", "1", "--shufflers", str(shufflers)]
    out = cli("run", "encrypted-shuffle", *asked, "--json", "--seed", "0").json
    assert {row["kind"] for row in out["messages"]} == (
        {"mixed"}
        | set([["report"], ["report2", "passed2"], ["report3", "passed3", "passed2"]][shufflers - 1])
    )
    assert all(row["messages"] == 40 for row in out["messages"])
    assert len(out["costs"]["roles"]) == 2 + shufflers


def test_many_labels_keep_all_classes(cli):
    done = cli(
        "run",
        "randomized-response",
        "--labels",
        "10",
        "--epsilon",
        "inf",
        "--data",
        "digits",
        "--json",
        "--seed",
        "0",
    )
    told = done.json
    assert told["data"]["classes"] == list("0123456789")
    assert told["data"]["positive"] is None
    assert told["accuracy"]["accuracy_private"] == told["accuracy"]["accuracy_true"] > 0.9
    text = cli("run", "randomized-response", "--labels", "10", "--data", "digits", "--seed", "0").out
    assert "label digit: 10 classes, 0, 1, 2, 3" in text


def test_own_file_positive_classes_cluster_column_and_model(cli, tmp_path):
    rows = [
        f"{i % 5}.5,{'red' if i % 5 > 2 else 'blue' if i % 5 else 'green'},{i % 4 * 10}" for i in range(200)
    ]
    (tmp_path / "My colours.csv").write_text("size,colour,town\n" + "\n".join(rows) + "\n")
    done = cli(
        "run", "peer-to-peer", "--data", "My colours.csv", "--label", "colour", "--positive", "red, green",
        "--cluster-column", "town", "--model", "random-forest", "--alpha", "0", "--test", "0.5", "--json",
        "--seed", "0",
    )  # fmt: skip
    assert (done.status, done.err) == (0, "")
    told = done.json
    assert told["directory"] == "runs/peer-to-peer-my-colours-1"
    assert told["data"]["positive"] == "colour in {green, red}"
    assert (told["clusters"]["count"], told["clusters"]["origin"]) == (4, "from a column")
    assert told["accuracy"]["model"] == "random-forest"
    assert told["accuracy"]["accuracy_true"] == 1
    assert told["users"] == told["data"]["test_rows"] == 100


def test_a_set_with_its_own_test_part(monkeypatch, cli):
    whole = datasets.load("digits")
    test = np.arange(len(whole.y)) >= 1500
    parted = datasets.Dataset(**{**vars(whole), "test": test})
    monkeypatch.setattr(datasets, "load", lambda *_words, **_more: parted)
    told = cli("run", "peer-to-peer", "--data", "digits", "--json", "--seed", "0").json
    assert (told["users"], told["data"]["test_rows"]) == (1500, 297)
    assert told["data"]["test_rows_are"] == "the data set's own test part"
    assert (
        cli("run", "peer-to-peer", "--data", "digits", "--test", "0.5", "--json", "--seed", "0").json["users"]
        == 899
    )


def test_clusters_of_one_user_are_warned_of(cli, tmp_path):
    (tmp_path / "a.csv").write_text(
        "a,y,c\n" + "".join(f"{i},{i % 2},{0 if i % 2 else i}\n" for i in range(30))
    )
    done = cli("run", "peer-to-peer", "--data", "a.csv", "--cluster-column", "c", "--json", "--seed", "0")
    alone = done.json["clusters"]["of_one_user"]
    assert alone > 1
    assert (
        done.err
        == f"warning: {alone} clusters have a single user, who always picks herself: no peer hides her\n"
    )
    assert cli("run", "peer-to-peer", "--users", "1", "--seed", "0").err.startswith(
        "warning: 1 cluster has a single user"
    )
    assert cli("run", "randomized-response", "--users", "3", "--cluster-size", "1", "--seed", "0").err == ""


def test_fewer_clusters_than_asked_for_are_warned_of(cli, tmp_path):
    (tmp_path / "a.csv").write_text("a,y\n" + "".join(f"{i % 2},{i % 2}\n" for i in range(40)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = cli("run", "peer-to-peer", "--data", "a.csv", "--clusters", "5", "--seed", "0")
    assert done.status == 0
    assert "warning: k-means was asked for 5 clusters and 2 are not empty" in done.err
    assert "Clusters    2 by k-means; users" in done.out


def test_constant_labels_are_noted(cli, tmp_path):
    (tmp_path / "a.csv").write_text("a,y\n" + "".join(f"{i},{int(i == 3)}\n" for i in range(60)))
    done = cli(
        "run", "peer-to-peer", "--data", "a.csv", "--alpha", "0", "--test", "0.9", "--seed", "0", "--verbose"
    )
    assert done.status == 0
    assert "note: one class among the" in done.out


def test_libraries_that_print_do_not_spoil_the_json(cli, monkeypatch):
    from p2p_sim.learning import experiment

    plain = experiment.start

    def loud(*words, **more):
        print("hello from a library")
        return plain(*words, **more)

    monkeypatch.setattr(experiment, "start", loud)
    done = cli(*MANY, "--json")
    assert done.json["users"] == 500
    assert done.err == "hello from a library\n"


def test_learn_takes_a_loaded_data_set():
    from p2p_sim.learning.experiment import learn

    data = datasets.load("digits")
    one = learn(RandomizedResponse(1.0), data, seed=3)
    two = learn(RandomizedResponse(1.0), "digits", seed=3)
    assert one.run.digest == two.run.digest
    assert one.comparison == two.comparison is not None
    assert np.array_equal(one.examples.population.x, data.x[one.examples.rows])
    with pytest.raises(p2p_sim.InputError, match="a Dataset has them already"):
        learn(RandomizedResponse(1.0), data, label="digit", seed=0)


def test_a_trace_says_what_it_left_out(cli, tmp_path):
    few = cli(
        "run",
        "peer-to-peer",
        "--users",
        "60",
        "--cluster-size",
        "20",
        "--trace",
        "sample=3",
        "--out",
        "few",
        "--seed",
        "0",
    )
    kept = sum(1 for line in few.out.splitlines() if line.startswith("Trace "))
    assert kept == 1
    assert "sample=3: " in few.out
    assert "are left out" in few.out
    full = cli(
        "run", "peer-to-peer", "--users", "60", "--trace", "full", "--out", "full", "--json", "--seed", "0"
    )
    assert full.json["messages_kept"] == sum(row["messages"] for row in full.json["messages"])
    assert "Trace " not in cli("run", "peer-to-peer", "--users", "60", "--out", "none", "--seed", "0").out


def test_threads_change_no_bit(cli):
    words = ("run", "peer-to-peer", "--users", "300", "--seed", "3", "--blocks", "7", "--json")
    one, three = (cli(*words, "--threads", count).json for count in (1, 3))
    assert one["digest"] == three["digest"]
    assert one["messages"] == three["messages"]
    for more, text in (
        (("--threads", "0"), "threads = 0: must be an integer of at least 1"),
        (("--threads", "2", "--backend", "shards"), "threads = 2 means nothing to backend 'shards'"),
    ):
        done = cli(*words, *more)
        assert (done.status, done.out) == (2, "")
        assert text in done.err
