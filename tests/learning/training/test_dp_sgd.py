"""DP-SGD: what a row can move, the noise and batches it draws, scikit-learn's checks, and that it learns."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import check_estimator

from p2p_sim.core import seeds
from p2p_sim.core.errors import InputError
from p2p_sim.learning.training.dp_sgd import (
    LIPSCHITZ,
    SMOOTHNESS,
    DPSGDClassifier,
    clipped_sum,
    noise,
    scaled,
)

FALSE_ALARM = 1e-9
"""Of each test of chance; seeds are fixed, so a test that passes once passes always."""


@pytest.fixture(autouse=True)
def same_fresh_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take fresh seeds from a count, not from the system's entropy, so that every test is the same every time."""
    fresh = itertools.count(1)
    monkeypatch.setattr(seeds, "chosen", lambda seed: next(fresh) if seed is None else seed)


def rows_of(n: int, seed: int = 0, features: int = 5, classes: int = 3) -> tuple[Any, Any]:
    chance = np.random.default_rng(seed)
    return chance.normal(size=(n, features)) * 10.0 ** chance.integers(-3, 9, (n, 1)), chance.integers(
        0, classes, n
    )


# --- a row's influence ---


@pytest.mark.parametrize("clip", [1e-3, 1.0, 5.0])
@pytest.mark.parametrize("seed", range(5))
def test_a_row_moves_a_sum_by_at_most_clip_and_another_row_by_twice_that(seed: int, clip: float) -> None:
    x, y = rows_of(40, seed)
    chance = np.random.default_rng(100 + seed)
    weights = chance.normal(size=(6, 3)) * 10.0 ** float(chance.integers(-1, 3))
    rows = scaled(x, 2.0)
    whole, slack = clipped_sum(rows, y, weights, clip), 1e-12
    without = [clipped_sum(np.delete(rows, i, 0), np.delete(y, i), weights, clip) for i in range(len(x))]
    moved = [float(np.linalg.norm(whole - less)) for less in without]
    assert max(moved) <= min(clip, LIPSCHITZ) + slack
    assert max(moved) > 0.9 * min(clip, LIPSCHITZ) or clip > 1
    for i in range(len(x)):
        other = y.copy()
        other[i] = (y[i] + 1) % 3
        step = float(np.linalg.norm(clipped_sum(rows, other, weights, clip) - whole))
        assert step <= min(2 * clip, math.sqrt(2) * float(np.linalg.norm(rows[i]))) + slack


def test_another_label_can_move_a_sum_by_twice_the_clipping_norm() -> None:
    """Two classes, even odds: the gradients of both labels are opposite."""
    rows, weights = scaled(np.array([[3.0, 4.0]]), 1.0), np.zeros((3, 2))
    one, other = (clipped_sum(rows, np.array([label]), weights, 0.25) for label in (0, 1))
    assert np.linalg.norm(one - other) == pytest.approx(0.5, rel=1e-12)


@pytest.mark.parametrize("batches", ["poisson", "passes"])
def test_a_replaced_row_moves_one_step_of_a_fit_by_at_most_twice_the_clip(batches: str) -> None:
    """The noise is the same in both fits; the step is learning_rate / (rate n) of the sum."""
    x, y = rows_of(60)
    model = DPSGDClassifier(
        3.0, clip=0.7, rate=0.5, steps=1, learning_rate=2.0, average=0.0, batches=batches, seed=4
    )
    before = model.fit(x, y)
    moved = []
    for i in range(len(x)):
        row, label = x.copy(), y.copy()
        row[i], label[i] = -1e6 * x[i], (y[i] + 1) % 3
        after = clone(model).set_params(classes=[0, 1, 2]).fit(row, label)
        change = np.vstack([after.coef_.T - before.coef_.T, after.intercept_ - before.intercept_])
        moved.append(float(np.linalg.norm(change)) * 0.5 * 60 / 2.0)
    assert max(moved) <= 2 * 0.7 + 1e-9
    assert max(moved) > 0.7  # more than one gradient
    in_batch = sum(step > 0 for step in moved)
    low, high = stats.binom.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], 60, 0.5)
    assert low <= in_batch <= high if batches == "poisson" else in_batch == 30


