"""docs/trace-diagrams.md: its commands work in a row, and its picture is what they draw."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

import p2p_sim

pytestmark = pytest.mark.slow

DOCS = Path(p2p_sim.__file__).parents[1] / "docs"


def test_the_commands_of_the_document_draw_its_picture(cli, tmp_path):
    page = (DOCS / "trace-diagrams.md").read_text()
    commands = [shlex.split(line[10:]) for line in page.splitlines() if line[:10] == "$ p2p-sim "]
    assert len(commands) == 6
    for words in commands:
        done = cli(*words)
        assert (done.status, "note:" in done.err) == (0, False), words
    assert (tmp_path / "diagram.svg").read_bytes() == (DOCS / "figures" / "diagram.svg").read_bytes()
    assert {file.name for file in tmp_path.iterdir()} == {
        "runs", "diagram.svg", "cluster1.json", "messages.graphml",
    }  # fmt: skip
