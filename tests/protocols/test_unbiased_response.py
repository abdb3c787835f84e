"""Unbiased randomizers of numbers: exactly unbiased, as private as it says, and no worse than any other."""

from __future__ import annotations

import ast
import decimal
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import coo_array
from sklearn.linear_model import LinearRegression

import p2p_sim
from p2p_sim import InputError, Population, privacy
from p2p_sim.core import exp
from p2p_sim.core.exact import WORD
from p2p_sim.learning import experiment
from protocols import BinnedResponse, UnbiasedResponse
from protocols._unbiased_outputs import (
    NODES,
    OUTPUTS,
    by_program,
    gap_of,
    nodes_of,
    optimal,
    randomized_response,
)

CASES = [
    (2, 0.01),
    (2, 1.0),
    (3, 0.3),
    (5, 2.0),
    (8, 0.05),
    (8, 4.0),
    (16, 1.0),
    (7, 12.0),
    (22, 12.0),
    (41, 9.0),
    (23, 1.0),
    pytest.param(72, 3.0, marks=pytest.mark.slow),
]


def a_prior(labels: int, seed: int = 3) -> np.ndarray[Any, np.dtype[np.float64]]:
    prior = np.random.default_rng(seed).dirichlet(np.full(labels, 0.6)).clip(1e-4)
    return np.asarray(prior / prior.sum())


@pytest.mark.parametrize(("labels", "epsilon"), CASES)
def test_the_integers_are_unbiased_and_keep_the_budget_exactly(labels: int, epsilon: float) -> None:
    for prior in (np.full(labels, 1 / labels), a_prior(labels)):
        made = optimal(prior, epsilon)
        step = Fraction(made.step)
        assert len(made.chances) == labels
        for label, row in enumerate(made.chances):
            assert sum(row) == WORD
            mean = sum(count * output for count, output in zip(row, made.multiples, strict=True)) * step
            assert mean == label * WORD
        ratio = max(Fraction(max(counts), min(counts)) for counts in zip(*made.chances, strict=True))
        assert exp(epsilon) * (1 - Fraction(1, 10**6)) < ratio <= exp(epsilon)


def least_error(prior: Any, ratio: float, outputs: Any) -> float:
    """The least expected squared error of an unbiased randomizer, by HiGHS: every chance is a variable."""
    labels, many = len(prior), len(outputs)
    chance = np.arange(labels * many).reshape(labels, many)
    least = np.broadcast_to(labels * many + np.arange(many), chance.shape)
    cost = prior[:, None] * (outputs - np.arange(labels)[:, None]) ** 2
    row, one = np.arange(chance.size), np.ones(chance.size)
    within = coo_array(
        (
            np.concatenate([-one, one, one, -ratio * one]),
            (np.concatenate([row, row, row + chance.size, row + chance.size]),
             np.concatenate([chance.ravel(), least.ravel()] * 2)),
        )
    )  # fmt: skip
    label = np.repeat(np.arange(labels), many)
    equal = coo_array(
        (
            np.concatenate([one, np.tile(outputs, labels)]),
            (np.concatenate([label, label + labels]), np.tile(chance.ravel(), 2)),
        ),
        shape=(2 * labels, labels * many + many),
    )
    found = linprog(
        np.concatenate([cost.ravel(), np.zeros(many)]),
        within.tocsr(), np.zeros(2 * chance.size),
        equal.tocsr(), np.concatenate([np.ones(labels), np.arange(labels)]),
        method="highs",
    )  # fmt: skip
    assert found.success, found.message
    return float(found.fun)


def error_of(made: Any, prior: Any) -> float:
    outputs = made.outputs()
    chances = np.array(made.chances, np.float64) / WORD
    return float((prior[:, None] * chances * (outputs - np.arange(len(prior))[:, None]) ** 2).sum())


@pytest.mark.parametrize(("labels", "epsilon"), [(2, 0.02), (2, 1.0), (3, 5.0), (5, 0.1), (6, 1.0), (8, 3.0)])
def test_no_other_unbiased_randomizer_has_a_smaller_error(labels: int, epsilon: float) -> None:
    for prior in (np.full(labels, 1 / labels), a_prior(labels), a_prior(labels, 9)):
        made = by_program(prior, epsilon)
        ratio = float(max(Fraction(max(counts), min(counts)) for counts in zip(*made.chances, strict=True)))
        beyond = 2 * int(
            2 * (labels - 1) / (ratio - 1) / float(made.step) + OUTPUTS
        )  # further than any was found to be
        last = math.ceil((labels - 1) / made.step)
        outputs = np.arange(-beyond, last + beyond + 1) * float(made.step)
        assert min(made.multiples) > -beyond
        assert error_of(made, prior) == pytest.approx(least_error(prior, ratio, outputs), rel=2e-5)
        assert error_of(optimal(prior, epsilon), prior) <= error_of(made, prior)


