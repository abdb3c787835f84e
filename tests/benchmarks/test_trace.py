"""The benchmark of traces runs at a small size and says what it measured against which target."""

from __future__ import annotations

import json

import pytest

from benchmarks import measure, trace
from p2p_sim import InputError

pytestmark = pytest.mark.slow

FIGURES = {
    "write": {"ratio_cpu", "ratio_wall", "bytes_per_message", "messages", "digest"},
    "user": {"messages", "seconds"},
    "page": {"offset", "seconds"},
    "web": {"of", "cpu_seconds", "seconds"},
    "stats": {"seconds"},
    "replay": {"numba", "cpu_seconds", "seconds"},
    "predict": {"messages", "nbytes", "seconds"},
    "memory": {"of", "peak_gib"},
}


def test_rows_say_what_was_measured() -> None:
    told: list[tuple[str, int, int]] = []
    result = trace.main(3_000, trace.CASES, 1, lambda *step: told.append(step))
    assert json.loads(measure.as_text(result)) == result
    assert [name for name, _, _ in told] == list(trace.CASES)
    for row in result["rows"]:
        assert set(row) == {"case", "users", "clusters", "target", "reached"} | FIGURES[row["case"]]
        assert set(row["target"]) <= FIGURES[row["case"]]
        assert all(row[name] > 0 for name in FIGURES[row["case"]] - {"digest", "numba", "offset", "of"})
    assert {row["case"] for row in result["rows"]} == set(FIGURES)
    for row in result["rows"]:
        if row["case"] == "user":
            assert row["messages"] >= 2  # she asks and is answered
        if row["case"] == "memory":
            assert row["reached"] == (row["peak_gib"] <= 1.0)


def test_bad_arguments_are_named() -> None:
    with pytest.raises(InputError, match="no case 'read'; known are write, "):
        trace.main(1000, ("read",), 1, None)
    with pytest.raises(InputError, match="users = 5, repeat = 1"):
        trace.main(5, ("write",), 1, None)
