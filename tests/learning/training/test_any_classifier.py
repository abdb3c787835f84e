"""Label noise corrected for classifiers that know nothing of it: after training, and by weighted copies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from p2p_sim import InputError
from p2p_sim.learning.training.any_classifier import (
    ForwardClassifier,
    _on_simplex,
    after_training,
    weighted_copies,
)
from p2p_sim.learning.training.losses import from_likelihoods
from p2p_sim.learning.training.models import one_thread
from p2p_sim.learning.training.weighted_regression import WeightedLossRegression
from p2p_sim.privacy import DenseMatrices, Evidence
from tests.learning.training.test_noise_correction import FALSE_ALARM, gain
from tests.learning.training.test_weighted_regression import ASYMMETRIC, data

pytestmark = pytest.mark.slow


def reports(labels: int, rows: int) -> tuple[Any, Any, DenseMatrices]:
    x, y = data(labels, rows, 5)
    law = DenseMatrices(ASYMMETRIC[labels])
    chance = np.cumsum(law.matrices[0][y], axis=1)
    return x, (np.random.default_rng(6).random((rows, 1)) > chance).sum(axis=1), law


@pytest.mark.parametrize("labels", [2, 3])
def test_probabilities_of_reports_give_those_of_labels(labels: int) -> None:
    rng = np.random.default_rng(0)
    true = rng.dirichlet(np.ones(labels), 20)
    found = after_training(true @ ASYMMETRIC[labels], ASYMMETRIC[labels])
    assert np.allclose(found, true, rtol=0, atol=1e-12)
    wild = after_training(np.eye(labels), ASYMMETRIC[labels])
    assert (wild >= 0).all()
    assert np.allclose(wild.sum(axis=1), 1)
    for text, bad in (
        ("use the forward correction", np.full((labels, labels), 1 / labels)),
        ("give", np.eye(5)),
    ):
        with pytest.raises(InputError, match=text):
            after_training(true, bad)


def test_the_nearest_probabilities() -> None:
    """The conditions of Karush, Kuhn and Tucker: all that is above 0 was moved alike, and the rest was below that."""
    rows = np.concatenate([np.random.default_rng(1).normal(size=(200, 4)), np.eye(4), np.full((1, 4), -3.0)])
    for row, found in zip(rows, _on_simplex(rows), strict=True):
        moved, inside = row - found, found > 0
        assert (found >= 0).all()
        assert found.sum() == pytest.approx(1, abs=1e-12)
        assert np.ptp(moved[inside]) < 1e-12
        assert (moved[~inside] <= moved[inside].min() + 1e-12).all()


def test_copies_have_the_loss_of_weights_and_none_below_0() -> None:
    x, weights = np.arange(6.0).reshape(3, 2), np.array([[0.2, 0.8], [0, 1], [0.5, 0.5]])
    rows, labels, each = weighted_copies(x, weights)
    assert rows[:, 0].tolist() == [0, 0, 2, 4, 4]
    assert labels.tolist() == [0, 1, 1, 0, 1]
    assert each.tolist() == [0.2, 0.8, 1, 0.5, 0.5]
    with pytest.raises(InputError, match=r"weights go down to -0.5: trees take none below 0"):
        weighted_copies(x, weights - 0.5)
    with pytest.raises(InputError, match=r"give \(3, k\)"):
        weighted_copies(x, weights[:2])


def test_a_round_does_not_lower_the_likelihood_of_reports() -> None:
    x, said, law = reports(3, 3000)
    evidence = law.evidence(np.arange(3000), said)
    costs = []
    for rounds in (1, 2, 5, 20):
        model = ForwardClassifier(WeightedLossRegression(1e6), rounds).fit(x, evidence)
        costs.append(from_likelihoods(np.log(model.predict_proba(x)), evidence.likelihood)[0])
    assert np.all(np.diff(costs) < 0)


@pytest.mark.parametrize("labels", [2, 3])
def test_trees_gain_by_either_correction(labels: int) -> None:
    """Boosted trees, beyond chance (1e-9); told of other users' reports, copies gain nothing."""
    x, said, law = reports(labels, 4000)
    x_test, y_test = data(labels, 10_000, 7)
    trees = HistGradientBoostingClassifier(max_iter=12, learning_rate=0.2, random_state=0)
    with one_thread():
        plain = trees.fit(x, said).predict_proba(x_test)
    old = plain.argmax(axis=1) == y_test
    after = after_training(plain, law.dense()).argmax(axis=1) == y_test
    evidence = law.evidence(np.arange(len(x)), said)
    copies = ForwardClassifier(trees, 2).fit(x, evidence).predict(x_test) == y_test
    assert gain(after, old) < FALSE_ALARM
    assert gain(copies, old) < FALSE_ALARM
    other = Evidence(np.roll(evidence.users, 1), evidence.likelihood, evidence.unbiased)
    assert gain(ForwardClassifier(trees, 2).fit(x, other).predict(x_test) == y_test, old) > FALSE_ALARM


def test_bad_input_is_refused() -> None:
    with pytest.raises(InputError, match="must be an integer of at least 1"):
        ForwardClassifier(None, 0)
    nothing = Evidence(np.arange(2), np.ones((2, 2)), lambda: np.zeros((2, 2)))
    with pytest.raises(InputError, match="nothing to learn from"):
        ForwardClassifier(None).fit(np.zeros((2, 1)), nothing)