def test_gradients_are_those_of_the_loss() -> None:
    """Beside differences of the loss, where nothing is clipped."""
    x, y = rows_of(20)
    rows, weights = scaled(x, 1.0), np.random.default_rng(1).normal(size=(6, 3))

    def loss(at: Any) -> float:
        scores = rows @ at
        return float((np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(20), y]).sum())

    found = clipped_sum(rows, y, weights, LIPSCHITZ)
    for i, j in np.ndindex(weights.shape):
        step = np.zeros_like(weights)
        step[i, j] = 1e-5
        slope = (loss(weights + step) - loss(weights - step)) / 2e-5
        assert found[i, j] == pytest.approx(slope, abs=1e-7)


def test_no_row_curves_the_loss_more_than_the_smoothness() -> None:
    """The curvature is a Kronecker product of diag(p) - p p^T and the row's; even odds of two classes attain it."""
    chance, found = np.random.default_rng(2), [np.array([0.5, 0.5, 0.0])]
    found += list(chance.dirichlet([0.5] * 3, 200))
    largest = [float(np.linalg.eigvalsh(np.diag(p) - np.outer(p, p))[-1]) for p in found]
    longest = float((scaled(np.array([[1e9, 3.0]]), 1.0) ** 2).sum())
    assert longest == pytest.approx(2.0)
    assert max(largest) * longest == pytest.approx(SMOOTHNESS)


def test_rows_are_shortened_and_huge_ones_do_not_overflow() -> None:
    found = scaled(np.array([[3.0, 4.0], [30.0, 40.0], [0.0, 0.0], [1e300, -1e300]]), 10.0)
    half = math.sqrt(0.5)
    assert found == pytest.approx(np.array([[0.3, 0.4, 1], [0.6, 0.8, 1], [0, 0, 1], [half, -half, 1]]))


# --- chance ---


def test_noise_is_gaussian_and_a_function_of_seed_and_step() -> None:
    drawn = noise(3, 0, (40_000,))
    assert stats.kstest(drawn, "norm").pvalue > FALSE_ALARM
    assert (noise(3, 0, (40_000,)) == drawn).all()
    for other in (noise(3, 1, (40_000,)), noise(4, 0, (40_000,))):
        assert abs(float(np.corrcoef(drawn, other)[0, 1])) < stats.norm.isf(FALSE_ALARM / 2) / 200
    assert noise(3, 0, (200, 200)).ravel().tolist() == drawn.tolist()


def test_the_noise_of_a_fit_has_the_deviation_that_epsilon_is_computed_with() -> None:
    """One step from zero weights: noise_multiplier * clip on the sum, in every entry."""
    x, y = rows_of(50, features=99)
    given = {"clip": 0.5, "rate": 1.0, "steps": 1, "learning_rate": 3.0, "average": 0.0, "seed": 8}
    noisy, plain = (DPSGDClassifier(level, **given).fit(x, y) for level in (2.0, 0.0))
    added = np.vstack([noisy.coef_.T - plain.coef_.T, noisy.intercept_ - plain.intercept_]) * 50 / 3.0
    squares = float((added**2).sum()) / (2.0 * 0.5) ** 2
    low, high = stats.chi2.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], added.size)
    assert low < squares < high


def test_equal_seeds_give_equal_models_and_others_do_not() -> None:
    x, y = rows_of(80)
    one, again, other = (DPSGDClassifier(1.0, steps=5, seed=seed).fit(x, y) for seed in (1, 1, 2))
    assert (one.coef_ == again.coef_).all()
    assert (one.coef_ != other.coef_).all()


def test_poisson_batches_are_of_independent_rows_with_the_rate() -> None:
    x, y = rows_of(500)
    model = DPSGDClassifier(1.0, rate=0.1, steps=1).fit(x, y)
    drawn = np.array([model._batch(0, step, model.n_rows_) for step in range(200)])
    low, high = stats.binom.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], drawn.size, 0.1)
    assert low <= drawn.sum() <= high
    sizes = drawn.sum(axis=1)  # fixed sizes would have no variance
    chi = float(((sizes - 50) ** 2).sum()) / (500 * 0.1 * 0.9)
    assert stats.chi2.ppf(FALSE_ALARM, 200) < chi < stats.chi2.isf(FALSE_ALARM, 200)


def test_passes_go_through_every_row_once() -> None:
    x, y = rows_of(53)
    model = DPSGDClassifier(1.0, rate=0.1, steps=1, batches="passes").fit(x, y)
    first = [model._batch(0, step, model.n_rows_).tolist() for step in range(10)]
    assert [row for batch in first for row in batch] == list(range(53))
    assert [model._batch(0, step, model.n_rows_).tolist() for step in range(10, 20)] == first


