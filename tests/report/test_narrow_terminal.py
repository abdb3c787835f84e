"""In a narrow terminal no line of a text is wider than it, and nothing of a table is lost."""

from __future__ import annotations

import io
import random
import re

import pytest

from p2p_sim.report import narrow_table, run_screen, run_summary, terminal
from tests.cli.conftest import cli  # noqa: F401
from tests.contract.cases import PROTOCOLS
from tests.report.test_run_screen import document

WIDTHS = (40, 60, 80)
WORDS = ("a", "view", "learner+3*user", "0.25", "2.197", "refused", "of one cluster", "[1][2]", "-", "")


def some_table(chance: random.Random) -> list[list[str]]:
    count = chance.randint(1, 9)
    return [[" ".join(chance.sample(WORDS, 2)).strip() for _ in range(count)] for _ in range(4)]


@pytest.mark.parametrize("seed", range(20))
def test_a_table_fits_and_says_the_same(seed):
    every = some_table(random.Random(seed))
    for room in (20, *WIDTHS):
        lines = narrow_table.lines(every, [False] * len(every[0]), room)
        assert max(map(len, lines)) <= room
        # every column but the first is there once, the first once for each part of the table
        told, parts = "".join("".join(lines).split()), 1 + lines.count("")
        for text in {text for line in every for text in line[1:]}:
            letters = sorted("".join(text.split()))
            assert all(told.count(letter) >= letters.count(letter) for letter in letters)
        wanted = sum(len("".join(text.split())) for line in every for text in line)
        again = sum(len("".join(line[0].split())) for line in every) * (parts - 1)
        assert len(told) == wanted + again


def test_rows_are_told_apart_and_numbers_stay_right():
    head, rows = ["who looks", "epsilon"], [["user: one curious peer", 2.5], ["learner", 13.25]]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "24")
        assert terminal.table(head, rows).splitlines() == [
            "who looks        epsilon",
            "user: one            2.5",
            "  curious peer",
            "learner            13.25",
        ]


def test_columns_that_do_not_fit_come_below(monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    head = ["view", *(f"column-{i}" for i in range(4))]
    told = terminal.table(head, [["learner", *"1234"], ["wire", *"5678"]])
    first, second = told.split("\n\n")
    assert first.splitlines()[1].split() == ["learner", "1", "2"]
    assert second.splitlines()[2].split() == ["wire", "7", "8"]


def test_where_nobody_looks_lines_stay_whole(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr("sys.stdout", io.StringIO())
    assert terminal.columns() is None
    long = "word " * 100
    assert terminal.fitted(long) == long
    assert terminal.table(["a"], [[long]]) == terminal.whole_table(["a"], [[long]])


@pytest.mark.parametrize("said", ["", "0", "x", "-7", "4.5"])
def test_a_width_that_is_none_is_not_taken(said, monkeypatch):
    monkeypatch.setenv("COLUMNS", said)
    monkeypatch.setattr("sys.stdout", io.StringIO())
    assert terminal.columns() is None


def test_what_is_folded_goes_on_behind_its_name(monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    assert terminal.fitted(
        "Digest      one two three four five\nplain words that are rather long"
    ).splitlines() == [
        "Digest      one two three four",
        "          five",
        "plain words that are rather",
        "  long",
    ]


def test_a_command_stays_whole(monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    line = "Again: p2p-sim audit randomized-response --epsilon 1.0 --view learner"
    assert terminal.fitted(line) == line


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["peer-to-peer", "secure aggregation, sparse and noisy"])
def test_the_screen_of_a_run_fits(name, width, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    told = document(PROTOCOLS[name])
    for text in (run_screen.as_text(told), terminal.fitted(run_summary.as_text(told))):
        assert too_wide(text, width) == []
        for row in told["privacy"]["views"]:
            assert row["view"].split()[0] in text


TEXTS = (
    ("account", "peer-to-peer", "--cluster-size", "50", "--view", "learner", "--view", "user"),
    ("data",),
    ("data", "own.csv"),
    ("doctor",),
    ("errata", "--only", "clustering-theorem-1"),
    ("ls",),
    ("mechanisms", "randomized-response"),
    (),
)


@pytest.mark.parametrize("width", WIDTHS)
def test_texts_of_commands_fit(width, cli, tmp_path, monkeypatch):  # noqa: F811
    (tmp_path / "own.csv").write_text("age,a column of a long name,label\n" + "31,Oslo,no\n47,Rome,yes\n" * 4)
    words = (
        "run",
        "randomized-response",
        "--users",
        "20",
        "--seed",
        "1",
        "--out",
        "a-run-of-a-rather-long-name",
    )
    assert cli(*words).status == 0
    monkeypatch.setenv("COLUMNS", str(width))
    for each in TEXTS:
        done = cli(*each)
        assert done.status in (0, 1), done.err  # doctor may find fault with this machine
        assert too_wide(done.out, width) == [], each


def too_wide(text: str, width: int) -> list[str]:
    """Return the lines that do not fit, but for a single word, and for commands, which are there to be copied."""
    command = re.compile(
        r"(?:\w+  +| +)?(?:p2p-sim |shown by   p2p-sim |from p2p_sim|p2p_sim\.|privacy\.|\w+\()"
    )
    return [
        line
        for line in text.splitlines()
        if len(line) > width
        and len(line.split()) > 1
        and not command.match(line)
        and "p2p-sim report" not in line
    ]
