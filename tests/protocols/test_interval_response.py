"""Randomized response in an interval: which interval, what is reported, and which parameters are refused."""

from __future__ import annotations

import ast
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim import InputError, Population, privacy
from p2p_sim.core import exp
from p2p_sim.privacy.mechanisms import interval_response
from protocols import IntervalResponse, RandomizedResponse


def near_the_truth(prior: Any, first: int, last: int, window: int, epsilon: float) -> float:
    """The chance that the label is in the interval, and the report near it: what the interval maximises."""
    near = 2 * window + 1
    return float(
        sum(prior[first : last + 1]) * near * math.exp(epsilon) / (near * math.exp(epsilon) + last - first)
    )


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0, 6.0])
@pytest.mark.parametrize("window", [0, 1, 3])
def test_no_other_interval_is_nearer_the_truth(epsilon: float, window: int) -> None:
    rng = np.random.default_rng(4)
    for labels in (2, 3, 7, 12):
        prior = rng.dirichlet(np.full(labels, 0.5)).clip(1e-4)
        prior /= prior.sum()
        protocol = IntervalResponse(epsilon, labels, window=window, prior=",".join(map(repr, prior.tolist())))
        found = near_the_truth(prior, *protocol.interval(), window, epsilon)
        best = max(
            near_the_truth(prior, a, b, window, epsilon) for a in range(labels) for b in range(a, labels)
        )
        assert found == pytest.approx(best, rel=1e-12)


def test_a_tail_is_left_out_and_a_uniform_prior_leaves_nothing_out() -> None:
    assert IntervalResponse(1.0, 9, window=0).interval() == (0, 8)
    tail = IntervalResponse(0.5, 6, prior="0.4,0.3,0.26,0.02,0.01,0.01", window=1)
    assert tail.interval() == (0, 2)
    assert IntervalResponse(0.0, 3, window=0, prior="0.2,0.5,0.3").interval() == (1, 1)