def error_of_randomized_response(prior: Any, epsilon: float) -> float:
    """Of k-ary randomized response, each report y said as (y - q k (k - 1) / 2) / (p - q): unbiased, too."""
    labels = len(prior)
    p, q = (chance / (math.exp(epsilon) + labels - 1) for chance in (math.exp(epsilon), 1.0))
    said = (np.arange(labels) - q * labels * (labels - 1) / 2) / (p - q)
    rows = np.full((labels, labels), q)
    np.fill_diagonal(rows, p)
    assert rows @ said == pytest.approx(np.arange(labels), abs=1e-9)
    return float((prior[:, None] * rows * (said - np.arange(labels)[:, None]) ** 2).sum())


@pytest.mark.parametrize(
    ("labels", "epsilon"),
    [(2, 0.01), (2, 12.0), (3, 11.0), (5, 10.0), (10, 12.0), (22, 8.0), (22, 12.0),
     pytest.param(100, 12.0, marks=pytest.mark.slow), pytest.param(256, 12.0, marks=pytest.mark.slow)],
)  # fmt: skip
def test_unbiased_randomized_response_has_no_smaller_error(labels: int, epsilon: float) -> None:
    """It had: of 22 labels at epsilon 12 forty times smaller, as others were rounded, and of 2 by a percent."""
    for prior in (np.full(labels, 1 / labels), a_prior(labels)):
        made = optimal(prior, epsilon)
        assert float(made.error(prior)) == pytest.approx(error_of(made, prior), rel=1e-8)
        assert error_of(made, prior) <= error_of_randomized_response(prior, epsilon) * (1 + 1e-8)


def test_randomized_response_may_be_of_every_second_label() -> None:
    """Of 72 labels at epsilon 10 that of all has an error of 2.83, the linear program's randomizer 3.21."""
    prior = np.full(72, 1 / 72)
    made = optimal(prior, 10.0)
    assert made == randomized_response(72, 10.0, 2)
    assert made.nodes == (*range(0, 71, 2), 71)
    assert (
        float(made.error(prior)) == pytest.approx(error_of(made, prior)) == pytest.approx(1.97695, rel=1e-5)
    )


def test_randomized_response_is_moved_and_stretched_exactly() -> None:
    made = randomized_response(3, 2.0)
    (p, q), unit = (made.chances[0][:2]), made.step
    assert set(made.chances) == {(p, q, q), (q, p, q), (q, q, p)}
    assert exp(2.0) * (1 - Fraction(1, 10**15)) < Fraction(p, q) <= exp(2.0)
    many = randomized_response(256, 12.0)
    for label, row in enumerate(many.chances):
        assert sum(row) == WORD
        mean = sum(count * output for count, output in zip(row, many.multiples, strict=True)) * many.step
        assert mean == label * WORD
    assert [unit * multiple for multiple in made.multiples] == [
        Fraction(y * WORD - 3 * q, p - q) for y in range(3)
    ]
    protocol = UnbiasedResponse(12.0, 22, 0.0, 21.0)
    assert protocol.randomizer() == randomized_response(22, 12.0)
    assert protocol.values() == pytest.approx(np.arange(22) * (1 + 1e-4) - 1e-3, abs=4e-3)
    people = Population.from_arrays(y=np.arange(2200, dtype=np.uint8) % 22)
    columns = p2p_sim.run(protocol, people, seed=1).output("learner")
    assert (columns["value"] - people.y[columns["sender"]]).mean() == pytest.approx(0, abs=0.02)


def test_labels_are_reported_as_often_as_the_integers_say() -> None:
    protocol = UnbiasedResponse(1.0, 4, prior="0.4,0.3,0.2,0.1")
    made = protocol.randomizer()
    for label in range(4):
        people = Population.from_arrays(y=np.array([label], np.uint8))
        found: dict[int, Fraction] = {}
        world = privacy.enumerate_view(protocol, people, to=(label + 1) % 4).world
        for ((report,), *_), chance in world.items():
            (place,) = ast.literal_eval(report[-1])
            found[place] = found.get(place, Fraction(0)) + chance
        assert found == {place: Fraction(count, WORD) for place, count in enumerate(made.chances[label])}


def test_many_labels_are_mixtures_of_a_few() -> None:
    assert nodes_of(NODES, gap_of(NODES)) == list(range(NODES))
    assert nodes_of(72, gap_of(72))[:3] == [0, 4, 8]
    assert nodes_of(72, gap_of(72))[-4:] == [64, 68, 70, 71]
    for labels in (22, 100, 256):
        assert len(nodes_of(labels, gap_of(labels))) <= NODES + 3
    protocol = UnbiasedResponse(1.0, 30)
    made = protocol.randomizer()
    a, between, b = (made.chances[label] for label in (4, 5, 6))
    assert all(2 * count == first + last for first, count, last in zip(a, between, b, strict=True))


