"""The experiment of cluster response runs, and its expected table says what docs/experiments.md tells of it."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from experiments import cluster_response
from experiments._common import read_csv

pytestmark = pytest.mark.slow

ROWS = read_csv(Path(cluster_response.__file__).parent / "expected" / "cluster_response.csv")
FOUND = {(row["mechanism"], row["epsilon"], row["C"]): row for row in ROWS}


def above(one: dict[str, str], other: dict[str, str]) -> bool:
    """Whether a mean is above another by more than both standard errors."""
    gap = float(one["accuracy"]) - float(other["accuracy"])
    return gap > float(one["standard_error"]) + float(other["standard_error"])


def test_the_experiment_runs() -> None:
    found = cluster_response.rows("digits", 20, epsilons=(3.0,), seeds=2, penalties=(1.0,))
    assert list(found[0]) == list(ROWS[0])
    by_name = {row["mechanism"]: row["accuracy"] for row in found}
    assert by_name.keys() == {*cluster_response.MECHANISMS, *cluster_response.DPSGD, "true labels"}
    assert 0.5 < by_name["ClusterRR"] < by_name["true labels"]
    for row in found:
        asked = float(row["epsilon"])
        assert asked == pytest.approx(float(row["epsilon_learner"]), rel=1e-3)
        assert row["trials"] == (1 if math.isinf(asked) else 2)


def test_images_are_averaged_and_other_rows_are_not() -> None:
    image = np.arange(784.0).reshape(1, 784)
    assert cluster_response.pooled(image)[0, 0] == np.mean([0, 1, 28, 29])
    assert cluster_response.pooled(image).shape == (1, 196)
    assert cluster_response.pooled(np.zeros((2, 64))).shape == (2, 64)


@pytest.mark.parametrize("epsilon", ["0.3", "0.5", "1.0"])
def test_clusters_are_above_the_paper_s_uniform_response(epsilon: str) -> None:
    """With the paper's regression, C = 1, and the modified loss of Corollary 1."""
    assert FOUND["ClusterRR", epsilon, "1.0"]["trials"] == "5"
    assert above(FOUND["ClusterRR", epsilon, "1.0"], FOUND["UniformRR", epsilon, "1.0"])


@pytest.mark.parametrize("epsilon", ["0.3", "0.5"])
def test_and_above_the_best_uniform_response_at_small_epsilon(epsilon: str) -> None:
    for name in ("UniformRR", "UniformRR, beta = 0"):
        for penalty in ("1.0", "0.001"):
            assert above(FOUND["ClusterRR", epsilon, "1.0"], FOUND[name, epsilon, penalty])


def test_but_not_at_1_where_uniform_response_is_penalized_as_its_noise_asks() -> None:
    assert above(FOUND["UniformRR", "1.0", "0.001"], FOUND["ClusterRR", "1.0", "1.0"])


@pytest.mark.parametrize("epsilon", ["0.3", "0.5", "1.0"])
def test_of_dp_sgd_clusters_are_above_the_paper_s_account_and_below_the_tighter_one(epsilon: str) -> None:
    clusters = FOUND["ClusterRR", epsilon, "1.0"]
    assert above(clusters, FOUND["DP-SGD, by iteration", epsilon, ""])
    assert above(FOUND["DP-SGD", epsilon, ""], clusters)


def test_every_row_says_of_what_its_epsilon_is() -> None:
    for row in ROWS:
        assert row["examples"].startswith("exact, images of 28 by 28 averaged")
        assert (row["data"], row["n"], row["test_n"], len(row["class_shares"].split())) == (
            "mnist",
            "60000",
            "10000",
            10,
        )
        if row["mechanism"] != "true labels":
            assert float(row["epsilon_learner"]) == pytest.approx(float(row["epsilon"]), rel=1e-3)
            replaced = "one row" if row["mechanism"].startswith("DP-SGD") else "one label replaced"
            assert row["includes"].startswith(replaced)
            assert "tuning is not included" in row["includes"]
            assert row["trials"] == "5"
