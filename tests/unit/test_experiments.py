"""Experiments run, and their expected tables are of the form they write."""

from __future__ import annotations

import math
from pathlib import Path

from experiments import utility
from experiments._common import read_csv, write_csv

EXPECTED = Path(utility.__file__).parent / "expected" / "utility.csv"


def test_utility(tmp_path: Path) -> None:
    found = utility.rows("digits", alphas=(0.0, 0.5), seeds=2)
    truth, noise = found
    assert math.isinf(truth["learner_epsilon"])
    assert noise["learner_epsilon"] == 0
    assert noise["accuracy_released"] < 0.6 < truth["accuracy_released"] < truth["accuracy_true"]
    write_csv(tmp_path / "table.csv", found)
    assert list(read_csv(tmp_path / "table.csv")[0]) == list(read_csv(EXPECTED)[0])
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]


def test_the_expected_table_tells_a_tale() -> None:
    rows = read_csv(EXPECTED)
    epsilons = [float(row["learner_epsilon"]) for row in rows]
    assert [float(row["alpha"]) for row in rows] == list(utility.ALPHAS)
    assert epsilons == sorted(epsilons, reverse=True)
    assert float(rows[0]["accuracy_released"]) > float(rows[-1]["accuracy_released"])
