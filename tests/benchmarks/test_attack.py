"""The benchmark of attacks runs at a small size and says what it measured against which target."""

from __future__ import annotations

import pytest

from benchmarks import attack


def test_rows_say_what_was_measured() -> None:
    result = attack.main(2_000, attack.CASES, 1, None)
    assert [row["case"] for row in result["rows"]] == [job[0] for job in attack.JOBS]
    for row in result["rows"]:
        assert row["reached"] == (row["seconds"] <= row["target"]["seconds"])


def test_unknown_cases_are_named() -> None:
    with pytest.raises(ValueError, match=r"unknown cases \['speed'\]"):
        attack.main(10, ("speed",), 1, None)
