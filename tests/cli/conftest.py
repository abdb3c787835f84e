"""The command line in this process: ``cli("run", ...)`` in an empty folder."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from p2p_sim import cli as program
from p2p_sim.core import module_finder

PROGRESS = re.compile(r"^.* \[[0-9]+ s\]\n", re.MULTILINE)
"""A line that says how far long work is; on a busy machine anything is long."""


@dataclass
class Done:
    """What a command left; ``err`` without lines of progress."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        def refuse(name: str) -> None:
            raise ValueError(f"{name} is not JSON")

        return json.loads(self.out, parse_constant=refuse)


@pytest.fixture
def cli(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    before = module_finder.opened()

    def run(*words: object) -> Done:
        capsys.readouterr()
        status = program.main([str(word) for word in words])
        captured = capsys.readouterr()
        return Done(status, captured.out, PROGRESS.sub("", captured.err))

    yield run
    sys.meta_path[:] = [  # to a run that goes on in a later test, modules of one's own were other code
        each for each in sys.meta_path if not isinstance(each, module_finder.Own) or each in before
    ]


def below(folder: Path) -> dict[str, bytes | None]:
    """Every path below a folder, and what the files hold."""
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None for p in folder.rglob("*")}
