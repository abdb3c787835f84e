"""docs/reports.md, and a part of docs/auditing.md: their commands work in a row."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

import p2p_sim
from p2p_sim import cli as program

pytestmark = pytest.mark.slow


def commands_of(name):
    page = (Path(p2p_sim.__file__).parents[1] / "docs" / name).read_text()
    return [shlex.split(line[10:]) for line in page.splitlines() if line[:10] == "$ p2p-sim "]


def test_a_run_is_made_audited_and_reported(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    commands = commands_of("auditing.md")
    assert [words[0] for words in commands] == ["run", "audit", "report", "audit"]
    assert [program.main(words) for words in commands[:3]] == [0, 0, 0]  # the last needs a file of the page
    assert ">Attacks</h2>" in (tmp_path / "mine" / "report.html").read_text()


def test_the_commands_of_the_document(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    commands = commands_of("reports.md")
    assert len(commands) == 6
    for words in commands:
        capsys.readouterr()
        assert program.main(words) == 0, words
    assert "--seed ..." in capsys.readouterr().out
    assert (tmp_path / "both.html").is_file()
    assert (tmp_path / "runs" / "alone" / "report.html").is_file()
