"""Randomized and double response on MNIST: a quick run, held to closed forms; and claims that can fail."""

from __future__ import annotations

import math
from typing import Any

import pytest

from experiments import release_figure3, release_figure3_network
from tests.experiments import quick

pytestmark = pytest.mark.slow

WRONG = "not reproduced"


@pytest.fixture(scope="module")
def accuracies(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return quick.outcome(release_figure3, tmp_path_factory.mktemp("out"))


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


def test_intervals_hold_their_means_and_widen_with_the_spread_of_seeds() -> None:
    around = release_figure3._spread
    error, reach = around([0.5], 10_000)
    assert error == pytest.approx(0.005)
    assert reach == pytest.approx(1.959964 * 0.005)
    assert around([0.5] * 3, 10_000) == pytest.approx((error, reach))
    error, reach = around([0.4, 0.5, 0.6], 10_000)
    assert error == pytest.approx(0.1 / math.sqrt(3))
    assert reach == pytest.approx(4.302653 * error)  # Student's, of two degrees of freedom


def test_claims_of_accuracies_can_fail_and_can_hold(accuracies: Any) -> None:
    def verdicts(attack: float, test: float, off: float = 0.004) -> list[str]:
        given = {"attack": attack, "attack_low": attack - off, "attack_high": attack + off}
        given |= {"test": test, "test_low": test - off, "test_high": test + off}
        return [claim.verdict for claim in release_figure3.claims([row | given for row in rows], "a model")]

    rows = accuracies.tables[""]
    assert [verdicts(0.6, test)[2] for test in (0.97, 0.957, 0.953)] == [
        "reproduced",
        "reproduced in shape",
        WRONG,
    ]
    assert verdicts(0.6, 0.96, 0.02)[2] == "not comparable"  # too uncertain to tell
    assert verdicts(0.6, 0.97)[4] == WRONG  # of both mechanisms alike
    lower = [row | ({"attack_high": 0.5} if row["mechanism"] == release_figure3.DOUBLE else {"attack_low": 0.9})
             for row in rows]  # fmt: skip
    assert release_figure3.claims(lower, "a model")[4].verdict == "reproduced in shape"
    assert release_figure3.claims(rows, "a model")[5].verdict == "reproduced"
    less = [row | ({"epsilon_public_features": 0.1} if row["mechanism"] == release_figure3.DOUBLE else {})
            for row in rows]  # fmt: skip
    assert release_figure3.claims(less, "a model")[5].verdict == WRONG
    assert [verdicts(attack, 0.96)[0] for attack in (0.8, 0.903)] == [WRONG, "not comparable"]
    assert verdicts(0.91, 0.96)[0] == "reproduced"
    assert verdicts(0.64, 0.96)[1] == "reproduced"
    assert verdicts(0.648, 0.96)[1] == verdicts(0.64, 0.953)[1] == "reproduced in shape"
    assert verdicts(0.69, 0.94)[1] == "reproduced in shape"
    assert verdicts(0.698, 0.94)[1] == verdicts(0.69, 0.932)[1] == "not comparable"
    assert verdicts(0.75, 0.94)[1] == verdicts(0.69, 0.92)[1] == WRONG


def test_a_network_learns_from_the_same_releases(accuracies: Any, tmp_path: Any) -> None:
    pytest.importorskip("torch")
    rows = quick.outcome(release_figure3_network, tmp_path).tables[""]
    same = ("mechanism", "lambda", "epsilon_public_features", "basis")
    assert [[row[name] for name in same] for row in rows] == [
        [row[name] for name in same] for row in accuracies.tables[""]
    ]
    response, double = rows[0], rows[2]
    assert response["attack_low"] > 0.5 > 2 / release_figure3.DIGITS
    assert double["attack"] < double["attack_public_features"] - double["lambda"] / 2
