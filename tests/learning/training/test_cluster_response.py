"""The modified loss of cluster response: its weights, and the model that ``run`` corrects with it."""

from __future__ import annotations

import math

import numpy as np
import pytest

import p2p_sim
from p2p_sim import InputError, Population
from p2p_sim.learning import experiment
from p2p_sim.privacy.mechanisms.cluster_response import evidence
from p2p_sim.privacy.registered import label_noise
from protocols import ClusterResponse


def released(protocol: ClusterResponse, y: np.ndarray, faults: list[str] | None = None):  # type: ignore[type-arg]
    people = Population.from_arrays(y=y, cluster=np.arange(len(y)) * 7 % 4 * 3 + 2)
    return people, p2p_sim.run(protocol, people, seed=3, faults=faults).outputs["learner"]


def test_weights_are_the_modified_loss_of_each_cluster() -> None:
    """Lines 29 and 30, with the matrix inverted numerically."""
    protocol = ClusterResponse.given(tau=0.1, sigma=2, lam=0.5, beta=0.4, labels=3)
    y = (np.arange(60) % 3).astype(np.uint8)
    people, columns = released(protocol, y)
    found = evidence(protocol, columns, people)
    weights = found.unbiased()
    for row in range(60):
        told = columns["weights"][columns["q_cluster"] == columns["cluster"][row]][0]
        matrix = 0.6 * np.eye(3) + 0.4 * np.outer(told / told.sum(), np.ones(3))  # [y', y]
        assert weights[row] == pytest.approx(np.linalg.inv(matrix)[:, columns["y"][row]], abs=1e-12)
        assert found.likelihood[row] == pytest.approx(matrix[columns["y"][row]], abs=1e-12)


def test_the_modified_loss_is_unbiased_given_the_distributions() -> None:
    """With beta = lambda; the mean over many labels of a user, at 5 standard deviations."""
    protocol = ClusterResponse.given(tau=0.1, sigma=2, lam=0.5, beta=0.5, labels=3)
    y = np.full(120_000, 2, np.uint8)
    people, columns = released(protocol, y)
    weights = evidence(protocol, columns, people).unbiased()
    spread = 5 * weights.std(axis=0) / math.sqrt(len(y))
    assert (np.abs(weights.mean(axis=0) - [0, 0, 1]) <= spread + 1e-12).all()


def test_without_a_correction_there_is_none() -> None:
    assert label_noise(ClusterResponse(1.0, 10)) is None
    noise = label_noise(ClusterResponse(1.0, 10, "uniform"))
    assert noise is not None
    assert noise.reports is not None


def test_labels_of_a_cluster_whose_distribution_is_lost_are_left_out() -> None:
    protocol = ClusterResponse.given(tau=0.1, sigma=2, lam=0.5, beta=0.5, labels=3)
    people, columns = released(protocol, (np.arange(60) % 3).astype(np.uint8))
    short = columns | {"q_cluster": columns["q_cluster"][1:], "weights": columns["weights"][1:]}
    found = evidence(protocol, short, people)
    assert len(found.users) == 45
    assert found.note == "15 labels are of clusters whose distribution was lost"
    none = columns | {"q_cluster": columns["q_cluster"][:0], "weights": columns["weights"][:0]}
    assert len(evidence(protocol, none, people).users) == 0


def test_run_trains_a_corrected_model_and_digits_are_learnt() -> None:
    uniform = experiment.learn(ClusterResponse(3.0, 10, "uniform"), "digits", clusters=20, seed=1).comparison
    cluster = experiment.learn(ClusterResponse(3.0, 10), "digits", clusters=20, seed=1).comparison
    assert uniform is not None
    assert cluster is not None
    assert uniform.accuracy_corrected is not None
    assert uniform.accuracy_corrected > 0.6
    assert cluster.accuracy_corrected is None
    assert cluster.accuracy_private > 0.6


def test_a_singular_matrix_is_refused() -> None:
    with pytest.raises(InputError, match="singular"):
        ClusterResponse.given(tau=0.1, sigma=2, lam=1, beta=1)
