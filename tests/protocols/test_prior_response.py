"""Randomized response with a prior: which labels are reported, how often, and which priors are refused."""

from __future__ import annotations

import ast
import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim import InputError, Population, ProtocolError, privacy
from protocols import BinnedResponse, EncryptedShuffle, MultiStage, PriorResponse, RandomizedResponse

PRIORS = ("0.7,0.2,0.1", "0.1,0.1,0.8", "0.4,0.2,0.4", "0.98,0.01,0.01", "uniform")


def best_m(prior: list[float], epsilon: float) -> tuple[int, float]:
    """The m with the best chance of the truth, and that chance, over all sets of labels of any size."""
    chances = {
        m: max(math.fsum(prior[y] for y in chosen) for chosen in itertools.combinations(range(len(prior)), m))
        * math.exp(epsilon) / (math.exp(epsilon) + m - 1)
        for m in range(1, len(prior) + 1)
    }  # fmt: skip
    m = max(chances, key=lambda each: (round(chances[each], 12), -each))
    return m, chances[m]


def chances(prior: list[float], epsilon: float, label: int) -> dict[int, float]:
    """P(report | label), written as the paper writes it."""
    m = best_m(prior, epsilon)[0]
    among = sorted(range(len(prior)), key=lambda y: (-prior[y], y))[:m]
    if label not in among:
        return dict.fromkeys(among, 1 / m)
    whole = math.exp(epsilon) + m - 1
    return {y: (math.exp(epsilon) if y == label else 1.0) / whole for y in among}


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 3.0])
@pytest.mark.parametrize("prior", PRIORS)
def test_reports_are_as_likely_as_the_paper_says(prior: str, epsilon: float) -> None:
    numbers = [1 / 3] * 3 if prior == "uniform" else [float(part) for part in prior.split(",")]
    protocol = PriorResponse(epsilon, 3, prior)
    for label in range(3):
        people = Population.from_arrays(y=np.array([label], np.uint8))
        wanted = chances(numbers, epsilon, label)
        found = _outcomes(privacy.enumerate_view(protocol, people, to=(label + 1) % 3).world)
        assert found.keys() == {y for y, chance in wanted.items() if chance}
        for y, chance in found.items():
            assert float(chance) == pytest.approx(wanted[y], abs=1e-15)


def _outcomes(world: Any) -> dict[int, Fraction]:
    """The label reported, from what the learner saw: one report, whose fields are written at its end."""
    found: dict[int, Fraction] = {}
    for ((report,), *_), chance in world.items():
        (label,) = ast.literal_eval(report[-1])
        found[label] = found.get(label, Fraction(0)) + chance
    return found


@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.7, 2.0, 6.0, math.inf])
def test_the_number_of_labels_that_can_be_reported_is_the_best(epsilon: float) -> None:
    rows = np.random.default_rng(3).dirichlet(np.full(6, 0.5), 300).clip(1e-6)
    rows /= rows.sum(axis=1, keepdims=True)
    protocol = PriorResponse(epsilon, 6, "public")
    order, m = protocol.reportable(rows)
    for row, labels, number in zip(rows, order, m, strict=True):
        finite = min(epsilon, 60.0)
        truth = row[labels[:number]].sum() * math.exp(finite) / (math.exp(finite) + number - 1)
        assert truth == pytest.approx(best_m(row.tolist(), finite)[1], rel=1e-12)
        assert (np.diff(row[labels]) <= 0).all()


def test_a_uniform_prior_is_randomized_response() -> None:
    people = Population.from_arrays(y=np.arange(50_000, dtype=np.uint8) % 4)
    mine = p2p_sim.run(PriorResponse(1.0, 4), people, seed=2).output("learner")["y"]
    theirs = p2p_sim.run(RandomizedResponse(1.0, 4), people, seed=2).output("learner")["y"]
    kept = math.e / (math.e + 3)
    spread = math.sqrt(kept * (1 - kept) / 50_000)
    for y in (mine, theirs):
        assert abs((y == people.y).mean() - kept) < 5 * spread  # false alarm: below 1e-6


