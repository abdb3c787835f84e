"""The benchmark of nearest neighbours runs at a small size and says what it measured against which target."""

from __future__ import annotations

import pytest

from benchmarks import neighbours
from p2p_sim import InputError

pytestmark = pytest.mark.slow


def test_rows_say_what_was_measured() -> None:
    told: list[tuple[str, int, int]] = []
    result = neighbours.main(3_000, ("losses",), 2, lambda *step: told.append(step))
    (row,) = result["rows"]
    assert (row["case"], row["users"], row["k"], row["columns"]) == ("losses", 3_000, 15, 510)
    assert row["seconds"] > 0
    assert row["peak_mib"] > 10
    assert row["reached"] == (row["seconds"] <= 180 and row["peak_mib"] <= 4096)
    assert told == [("losses", 1, 2), ("losses", 2, 2)]
    assert "python" in result["machine"]


def test_bad_arguments_are_named() -> None:
    with pytest.raises(InputError, match="no case 'speed'; known are losses"):
        neighbours.main(3_000, ("speed",), 1, None)
    with pytest.raises(InputError, match="users = 10, repeat = 1: give at least 2000 users"):
        neighbours.main(10, ("losses",), 1, None)
