"""The accountant's benchmark runs at a small size and says what it measured against which target."""

from __future__ import annotations

import pytest

from benchmarks import account


@pytest.mark.slow
def test_rows_say_what_was_measured() -> None:
    result = account.main(2_000, ("table", "compose"), 1, None)
    assert {row["case"] for row in result["rows"]} == {"table", "compose", "memory"}
    for row in result["rows"]:
        ((name, limit),) = row["target"].items()
        assert row["reached"] == (row[name] >= limit if name == "ratio" else row[name] <= limit)
    assert "python" in result["machine"]


def test_unknown_cases_are_named() -> None:
    with pytest.raises(ValueError, match=r"unknown cases \['speed'\]"):
        account.main(10, ("speed",), 1, None)
