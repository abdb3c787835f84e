"""Proportion matching: its gradient, what it learns, and which users it takes for members of a bag."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim import Population
from p2p_sim.learning import experiment
from p2p_sim.learning.data.datasets import Dataset
from p2p_sim.learning.training.bag_training import MODEL, Proportions, of_run
from p2p_sim.learning.training.losses import match
from protocols import LabelProportions, LaplaceLabelProportions, RandomizedResponse, SecureAggregation
from tests.learning.training.test_noise_correction import FALSE_ALARM, gain

pytestmark = pytest.mark.slow


def examples(n: int, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4))
    return x, rng.random(n) < 1 / (1 + np.exp(-(2 * x[:, 0] - x[:, 1] + 0.5)))


def dataset(x: Any, y: Any) -> Dataset:
    names = ("a", "b", "c", "d")
    return Dataset("made up", x, y, None, names, "y", ("no", "yes"), "yes", "this test", None)


def proportions(y: Any, k: int) -> Proportions:
    bag = np.arange(len(y)) // k
    return Proportions(bag, np.bincount(bag, weights=y) / np.bincount(bag), np.bincount(bag))


@pytest.mark.parametrize("k", [2, 8, 32])
def test_it_learns_from_bags(k: int) -> None:
    """As well as the labels themselves teach, as far as the test rows can tell; a twin is told of other bags."""
    (x, y), (x_test, y_test) = examples(6400), examples(4000, seed=1)
    best = match(x, proportions(y, 1).counts()).predict(x_test) == y_test
    found = match(x, proportions(y, k).counts()).predict(x_test) == y_test
    assert gain(best, found) > FALSE_ALARM
    mixed = np.random.default_rng(2).permutation(len(y))
    wrong = match(x, proportions(y[mixed], k).counts()).predict(x_test) == y_test
    assert gain(best, wrong) < FALSE_ALARM


def test_proportions_beyond_0_to_1_are_taken_for_the_nearer() -> None:
    told = Proportions(np.array([0, 1, 1, 2]), np.array([-0.5, 0.25, 1.5]), np.array([1, 4, 2]))
    assert told.beyond == 2
    assert told.counts().counts.tolist() == [[1, 0], [3, 1], [0, 2]]


def test_members_of_bags_are_those_of_the_run() -> None:
    people = Population.from_arrays(y=np.arange(50) % 3 == 0, cluster=np.arange(50) % 4)
    run = p2p_sim.run(LabelProportions(5), people, seed=0)
    told = of_run(run.output("learner"), run.source, people)
    assert told is not None
    assert np.allclose(np.bincount(told.bag, weights=people.y) / np.bincount(told.bag), told.share)
    assert of_run({"y": people.y}, run.source, people) is None


@pytest.mark.parametrize(
    "protocol",
    [
        LabelProportions(8),
        LaplaceLabelProportions(2.0, 8, 5),
        SecureAggregation(8),
        SecureAggregation(8, epsilon=2.0),
    ],
    ids=lambda p: type(p).__name__,
)
def test_a_run_trains_on_its_bags(protocol: Any) -> None:
    x, y = examples(1500)
    data = dataset(x, y)
    found = experiment.learn(protocol, data, seed=1).comparison
    assert found is not None
    assert found.model == MODEL
    assert found.trained_on == 150
    assert found.accuracy_private > found.baseline
    assert found.accuracy_true >= found.accuracy_private


def test_where_every_bag_is_refused_the_note_says_so() -> None:
    x, y = examples(60)
    data = dataset(x, y)
    found = experiment.learn(SecureAggregation(80), data, seed=0).comparison
    assert found is not None
    assert found.trained_on == 0
    assert found.accuracy_private == found.baseline
    assert "no proportion was released" in found.note


def test_the_note_counts_what_was_refused_and_what_lay_beyond() -> None:
    x, y = examples(1500)
    data = dataset(x, y)
    some = experiment.learn(SecureAggregation(8, threshold=8), data, faults=["drop=0.02"], seed=0)
    refused = int(some.run.output("learner")["refused"].sum())
    assert some.comparison is not None
    assert 0 < refused < 150
    assert some.comparison.trained_on == 150 - refused
    assert (
        f"{refused:,} of 150 bags were refused: 8 users must stay, in {refused:,} of them"
        in some.comparison.note
    )
    noisy = experiment.learn(LaplaceLabelProportions(0.5, 4), data, seed=0)
    share = noisy.run.output("learner")["total"] / noisy.run.output("learner")["size"]
    beyond = int(((share < 0) | (share > 1)).sum())
    assert noisy.comparison is not None
    assert beyond > 0
    assert noisy.comparison.note.startswith(f"{beyond:,} proportions were noised beyond 0 to 1")
    assert noisy.comparison.accuracy_corrected is None


def test_a_refusal_has_the_numbers() -> None:
    """A bag too small, one of whom too few stayed, one whose masks nobody can take off, and one that is fine."""
    columns = {
        "bag": np.arange(4), "joined": np.array([5, 9, 8, 8]), "size": np.array([5, 4, 7, 8]),
        "total": np.array([0, 0, 0, 3]), "refused": np.array([True, True, True, False]),
    }  # fmt: skip
    people = Population.from_arrays(y=np.zeros(33, np.bool_), cluster=np.repeat([0, 1, 2, 3], [5, 9, 8, 11]))
    protocol = SecureAggregation(8, threshold=6)
    told = of_run(columns, protocol, people)
    assert told is not None
    assert told.refused == (
        "3 of 4 bags were refused: 6 users must stay, in 2 of them fewer did (in one 4 of 9), in 1 secrets of somebody "
        "were lost"
    )
    alone = of_run({name: column[2:] for name, column in columns.items()}, protocol, people)
    assert alone is not None
    assert alone.refused == "1 of 2 bags were refused: in 1 secrets of somebody were lost"
    columns.pop("joined")
    own = of_run(columns, protocol, people)
    assert own is not None
    assert own.refused == "3 of 4 bags were refused"
    fine = of_run({name: column[3:] for name, column in columns.items()}, protocol, people)
    assert fine is not None
    assert fine.refused == ""


def test_labels_are_trained_on_as_before() -> None:
    x, y = examples(200)
    data = dataset(x, y)
    found = experiment.learn(RandomizedResponse(2.0), data, seed=0).comparison
    assert found is not None
    assert found.what == "labels"
