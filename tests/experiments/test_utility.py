"""What flipping costs, as an experiment: a quick run, and what decides its verdict."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from experiments import utility
from experiments._common import main, read_csv


def test_a_quick_run(tmp_path: Path) -> None:
    assert main(utility.EXPERIMENT, ["--quick", "--out", str(tmp_path)]) == 0
    rows = read_csv(tmp_path / "utility.csv")
    assert [float(row["alpha"]) for row in rows] == list(utility.QUICK_ALPHAS)
    assert {row["trials"] for row in rows} == {str(utility.QUICK_SEEDS)}
    (claim,) = json.loads((tmp_path / "utility.json").read_text())["claims"]
    assert claim["verdict"] == "reproduced in shape"
    assert f"{float(rows[-1]['accuracy_released']):.3f} at 0.5" in claim["found"]


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
