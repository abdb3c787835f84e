"""``p2p-sim new``: the protocol that it writes runs and passes its tests, and no file is replaced."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.cli.conftest import cli  # noqa: F401


@pytest.mark.slow
def test_what_is_written_works_on_the_command_line_and_passes_its_tests(cli, tmp_path):  # noqa: F811
    done = cli("new", "my_votes")
    assert done.status == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["my_votes.py", "test_my_votes.py"]
    commands = [line.split("#")[0].split() for line in done.out.splitlines() if line.startswith("  ")]
    assert [command[:2] for command in commands[:-1]] == [
        ["p2p-sim", verb] for verb in ("account", "calibrate", "run", "check")
    ]
    for command in commands[:-1]:
        assert cli(*command[1:]).status == 0, command
    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", *commands[-1][3:]],
        cwd=tmp_path, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert tested.returncode == 0, tested.stdout
    assert "13 passed" in tested.stdout
    linted = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--isolated", "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert linted.returncode == 0, linted.stdout


def test_out_and_json(cli, tmp_path):  # noqa: F811
    (tmp_path / "deep").mkdir()
    written = cli("new", "votes_of_mine", "--out", "deep", "--json").json
    assert written["files"] == ["deep/votes_of_mine.py", "deep/test_votes_of_mine.py"]
    assert written["class"] == "VotesOfMine"
    assert all((tmp_path / name).is_file() for name in written["files"])


@pytest.mark.parametrize(
    "name", ["My", "a b", "a__b", "_a", "a_", "1a", "class", "none", "random", "p2p_sim", "é", "a" * 300, ""]
)
def test_a_name_that_cannot_be_used_is_refused(cli, tmp_path, name):  # noqa: F811
    done = cli("new", name)
    assert (done.status, done.out) == (2, "")
    assert "NAME = " in done.err
    assert len(done.err) < 400
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_replaced(cli, tmp_path):  # noqa: F811
    (tmp_path / "test_votes_of_mine.py").write_text("votes_of_mine")
    done = cli("new", "votes_of_mine")
    assert done.status == 2
    assert "'test_votes_of_mine.py' is there already" in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["test_votes_of_mine.py"]
    assert "make it first" in cli("new", "votes_of_mine", "--out", "nowhere").err
