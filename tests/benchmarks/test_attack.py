"""The benchmark of attacks runs at a small size and says what it measured against which target."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest

from benchmarks import attack


def test_rows_say_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that goes on by one more second at each look: every attack takes longer than the one before."""
    clock = itertools.accumulate(itertools.count())
    monkeypatch.setattr(attack, "time", SimpleNamespace(perf_counter=lambda: float(next(clock))))
    monkeypatch.setattr(
        attack, "JOBS", tuple((case, setting, 9.0, of) for case, setting, _, of in attack.JOBS)
    )
    rows = attack.main(2_000, attack.CASES, 3, None)["rows"]
    assert [(row["case"], row["setting"]) for row in rows] == [job[:2] for job in attack.JOBS]
    assert [row["seconds"] for row in rows] == [
        3.0,
        9.0,
        15.0,
        21.0,
        27.0,
        33.0,
    ]  # medians of 1, 3, 5; 7, 9, 11; ...
    assert [row["reached"] for row in rows] == [True, True, False, False, False, False]
    assert {row["target"]["seconds"] for row in rows} == {9.0}


def test_only_the_cases_asked_for_are_measured() -> None:
    rows = attack.main(500, ("crowd",), 1, None)["rows"]
    assert [row["case"] for row in rows] == ["crowd"]


def test_unknown_cases_are_named() -> None:
    with pytest.raises(ValueError, match=r"unknown cases \['speed'\]"):
        attack.main(10, ("speed",), 1, None)