@pytest.mark.parametrize("blocks", [1, 3, 100])
def test_users_with_priors_of_their_own(blocks: int) -> None:
    rows = np.array([[0.98, 0.01, 0.01], [0.4, 0.35, 0.25], [0.1, 0.1, 0.8]])
    people = Population.from_arrays(y=np.zeros(3_000, np.uint8), public={"prior": np.tile(rows, (1_000, 1))})
    run = p2p_sim.run(PriorResponse(1.0, 3, "public"), people, seed=4, blocks=blocks, trace="full")
    assert run.digest == p2p_sim.run(PriorResponse(1.0, 3, "public"), people, seed=4).digest
    y = run.output("learner")["y"]
    assert (y[0::3] == 0).all()  # m = 1
    assert set(y[1::3]) == {0, 1, 2}  # m = 3
    assert (y[2::3] == 2).all()
    assert run.replay(1).sent["report"]["y"] == y[1]


def test_one_row_a_user_is_as_a_prior_for_all() -> None:
    prior, y = [0.5, 0.3, 0.2], np.arange(2_000, dtype=np.uint8) % 3
    own = Population.from_arrays(y=y, public={"prior": np.tile(np.float32(prior), (len(y), 1))})
    each = p2p_sim.run(PriorResponse(0.8, 3, "public"), own, seed=9)
    shared = p2p_sim.run(PriorResponse(0.8, 3, "0.5,0.3,0.2"), Population.from_arrays(y=y), seed=9)
    assert (each.output("learner")["y"] == shared.output("learner")["y"]).all()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((-1.0,), ["epsilon", "-1.0", "[0, inf]"]),
        ((1.0, 1), ["labels", "1", "from 2 to 256"]),
        ((1.0, 3, "0.5,0.5"), ["prior = '0.5,0.5'", "(1, 2)", "(1, 3)"]),
        ((1.0, 2, "0.6,0.6"), ["prior = '0.6,0.6'", "sum to 1", "1.2"]),
        ((1.0, 2, "0,1"), ["prior = '0,1'", "above 0"]),
        ((1.0, 2, "1.5,-0.5"), ["prior = '1.5,-0.5'", "above 0"]),
        ((1.0, 2, "nan,1"), ["prior = 'nan,1'", "number"]),
        ((1.0, 2, "model"), ["prior = 'model'", "2 probabilities", '"uniform"', '"public"']),
        ((1.0, 2, (0.5, 0.5)), ["prior = (0.5, 0.5)", '"0.7,0.2,0.1"']),
    ],
)
def test_parameters_out_of_range_are_refused(arguments: Any, words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        PriorResponse(*arguments)
    assert all(word in str(caught.value) for word in words), caught.value


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([[0.5, 0.5]] * 2, ["column", "(2, 2)", "(2, 3)"]),
        ([[0.5, 0.3, 0.2], [0.5, 0.5, 0.5]], ["user 1", "[0.5, 0.5, 0.5]", "1.5"]),
        ([[0.5, 0.3, 0.2], [1.0, 0.0, 0.0]], ["user 1", "above 0"]),
        ([0.5, 0.5], ["(2,)", "(2, 3)"]),
    ],
)
def test_rows_that_are_no_priors_are_refused(rows: Any, words: list[str]) -> None:
    people = Population.from_arrays(y=np.zeros(2, np.uint8), public={"prior": np.array(rows)})
    with pytest.raises(ProtocolError) as caught:
        p2p_sim.run(PriorResponse(1.0, 3, "public"), people, seed=0)
    assert all(word in str(caught.value) for word in words), caught.value


def test_a_population_without_priors_is_refused_by_name() -> None:
    with pytest.raises(ProtocolError, match="no public column 'prior'"):
        p2p_sim.run(PriorResponse(1.0, 2, "public"), Population.from_arrays(y=[True, False]), seed=0)


RARE = {
    "randomized response": RandomizedResponse(50.0),
    "of 200 labels": RandomizedResponse(900.0, 200),
    "beyond the digits of e^-epsilon": RandomizedResponse(5000.0),
    "a prior": PriorResponse(50.0, 3),
    "stages": MultiStage(50.0, 3),
    "bins": BinnedResponse(50.0, 8),
    "a shuffle": EncryptedShuffle(50.0),
}


@pytest.mark.parametrize("name", RARE)
def test_a_lie_that_is_never_drawn_is_refused_and_the_advice_works(name: str) -> None:
    protocol: Any = RARE[name]
    people = Population.from_arrays(y=np.zeros(6, np.uint8 if protocol.label_count() > 2 else np.bool_))
    with pytest.raises(
        ProtocolError, match=r"epsilon = \d+\.0: a lie .* never be drawn; give a smaller epsilon, at"
    ):
        p2p_sim.run(protocol, people, seed=1)
    for epsilon in (40.0, math.inf):
        p2p_sim.run(replace(protocol, epsilon=epsilon), people, seed=1)
