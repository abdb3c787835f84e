"""The benchmark of sweeps: what it would run; it runs by hand."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks import sweep
from benchmarks.command_line import command_line
from p2p_sim import InputError
from p2p_sim.sweep import grids


def test_the_grid_has_as_many_runs_as_are_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "grid.toml"
    file.write_text(sweep._grid(20))
    assert grids.read(file).count == 200


@pytest.mark.parametrize(
    ("runs", "cases", "repeat"), [(15, ("digits",), 1), (0, ("digits",), 1), (10, ("no",), 1), (10, (), 0)]
)
def test_bad_arguments_are_refused(runs: int, cases: tuple[str, ...], repeat: int) -> None:
    with pytest.raises(InputError):
        sweep.main(runs, cases, repeat)


@pytest.mark.parametrize("text", ["x", "inf", "nan"])
def test_a_size_that_is_no_number_is_named(
    text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["sweep", "--runs", text])
    with pytest.raises(SystemExit) as ended:
        command_line(sweep, sweep.RUNS, "runs")
    assert ended.value.code == 2
    assert f"argument --runs: {text!r}: give a whole number, such as 1000 or 1e6" in capsys.readouterr().err


def test_runs_alone_are_measured() -> None:
    assert sweep._alone(1) > 0
