"""docs/trace-queries.md: its commands work in a row."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

import p2p_sim

pytestmark = pytest.mark.slow

DOCS = Path(p2p_sim.__file__).parents[1] / "docs"


def test_the_commands_of_the_document(cli):
    page = (DOCS / "trace-queries.md").read_text()
    commands = [shlex.split(line[10:]) for line in page.splitlines() if line[:10] == "$ p2p-sim "]
    assert len(commands) == 12
    for words in commands:
        done = cli(*words)
        assert done.status == int(words[0] == "diff"), (words, done.err)
        assert done.out, words
