"""Randomized response on bins: which bins there are, what is reported, and which parameters are refused."""

from __future__ import annotations

import ast
import itertools
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim import InputError, Population, ProtocolError, privacy
from p2p_sim.learning import experiment
from protocols import BinnedResponse, IntervalResponse, RandomizedResponse, UnbiasedResponse


def error_of(prior: Any, ends: list[int], epsilon: float) -> float:
    """The least expected squared error with these bins, as the paper writes it: every bin's number by calculus."""
    labels = np.arange(len(prior))
    number, total = labels / (len(prior) - 1), 0.0
    for begin, end in itertools.pairwise(ends):
        weight = prior * np.where((labels >= begin) & (labels < end), math.exp(epsilon), 1.0)
        centre = weight @ number / weight.sum()
        total += weight @ (centre - number) ** 2
    return total / (math.exp(epsilon) + len(ends) - 2)


def all_partitions(labels: int) -> list[list[int]]:
    cuts = itertools.product([False, True], repeat=labels - 1)
    return [[0, *(i + 1 for i, cut in enumerate(each) if cut), labels] for each in cuts]


def chances(protocol: BinnedResponse, label: int) -> dict[int, Fraction]:
    """P(bin | label), from the exact enumeration of one user."""
    people = Population.from_arrays(y=np.array([label], np.uint8))
    found: dict[int, Fraction] = {}
    world = privacy.enumerate_view(protocol, people, to=(label + 1) % protocol.labels).world
    for ((report,), *_), chance in world.items():
        (place,) = ast.literal_eval(report[-1])
        found[place] = found.get(place, Fraction(0)) + chance
    return found


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 2.5, 5.0, 9.0])
def test_no_other_bins_have_a_smaller_error(epsilon: float) -> None:
    rng = np.random.default_rng(7)
    for labels in (2, 3, 5, 8):
        prior = rng.dirichlet(np.full(labels, 0.7)).clip(1e-4)
        prior /= prior.sum()
        protocol = BinnedResponse(epsilon, labels, prior=",".join(map(repr, prior.tolist())))
        bin_of, values = protocol.bins()
        lie = float(protocol.lying(len(values))) if len(values) > 1 else 0.0
        rows = np.full((labels, len(values)), lie / max(1, len(values) - 1))
        rows[np.arange(labels), bin_of] = 1 - lie
        numbers = protocol.numbers()
        error = float((prior[:, None] * rows * (values - numbers[:, None]) ** 2).sum())
        best = min(error_of(prior, ends, epsilon) for ends in all_partitions(labels))
        assert error == pytest.approx(best, rel=1e-8)
        assert (np.diff(bin_of) >= 0).all()


def test_bins_are_reported_as_often_as_the_paper_says() -> None:
    protocol = BinnedResponse(2.0, 5)
    bin_of, values = protocol.bins()
    assert 1 < len(values) < 5
    for label in range(5):
        found = chances(protocol, label)
        assert found.keys() == set(range(len(values)))
        for place, chance in found.items():
            gain = math.exp(2.0) if place == bin_of[label] else 1.0
            assert float(chance) == pytest.approx(gain / (math.exp(2.0) + len(values) - 1), abs=1e-15)


def test_no_budget_has_one_bin_and_any_budget_each_number() -> None:
    assert len(BinnedResponse(0.0, 16).bins()[1]) == 1
    bin_of, values = BinnedResponse(math.inf, 16, -1.0, 1.0).bins()
    assert (bin_of == np.arange(16)).all()
    assert values == pytest.approx(np.linspace(-1, 1, 16), abs=1e-15)


def test_the_numbers_lose_less_than_those_of_randomized_response() -> None:
    protocol = BinnedResponse(1.0, 16, 0.0, 100.0)
    people = Population.from_arrays(y=np.arange(16_000, dtype=np.uint8) % 16)
    numbers = protocol.numbers()[people.y]
    mine = p2p_sim.run(protocol, people, seed=3).output("learner")["value"]
    said = p2p_sim.run(RandomizedResponse(1.0, 16), people, seed=3).output("learner")["y"]
    assert ((mine - numbers) ** 2).mean() < 0.6 * ((protocol.numbers()[said] - numbers) ** 2).mean()


def test_numbers_become_the_nearest_label() -> None:
    protocol = BinnedResponse(1.0, 11, 0.0, 100.0)
    assert protocol.label_of([0, 4.9, 5.1, 100]).tolist() == [0, 0, 1, 10]
    assert protocol.label_of(protocol.numbers()).tolist() == list(range(11))
    for bad in (-0.1, 101.0, math.nan):
        with pytest.raises(InputError, match=r"low = 0\.0 to high = 100\.0"):
            protocol.label_of([5.0, bad])


