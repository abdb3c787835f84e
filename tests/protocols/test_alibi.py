"""ALIBI: noisy one-hot labels, how they are denoised, and which parameters are refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim import InputError, Population
from protocols import Alibi


def noise(epsilon: float, grid: int, far: int) -> Any:
    """P(noise = j) for j = -far .. far, scale 2 grid / epsilon, from its definition."""
    weights = np.exp(-np.abs(np.arange(-far, far + 1)) * epsilon / (2 * grid))
    return weights / weights.sum()


@pytest.mark.parametrize(("epsilon", "grid"), [(1.0, 1), (4.0, 8), (2.5, 3)])
def test_scores_are_a_one_hot_label_with_laplace_noise(epsilon: float, grid: int) -> None:
    y = np.arange(60_000, dtype=np.uint8) % 3
    scores = p2p_sim.run(Alibi(epsilon, 3, grid), Population.from_arrays(y=y), seed=5).output("learner")[
        "scores"
    ]
    assert scores.shape == (60_000, 3)
    left = (scores - grid * np.eye(3, dtype=np.int64)[y]).ravel()
    far = int(30 * 2 * grid / epsilon) + 1
    wanted = noise(epsilon, grid, far)
    found = np.bincount(left + far, minlength=2 * far + 1)[: 2 * far + 1] / len(left)
    limit = math.sqrt(
        math.log(2 / 1e-6) / (2 * len(left))
    )  # false alarm 1e-6, Dvoretzky, Kiefer and Wolfowitz
    assert np.abs(np.cumsum(found) - np.cumsum(wanted)).max() < limit


@pytest.mark.parametrize("prior", ["uniform", "0.7,0.2,0.1", "0.05,0.05,0.9"])
def test_the_denoised_label_has_the_largest_posterior(prior: str) -> None:
    protocol = Alibi(2.0, 3, 4, prior)
    before = np.full(3, 1 / 3) if prior == "uniform" else np.array([float(p) for p in prior.split(",")])
    scores = np.random.default_rng(1).integers(-12, 16, (4_000, 3))
    chances = noise(2.0, 4, 40)
    for row, label in zip(scores, protocol.denoised(scores), strict=True):
        posterior = [
            before[c] * math.prod(chances[40 + o - 4 * (j == c)] for j, o in enumerate(row)) for c in range(3)
        ]
        assert posterior[label] == pytest.approx(max(posterior), rel=1e-9)
        equal = [c for c in range(3) if math.isclose(posterior[c], max(posterior), rel_tol=1e-9)]
        assert row[label] == max(row[equal])


@pytest.mark.parametrize("prior", ["uniform", "0.5,0.5", "0.7,0.3", "0.001,0.999"])
def test_two_labels_are_denoised_as_the_formula_says(prior: str) -> None:
    protocol, grid = Alibi(2.0, 2, 4, prior), 4
    ends = [np.iinfo(np.int32).min, np.iinfo(np.int32).max]  # what a message may hold that was tampered with
    each = np.array([*range(-6, 11), *ends], np.int64)
    scores = np.stack(np.meshgrid(each, each), axis=-1).reshape(-1, 2)
    posterior = protocol.log_prior() + 0.25 * np.clip(2 * scores - grid, -grid, grid)
    best = posterior == posterior.max(axis=1, keepdims=True)
    wanted = np.where(best, scores, ends[0] - 1).argmax(axis=1)
    assert protocol.denoised(scores.astype(np.int32)).tolist() == wanted.tolist()


def test_a_prior_helps_the_learner_and_changes_no_message() -> None:
    y = (np.arange(30_000) % 10 == 0).astype(np.uint8)
    people = Population.from_arrays(y=y)
    plain, knowing = (
        p2p_sim.run(Alibi(1.0, 2, 8, prior), people, seed=2, trace="full") for prior in ("uniform", "0.9,0.1")
    )
    assert (plain.messages("report")["scores"] == knowing.messages("report")["scores"]).all()
    right = [(run.output("learner")["y"] == y).mean() for run in (plain, knowing)]
    assert right[0] < 0.75
    assert right[1] > 0.85


def test_blocks_do_not_matter() -> None:
    people = Population.from_arrays(y=np.arange(500, dtype=np.uint8) % 4)
    assert (
        len({p2p_sim.run(Alibi(1.0, 4), people, seed=3, blocks=blocks).digest for blocks in (1, 2, 7)}) == 1
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((0.0,), ["epsilon", "0.0", "(0, 700"]),
        ((math.inf,), ["epsilon", "inf"]),
        ((1.0, 1), ["labels", "1", "from 2 to 256"]),
        ((1.0, 2, 0), ["grid", "0"]),
        ((1.0, 2, 257), ["grid = 257", "from 1 to 256"]),
        ((1e-4, 2, 8), ["epsilon = 0.0001", "grid = 8"]),
        ((1.0, 3, 8, "0.5,0.5"), ["prior = '0.5,0.5'", "(1, 3)"]),
        ((1.0, 2, 8, "public"), ["prior = 'public'", "2 probabilities", '"uniform"']),
    ],
)
def test_parameters_out_of_range_are_refused(arguments: Any, words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        Alibi(*arguments)
    assert all(word in str(caught.value) for word in words), caught.value
