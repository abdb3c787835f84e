"""Networks: what they learn, whose noise they undo, that equal arguments give equal bits, and scikit-learn's checks."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.utils.estimator_checks import check_estimator

from p2p_sim.core.errors import InputError
from p2p_sim.learning.training import losses, networks
from p2p_sim.learning.training.networks import ConvNetClassifier, EmbeddingClassifier, hashed
from p2p_sim.privacy import DenseMatrices

SMALL = ConvNetClassifier(
    (8, 8), channels=(8, 16), kernel=3, hidden=32, batch_size=32, epochs=12, learning_rate=1e-2
)


@pytest.fixture
def torch() -> Any:
    """Skip where the extra is not installed."""
    return pytest.importorskip("torch")


@pytest.fixture(scope="module")
def digits() -> tuple[Any, Any, Any, Any]:
    x, y = load_digits(return_X_y=True)
    return x[:900], y[:900], x[900:], y[900:]


def table(rows: int, seed: int = 0) -> tuple[Any, Any]:
    """Two columns of texts; the label is whether both are of the same half of the alphabet."""
    rng = np.random.default_rng(seed)
    letters = rng.integers(0, 8, (rows, 2))
    x = np.array(list("abcdefgh"), object)[letters]
    return x, (letters[:, 0] < 4) == (letters[:, 1] < 4)


# --- what they learn ---


@pytest.mark.slow
def test_images_are_learnt(torch: Any, digits: Any) -> None:
    x, y, x_test, y_test = digits
    model = clone(SMALL).fit(x, y)
    assert model.score(x_test, y_test) > 0.9  # logistic regression has 0.89
    chance = model.predict_proba(x_test)
    np.testing.assert_allclose(chance.sum(axis=1), 1, atol=1e-12)
    assert (model.classes_[chance.argmax(axis=1)] == model.predict(x_test)).all()


@pytest.mark.slow
def test_mixing_is_learnt_too_and_makes_a_model_less_sure(torch: Any, digits: Any) -> None:
    x, y, x_test, y_test = digits
    plain, mixed = (clone(SMALL).set_params(mixup=mixup).fit(x, y) for mixup in (0.0, 4.0))
    assert mixed.score(x_test, y_test) > 0.9
    assert mixed.predict_proba(x).max(axis=1).mean() < plain.predict_proba(x).max(axis=1).mean() - 0.05


def test_how_much_rows_are_mixed() -> None:
    model = ConvNetClassifier(mixup=2.0, epochs=2, batch_size=100)
    batches = list(model._batches(950))
    assert [len(batch) for batch, _, _ in batches] == [*[100] * 9, 50] * 2
    shares = np.concatenate([share for _, _, share in batches])
    # Beta(2, 2) has variance 1/20; means of 1,900 are five standard errors off once in 2 million
    assert abs(shares.mean() - 0.5) < 5 * np.sqrt(0.05 / 1900)
    assert 0.04 < shares.var() < 0.06
    for low in (0, 10):
        rows = np.concatenate([batch for batch, _, _ in batches[low : low + 10]])
        partners = np.concatenate([partner for _, partner, _ in batches[low : low + 10]])
        assert (np.sort(rows) == np.arange(950)).all()
        assert (np.sort(partners) == np.arange(950)).all()
        assert (rows != partners).all()


def test_categories_are_learnt_together(torch: Any) -> None:
    """No column alone tells anything of the label."""
    x, y = table(600)
    x_test, y_test = table(200, seed=1)
    model = EmbeddingClassifier(buckets=1024, epochs=20, batch_size=32).fit(x, y)
    assert model.score(x_test, y_test) > 0.97
    x_test[:50, 0] = "never seen"
    assert np.isfinite(model.predict_proba(x_test)).all()


def test_columns_may_be_numbers(torch: Any) -> None:
    """One that is hashed tells of no value that was not seen; one that is a number does, also with gaps."""
    rng = np.random.default_rng(0)
    income = rng.normal(30_000, 10_000, 1000)
    x = np.stack([rng.choice(["a", "b"], 1000), income.astype(object)], axis=1)
    y = income > 30_000
    x[:20, 1] = np.nan
    given = {"buckets": 256, "epochs": 15, "batch_size": 32}
    model = EmbeddingClassifier(numeric=(1,), **given).fit(x[:500], y[:500])
    assert model.score(x[500:], y[500:]) > 0.95
    assert EmbeddingClassifier(**given).fit(x[:500], y[:500]).score(x[500:], y[500:]) < 0.65
    assert model.predict_proba(np.array([["a", np.nan]], object)).shape == (1, 2)


# --- noise ---


def test_losses_and_slopes_are_those_of_the_regressions(torch: Any) -> None:
    rng = np.random.default_rng(0)
    scores, weights = rng.normal(size=(50, 4)), rng.normal(size=(50, 4))
    likelihood = rng.random((50, 4)) * (rng.random((50, 4)) < 0.7)
    likelihood[:, 0] = 1.0
    for mine, other, targets in (
        (networks._weighted, losses.weighted, weights),
        (networks._forward, losses.from_likelihoods, likelihood),
    ):
        given = torch.tensor(scores, requires_grad=True)
        value = mine(torch, given, torch.tensor(targets)).sum()
        value.backward()
        expected, slope = other(scores, targets)
        assert value.item() == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(given.grad.numpy(), slope, atol=1e-12)


@pytest.mark.slow
def test_asymmetric_noise_is_undone(torch: Any, digits: Any) -> None:
    """Digits of 5 and more are mostly reported as less: a plain model says less of all; both corrections do not."""
    x, y, x_test, y_test = digits
    matrix = np.array([[1.0, 0.0], [0.6, 0.4]])
    lies = np.random.default_rng(0).random(len(y)) < 0.6
    said = ((y >= 5) & ~lies).astype(np.int64)
    evidence = DenseMatrices(matrix).evidence(np.arange(len(y)), said)
    true = (y_test >= 5).astype(np.int64)
    model = clone(SMALL).set_params(epochs=5, weight_decay=0.1)
    plain = clone(model).fit(x, said).score(x_test, true)
    forward = clone(model).fit_likelihoods(x, evidence.likelihood).score(x_test, true)
    backward = clone(model).fit_losses(x, evidence.unbiased()).score(x_test, true)
    assert plain < 0.6
    assert min(forward, backward) > 0.75


def test_labels_are_weights_and_likelihoods_too(torch: Any, digits: Any) -> None:
    x, y, x_test, _ = digits
    model = clone(SMALL).set_params(epochs=1)
    one_hot, by_label = np.eye(10)[y], clone(model).fit(x, y)
    by_weight = clone(model).fit_losses(x, one_hot)
    np.testing.assert_array_equal(by_weight.predict_proba(x_test), by_label.predict_proba(x_test))
    by_likelihood = clone(model).fit_likelihoods(x, 0.25 * one_hot)  # up to a factor
    np.testing.assert_allclose(by_likelihood.predict_proba(x_test), by_label.predict_proba(x_test), atol=1e-3)


def test_the_lines_of_the_documents_run(torch: Any) -> None:
    page = (Path(__file__).parents[3] / "docs" / "learning.md").read_text()
    (block,) = (part.split("```")[0] for part in page.split("```py\n")[1:])
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    evidence = DenseMatrices([[0.8, 0.2], [0.3, 0.7]]).evidence(np.arange(60), y)
    frame = np.concatenate([rng.random((60, 5)), y[:, None]], axis=1)
    made: dict[str, Any] = {"images": rng.random((60, 784)), "y": y, "evidence": evidence, "frame": frame}
    exec(block, made)
    assert made["table"].predict_proba(frame).shape == (60, 2)


# --- the same bits ---


@pytest.mark.parametrize("model", [SMALL, EmbeddingClassifier(256, hidden=8)], ids=["images", "categories"])
def test_equal_arguments_give_equal_bits_and_leave_no_trace(torch: Any, digits: Any, model: Any) -> None:
    x, y = digits[0][:200], digits[1][:200]
    model = clone(model).set_params(epochs=2)
    before, threads = torch.get_rng_state(), torch.get_num_threads()
    first = clone(model).fit(x, y).predict_proba(x)
    assert torch.equal(before, torch.get_rng_state())
    try:
        for outside in (1, 3):
            torch.set_num_threads(outside)
            torch.manual_seed(outside)
            with torch.no_grad():
                again = clone(model).fit(x, y)
            assert torch.get_num_threads() == outside
            np.testing.assert_array_equal(first, again.predict_proba(x))
    finally:
        torch.set_num_threads(threads)
        torch.set_rng_state(before)
    assert (clone(model).set_params(seed=1).fit(x, y).predict_proba(x) != first).any()
    kept = pickle.loads(pickle.dumps(again))
    np.testing.assert_array_equal(kept.predict_proba(x), first)


def test_threads_are_set_back_when_a_fit_fails(
    torch: Any, monkeypatch: pytest.MonkeyPatch, digits: Any
) -> None:
    def fails(*_: Any) -> Any:
        raise RuntimeError("a fit that fails")

    outside = torch.get_num_threads()
    monkeypatch.setattr(networks, "_pace", fails)
    with pytest.raises(RuntimeError, match="a fit that fails"):
        clone(SMALL).set_params(threads=outside + 1).fit(digits[0], digits[1])
    assert torch.get_num_threads() == outside


@pytest.mark.slow
def test_buckets_are_the_same_everywhere() -> None:
    column = np.array(["a", "b", 1, 1.5, None], object)
    code = (
        "import numpy as np; from p2p_sim.learning.training.networks import hashed; "
        f"print(hashed(np.array({column.tolist()}, object), 3, 10**6).tolist())"
    )
    seed = "1" if os.environ.get("PYTHONHASHSEED") == "0" else "0"  # not that of this process
    out = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": seed},
    )
    assert out.stdout.strip() == str(hashed(column, 3, 10**6).tolist())


def test_equal_values_have_one_bucket_and_others_their_own() -> None:
    few = hashed(np.array([1, 1.0, np.float32(1), True, "1", None, np.nan, "", 2, pd.NA], object), 0, 10**9)
    assert len(set(few[:4].tolist())) == 1
    assert few[5] == few[6] == few[9]
    assert len(set(few[[0, 4, 5, 7, 8]].tolist())) == 5
    assert (hashed(np.array([1.0, 2.0]), 0, 10**9) == few[[0, 8]]).all()
    assert (hashed(np.array([1, 2]), 0, 10**9) == few[[0, 8]]).all()
    assert (hashed(np.array([1, 2]), 1, 10**9) != few[[0, 8]]).all()  # another column
    many = hashed(np.arange(100_000), 0, 10)
    assert many.min() == 0
    assert many.max() == 9
    # a bucket has 10,000 of them, with a standard deviation of 95
    assert np.abs(np.bincount(many) - 10_000).max() < 6 * 95


# --- scikit-learn ---


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [
        ConvNetClassifier(channels=(4, 4), kernel=3, hidden=16, batch_size=32, epochs=20, learning_rate=1e-2),
        EmbeddingClassifier(256, hidden=16, batch_size=32, epochs=20),
    ],
    ids=["images", "categories"],
)
def test_every_check_of_scikit_learn_passes(torch: Any, model: Any) -> None:
    found = check_estimator(model, on_fail=None, on_skip=None)
    status = {check["check_name"]: check["status"] for check in found}
    assert len(status) > 40
    assert {name for name, what in status.items() if what not in ("passed", "skipped")} <= {
        # a row twice as heavy is in one batch, two equal ones may be in two
        "check_sample_weight_equivalence_on_dense_data"
    }


# --- bad input ---


@pytest.mark.parametrize("model", [ConvNetClassifier(), EmbeddingClassifier()])
def test_without_pytorch_an_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch, model: Any) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(InputError, match=r"needs PyTorch, .*: install it, pip install torch"):
        model.fit([[1.0], [2.0]], [0, 1])


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (ConvNetClassifier((2, 3)), "shape = \\(2, 3\\) has 6 pixels, X has 4 features"),
        (ConvNetClassifier((4,)), "give \\(height, width\\)"),
        (ConvNetClassifier(kernel=4), "must be odd"),
        (ConvNetClassifier(channels=(3,)), "one a convolution"),
        (ConvNetClassifier(epochs=0), "epochs = 0"),
        (ConvNetClassifier(threads=0), "threads = 0"),
        (ConvNetClassifier(mixup=-1.0), "mixup = -1.0"),
        (ConvNetClassifier(learning_rate=0.0), "learning_rate = 0.0"),
        (EmbeddingClassifier(buckets=0), "buckets = 0"),
        (EmbeddingClassifier(numeric=(4,)), "numeric = 4"),
        (EmbeddingClassifier(numeric=(1, 1)), "each column once"),
    ],
)
def test_arguments_out_of_range_are_refused(model: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        model.fit(np.ones((3, 4)), [0, 1, 1])


@pytest.mark.parametrize(
    ("how", "targets", "words"),
    [
        ("fit_losses", np.ones(3), "shape \\(3, k\\)"),
        ("fit_losses", [[1.0, np.inf]] * 3, "not finite"),
        ("fit_losses", [[1.0, -1.0]] * 3, "sum to 0"),
        ("fit_likelihoods", [[1.0, 0.5], [0.0, 0.0], [0.2, 0.1]], "above 0"),
        ("fit_likelihoods", [[1.0, -0.5]] * 3, "goes down to -0.5"),
        ("fit_likelihoods", [[0.5, 0.5]] * 3, "says anything"),
    ],
)
def test_targets_that_do_not_fit_are_refused(how: str, targets: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        getattr(ConvNetClassifier(), how)(np.ones((3, 4)), targets)
    with pytest.raises(InputError, match="classes are"):
        getattr(ConvNetClassifier(), how)(np.ones((3, 4)), [[1.0, 0.0]] * 3, classes=["b", "a"])


def test_values_that_are_no_categories_are_refused() -> None:
    with pytest.raises(InputError, match="column 1"):
        EmbeddingClassifier().fit(np.array([["a", {}], ["b", 1]], object), [0, 1])
    with pytest.raises(InputError, match="column 0 has the value b'a'"):
        hashed(np.array([b"a"], object), 0, 10)
    with pytest.raises(InputError, match="leave it out of numeric"):
        EmbeddingClassifier(numeric=(0,)).fit(np.array([["a"], ["b"]], object), [0, 1])
