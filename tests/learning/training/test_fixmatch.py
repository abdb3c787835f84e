"""FixMatch: it learns from few labels, is a function of its seed, works as a student, and says what it needs."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from p2p_sim.core.errors import InputError
from p2p_sim.learning.training.fixmatch import FixMatchClassifier
from p2p_sim.learning.training.missing_package import MissingPackageError
from p2p_sim.learning.training.pate import PATEClassifier


def digits(known: int) -> tuple[Any, Any, Any, Any]:
    """Shuffled digits: 1,000 rows of which the first have labels, and test rows."""
    x, y = load_digits(return_X_y=True)
    mixed = np.random.default_rng(0).permutation(len(x))
    x, y = x[mixed], y[mixed]
    few = np.full(1000, -1)
    few[:known] = y[:known]
    return x[:1000], few, x[1000:], y[1000:]


@pytest.mark.slow
def test_it_learns_from_few_labels_and_more_than_these_teach() -> None:
    pytest.importorskip("torch")
    x, few, x_test, y_test = digits(30)
    plain = LogisticRegression(max_iter=500).fit(x[:30] / 16, few[:30]).score(x_test / 16, y_test)
    found = FixMatchClassifier(shape=(8, 8), hidden=16, batch=8, steps=300, threshold=0.9).fit(x, few)
    assert found.score(x_test, y_test) > plain + 0.03
    assert found.predict_proba(x_test).sum(axis=1) == pytest.approx(np.ones(len(x_test)))


def test_equal_seeds_give_equal_models_and_leave_torch_as_it_was() -> None:
    torch = pytest.importorskip("torch")
    x, few, x_test, _ = digits(30)
    model = FixMatchClassifier(shape=(8, 8), hidden=4, batch=8, steps=5, random_state=3)
    torch.manual_seed(1)
    expected, threads = torch.rand(1), torch.get_num_threads()
    torch.manual_seed(1)
    one = clone(model).fit(x, few).predict_proba(x_test)
    assert torch.rand(1) == expected
    assert torch.get_num_threads() == threads
    assert (clone(model).fit(x, few).predict_proba(x_test) == one).all()
    assert (clone(model).set_params(random_state=4).fit(x, few).predict_proba(x_test) != one).any()


def test_rows_without_a_label_count_by_their_weight() -> None:
    """At threshold 0 all do; at threshold 1 of a new network none."""
    pytest.importorskip("torch")
    x, few, x_test, _ = digits(30)
    model = FixMatchClassifier(shape=(8, 8), hidden=4, batch=8, steps=5)
    none, sure, all_of_them = (
        clone(model).set_params(weight=weight, threshold=threshold).fit(x, few).predict_proba(x_test)
        for weight, threshold in ((0, 0), (1, 1), (1, 0))
    )
    assert (none == sure).all()
    assert (none != all_of_them).any()


@pytest.mark.parametrize("who", ["student", "both"])
def test_a_student_and_teachers_of_pate(who: str) -> None:
    pytest.importorskip("torch")
    x, _, x_test, _ = digits(0)
    y = np.arange(len(x)) % 10
    network = FixMatchClassifier(shape=(8, 8), hidden=4, batch=8, steps=3)
    teacher = network if who == "both" else DecisionTreeClassifier()
    model = PATEClassifier(
        teacher, network, teachers=3, queries=40, noise=1.0, classes=range(10), semi_supervised=who
    )
    assert model.fit(x, y).predict_proba(x_test).shape == (len(x_test), 10)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"shape": (7, 8)}, r"shape = \(7, 8\): X has 64 features"), ({"shape": (2, 32)}, "shape = 2"),
        ({"shape": 64}, "shape = 64: give"), ({"hidden": 1}, "hidden = 1"), ({"threshold": 1.1}, "threshold = 1.1"),
        ({"weight": -1}, "weight = -1"), ({"steps": 0}, "steps = 0"), ({"batch": 0}, "batch = 0"),
        ({"ratio": 0}, "ratio = 0"), ({"learning_rate": 0}, "learning_rate = 0"),
        ({"random_state": None}, "random_state = None"),
    ],
)  # fmt: skip
def test_arguments_out_of_range(changed: dict[str, Any], message: str) -> None:
    pytest.importorskip("torch")
    x, few, _, _ = digits(30)
    with pytest.raises(InputError, match=message):
        FixMatchClassifier(**{"shape": (8, 8), "steps": 1} | changed).fit(x, few)


def test_labels_that_are_none() -> None:
    pytest.importorskip("torch")
    x, few, _, _ = digits(30)
    with pytest.raises(InputError, match="whole numbers"):
        FixMatchClassifier(shape=(8, 8)).fit(x, few.astype(float))
    with pytest.raises(InputError, match="one class is present"):
        FixMatchClassifier(shape=(8, 8)).fit(x, np.full(len(x), -1))


def test_without_torch_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    x, few, _, _ = digits(30)
    with pytest.raises(MissingPackageError, match=r"pip install torch"):
        FixMatchClassifier(shape=(8, 8)).fit(x, few)
    model = PATEClassifier(DecisionTreeClassifier(), FixMatchClassifier(shape=(8, 8)))
    with pytest.raises(MissingPackageError, match="FixMatch is trained by PyTorch"):
        model.fit(x[:60], np.arange(60) % 3)


def test_another_shape_set_later_does_not_change_what_is_trained() -> None:
    pytest.importorskip("torch")
    x, few, x_test, _ = digits(30)
    model = FixMatchClassifier(shape=(8, 8), hidden=4, batch=8, steps=2).fit(x, few)
    before = model.predict_proba(x_test)
    assert (model.set_params(shape=(4, 16)).predict_proba(x_test) == before).all()
