"""PATE with a FixMatch student: a quick run, and claims that can hold and fail."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from experiments import attacks_table1_fixmatch as script
from tests.experiments import quick

pytestmark = pytest.mark.slow


def test_the_student_of_fixmatch(tmp_path: Path) -> None:
    rows = quick.outcome(script, tmp_path).tables[""]
    assert [row["epsilon"] for row in rows] == [float("inf"), 1.0, 0.1]
    assert rows[1]["epsilon_spent"] == pytest.approx(1.0)
    good = [row | {"test": test, "attack": test} for row, test in zip(rows, (0.95, 0.9, 0.2), strict=True)]
    shape, wrong, unknown = "reproduced in shape", "not reproduced", "not comparable"
    response = {
        row["epsilon"]: row | {"test": 0.85, "test_se": 0.005, "model": "a network"} for row in good[1:]
    }
    assert verdicts(good, {}) == [shape, unknown, unknown, "reproduced"]
    assert verdicts(good, response) == [shape, shape, wrong, "reproduced"]
    assert verdicts([row | {"test": 0.4} for row in rows], {})[0] == wrong
    none = [*good[:2], good[2] | {"test": 0.1}]
    assert verdicts(none, {})[0] == wrong  # a guess: nothing is learnt, not little


def verdicts(rows: Any, response: Any) -> list[str]:
    return [claim.verdict for claim in script.claims(rows, response)]


def test_lp_1st_is_that_of_the_better_model_of_as_many_users() -> None:
    found = script.plain(60_000, quick=False)
    assert {epsilon: row["model"] for epsilon, row in found.items()} == {
        1.0: "a network",
        0.1: "a linear model",
    }
    assert found[1.0]["test"] > 0.9 > found[0.1]["test"] > 0.3
    assert script.plain(59_999, quick=False) == {}
