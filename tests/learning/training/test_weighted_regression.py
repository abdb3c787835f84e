"""Logistic regression with weights of losses: scikit-learn's where labels are known, better where they are noisy."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas
import pytest
from scipy.optimize import check_grad
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from p2p_sim import InputError
from p2p_sim.learning.training.weighted_regression import (
    StreamedLossRegression,
    WeightedLossRegression,
    _Objective,
)
from p2p_sim.privacy import DenseMatrices, ResamplingMatrices
from tests.learning.training.test_noise_correction import FALSE_ALARM, gain

pytestmark = pytest.mark.slow

ASYMMETRIC = {
    2: np.array([[0.55, 0.45], [0.1, 0.9]]),
    3: np.array([[0.45, 0.45, 0.1], [0.05, 0.9, 0.05], [0.05, 0.45, 0.5]]),
}
"""P(reported | true): every other label is often reported as label 1."""


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks([WeightedLossRegression(), StreamedLossRegression()])
def test_scikit_learn_s_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def data(labels: int, rows: int = 20_000, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 4))
    scores = x @ np.random.default_rng(9).normal(size=(4, labels)) * 2
    return x, (scores + rng.gumbel(size=(rows, labels))).argmax(axis=1)


@pytest.mark.parametrize("labels", [2, 4])
@pytest.mark.parametrize("C", [0.01, 1.0])
def test_with_known_labels_it_is_scikit_learn_s(
    labels: int, C: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same minimum, in blocks of which the last is smaller, with and without weights of rows and intercepts."""
    monkeypatch.setattr("p2p_sim.learning.training.weighted_regression.BLOCK", 1000)
    x, y = data(labels, 1001)
    for intercept, each in ((True, None), (False, None), (True, np.random.default_rng(1).random(1001))):
        ours = WeightedLossRegression(C, fit_intercept=intercept, tol=1e-9).fit(x, y, each)
        other = LogisticRegression(C=C, fit_intercept=intercept, tol=1e-9, max_iter=1000).fit(x, y, each)
        assert np.allclose(ours.predict_proba(x), other.predict_proba(x), rtol=0, atol=1e-6)
        assert ours.coef_.shape == other.coef_.shape
        assert np.array_equal(ours.predict(x), other.predict(x))
    again = clone(WeightedLossRegression(C, fit_intercept=False))
    assert again.get_params() == {"C": C, "fit_intercept": False, "max_iter": 1000, "tol": 1e-4}


@pytest.mark.parametrize("labels", [2, 3])
@pytest.mark.parametrize("intercept", [True, False])
def test_the_gradient_with_weights_below_0(labels: int, intercept: bool) -> None:
    rng = np.random.default_rng(2)
    x, weights = rng.normal(size=(9, 3)), rng.normal(size=(labels, 9)) + 0.5
    objective = _Objective(x, weights, 0.7, intercept)
    at = rng.normal(size=objective.free)
    assert check_grad(lambda w: objective(w)[0], lambda w: objective(w)[1], at) < 1e-5


def test_labels_are_weights_of_one_and_classes_keep_their_names() -> None:
    x, y = data(3, 500)
    names = np.array(["a", "b", "c"])
    by_label = WeightedLossRegression().fit(x, names[y])
    by_weight = WeightedLossRegression().fit_losses(x, np.eye(3)[y], names)
    assert np.array_equal(by_label.coef_, by_weight.coef_)
    assert set(by_weight.predict(x)) <= set(names)
    single = WeightedLossRegression().fit(x.astype(np.float32), y)
    assert np.allclose(single.predict_proba(x), by_label.predict_proba(x), atol=1e-3)


def noisy(labels: int, seed: int) -> tuple[Any, Any, Any, Any, Any]:
    """Features, noisy labels, the weights that correct them, and a test part."""
    x, y = data(labels, seed=seed)
    law = DenseMatrices(ASYMMETRIC[labels])
    chance = np.cumsum(law.matrices[0][y], axis=1)
    said = (np.random.default_rng(seed + 1).random((len(y), 1)) > chance).sum(axis=1)
    x_test, y_test = data(labels, seed=seed + 2)
    return x, said, law.weights(np.zeros(len(y), np.int64), said), x_test, y_test


def trained(model: Any, x: Any, weights: Any) -> Any:
    if isinstance(model, WeightedLossRegression):
        return model.fit_losses(x, weights)
    for low in range(0, len(x), 3000):
        model.partial_fit_losses(x[low : low + 3000], weights[low : low + 3000])
    return model.finish()


