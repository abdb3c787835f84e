"""What flipping costs, as an experiment: a quick run, the expected table, and what decides its verdict."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from experiments import utility
from experiments._common import main, read_csv, write_csv

EXPECTED = Path(utility.__file__).parent / "expected" / "utility.csv"


def test_a_quick_run(tmp_path: Path) -> None:
    assert main(utility.EXPERIMENT, ["--quick", "--out", str(tmp_path)]) == 0
    rows = read_csv(tmp_path / "utility.csv")
    assert [float(row["alpha"]) for row in rows] == list(utility.QUICK_ALPHAS)
    assert {row["trials"] for row in rows} == {str(utility.QUICK_SEEDS)}
    (claim,) = json.loads((tmp_path / "utility.json").read_text())["claims"]
    assert claim["verdict"] == "reproduced in shape"
    assert f"{float(rows[-1]['accuracy_released']):.3f} at 0.5" in claim["found"]


@pytest.mark.slow
def test_the_table_has_the_columns_of_the_expected_one(tmp_path: Path) -> None:
    found = utility.rows("digits", alphas=(0.0, 0.5), seeds=2)
    truth, noise = found
    assert math.isinf(truth["learner_epsilon"])
    assert noise["learner_epsilon"] == 0
    assert noise["accuracy_released"] < 0.6 < truth["accuracy_released"] < truth["accuracy_true"]
    write_csv(tmp_path / "table.csv", found)
    assert list(read_csv(tmp_path / "table.csv")[0]) == list(read_csv(EXPECTED)[0])
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]


def test_the_expected_table_goes_from_truth_to_noise() -> None:
    rows = read_csv(EXPECTED)
    epsilons = [float(row["learner_epsilon"]) for row in rows]
    assert [float(row["alpha"]) for row in rows] == list(utility.ALPHAS)
    assert epsilons == sorted(epsilons, reverse=True)
    assert float(rows[0]["accuracy_released"]) > float(rows[-1]["accuracy_released"])


@pytest.mark.parametrize(
    ("accuracies", "verdict"),
    [
        ((0.8, 0.7, 0.5), "reproduced in shape"),
        ((0.8, 0.79, 0.78), "not comparable"),
        ((0.8, 0.5, 0.7), "not comparable"),
    ],
)
def test_accuracy_must_fall_and_nowhere_rise(accuracies: tuple[float, ...], verdict: str) -> None:
    rows = [
        {"alpha": alpha, "accuracy_released": value, "standard_error": "0.01", "accuracy_true": 0.9}
        for alpha, value in zip((0.0, 0.2, 0.5), accuracies, strict=True)
    ]
    assert utility._claim(rows).verdict == verdict
