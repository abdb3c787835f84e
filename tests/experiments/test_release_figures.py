"""Double response on MNIST: quick runs of both figures, held to closed forms; and claims that can fail."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments import _needs, release_figure3, release_figure4
from experiments._common import Options
from p2p_sim.learning.training.feature_generators import kernel_density

pytestmark = pytest.mark.slow

WRONG = "not reproduced"


def quick(script: Any, out: Path) -> Any:
    if missing := _needs.missing(script.EXPERIMENT.needs):
        pytest.skip(missing)
    return script.run(Options(True, None, None, out))


@pytest.fixture(scope="module")
def accuracies(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return quick(release_figure3, tmp_path_factory.mktemp("three"))


@pytest.fixture(scope="module")
def divergences(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return quick(release_figure4, tmp_path_factory.mktemp("four"))


def test_released_labels_are_right_as_often_as_lambda_says(accuracies: Any) -> None:
    n = release_figure3.QUICK.users
    for row in accuracies.tables[""]:
        right = 1 - row["lambda"] * 0.9
        assert abs(row["attack_by_report"] - right) < 6.1 * math.sqrt(right * (1 - right) / n)
        assert row["epsilon_public_features"] == pytest.approx(math.log(right / (row["lambda"] / 10)))
        assert row["basis"] == "exact"


def test_double_response_hides_users_whose_features_were_replaced(accuracies: Any) -> None:
    for row in accuracies.tables[""]:
        if row["mechanism"] == release_figure3.DOUBLE:
            assert row["attack"] < row["attack_public_features"] - row["lambda"] / 2
            assert abs(row["attack"] - (1 - 0.9 * row["lambda"]) * row["attack_public_features"]) < 0.03
        else:
            assert row["attack"] == row["attack_public_features"]
    assert all(claim.verdict and claim.why for claim in accuracies.claims)


def test_claims_of_accuracies_can_fail_and_can_hold(accuracies: Any) -> None:
    rows = accuracies.tables[""]
    assert release_figure3.claims([row | {"attack": 0.8} for row in rows])[0].verdict == WRONG
    reached = release_figure3.claims([row | {"attack": 0.64, "test": 0.96} for row in rows])
    assert reached[1].verdict == "reproduced"
    near = release_figure3.claims([row | {"attack": 0.69, "test": 0.94} for row in rows])
    assert near[1].verdict == "reproduced in shape"


def test_an_estimate_is_never_a_guarantee(divergences: Any) -> None:
    rows = divergences.tables[""]
    assert {row["basis"] for row in rows} == {"lower"}
    assert divergences.claims[0].verdict == "not comparable"
    assert "neither a guarantee" in divergences.claims[0].why
    assert all(row["divergence_surely_above"] <= row["divergence"] for row in rows)


def test_theorem_7_1_bounds_the_exact_epsilon_of_finite_features(divergences: Any) -> None:
    finite = divergences.tables["finite"]
    for row in finite:
        lam = row["lambda"]
        assert row["epsilon_exact"] <= row["epsilon_sharper"] <= row["epsilon_printed"]
        assert row["epsilon_printed"] == pytest.approx(
            2 * math.log(1 + (1 - lam) * 10 / lam) + row["divergence"]
        )
    too_small = [row | {"epsilon_printed": row["epsilon_exact"] - 0.1} for row in finite]
    assert release_figure4.claims(divergences.tables[""], too_small)[2].verdict == WRONG


def test_images_are_drawn_from_the_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(400, 3)), np.arange(400) % 2
    made = kernel_density(x + 5 * y[:, None], y, bandwidth=0.5)
    monkeypatch.setattr(release_figure4, "table", lambda: made)
    drawn = release_figure4.generated(1, 20_000, seed=2)
    mine = made.label == 1
    expected = made.rows[mine].mean(axis=0)
    spread = np.sqrt(made.rows[mine].var(axis=0) + (made.deviations[mine] ** 2).mean(axis=0))
    assert (np.abs(drawn.mean(axis=0) - expected) < 6.2 * spread / 20_000**0.5).all()
    assert (np.abs(drawn.std(axis=0) / spread - 1) < 0.03).all()
