"""docs/reports.md: its commands work in a row."""

from __future__ import annotations

import shlex
from pathlib import Path

import p2p_sim
from p2p_sim import cli as program


def test_the_commands_of_the_document(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = (Path(p2p_sim.__file__).parents[1] / "docs" / "reports.md").read_text()
    commands = [shlex.split(line[10:]) for line in page.splitlines() if line[:10] == "$ p2p-sim "]
    assert len(commands) == 5
    for words in commands:
        capsys.readouterr()
        assert program.main(words) == 0, words
    assert "--seed ..." in capsys.readouterr().out
    assert (tmp_path / "both.html").is_file()
    assert (tmp_path / "runs" / "alone" / ".." / "latest" / "report.html").is_file()
