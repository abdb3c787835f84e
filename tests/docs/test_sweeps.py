"""The page on sweeps, taken literally: its file is swept, listed and removed."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from p2p_sim.sweep import grids, sweeping
from tests.docs.test_documents import PAGES, blocks
from tests.sweep.here import Here

PAGE = PAGES["docs/sweeps.md"]
ALPHAS, PROMISE = blocks(PAGE, "toml")


@pytest.mark.slow
def test_the_commands_of_the_page_work_as_written(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this process: that others make the same rows is tested elsewhere."""
    monkeypatch.setattr(sweeping, "_workers", Here().workers)
    (tmp_path / "alphas.toml").write_text(ALPHAS)
    (commands,) = blocks(PAGE, "bash")
    told = []
    for command in commands.splitlines():
        done = cli(*shlex.split(command)[1:])
        assert done.status == 0, done.err
        told.append(done.out)
    assert "18 runs of 6 settings, 0 failed" in told[0]
    assert "peer-to-peer" in told[0]
    assert "18 of 18 runs" in told[1]
    assert (tmp_path / "alphas.svg").read_text().startswith("<svg")
    assert not (tmp_path / "sweeps" / "alphas").exists()


def test_the_promise_of_the_page_is_a_plan(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(PROMISE)
    found = grids.read(tmp_path / "a.toml")
    assert found.count == 18
    assert {run["promise"]["vary"] for run in found.runs()} == {"alpha", "epsilon"}


def test_the_page_names_every_key() -> None:
    from p2p_sim.sweep.settings import LISTS, SCALARS

    assert not [name for name in (*SCALARS, *LISTS) if f"`{name}`" not in PAGE]
