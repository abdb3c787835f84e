"""Experiments that were ended go on where they were, with rows of equal settings and equal code alone."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from experiments import _made_by, _rows, _theorem3_utility, corrections, costs, theorem3, utility
from experiments._common import main, read_csv
from experiments._rows import Kept
from p2p_sim.core.errors import InputError


class Counted:
    """Cases that note which of them were computed."""

    def __init__(self) -> None:
        self.computed: list[int] = []

    def cases(self, count: int, **about: Any) -> list[_rows.Case]:
        return [
            (about | {"number": number}, lambda number=number: self._row(number)) for number in range(count)
        ]

    def _row(self, number: int) -> list[_rows.Row]:
        self.computed.append(number)
        return [{"number": number, "share": number / 3, "epsilon": float("inf"), "why": ""}]


def test_rows_that_are_there_are_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, once, again = tmp_path / "table.csv", Counted(), Counted()
    first = Kept(table).take(once.cases(3))
    assert "there already" not in capsys.readouterr().err
    found = Kept(table).take(again.cases(5))
    assert again.computed == [3, 4]
    assert found[:3] == first == [once._row(number)[0] for number in range(3)]
    said = capsys.readouterr().err
    assert said.startswith("3 of 5 rows were there already, in ")
    assert "table.csv.rows.json; --fresh computes them again" in said
    assert {path.name for path in tmp_path.iterdir()} == {"table.csv.rows.json"}


def test_rows_of_other_settings_are_not_taken_and_stay(tmp_path: Path) -> None:
    table, counted = tmp_path / "table.csv", Counted()
    for seeds in (1, 2, 1):
        Kept(table).take(counted.cases(2, seeds=seeds))
    assert counted.computed == [0, 1, 0, 1]


def test_fresh_computes_again(tmp_path: Path) -> None:
    table, counted = tmp_path / "table.csv", Counted()
    for fresh in (False, True):
        Kept(table, fresh=fresh).take(counted.cases(2))
    assert counted.computed == [0, 1, 0, 1]


def test_rows_of_other_code_are_computed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table, counted = tmp_path / "table.csv", Counted()
    Kept(table).take(counted.cases(2))
    with monkeypatch.context() as other:
        other.setattr(_made_by, "of", lambda _: "other")
        Kept(table).take(counted.cases(1))
    assert counted.computed == [0, 1, 0]
    assert "1 of its rows were found by other code" in capsys.readouterr().err
    Kept(table).take(counted.cases(2))  # of the two, one is still of this code
    assert counted.computed == [0, 1, 0, 0]


@pytest.mark.parametrize("content", ["", "3", '{"a": 1}', '{"a": {"code": "", "rows": 3}}', "[1]"])
def test_a_file_of_something_else_is_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "table.csv.rows.json").write_text(content)
    with pytest.raises(InputError, match=r"table.csv.rows.json' are no rows .*remove it, or give --fresh"):
        Kept(tmp_path / "table.csv")
    assert Kept(tmp_path / "table.csv", fresh=True).take(Counted().cases(1))


def test_nothing_is_kept_beside_a_device(capsys: pytest.CaptureFixture[str]) -> None:
    counted = Counted()
    Kept(Path("/dev/null")).take(counted.cases(2))
    assert "/dev/null is no file in a folder: rows are not kept" in capsys.readouterr().err
    assert not Path("/dev/null.rows.json").exists()


KILLED = """
import os, signal, sys
from pathlib import Path
from experiments import costs
from experiments._common import main

kill = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
calls, rows, write = [], costs.rows, os.write

def fourth(*setting):
    calls.append(setting)
    if len(calls) == 4:
        kill()
    if len(calls) == 3 and sys.argv[1] == "writing":
        Path.replace = kill
    return rows(*setting)

costs.rows = fourth
main(costs.EXPERIMENT, sys.argv[2:])
"""


@pytest.mark.slow
@pytest.mark.parametrize(("when", "there"), [("computing", 3), ("writing", 2)])
def test_an_experiment_that_was_killed_goes_on(
    when: str, there: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "costs.csv"
    words = ["--quick", "--out", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-c", KILLED, when, *words],
        cwd=Path(costs.__file__).parents[1],
        timeout=300,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    assert not table.exists()
    kept = json.loads((tmp_path / "costs.csv.rows.json").read_text())
    half = [each["rows"] for each in kept.values()]
    computed, rows = [], costs.rows
    monkeypatch.setattr(costs, "rows", lambda *setting: computed.append(setting[0]) or rows(*setting))
    assert main(costs.EXPERIMENT, words) == 0
    assert computed == costs.settings()[there:]
    assert f"{there} of {len(costs.settings())} settings were there already" in capsys.readouterr().err
    whole = read_csv(table)
    found = [
        row
        for setting in costs.settings()
        for row in rows(setting, costs.QUICK_USERS, costs.Rates(*[1e-6] * 8))
    ]
    fixed = [name for name in found[0] if name not in costs.SECONDS]
    assert [[row[name] for name in fixed] for row in whole] == [
        [str(row[name]) for name in fixed] for row in found
    ]
    kept = [{name: str(value) for name, value in row.items()} for part in half[1:] for row in part]
    assert whole[: len(kept)] == kept
    written = table.read_bytes()
    assert main(costs.EXPERIMENT, words) == 0  # all is there: also the seconds of this machine
    assert table.read_bytes() == written
    assert len(computed) == len(costs.settings()) - there


def test_each_row_has_settings_of_its_own() -> None:
    """Two rows of equal settings would be one row."""
    for cases in (
        list(theorem3.cases(theorem3.SIZES, theorem3.THETAS, None)),
        _theorem3_utility.cases("digits", 2),
        [case for classes in (2, 10) for case in corrections.cases("digits", classes)],
    ):
        keys = {json.dumps(settings, sort_keys=True) for settings, _ in cases}
        assert len(keys) == len(cases)
    assert len({repr(setting) for setting in costs.settings()}) == len(costs.settings())


def test_rows_are_of_the_examples_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    here, load = _rows._of_set.__wrapped__("digits", False)[0], _rows.datasets.load
    assert _rows._of_set.__wrapped__("digits", False)[0] == here
    assert _rows._of_set.__wrapped__("digits", True)[0] != here
    monkeypatch.setattr(
        _rows.datasets, "load", lambda *name, **how: replace(load(*name, **how), y=~load(*name).y)
    )
    assert _rows._of_set.__wrapped__("digits", False)[0] != here


def test_utility_takes_its_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[float] = []

    def row(data: str, clusters: int, alpha: float, seeds: int) -> list[_rows.Row]:
        computed.append(alpha)
        if alpha == 0.2:
            raise KeyboardInterrupt
        return [{"alpha": alpha}]

    monkeypatch.setattr(utility, "_row", row)
    with pytest.raises(KeyboardInterrupt):
        utility.rows("digits", alphas=(0.1, 0.2), kept=Kept(tmp_path / "table.csv"))
    assert utility.rows("digits", alphas=(0.1, 0.3), kept=Kept(tmp_path / "table.csv")) == [
        {"alpha": 0.1}, {"alpha": 0.3},
    ]  # fmt: skip
    assert computed == [0.1, 0.2, 0.3]
