"""Labels that came over a graph: whose they may be by fractions, the loss against 40 digits, and where it is least."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from p2p_sim import Population
from p2p_sim.learning.training.label_origins import Origins, of_neighbours, of_walks
from p2p_sim.learning.training.losses import forward
from p2p_sim.privacy.label_matrices import channel
from tests.learning.training.test_losses import EPS, agrees, scores_of, softmax

EDGES = [(0, 1), (1, 2), (2, 3), (3, 0), (3, 4)]
USERS = 5
NEAR = [[b if a == u else a for a, b in EDGES if u in (a, b)] for u in range(USERS)]
GRAPH = Population.from_arrays(y=np.zeros(USERS, np.bool_)).with_graph(np.array(EDGES)).graph

Table = list[list[Fraction]]


def walked(steps: int) -> Table:
    """Entry [u][v]: the probability that a walk from u is at v."""
    law = [[Fraction(u == v) for v in range(USERS)] for u in range(USERS)]
    for _ in range(steps):
        law = [
            [sum((row[w] / len(NEAR[w]) for w in NEAR[v]), Fraction(0)) for v in range(USERS)] for row in law
        ]
    return law


def whose(steps: int | None) -> Table:
    """Entry [v][u]: the probability that a label that v reports is u's; None: she asked a neighbour."""
    if steps is None:
        return [[Fraction(NEAR[v].count(u), len(NEAR[v])) for u in range(USERS)] for v in range(USERS)]
    law = walked(steps)
    return [
        [law[u][v] / sum((law[w][v] for w in range(USERS)), Fraction(0)) for u in range(USERS)]
        for v in range(USERS)
    ]


def told(steps: int | None, counts: Any) -> Origins:
    assert GRAPH is not None
    return of_neighbours(GRAPH, counts) if steps is None else of_walks(GRAPH, steps, counts)


def counts_of(labels: int) -> Any:
    return np.random.default_rng(1).integers(0, 4, size=(USERS, labels)) + 0.5


@pytest.mark.parametrize("steps", [None, 1, 2, 3])
def test_whose_labels_may_be(steps: int | None) -> None:
    known, table = told(steps, counts_of(2)), np.array(whose(steps), float)
    assert np.allclose(known.mean(np.eye(USERS)), table, rtol=0, atol=20 * EPS)
    assert np.allclose(known.back(np.eye(USERS)), table.T, rtol=0, atol=20 * EPS)


def slow(known: Origins, steps: int | None, lie: Any) -> Callable[[Any], Any]:
    """The loss, for numbers of any precision, reporter by reporter."""
    table, labels = whose(steps), known.counts.shape[1]

    def loss(scores: list[list[Any]]) -> Any:
        p, total = [softmax(row) for row in scores], mpmath.mpf(0)
        for v, j in np.ndindex(known.counts.shape):
            mean = mpmath.fsum(p[u][j] * w.numerator / w.denominator for u, w in enumerate(table[v]))
            total -= known.counts[v, j] * mpmath.log((1 - lie) * mean + lie / (labels - 1) * (1 - mean))
        return total

    return loss


@pytest.mark.parametrize("steps", [None, 2])
@pytest.mark.parametrize(("labels", "lie"), [(2, 0.3), (3, 0.25)])
def test_the_loss_against_40_digits(steps: int | None, labels: int, lie: float) -> None:
    scores, known = scores_of(labels, USERS), told(steps, counts_of(labels))
    value, gradient = forward(scores, known, channel(labels, lie))
    agrees(value, gradient, scores, slow(known, steps, mpmath.mpf(lie)), 10 * known.counts.max())


@pytest.mark.parametrize("steps", [1, 2, 3])
@pytest.mark.parametrize("labels", [2, 3])
def test_what_walks_bring_on_average_is_matched_by_the_truth(steps: int, labels: int) -> None:
    """The loss is linear in the counts, so its mean is that of their mean; a twin that takes a step more moves on."""
    truth, lie = scores_of(labels, USERS, seed=3) / 2, 0.3
    p, law = np.array([softmax(row) for row in truth.tolist()], float), channel(labels, lie)
    arrived = np.array(walked(steps), float).T @ p @ law.T
    least, gradient = forward(truth, told(steps, arrived), law)
    slack = 1000 * EPS  # a few hundred terms, each at most 10
    assert np.abs(gradient).max() <= slack
    for seed in range(5):
        other = truth + scores_of(labels, USERS, seed=10 + seed) / 4
        assert forward(other, told(steps, arrived), law)[0] > least
    assert np.abs(forward(truth, told(steps + 1, arrived), law)[1]).max() > 1e6 * slack
