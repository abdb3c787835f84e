"""Numeric labels by the command line: run, its screen and its report; what is said where they do not fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

HOURS = ("--data", "table.csv", "--label", "hours")
RUN = ("run", "unbiased-response", "--epsilon", 2, *HOURS, "--seed", 1)


@pytest.fixture
def table(tmp_path: Path) -> None:
    rows = [f"{i % 10},{i % 7},{20 + 3 * (i % 10) + i % 7}" for i in range(300)]
    (tmp_path / "table.csv").write_text("a,b,hours\n" + "\n".join(rows) + "\n")


@pytest.mark.usefixtures("table")
def test_a_run_learns_numbers_and_says_so_on_its_screen_and_in_its_report(cli: Any) -> None:
    done = cli(*RUN, "--low", 20, "--high", 50, "--out", "r")
    assert done.status == 0
    words = " ".join(done.out.split())
    assert (
        "label hours: numbers from 20 to 50, which is taken as public, rounded to 16 of them; 13 of 300"
        in words
    )
    assert "Test errors, ridge RMSE MAE R² trained on the 240 numbers released" in words
    assert "trained on the 240 true numbers" in words
    assert "always the true numbers' mean" in words
    page = cli("report", "r", "--format", "md").out
    assert "numbers from 20 to 50, which is taken as public; 13 clipped" in page
    assert "| trained on | RMSE | MAE | R² | test rows |" in page
    regression = cli("report", "r", "--format", "json").json["runs"][0]["regression"]
    assert regression["errors"]["true"]["rmse"] < regression["errors"]["constant"]["rmse"]


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (RUN, "outside low = 0 to high = 1, the range of unbiased-response"),
        ((*RUN, "--low", 20, "--high", 60, "--positive", 33), "makes two classes, and numbers are asked for"),
        (("run", "randomized-response", "--epsilon", 1, *HOURS), "interval-response, with the range that they have"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named_with_what_to_do(cli: Any, words: tuple[object, ...], said: str) -> None:
    done = cli(*words)
    assert done.status == 2
    assert said in done.err