# --- scikit-learn ---


TWO_FITS = {
    "check_pipeline_consistency",
    "check_fit_idempotent",
    "check_supervised_y_2d",
    "check_classifier_data_not_an_array",
}
"""Checks that two fits agree, which they must not where each draws fresh noise."""


@pytest.mark.slow
def test_every_check_of_scikit_learn_passes() -> None:
    """Without noise that of a well separated problem too; with noise the default settings pass all as well."""
    for model in (
        DPSGDClassifier(seed=0),
        DPSGDClassifier(
            0.0, clip=2.0, batches="passes"
        ),  # a fresh seed, but no noise that a check could stumble on
    ):
        found = check_estimator(model, on_fail=None, on_skip=None)
        status = {check["check_name"]: check["status"] for check in found}
        assert len(status) > 40
        skipped = {name for name, what in status.items() if what == "skipped"}
        twice = TWO_FITS if model.seed is None else set()
        assert skipped <= {"check_array_api_input", *twice}  # the first needs SCIPY_ARRAY_API
        assert {name for name, what in status.items() if what not in ("passed", "skipped")} <= twice


@pytest.mark.slow
def test_without_noise_it_finds_the_model_of_logistic_regression() -> None:
    """All rows, nothing clipped: plain gradient descent, as far as 3,000 steps take it."""
    x, y = load_digits(return_X_y=True)
    x, y = x[:300], y[:300] % 3
    given = {"clip": 2.0, "rate": 1.0, "steps": 3000, "learning_rate": 2.0, "average": 0.0}
    found = DPSGDClassifier(0.0, bound=60.0, **given).fit(x, y)
    exact = LogisticRegression(C=1e4, max_iter=5000).fit(
        x / np.maximum(np.linalg.norm(x, axis=1), 60)[:, None], y
    )

    def loss(p: Any) -> float:
        return -float(np.log(p[np.arange(300), y]).mean())

    mine, constant = loss(found.predict_proba(x)), -float(np.log(np.bincount(y) / 300)[y].mean())
    best = loss(exact.predict_proba(x / np.maximum(np.linalg.norm(x, axis=1), 60)[:, None]))
    assert best < mine < 0.7 * constant
    assert found.score(x, y) > 0.75


def test_two_classes_that_are_words() -> None:
    x, y = rows_of(60, classes=2)
    x[:, 0] = 2.0 * y - 1
    model = DPSGDClassifier(0.1, steps=60, bound=1e9, seed=0).fit(
        x / np.abs(x).max(), np.array(["no", "yes"])[y]
    )
    assert model.classes_.tolist() == ["no", "yes"]
    probabilities = model.predict_proba(x)
    assert probabilities.sum(axis=1) == pytest.approx(np.ones(60))
    assert ((model.decision_function(x) > 0) == (model.predict(x) == "yes")).all()


def test_classes_that_do_not_occur_are_kept() -> None:
    """Else which classes there are would follow from the labels."""
    x, y = rows_of(30, classes=2)
    model = DPSGDClassifier(classes=[0, 1, 2], steps=3).fit(x, y)
    assert model.predict_proba(x).shape == (30, 3)
    with pytest.raises(InputError, match=r"labels that are not in classes: \[1\]"):
        DPSGDClassifier(classes=[0, 2]).fit(x, y)
    with pytest.raises(InputError, match="ascending"):
        DPSGDClassifier(classes=[1, 0]).fit(x, y)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("noise_multiplier", -1.0), ("clip", 0.0), ("bound", math.inf), ("rate", 0.0), ("rate", 1.1),
        ("steps", 0), ("learning_rate", math.nan), ("average", 1.0), ("batches", "other"), ("seed", -1),
    ],
)  # fmt: skip
def test_arguments_out_of_range(name: str, value: Any) -> None:
    x, y = rows_of(20)
    with pytest.raises(InputError, match=name):
        DPSGDClassifier(**{name: value}).fit(x, y)


def test_passes_need_whole_batches() -> None:
    x, y = rows_of(20)
    with pytest.raises(InputError, match=r"rate = 0\.3: for batches in passes 1 / rate"):
        DPSGDClassifier(rate=0.3, batches="passes").fit(x, y)