@pytest.mark.parametrize("window", [0, 1, 4])
def test_outputs_are_reported_as_often_as_the_source_says(window: int) -> None:
    protocol = IntervalResponse(0.7, 5, window=window, prior="0.01,0.3,0.3,0.3,0.09")
    first, last = protocol.interval()
    assert first > 0
    near = 2 * window + 1
    low = 1 / (near * exp(0.7) + last - first)
    outputs = last - first + near
    each_near, each_far, rest = protocol.words()
    assert float(Fraction(each_near, 2**64)) == pytest.approx(float(low * exp(0.7)), rel=1e-15)
    assert float(Fraction(each_far, 2**64)) == pytest.approx(float(low), rel=1e-15)
    for label in range(5):
        people = Population.from_arrays(y=np.array([label], np.uint8))
        found: dict[int, Fraction] = {}
        world = privacy.enumerate_view(protocol, people, to=(label + 1) % 5).world
        for ((report,), *_), chance in world.items():
            (place,) = ast.literal_eval(report[-1])
            found[place] = found.get(place, Fraction(0)) + chance
        centre = min(max(label, first), last) - first + window
        words = {
            place: (each_near if abs(place - centre) <= window else each_far) for place in range(outputs)
        }
        words[outputs // 2] += rest
        assert sum(words.values()) == 2**64
        assert found == {place: Fraction(count, 2**64) for place, count in words.items()}
        assert [words[place] for place in range(outputs)] == interval_response.counts(protocol)[label]


@pytest.mark.parametrize("epsilon", [0.0, 1e-17, 1e-3, 1.0, 20.0, 29.99, 30.0])
@pytest.mark.parametrize(("labels", "window"), [(2, 0), (2, 255), (3, 200), (20, 3), (256, 255)])
def test_what_is_drawn_keeps_the_budget_exactly(labels: int, window: int, epsilon: float) -> None:
    """The chance of a report far off was rounded down: at epsilon 29.99 and window 255 to 29.9903."""
    protocol = IntervalResponse(epsilon, labels, window=window)
    rows = interval_response.counts(protocol)
    ratio = max(Fraction(max(column), min(column)) for column in zip(*rows, strict=True))
    assert all(sum(row) == 2**64 for row in rows)
    assert ratio <= exp(epsilon)
    assert epsilon - 1e-3 < math.log(ratio) <= epsilon * (1 + 1e-15) + 1e-16
    assert interval_response.local_epsilon(protocol) == pytest.approx(math.log(ratio), abs=1e-13)
    law = interval_response.worst(protocol)
    first, last = rows[0], rows[-1]
    for x in (Fraction(1), exp(epsilon / 2), max(Fraction(1), exp(epsilon) * Fraction(99, 100))):
        true = (
            sum((max(Fraction(0), a - x * b) for a, b in zip(first, last, strict=True)), Fraction(0)) / 2**64
        )
        assert law.delta(math.log(x)).upper == pytest.approx(float(true), abs=1e-14)


def test_values_are_the_numbers_of_the_outputs() -> None:
    """Five standard errors: less than one false alarm in a million."""
    prior = ",".join(["0.001"] * 3 + ["0.2"] * 4 + ["0.197"])
    protocol = IntervalResponse(1.0, 8, 0.0, 70.0, window=1, prior=prior)
    assert protocol.interval() == (3, 7)
    labels = np.repeat(np.arange(8, dtype=np.uint8), 2_000)
    columns = p2p_sim.run(protocol, Population.from_arrays(y=labels), seed=1).output("learner")
    assert np.unique(columns["value"]) == pytest.approx(np.arange(20, 90, 10))
    near = np.abs(columns["value"] / 10 - np.clip(labels[columns["sender"]], 3, 7)) < 1.5
    _, each_far, _ = protocol.words()
    far = 4 * each_far / 2**64
    assert abs((~near).mean() - far) < 5 * math.sqrt(far * (1 - far) / len(near))


def test_more_reports_are_near_the_truth_than_of_randomized_response() -> None:
    protocol = IntervalResponse(1.0, 16, 0.0, 15.0, window=2)
    people = Population.from_arrays(y=np.arange(16_000, dtype=np.uint8) % 16)
    mine = p2p_sim.run(protocol, people, seed=3).output("learner")["value"]
    said = p2p_sim.run(RandomizedResponse(1.0, 16), people, seed=3).output("learner")["y"].astype(np.float64)
    near, others = (float((np.abs(each - people.y) <= 2).mean()) for each in (mine, said))
    assert near > 1.2 * others


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"epsilon": -1.0}, ["epsilon", "-1.0", "[0, 30]"]),
        ({"epsilon": math.inf}, ["epsilon", "inf", "[0, 30]"]),
        ({"epsilon": 1.0, "labels": 1}, ["labels", "1", "from 2 to 256"]),
        ({"epsilon": 1.0, "low": 2.0}, ["low = 2.0", "high = 1.0"]),
        ({"epsilon": 1.0, "low": "a"}, ["low = 'a'", "must be a number"]),
        ({"epsilon": 1.0, "high": 1e308}, ["high = 1e+308", "1e+300"]),
        ({"epsilon": 1.0, "window": -1}, ["window", "-1", "from 0 to 255"]),
        ({"epsilon": 1.0, "window": 1.5}, ["window", "1.5", "integer"]),
        ({"epsilon": 1.0, "labels": 3, "prior": "0.5,0.2,0.2"}, ["prior = '0.5,0.2,0.2'", "sum to 1"]),
    ],
)
def test_parameters_out_of_range_are_refused(given: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        IntervalResponse(**given)
    assert all(word in str(caught.value) for word in words), caught.value
    with pytest.raises(InputError, match=r"number 1\.5: must be from low = 0\.0 to high = 1\.0"):
        IntervalResponse(1.0).label_of([1.5])
