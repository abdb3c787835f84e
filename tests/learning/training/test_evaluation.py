"""Split, models, and the comparison of released with true labels."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from p2p_sim.core import held_out_rows
from p2p_sim.core.errors import InputError
from p2p_sim.core.random_words import stream, words
from p2p_sim.learning.data.datasets import load
from p2p_sim.learning.training import evaluation
from p2p_sim.learning.training.evaluation import compare, split
from p2p_sim.learning.training.kmeans import kmeans
from p2p_sim.learning.training.models import make

KNOWN_SPLIT = [8, 14, 17, 19]  # by a Philox4x64-10 in pure Python


def test_split_is_the_smallest_words():
    chosen = split(10, seed=7, test=0.3)
    ranks = sorted(range(10), key=lambda row: int(words(7, stream("split", "test", 0), 0, 10)[row]))
    assert set(np.flatnonzero(chosen).tolist()) == set(ranks[:3])


def test_split_known_answer():
    assert np.flatnonzero(split(20, seed=0)).tolist() == KNOWN_SPLIT


def test_split_is_of_the_right_size_and_seeded():
    assert split(1797, seed=1).sum() == 359
    assert (split(500, seed=1) == split(500, seed=1)).all()
    assert (split(500, seed=1) != split(500, seed=2)).any()
    assert split(500, seed=2**64 - 1, test=0.5).sum() == 250


def test_split_ties_go_by_index(monkeypatch):
    monkeypatch.setattr(held_out_rows, "words", lambda seed, stream, start, count: np.zeros(count, np.uint64))
    assert split(1000, seed=0, test=0.2).tolist() == [True] * 200 + [False] * 800


@pytest.mark.parametrize(
    ("n", "test"), [(0, 0.2), (1, 0.5), (2, 0.1), (10, 0.0), (10, 1.0), (10, float("nan"))]
)
def test_split_leaves_no_part_empty(n, test):
    with pytest.raises(InputError, match="test share"):
        split(n, 0, test)


def test_split_refuses_a_seed_out_of_range():
    with pytest.raises(InputError, match="seed = -1"):
        split(10, -1)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("logistic-regression", "LogisticRegression"),
        ("LogisticRegression", "LogisticRegression"),
        ("random-forest", "RandomForestClassifier"),
        ("RandomForestClassifier", "RandomForestClassifier"),
        ("gaussian_nb", "GaussianNB"),
        ("decision tree", "DecisionTreeClassifier"),
        ("svc", "SVC"),
    ],
)
def test_models_by_name(name, kind):
    steps = make(name).steps
    assert [type(step).__name__ for _, step in steps] == ["StandardScaler", kind]
    if "random_state" in steps[1][1].get_params():
        assert steps[1][1].random_state == 0


def test_model_parameters():
    assert make("random-forest", n_estimators=7, random_state=3)[-1].n_estimators == 7
    assert make("random-forest", random_state=3)[-1].random_state == 3
    with pytest.raises(InputError, match=r"no parameter 'trees'; it has n_estimators"):
        make("random-forest", trees=7)


def test_unknown_models():
    with pytest.raises(
        InputError, match=r"unknown model 'random-forrest'; similar names are RandomForestClassifier"
    ):
        make("random-forrest")
    with pytest.raises(InputError, match=r"unknown model 'qqqq'; similar names are LogisticRegression"):
        make("qqqq")
    with pytest.raises(InputError, match="needs estimators"):
        make("VotingClassifier")


@pytest.fixture(scope="module")
def digits():
    data = load("digits")
    test = split(len(data.y), seed=0)
    return data.x[~test], data.y[~test], data.x[test], data.y[test]


def test_compare_on_true_labels_of_all(digits):
    x, y, x_test, y_test = digits
    found = compare(x, y, x_test, y_test, np.arange(len(y)), y)
    assert found.accuracy_private == found.accuracy_true
    assert 0.86 < found.accuracy_true < 0.92
    assert (found.trained_on, found.of, found.test_rows) == (1438, 1438, 359)
    assert found.baseline == np.mean(y_test == (y.mean() > 0.5))
    assert found.note == ""
    assert found.model == "logistic-regression"


def test_compare_sees_only_released_labels(digits):
    x, y, x_test, y_test = digits
    sender = np.arange(0, len(y), 4)
    honest = compare(x, y, x_test, y_test, sender, y[sender])
    flipped = compare(x, y, x_test, y_test, sender, ~y[sender])
    assert honest.trained_on == len(sender)
    assert honest.accuracy_private < honest.accuracy_true
    assert flipped.accuracy_private == pytest.approx(1 - honest.accuracy_private)
    assert flipped.accuracy_true == honest.accuracy_true


def test_compare_counts_a_repeated_sender(digits):
    x, y, x_test, y_test = digits
    sender = np.r_[np.arange(50), 3, 3]
    assert compare(x, y, x_test, y_test, sender, y[sender]).trained_on == 52


def test_compare_with_classes():
    data = load("digits", multiclass=True)
    test = split(len(data.y), seed=0)
    train = np.flatnonzero(~test)
    parts = (data.x[train], data.y[train], data.x[test], data.y[test])
    found = compare(*parts, np.arange(len(train)), parts[1], model="decision-tree")
    assert found.accuracy_private == found.accuracy_true > 0.75
    assert found.baseline < 0.2


def test_no_released_labels_give_the_majority(digits):
    x, y, x_test, y_test = digits
    found = compare(x, y, x_test, y_test, np.array([], int), np.array([], bool))
    assert found.accuracy_private == found.baseline
    assert found.trained_on == 0
    assert "no label among the released labels: a constant classifier" in found.note


def test_released_labels_of_one_class_give_that_class(digits):
    x, y, x_test, y_test = digits
    for only in (True, False):
        found = compare(x, y, x_test, y_test, np.arange(9), np.full(9, only))
        assert found.accuracy_private == np.mean(y_test == only)
        assert f"one class among the released labels: a constant classifier, {only}" in found.note


def test_failing_to_converge_is_said_and_no_crash(digits, monkeypatch):
    x, y, x_test, y_test = digits
    monkeypatch.setattr(evaluation, "make", lambda name: make(name, max_iter=2))
    found = compare(x, y, x_test, y_test, np.arange(len(y)), y)
    assert "logistic-regression on the released labels: lbfgs failed to converge" in found.note
    assert "on the true labels" in found.note


def test_other_warnings_reach_the_caller(digits, monkeypatch):
    class Loud:
        classes_ = np.array([False, True])

        def fit(self, x, y):
            warnings.warn("look here", UserWarning, stacklevel=1)
            return self

        def predict(self, x):
            return np.zeros(len(x), bool)

        def predict_proba(self, x):
            return np.tile([1.0, 0.0], (len(x), 1))

    monkeypatch.setattr(evaluation, "make", lambda name: Loud())
    x, y, x_test, y_test = digits
    with pytest.warns(UserWarning, match="look here"):
        compare(x, y, x_test, y_test, np.arange(len(y)), y)


def test_a_model_that_cannot_learn_is_named(digits):
    x, y, x_test, y_test = digits
    with pytest.raises(InputError, match=r"model 'multinomial-nb' cannot learn.*Negative values"):
        compare(x, y, x_test, y_test, np.arange(len(y)), y, model="multinomial-nb")


@pytest.mark.parametrize(
    ("sender", "released", "says"),
    [
        ([0, 1], [True], "give one label a sender"),
        ([0, 99999], [True, False], "whole numbers from 0 to 1437"),
        ([-1, 2], [True, False], "whole numbers from 0 to 1437"),
        ([0.0, 1.0], [True, False], "whole numbers from 0 to 1437"),
    ],
)
def test_compare_refuses_bad_senders(digits, sender, released, says):
    with pytest.raises(InputError, match=says):
        compare(*digits, np.array(sender), np.array(released))


def test_compare_refuses_shapes_that_do_not_match(digits):
    x, y, x_test, y_test = digits
    none = np.array([], int)
    with pytest.raises(InputError, match="x_train"):
        compare(x[:-1], y, x_test, y_test, none, none)
    with pytest.raises(InputError, match="x_test"):
        compare(x, y, x_test[:0], y_test[:0], none, none)
    with pytest.raises(InputError, match=r"x_released has shape \(1, 64\); give \(2, 64\)"):
        compare(x, y, x_test, y_test, np.arange(2), y[:2], x_released=x[:1])
    with pytest.raises(InputError, match="64 features, x_test 63"):
        compare(x, y, x_test[:, 1:], y_test, none, none)


def test_adult_learns(named):
    data = named("adult")
    train, test = np.flatnonzero(~data.test), data.test
    y = data.y[train]
    found = compare(data.x[train], y, data.x[test], data.y[test], np.arange(0, len(y), 10), y[::10])
    assert 0.845 < found.accuracy_true < 0.86
    assert 0.83 < found.accuracy_private < found.accuracy_true
    assert round(found.baseline, 3) == 0.764
    assert found.note == ""


def test_clusters_of_a_real_set_are_useful():
    data = load("digits")
    cluster = kmeans(data.x, 20, seed=0)
    many = load("digits", multiclass=True).y
    agree = sum(np.bincount(many[cluster == c]).max() for c in range(20)) / len(many)
    assert agree > 0.6  # by chance it would be near 0.15
