"""The page on comparisons, taken literally: its command is given, and its columns are those of the table."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pandas
import pytest

from p2p_sim.comparison import calibrations
from p2p_sim.sweep import sweeping
from tests.comparison.conftest import Calibrating
from tests.docs.test_documents import PAGES, blocks
from tests.sweep.here import Here

PAGE = PAGES["docs/compare.md"]


@pytest.mark.slow
def test_the_command_of_the_page_works_as_written(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this process: that others make the same rows is tested elsewhere."""
    monkeypatch.setattr(calibrations, "_workers", Calibrating().workers)
    monkeypatch.setattr(sweeping, "_workers", Here().workers)
    (command,) = blocks(PAGE, "bash")
    done = cli(*shlex.split(command)[1:])
    assert done.status == 0, done.err
    assert "Take " in done.out
    assert "learner <= 1, with user <= 2, learner+3*user <= 4" in done.out
    table = pandas.read_parquet(tmp_path / "mine" / "table.parquet")
    unnamed = {name.partition("[")[0] for name in table} - {
        "protocol",
        "basis",
        "bound_by",
        "note",
        "test_rows",
    }
    assert not [name for name in unnamed - {"attack_eta", "attack_why"} if f"`{name}" not in PAGE]