@pytest.mark.parametrize("labels", [2, 3])
@pytest.mark.parametrize("kind", [WeightedLossRegression, StreamedLossRegression])
def test_where_noise_is_asymmetric_the_corrected_loss_pays(labels: int, kind: Any) -> None:
    """It beats training on labels as reported, beyond chance (1e-9), and so it beats a twin with another matrix.

    The twin takes noise for uniform: it corrects more of what is alike for all labels, and nothing of what is not.
    """
    x, said, weights, x_test, y_test = noisy(labels, 3)
    plain = trained(kind(), x, np.eye(labels)[said]).predict(x_test) == y_test
    corrected = trained(kind(), x, weights).predict(x_test) == y_test
    assert gain(corrected, plain) < FALSE_ALARM
    lie = 0.5 * (1 - np.diag(ASYMMETRIC[labels]).mean())  # with all of it, a class would seem to be absent
    other = ResamplingMatrices.uniform(labels, lie).weights(np.zeros(len(said), np.int64), said)
    twin = trained(kind(), x, other).predict(x_test) == y_test
    assert gain(corrected, twin) < FALSE_ALARM
    assert gain(twin, corrected) > 0.5


def test_a_stream_does_not_depend_on_how_it_is_cut() -> None:
    x, y = data(3, 3000)
    whole = StreamedLossRegression().fit(x, y)
    for size in (7, 1000):
        cut = StreamedLossRegression()
        for low in range(0, len(x), size):
            cut.partial_fit(x[low : low + size], y[low : low + size], classes=range(3))
        waiting = cut.coef_.copy()
        assert np.array_equal(cut.finish().coef_, whole.coef_)
        assert not np.array_equal(waiting, whole.coef_)  # 3000 is no multiple of 32
    close = WeightedLossRegression().fit(*data(3))
    stream = StreamedLossRegression().fit(*data(3))
    assert np.mean(close.predict(x) == stream.predict(x)) > 0.97


def test_a_class_without_labels_or_hidden_by_noise_is_refused() -> None:
    """Its intercept would fall without an end; the error names it, and its advice works."""
    x, y = data(3, 500)
    weights = np.eye(3)[y]
    for hidden in (np.zeros(500), np.full(500, -0.01)):
        given = weights.copy()
        given[:, 2] = hidden
        with pytest.raises(InputError, match=r"weights of class 2 have the sum .*leave the class out"):
            WeightedLossRegression().fit_losses(x, given)
        WeightedLossRegression().fit_losses(x, given[:, :2])
    with pytest.raises(InputError, match=r"y has one class, 1"):
        WeightedLossRegression().fit(x, np.ones(500))
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        WeightedLossRegression().fit(x, x[:, 0])


@pytest.mark.parametrize(
    ("weights", "classes", "text"),
    [
        (np.ones(5), None, "give numbers of shape (5, k)"),
        (np.ones((4, 2)), None, "give numbers of shape (5, k)"),
        (np.ones((5, 1)), None, "k at least 2"),
        (np.full((5, 2), np.nan), None, "not finite"),
        (np.ones((5, 2)), [1, 0], "give 2 different labels, ascending"),
        (np.ones((5, 2)), [0, 1, 2], "give 2 different labels, ascending"),
    ],
)  # fmt: skip
def test_weights_that_do_not_fit_are_refused(weights: Any, classes: Any, text: str) -> None:
    for learn in (WeightedLossRegression().fit_losses, StreamedLossRegression().partial_fit_losses):
        with pytest.raises(InputError) as caught:
            learn(np.arange(10.0).reshape(5, 2), weights, classes)
        assert text in str(caught.value)


def test_streams_refuse_what_does_not_fit_earlier_blocks() -> None:
    x, y = data(3, 100)
    with pytest.raises(InputError, match="give all labels there are to the first call"):
        StreamedLossRegression().partial_fit(x, y)
    model = StreamedLossRegression().partial_fit(x, y, classes=[0, 1, 2])
    with pytest.raises(InputError, match=r"y has labels \[7\] that are none of the classes"):
        model.partial_fit(x, y + 7 * (y == 0))
    with pytest.raises(InputError, match="give the same"):
        model.partial_fit_losses(x, np.eye(2)[y % 2], [0, 1])


def test_streams_keep_the_names_of_columns() -> None:
    """The next block, and rows to predict, cannot have them in another order."""
    x, y = data(3, 100)
    table = pandas.DataFrame(x, columns=list("abcd"))
    for model in (
        StreamedLossRegression().fit(table, y),
        StreamedLossRegression().partial_fit(table, y, classes=range(3)),
    ):
        assert model.feature_names_in_.tolist() == list("abcd")
        with pytest.raises(ValueError, match="feature names should match"):
            model.predict(table[list("badc")])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.partial_fit(table, y)


@pytest.mark.parametrize("given", [{"C": 0}, {"C": "1"}, {"max_iter": 0}, {"tol": -1.0}])
def test_parameters_out_of_range_are_refused(given: Any) -> None:
    with pytest.raises(InputError, match="must be a number above 0"):
        WeightedLossRegression(**given).fit(*data(2, 50))
    with pytest.raises(InputError, match="must be a number of at least"):
        StreamedLossRegression(batch=0).fit(*data(2, 50))


def test_it_says_that_it_did_not_converge() -> None:
    with pytest.warns(ConvergenceWarning, match="give a larger max_iter"):
        WeightedLossRegression(max_iter=1).fit(*data(2, 500))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        WeightedLossRegression().fit(*data(2, 500))
