"""The benchmark of whole commands measures fresh processes, and its floor does what the command does."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import p2p_sim
from benchmarks import command, measure
from benchmarks.measure import Cost
from protocols import PeerToPeer


def test_rows_have_one_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def cost(words: list[str], folder: Path) -> Cost:
        asked.append(words)
        (folder / "run").mkdir(exist_ok=True)
        (folder / "run" / "run.json").write_text(json.dumps({"digest": "the same"}))
        return Cost(2.5 if "run" in words else 0.5, 1.0)

    monkeypatch.setattr(command, "command_cost", cost)
    result = command.main(users=200, repeat=3)
    assert json.loads(measure.as_text(result)) == result
    rows = result["rows"]
    assert [(row["case"], row["users"]) for row in rows] == [
        ("import", 0), ("alone", 0), ("help", 0), ("thousand", 1000), ("run", 200), ("run", 20), ("threads", 200),
        ("growth", 200),
    ]  # fmt: skip
    assert [row["reached"] for row in rows] == [False, False, False, False, True, False, False, True]
    assert rows[4]["times_floor_cpu"] == 5
    assert rows[7]["times_a_hundredth"] == rows[7]["times_a_tenth"] == 1
    assert len(asked) == 6 + 3 * (6 * 2 + 2) + 1 + 3 * 4


def test_the_floor_is_the_command_s_run(tmp_path: Path) -> None:
    command.plainly(3_000, tmp_path)
    people = p2p_sim.Population.synthetic(users=3_000, cluster_size=command.CLUSTER_SIZE, seed=command.SEED)
    output = p2p_sim.run(PeerToPeer(alpha=command.ALPHA), people, seed=command.SEED).output("learner")
    with np.load(tmp_path / "floor.npz") as saved:
        assert np.array_equal(saved["sender"], output["sender"])
        assert np.array_equal(saved["label"], output["y"])


def test_processes_are_measured_with_their_cpu_and_their_errors(tmp_path: Path) -> None:
    busy = measure.command_cost([sys.executable, "-c", "sum(range(3_000_000))"], tmp_path)
    assert 0 < busy.cpu < 10
    with pytest.raises(RuntimeError, match="status 3"):
        measure.command_cost([sys.executable, "-c", "raise SystemExit(3)"], tmp_path)


@pytest.mark.parametrize("wrong", [{"users": 5}, {"repeat": 0}, {"cases": ("halp",)}])
def test_bad_arguments(wrong: dict[str, Any]) -> None:
    with pytest.raises(p2p_sim.InputError):
        command.main(**wrong)
