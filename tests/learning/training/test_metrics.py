"""Metrics beside accuracy: by hand, of classifiers without probabilities, and of what a run compares."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from p2p_sim.learning.training import evaluation, metrics
from p2p_sim.learning.training.metrics import Predicted, measure

pytestmark = pytest.mark.slow


def test_metrics_of_two_classes_by_hand() -> None:
    """Of three zeros two are right, of one 1 it is; of its three pairs with zeros two are in order."""
    y, p = np.array([False, False, False, True]), np.array([0.1, 0.2, 0.9, 0.6])
    found = measure(y, Predicted(p > 0.5, np.stack([1 - p, p], axis=1)))
    assert found["balanced_accuracy"] == pytest.approx((2 / 3 + 1) / 2)
    assert found["auc"] == pytest.approx(2 / 3)
    assert found["log_loss"] == pytest.approx(-np.log([0.9, 0.8, 0.1, 0.6]).mean())


def test_average_precision_by_hand() -> None:
    """Ranked 0.9, 0.8, 0.6, 0.3 with ones first and third: precision 1 at half of the ones, 2/3 at all of them."""
    y, p = np.array([True, False, True, False]), np.array([0.9, 0.8, 0.6, 0.3])
    found = measure(y, Predicted(p > 0.5, np.stack([1 - p, p], axis=1)))
    assert found["average_precision"] == pytest.approx((1 + 2 / 3) / 2)
    rare = np.arange(1000) == 7  # always the same score: a guess, whose precision is the share
    same = np.full(1000, 0.5)
    guess = measure(rare, Predicted(rare & False, np.stack([same, same], axis=1)))
    assert (guess["average_precision"], guess["auc"]) == (pytest.approx(0.001), 0.5)


def test_of_several_classes_auc_is_the_mean_of_each_against_the_rest() -> None:
    rng = np.random.default_rng(0)
    y, p = rng.integers(3, size=60), rng.dirichlet(np.ones(3), 60)
    found = measure(y, Predicted(p.argmax(axis=1), p))
    assert found["auc"] == pytest.approx(roc_auc_score(y, p, multi_class="ovr"))
    absent = np.concatenate([p, np.zeros((60, 1))], axis=1)  # a fourth class that no test row has
    assert measure(y, Predicted(p.argmax(axis=1), absent)) == pytest.approx(found)


def test_recall_by_class_and_of_the_rarest() -> None:
    y = np.array([0, 0, 0, 2, 2, 3, 3])
    found = measure(y, Predicted(np.array([0, 0, 2, 2, 2, 0, 3]), None))
    assert found["recall"] == [pytest.approx(2 / 3), None, 1.0, 0.5]
    assert found["rarest_recall"] == 1.0  # of two classes with two rows the first
    assert found["balanced_accuracy"] == pytest.approx((2 / 3 + 1 + 0.5) / 3)
    assert found["calibration_error"] is None


def test_the_calibration_error_by_hand_and_of_true_probabilities() -> None:
    """Four rows of two bins by hand; labels drawn from the probabilities are off by chance alone, doubled ones by more.

    A bin of m rows is off by less than sqrt(ln(2 15 / 1e-9) / (2 m)) but with probability 1e-9 / 15 (Hoeffding).
    """
    p = np.array([[0.9, 0.1], [0.92, 0.08], [0.3, 0.7], [0.31, 0.69]])
    y = np.array([0, 1, 1, 1])
    expected = (abs(1 - 1.82) + abs(2 - 1.39)) / 4
    assert metrics.calibration_error(p, y) == pytest.approx(expected)
    rng, rows = np.random.default_rng(5), 100_000
    chance = rng.random(rows)
    true = rng.random(rows) < chance
    honest = np.stack([1 - chance, chance], axis=1)
    bins = metrics.BINS // 2 + 1
    bound = sum(np.sqrt(np.log(2 * 15 / 1e-9) / (2 * rows / bins)) / bins for _ in range(bins))
    assert metrics.calibration_error(honest, true) < bound
    sure = honest**3 / (honest**3).sum(axis=1, keepdims=True)
    assert metrics.calibration_error(sure, true) > bound


def test_test_rows_of_one_class_have_no_auc() -> None:
    found = measure(np.ones(3, np.bool_), metrics.constant(True, np.array([0.25, 0.75]), 3))
    assert found == {
        "balanced_accuracy": 1.0, "auc": None, "log_loss": pytest.approx(-np.log(0.75)),
        "calibration_error": pytest.approx(0.25), "rarest_recall": 1.0, "recall": [None, 1.0],
        "average_precision": None,
    }  # fmt: skip


def test_the_constant_predictor_says_the_shares_of_the_true_labels() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(200, 2)), np.arange(200) % 4 == 0
    found = evaluation.compare(x, y, x, y, np.arange(200), y)
    assert set(found.metrics) == {"accuracy_private", "accuracy_true", "baseline"}
    entropy = -(0.25 * np.log(0.25) + 0.75 * np.log(0.75))
    assert found.metrics["baseline"] == {
        "balanced_accuracy": 0.5, "auc": 0.5, "log_loss": pytest.approx(entropy),
        "calibration_error": pytest.approx(0, abs=1e-15), "rarest_recall": 0.0, "recall": [1.0, 0.0],
        "average_precision": 0.25,
    }  # fmt: skip
    assert found.metrics["accuracy_private"] == found.metrics["accuracy_true"]


@pytest.mark.parametrize(
    ("model", "none"),
    [
        ("linear-svc", {"log_loss", "calibration_error"}),
        ("ridge", {"log_loss", "calibration_error"}),
        ("nearest-centroid", set()),
    ],
)
def test_classifiers_without_probabilities_are_ranked_by_their_scores(model: str, none: set[str]) -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=(300, 2))
    y = x[:, 0] + 0.3 * rng.normal(size=300) > 0
    found = evaluation.compare(x, y, x, y, np.arange(300), y, model).metrics["accuracy_true"]
    assert {name for name, value in found.items() if value is None} == none
    assert found["auc"] is not None
    assert found["auc"] > 0.9


def test_a_class_that_was_not_released_gets_no_probability() -> None:
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(90, 2)), np.arange(90) % 3
    some = np.flatnonzero(y < 2)
    for model in ("logistic-regression", "linear-svc"):
        found = evaluation.compare(x, y, x, y, some, y[some], model).metrics["accuracy_private"]
        assert found["auc"] is not None
        loss: Any = found["log_loss"]
        assert loss is None if model == "linear-svc" else loss > 36 / 3  # -ln 2.2e-16 for a third of the rows


def test_probabilities_of_single_precision_add_up() -> None:
    rng = np.random.default_rng(4)
    p = rng.dirichlet(np.ones(10), 50).astype(np.float32)
    y = rng.integers(10, size=50)
    expected = -np.log(p[np.arange(50), y]).mean()
    assert measure(y, Predicted(p.argmax(axis=1), p))["log_loss"] == pytest.approx(expected, rel=1e-5)


def test_models_that_a_constant_beats_are_named() -> None:
    x, y = np.zeros((10, 1)), np.arange(10) < 3
    flipped = evaluation.compare(x, y, x, y, np.arange(10), ~y)
    told = evaluation.warned(flipped)
    assert told.note == (
        "always guessing the most frequent label is right more often (70.00 %) than the model trained on what was "
        "released (30.00 %)"
    )
    honest = evaluation.compare(x, y, x, y, np.arange(10), y)
    assert evaluation.warned(honest) == honest
