"""Labels that features tell nothing of: hardly any table passes for one from which something was learned."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import binom, rankdata

from p2p_sim.comparison import beyond_guessing
from p2p_sim.comparison.beyond_guessing import Gain, TestRows, of_protocol, of_true_labels

TABLES, PROTOCOLS = 400, 3
MOST = int(binom.isf(1e-9, TABLES, 0.05))
"""Of tables that each pass with 5 % at most, more pass hardly ever (one in 10^9)."""

Draw = np.random.Generator
Figures = tuple[list[float], float]
"""Of a model by seed, and of the constant guess."""


def accuracies(draw: Draw, m: int, seeds: int) -> list[Figures]:
    """Models that mostly agree from seed to seed, as they see the same features; the guess is a coin, too."""
    y, guess = draw.random(m) < 0.5, draw.random() < 0.5
    found = []
    for _ in range(PROTOCOLS):
        model = draw.random(m) < 0.5
        flips = draw.random((seeds, m)) < 0.1
        found.append(
            ([float(each) for each in ((model ^ flips) == y).mean(axis=1)], float((y == guess).mean()))
        )
    return found


def areas(draw: Draw, m: int, seeds: int) -> list[Figures]:
    """The first 5 rows are of the rare class."""
    found = []
    for _ in range(PROTOCOLS):
        ranks = rankdata(draw.normal(size=m) + 0.2 * draw.normal(size=(seeds, m)), axis=1)
        found.append(([float(each) for each in (ranks[:, :5].sum(axis=1) - 15) / (5 * (m - 5))], 0.5))
    return found


def shares_of_variance(draw: Draw, m: int, seeds: int) -> list[Figures]:
    """Models whose predictions are as well scaled as they can be, which nobody knows."""
    y = draw.normal(size=m)
    found = []
    for _ in range(PROTOCOLS):
        x = draw.normal(size=m) + 0.1 * draw.normal(size=(seeds, m))
        found.append(([float(np.corrcoef(y, each)[0, 1] ** 2) for each in x], -0.01))
    return found


MADE = {"accuracy": (accuracies, 60, 30.0), "auc": (areas, 600, 5.0), "r2": (shares_of_variance, 60, 0.0)}


def passed(metric: str, seeds: int) -> int:
    """Return of how many tables any protocol is said to learn more than guessing."""
    make, m, rare = MADE[metric]
    draw, rows = np.random.default_rng(7), TestRows(m, rare, same=True)
    return sum(
        any(
            of_protocol(metric, own, [constant] * seeds, rows, PROTOCOLS).shown
            for own, constant in make(draw, m, seeds)
        )
        for _ in range(TABLES)
    )


@pytest.mark.parametrize("metric", MADE)
def test_hardly_any_table_without_information_passes(metric: str) -> None:
    assert passed(metric, 5) <= MOST
    assert passed(metric, 2) <= MOST  # fewer seeds do not pass more easily


@pytest.mark.parametrize("metric", MADE)
def test_without_the_test_rows_error_many_would(metric: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin: the seeds' spread alone, as all seeds have the same test rows."""
    monkeypatch.setattr(beyond_guessing, "half_of_rows", lambda *_: 0.0)
    assert passed(metric, 5) > MOST


@pytest.mark.parametrize("metric", MADE)
def test_nor_do_true_labels(metric: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make, m, rare = MADE[metric]

    def shown() -> int:
        draw, rows = np.random.default_rng(8), TestRows(m, rare, same=True)
        tables = [make(draw, m, 1)[0] for _ in range(TABLES)]
        return sum(of_true_labels(metric, own, [constant], rows).shown for own, constant in tables)

    assert shown() <= MOST
    monkeypatch.setattr(beyond_guessing, "half_of_rows", lambda *_: 0.0)
    assert shown() > MOST


@pytest.mark.parametrize("seeds", [2, 3, 5])
def test_of_noise_whose_models_differ_from_seed_to_seed_the_seeds_error_keeps_the_share(seeds: int) -> None:
    """Features may tell much: a model of pure noise is then far above guessing, or far below, by the seed's luck."""
    draw, rows = np.random.default_rng(9), TestRows(10_000, 5_000.0, same=True)

    def gain(few: int) -> Gain:
        return of_protocol("accuracy", list(0.5 + 0.1 * draw.normal(size=few)), [0.5] * few, rows, 1)

    assert sum(gain(seeds).shown for _ in range(TABLES)) <= MOST
    assert not any(gain(1).shown for _ in range(20))  # of one seed nothing is known


@pytest.mark.parametrize(
    ("metric", "good", "guess", "rows", "passes"),
    [
        ("accuracy", 0.75, 0.5, 300, True),
        ("accuracy", 1.0, 0.0, 2, False),  # both rows right
        ("accuracy", 0.84, 0.76, 16_000, True),
        ("accuracy", 0.55, 0.5, 60, False),
        ("auc", 0.75, 0.5, 3_000, True),
        ("r2", 0.3, -0.01, 300, True),
        ("r2", 0.05, -0.2, 60, False),  # the guess is bad, which is no merit of the model
    ],
)
def test_what_is_better_by_far_passes(
    metric: str, good: float, guess: float, rows: int, passes: bool
) -> None:
    by_seed = [good, good - 0.004, good + 0.002, good, good - 0.003]
    assert of_protocol(metric, by_seed, [guess] * 5, TestRows(rows, rows / 20, same=True), 12).shown == passes


def test_test_rows_of_their_own_for_each_seed_are_more_rows() -> None:
    how: Callable[[bool], float] = lambda same: beyond_guessing.half_of_rows(  # noqa: E731
        "accuracy", [0.6] * 4, [0.5] * 4, TestRows(100, 50.0, same), 0.9
    )
    assert how(False) < how(True)


def test_a_class_that_no_test_row_has_tells_nothing() -> None:
    rows = TestRows(50, 0.0, same=True)
    assert not of_true_labels("auc", [0.9], [0.5], rows).shown
    assert not of_true_labels("r2", [0.9], [0.0], TestRows(1, 0.0, same=True)).shown