def test_a_lie_that_is_never_drawn_is_refused() -> None:
    for epsilon in (45.0, 750.0, 1000.0):
        with pytest.raises(ProtocolError, match=rf"epsilon = {epsilon}: a lie would be less likely"):
            p2p_sim.run(BinnedResponse(epsilon, 2), Population.from_arrays(y=[True, False]), seed=0)
        assert privacy.profile(BinnedResponse(epsilon, 2)).epsilon(0.5) == math.inf


def test_columns_of_numbers_become_the_nearest_labels(tmp_path: Path) -> None:
    """Classes in their order were taken for evenly spaced numbers: a 19 of 18, 19, 89 became 53.5."""
    ages = ["18", "19", "89", "18"] * 10
    (tmp_path / "ages.csv").write_text("x,age\n" + "".join(f"{i},{age}\n" for i, age in enumerate(ages)))
    protocol = BinnedResponse(math.inf, 72, 18.0, 89.0)
    found = experiment.learn(protocol, tmp_path / "ages.csv", label="age", seed=1, progress=False)
    rows = found.examples.rows
    assert found.run.output("learner")["value"].tolist() == [float(ages[row]) for row in rows]
    with pytest.raises(InputError, match="30 of 40 numbers, the first 18, are outside low = 20 to high = 90"):
        experiment.learn(BinnedResponse(1.0, 8, 20.0, 90.0), tmp_path / "ages.csv", label="age", seed=1)
    (tmp_path / "words.csv").write_text("x,size\n1,low\n2,high\n3,low\n4,mid\n")
    with pytest.raises(
        InputError, match=r"takes numbers: label 'size' of words\.csv holds 'high', which is no"
    ):
        experiment.learn(protocol, tmp_path / "words.csv", label="size", seed=1)


@pytest.mark.parametrize("labels", [2, 100])
@pytest.mark.parametrize("kind", [BinnedResponse, UnbiasedResponse, IntervalResponse])
def test_a_column_may_have_more_numbers_than_there_are_labels(kind: Any, labels: int, tmp_path: Path) -> None:
    """More than 256, and of two labels more than two, were refused with advice for classes."""
    (tmp_path / "sizes.csv").write_text("x,size\n" + "".join(f"{i % 7},{i / 4}\n" for i in range(400)))
    protocol = kind(1.0, labels, 0.0, 99.75)
    found = experiment.learn(protocol, tmp_path / "sizes.csv", label="size", seed=1, progress=False)
    given = found.examples.rows / 4
    assert (
        np.abs(protocol.numbers()[found.examples.population.y.view(np.uint8)] - given) <= 49.9 / (labels - 1)
    ).all()
    assert found.examples.about["data"]["classes"][0] == "0"
    assert len(found.examples.about["data"]["classes"]) == labels
    with pytest.raises(
        InputError, match=r"400 classes, .* at most 256 are allowed; .* take a protocol for numbers"
    ):
        experiment.learn(RandomizedResponse(1.0, 256), tmp_path / "sizes.csv", label="size", seed=1)


def test_what_is_no_number_has_no_label() -> None:
    for bad in (["a"], [None, "b"], [[1.0], [2.0, 3.0]]):
        with pytest.raises(InputError, match="must be an array of numbers"):
            BinnedResponse(1.0, 4).label_of(bad)


def test_classes_are_no_numbers() -> None:
    with pytest.raises(InputError, match="RandomizedResponse handles classes, labels 0 to 4, not numbers"):
        RandomizedResponse(1.0, 5).label_of([0.5])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((-1.0,), ["epsilon", "-1.0", "[0, inf]"]),
        ((1.0, 1), ["labels", "1", "from 2 to 256"]),
        ((1.0, 4, 1.0, 1.0), ["low = 1.0", "high = 1.0"]),
        ((1.0, 4, 0.0, math.inf), ["high = inf", "finite"]),
        ((1.0, 4, -1.7e308, 1.7e308), ["low", "1e+300"]),
        ((1.0, 4, None), ["low = None", "must be a number"]),
        ((1.0, 3, 1.0, 1.0000000000000002), ["only 2 different numbers for 3 labels"]),
        ((1.0, 3, 0.0, 1.0, "0.5,0.5"), ["prior = '0.5,0.5'", "(1, 2)", "(1, 3)"]),
    ],
)
def test_parameters_out_of_range_are_refused(arguments: Any, words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        BinnedResponse(*arguments)
    assert all(word in str(caught.value) for word in words), caught.value
