"""Labels that are numbers, end to end: clipped to a public range, reported, learnt by a regressor, and measured."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler

import p2p_sim
from p2p_sim.core import InputError
from p2p_sim.learning import experiment
from p2p_sim.learning.training import models, number_evaluation
from protocols import BinnedResponse, IntervalResponse, RandomizedResponse, UnbiasedResponse


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a file of 1,000 people whose hours follow from two features, a few of them beyond 60."""
    found = tmp_path_factory.mktemp("numbers") / "hours.csv"
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 1000)).round(3)
    hours = np.rint(np.clip(40 + 6 * a - 4 * b + rng.normal(size=1000), 0, 99)).astype(int)
    rows = [f"{x},{y},{z}" for x, y, z in zip(a, b, hours, strict=True)]
    found.write_text("a,b,hours\n" + "\n".join(rows) + "\n")
    return str(found)


def learnt(protocol: Any, path: str, **how: Any) -> experiment.Result:
    """Run a protocol among the people of a file."""
    return experiment.learn(protocol, path, label="hours", seed=1, progress=False, **how)


@pytest.mark.parametrize("kind", [UnbiasedResponse, BinnedResponse, IntervalResponse])
def test_the_errors_are_those_of_scikit_learn_on_the_released_numbers(kind: Any, path: str) -> None:
    found = learnt(kind(2.0, 16, 0.0, 60.0), path)
    assert found.comparison is None
    assert found.numbers is not None
    people, examples = found.examples.population, found.examples
    table = np.loadtxt(path, delimiter=",", skiprows=1)
    true = table[examples.rows, 2]
    tested = np.delete(table, examples.rows, axis=0)
    columns = found.run.output("learner")
    scaler = StandardScaler().fit(people.x)
    for which, x, y in (
        ("released", people.x[columns["sender"]], columns["value"]),
        ("true", people.x, true),
    ):
        model = Ridge(random_state=0).fit(StandardScaler().fit_transform(x), y)
        off = model.predict(scaler.transform(tested[:, :2].astype(np.float32))) - tested[:, 2]
        errors = found.numbers.errors[which]
        assert errors.rmse == pytest.approx(np.sqrt((off**2).mean()), rel=1e-4)
        assert errors.mae == pytest.approx(np.abs(off).mean(), rel=1e-4)
        assert errors.r2 == pytest.approx(
            1 - (off**2).sum() / ((tested[:, 2] - tested[:, 2].mean()) ** 2).sum(), rel=1e-4
        )
    off = true.mean() - tested[:, 2]
    assert found.numbers.errors["constant"].rmse == pytest.approx(np.sqrt((off**2).mean()))
    assert found.numbers.errors["true"].rmse < found.numbers.errors["released"].rmse
    assert found.run.notes["regression"]["errors"]["true"]["rmse"] == found.numbers.errors["true"].rmse


def test_numbers_beyond_the_range_are_clipped_and_counted(path: str) -> None:
    data = learnt(UnbiasedResponse(2.0, 16, 20.0, 50.0), path, model="none").run.notes["data"]
    hours = np.loadtxt(path, delimiter=",", skiprows=1)[:, 2]
    assert data["clipped"] == ((hours < 20) | (hours > 50)).sum() > 0
    assert data["range"] == [20.0, 50.0]


def test_a_range_is_never_taken_from_the_labels(path: str) -> None:
    """With the range of the defaults, 0 to 1, everything would be clipped to 1."""
    with pytest.raises(
        InputError, match=r"1,000 of 1,000 numbers, .* are outside low = 0 to high = 1.*--low, --high"
    ):
        learnt(UnbiasedResponse(2.0), path)


def test_a_row_of_evaluate_has_errors_in_the_place_of_accuracies(path: str) -> None:
    row = p2p_sim.evaluate(
        BinnedResponse(1.0, 8, 0.0, 99.0), path, label="hours", seed=1, views=["learner"]
    ).iloc[0]
    assert row["utility"] == "rmse"
    assert row["rmse[true]"] < row["rmse[released]"]
    assert row["rmse[constant]"] == pytest.approx(7.2, abs=1.0)
    assert row["model"] == "ridge"
    assert row["epsilon_nats[learner]"] == pytest.approx(1.0, abs=1e-5)
    assert "accuracy[released]" not in row
    other = p2p_sim.evaluate(RandomizedResponse(1.0), "breast-cancer", seed=1, views=[]).iloc[0]
    assert "rmse[released]" not in other
    assert other["model"] == "logistic-regression"


def test_synthetic_numbers_are_learnt_too() -> None:
    run = experiment.simulate(UnbiasedResponse(8.0, 4, 0.0, 3.0), 500, features=4, seed=1, progress=False)
    errors = run.notes["regression"]["errors"]
    assert errors["released"]["rmse"] < 0.8 * errors["constant"]["rmse"]


def test_errors_of_equal_numbers_have_no_r2() -> None:
    found = number_evaluation.measure(np.full(3, 2.0), np.array([1.0, 2.0, 3.0]))
    assert (found.rmse, found.mae, found.r2) == (pytest.approx(np.sqrt(2 / 3)), pytest.approx(2 / 3), None)


@pytest.mark.parametrize(
    ("protocol", "how", "words"),
    [
        (
            UnbiasedResponse(2.0, 16, 0.0, 60.0),
            {"model": "logistic-regression"},
            "is a classifier, .* such as Ridge",
        ),
        (UnbiasedResponse(2.0, 16, 0.0, 60.0), {"model": "lasoo"}, "similar names are Lasso"),
        (UnbiasedResponse(2.0, 16, 0.0, 60.0), {"canaries": 0.1}, "leave canaries out"),
        (RandomizedResponse(2.0), {}, "take a protocol for numbers, binned-response, .*--low, --high"),
    ],
)
def test_what_does_not_go_with_numbers_is_named(protocol: Any, how: Any, words: str, path: str) -> None:
    with pytest.raises(InputError, match=words):
        learnt(protocol, path, **how)


def test_a_regressor_is_no_classifier() -> None:
    with pytest.raises(InputError, match="is a regressor, and labels are classes here"):
        models.make("lasso")
    models.check("lasso")
    with pytest.raises(InputError, match="unknown model"):
        models.check("no-such-model")