def test_the_callers_decimals_change_nothing() -> None:
    before = optimal(a_prior(5), 1.0)
    with decimal.localcontext(decimal.Context(prec=4, rounding=decimal.ROUND_UP)):
        assert optimal(a_prior(5), 1.0) == before


def test_gradients_of_the_squared_loss_are_unbiased() -> None:
    """Whatever is predicted, the expected gradient on reports is that on the true numbers; of bins it is another."""
    protocol, bins = UnbiasedResponse(1.0, 8, -3.0, 5.0), BinnedResponse(1.0, 8, -3.0, 5.0)
    rows = np.array(protocol.randomizer().chances, np.float64) / WORD
    bin_of, values = bins.bins()
    lie = float(bins.lying(len(values)))
    said = np.full((8, len(values)), lie / (len(values) - 1))
    said[np.arange(8), bin_of] = 1 - lie
    for number, row, of_bins in zip(protocol.numbers(), rows, said, strict=True):
        for predicted in (-10.0, 0.3, 4.0):
            true = 2 * (predicted - number)
            assert row @ (2 * (predicted - protocol.values())) == pytest.approx(true, abs=1e-10)
            assert abs(of_bins @ (2 * (predicted - values)) - true) > 0.01


def test_a_regression_finds_the_true_line() -> None:
    """Bins pull it towards their mean.  Five standard errors: less than one false alarm in a million."""
    rng = np.random.default_rng(2)
    x = rng.uniform(-1, 1, 40_000)
    numbers = np.clip(50 + 30 * x + rng.normal(0, 5, len(x)), 0, 100)
    slopes, errors = [], []
    for kind in (UnbiasedResponse, BinnedResponse):
        protocol = kind(2.0, 16, 0.0, 100.0)
        labels = protocol.label_of(numbers)
        columns = p2p_sim.run(protocol, Population.from_arrays(y=labels), seed=5).output("learner")
        features = x[columns["sender"]][:, None]
        true = LinearRegression().fit(x[:, None], protocol.numbers()[labels])
        fitted = LinearRegression().fit(features, columns["value"])
        residual = columns["value"] - fitted.predict(features)
        errors.append(residual.std() / x.std() / math.sqrt(len(x)))
        slopes.append(fitted.coef_[0] - true.coef_[0])
        if kind is UnbiasedResponse:
            assert abs(fitted.intercept_ - true.intercept_) < 5 * residual.std() / math.sqrt(len(x))
    assert abs(slopes[0]) < 5 * errors[0]
    assert abs(slopes[1]) > 20 * errors[1]


def test_columns_of_words_are_refused(tmp_path: Path) -> None:
    (tmp_path / "words.csv").write_text("x,size\n1,low\n2,high\n3,low\n4,mid\n")
    with pytest.raises(
        InputError,
        match=r"unbiased-response takes numbers: label 'size' of words\.csv holds 'high', which is no number",
    ):
        experiment.learn(UnbiasedResponse(1.0, 4), tmp_path / "words.csv", label="size", seed=1)
    with pytest.raises(InputError, match=r"number 101\.0: must be from low = 0\.0 to high = 100\.0"):
        UnbiasedResponse(1.0, 11, 0.0, 100.0).label_of([5.0, 101.0])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((0.0,), ["epsilon", "0.0", "(0, 12]"]),
        ((-1.0,), ["epsilon", "-1.0", "(0, 12]"]),
        ((math.inf,), ["epsilon", "inf", "(0, 12]"]),
        ((0.001,), ["epsilon = 0.001", "1e+03 times as far", "at least 0.01", "binned-response"]),
        ((1.0, 1), ["labels", "1", "from 2 to 256"]),
        ((1.0, 4, 1.0, 1.0), ["low = 1.0", "high = 1.0"]),
        ((1.0, 4, 0.0, math.inf), ["high = inf", "finite"]),
        ((0.01, 4, 0.0, 1e307), ["high = 1e+307", "[-1e+300, 1e+300]"]),
        ((1.0, 4, "a"), ["low = 'a'", "must be a number"]),
        ((1.0, 4, None), ["low = None", "must be a number"]),
        ((1.0, 3, 1.0, 1.0000000000000002), ["only 2 different numbers for 3 labels", "fewer labels"]),
        ((1.0, 3, 0.0, 1.0, "0.5,0.2,0.2"), ["prior = '0.5,0.2,0.2'", "sum to 1"]),
        ((1.0, 3, 0.0, 1.0, "0.5,0.5"), ["prior = '0.5,0.5'", "(1, 2)", "(1, 3)"]),
    ],
)
def test_parameters_out_of_range_are_refused(arguments: Any, words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        UnbiasedResponse(*arguments)
    assert all(word in str(caught.value) for word in words), caught.value


def test_ends_do_not_matter_for_what_is_drawn() -> None:
    assert UnbiasedResponse(1.0, 5, -2.0, 9.0).randomizer() is UnbiasedResponse(1.0, 5).randomizer()