# --- its epsilon ---

PASSING = {"batches": "passes", "average": 0.0, "clip": 2.0, "rate": 0.1, "steps": 30, "learning_rate": 2.0}


def test_epsilon_is_that_of_its_arguments() -> None:
    pytest.importorskip("dp_accounting")
    from p2p_sim.learning.training import dp_sgd_accounting as accounting

    model = DPSGDClassifier(2.0, rate=0.1, steps=30, clip=7.0)  # clipping norm and noise grow together
    assert model.epsilon(1e-5) == accounting.epsilon_poisson(2.0, 0.1, 30, 1e-5)
    assert model.epsilon(1e-5, "replace-one") > model.epsilon(1e-5)
    assert DPSGDClassifier(0.0).epsilon(1e-5) == math.inf
    with pytest.raises(InputError, match="epsilon_by_iteration"):
        DPSGDClassifier(**PASSING).epsilon(1e-5)


def test_epsilon_by_iteration_where_it_applies() -> None:
    from p2p_sim.learning.training import dp_sgd_accounting as accounting

    x, y = rows_of(60)
    found = DPSGDClassifier(3.0, **PASSING).fit(x, y).epsilon_by_iteration(1e-5, 0.5)
    assert found == accounting.epsilon_by_iteration(3.0, 10, 3, 1e-5, 0.5)
    wide = DPSGDClassifier(1.5, **PASSING | {"clip": 4.0}).fit(x, y)  # the same noise on the same gradients
    assert wide.epsilon_by_iteration(1e-5, 0.5) == found
    assert DPSGDClassifier(0.0, **PASSING).fit(x, y).epsilon_by_iteration(1e-5) == math.inf


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"batches": "poisson"}, "batches = 'poisson'"), ({"average": 0.5}, "average = 0.5"),
        ({"clip": 1.0}, "clip = 1.0"), ({"steps": 31}, "multiple of the 10 batches"),
        ({"learning_rate": 2.1}, "learning_rate = 2.1: at most 2"),
    ],
)  # fmt: skip
def test_epsilon_by_iteration_where_it_does_not(changed: dict[str, Any], told: str) -> None:
    x, y = rows_of(60)
    model = DPSGDClassifier(3.0, **PASSING | changed).fit(x, y)
    with pytest.raises(InputError, match=told):
        model.epsilon_by_iteration(1e-5)


def test_larger_batches_than_the_mean_need_shorter_steps() -> None:
    """53 rows in 10 batches: some have 6, so the loss of a batch is curved 6 / 5.3 times as much."""
    x, y = rows_of(53)
    model = DPSGDClassifier(3.0, **PASSING).fit(x, y)
    with pytest.raises(InputError, match=r"learning_rate = 2\.0: at most 1\.7666"):
        model.epsilon_by_iteration(1e-5)
    shorter = clone(model).set_params(learning_rate=1.766).fit(x, y)
    assert shorter.epsilon_by_iteration(1e-5) > 0


# --- seeds, later arguments, and numbers of numpy ---


def test_without_a_seed_each_fit_has_noise_of_its_own() -> None:
    x, y = rows_of(40)
    model = DPSGDClassifier(1.0, steps=2)
    one = model.fit(x, y).coef_
    assert (one != model.fit(x, y).coef_).all()
    assert model.seed is None


def test_what_is_set_later_changes_nothing_of_the_fit() -> None:
    x, y = rows_of(60)
    model = DPSGDClassifier(0.0, **PASSING, seed=1).fit(x, y)
    before = model.predict_proba(x)
    model.set_params(noise_multiplier=40.0, bound=3.0, seed=2)
    assert model.epsilon_by_iteration(1e-5) == math.inf
    assert (model.predict_proba(x) == before).all()
    assert (
        DPSGDClassifier(0.0, seed=1, steps=2).fit(x, y).set_params(noise_multiplier=9.0).epsilon(1e-5)
        == math.inf
    )


def test_small_integers_of_numpy_do_not_undo_the_noise() -> None:
    """16 * 16 is 0 as eight bits: no noise at all."""
    x, y = rows_of(40)
    given = {"steps": 2, "seed": 5, "average": 0.0}
    small = DPSGDClassifier(np.uint8(16), clip=np.uint8(16), **given).fit(x, y)
    assert (small.coef_ == DPSGDClassifier(16.0, clip=16.0, **given).fit(x, y).coef_).all()
