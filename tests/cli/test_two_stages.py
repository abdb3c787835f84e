"""A protocol whose users read their cluster and write to a server alone gets clusters, and the run says which."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow

STAGES = """
from dataclasses import dataclass

import numpy as np

from p2p_sim.core import Message, Party, Protocol, Rounds


@dataclass(frozen=True)
class Stages(Protocol):
    \"\"\"Users say their cluster and a noisy label.\"\"\"

    flip: float = 0.1

    report = Message("user", "learner", "reports", y=bool, cluster=np.int64)

    def user(self, me: Party) -> Rounds:
        yield self.report(y=me.y ^ me.draw.bernoulli("flip", self.flip), cluster=me.cluster.label)

    def learner(self, me: Party) -> Rounds:
        reports = yield self.report.receive()
        return {"y": reports.y, "cluster": reports.cluster}
"""


@pytest.fixture
def stages(cli, tmp_path, monkeypatch):
    """Run the protocol on the command line."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "stages.py").write_text(STAGES)
    return lambda *words: cli("run", "stages:Stages", *words, "--seed", "0")


def test_clusters_are_made_of_data_and_told(stages):
    text = stages("--data", "breast-cancer", "--model", "none").out
    assert (
        "Clusters    3 by k-means (default: one for 150 users, at most 200); users in each: minimum" in text
    )


def test_clusters_are_made_of_synthetic_users_and_told(stages):
    assert "Clusters    3 of 1,000 users (default); users in each:" in stages("--users", "3000").out


def test_a_cluster_of_one_user_is_warned_of_in_its_own_words(stages):
    told = stages("--users", "5", "--cluster-size", "1").err
    assert told == "warning: 5 clusters have a single user, so what is known of the cluster is known of her\n"


def test_the_split_seed_is_told_and_repeated(stages, cli):
    words = ("--data", "breast-cancer", "--split-seed", "7", "--json")
    told = stages(*words, "--out", "one").json
    assert told["data"]["split_seed"] == 7
    page = cli("report", "one", "--format", "md").out
    assert "--split-seed 7" in page
    assert "split seed 7" in page
    assert "split_seed" not in stages("--data", "breast-cancer", "--split-seed", "0", "--json").json["data"]


def test_synthetic_users_have_no_split(stages):
    done = stages("--users", "50", "--split-seed", "7")
    assert done.status == 2
    assert "--split-seed needs --data, which is missing: leave it out" in done.err


def test_metrics_stand_beside_accuracy(stages, cli):
    words = ("run", "peer-to-peer", "--data", "breast-cancer", "--seed", "0")
    told = cli(*words, "--json", "--out", "one").json["accuracy"]
    assert set(told["metrics"]) == {"accuracy_private", "accuracy_corrected", "accuracy_true", "baseline"}
    text, page = cli(*words, "--verbose").out, cli("report", "one", "--format", "md").out
    assert "balanced   AUC     log loss   ECE     rarest" in text
    for row in told["metrics"].values():
        cells = [f"{100 * row['balanced_accuracy']:.2f} %", f"{row['auc']:.3f}", f"{row['log_loss']:.3f}"]
        cells += [f"{row['calibration_error']:.3f}", f"{100 * row['rarest_recall']:.2f} %"]
        assert " ".join(cells) in " ".join(text.split())
        assert " | ".join(cells) in page
