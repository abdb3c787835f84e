"""PATE with a FixMatch student: a quick run, and claims that can hold and fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments import attacks_table1_fixmatch as script
from tests.experiments import quick

pytestmark = pytest.mark.slow


def test_the_student_of_fixmatch(tmp_path: Path) -> None:
    rows = quick.outcome(script, tmp_path).tables[""]
    assert [row["epsilon"] for row in rows] == [float("inf"), 1.0, 0.1]
    assert rows[1]["epsilon_spent"] == pytest.approx(1.0)
    good = [row | {"test": test, "attack": test} for row, test in zip(rows, (0.95, 0.9, 0.2), strict=True)]
    assert [claim.verdict for claim in script.claims(good)] == ["reproduced in shape", "reproduced"]
    assert script.claims([row | {"test": 0.4} for row in rows])[0].verdict == "not reproduced"
