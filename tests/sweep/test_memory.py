"""How many runs of a sweep are made at the same time: as many as memory holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import p2p_sim
from p2p_sim.core.errors import InputError
from p2p_sim.sweep import grids, memory, one_run, sweeping

GIB = 1 << 30
CROWDS = {
    "protocol": "randomized-response",
    "epsilon": 1.0,
    "users": [1000, 2_000_000, 20_000_000],
    "seed": [0, 1],
}


def _runs(given: dict[str, Any]) -> list[tuple[int, one_run.OneRun]]:
    return list(enumerate(grids.read(given).runs()))


def test_runs_that_surely_fit_are_not_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "plan_of", None)
    small = {**CROWDS, "users": [60, 1000], "protocol": ["randomized-response"]}
    assert memory.need_of(_runs(small), {}, GIB) == memory.Need()


def test_the_largest_run_in_doubt_is_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    honest, planned = memory.plan_of, []

    def counted(protocol: Any, crowd: Any, *given: Any) -> Any:
        planned.append(crowd.users)
        return honest(protocol, crowd, *given)

    monkeypatch.setattr(memory, "plan_of", counted)
    need = memory.need_of(_runs(CROWDS), {}, GIB // 4)
    assert need.index == 4
    assert planned[0] == 20_000_000  # and smaller ones only if they might take more
    assert 1000 not in planned
    assert 20_000_000 * 10 < need.nbytes < 20_000_000 * 400


def test_faults_are_planned_too() -> None:
    """Messages that are lost are not held."""
    crowd = {**CROWDS, "users": [20_000_000], "seed": [0]}
    everything = memory.need_of(_runs(crowd), {}, GIB // 4)
    lost = memory.need_of(_runs({**crowd, "faults": [["loss=0.9"]]}), {}, 0)
    assert lost.nbytes < everything.nbytes


def test_examples_and_training_count() -> None:
    run = {"protocol": "randomized-response", "epsilon": 1.0, "data": "digits"}
    ((index, whole),) = _runs(run)
    key = one_run.examples_of(whole, one_run.protocol_of(whole))
    assert key is not None
    extents = {key: memory.Extent(rows=1_000_000, features=784, clusters=0)}
    trained = memory.need_of([(index, whole)], extents, GIB)
    assert trained.nbytes > 1_000_000 * 784 * 8 * 3
    ((index, whole),) = _runs({**run, "model": "none"})
    assert memory.need_of([(index, whole)], extents, GIB).nbytes < trained.nbytes / 2


def test_fewer_runs_at_the_same_time_where_memory_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(sweeping.work_queue, "workers", lambda _kind, count, _address: asked.append(count))
    monkeypatch.setattr(sweeping, "memory", lambda: 10 * GIB)
    monkeypatch.setattr(sweeping, "need_of", lambda *_: memory.Need(3 * GIB, 7))
    said: list[str] = []
    sweeping._workers([], {}, 8, None, 8, said.append)
    assert asked == [3]
    assert said == [
        "3 runs at the same time instead of 8: run 7 needs about 3.22 GB of memory, and this machine has 10.7 GB"
    ]
    monkeypatch.setattr(sweeping, "memory", lambda: 2 * GIB)
    with pytest.raises(
        InputError, match=r"run 7 cannot fit: it needs 3\.22 GB of memory, and this machine has 2\.15 GB"
    ):
        sweeping._workers([], {}, 8, None, 8, said.append)


def test_a_sweep_that_cannot_fit_makes_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeping, "memory", lambda: GIB // 2)
    with pytest.raises(InputError, match="run 4 cannot fit"):
        p2p_sim.sweep(CROWDS, out=tmp_path / "a", workers=1)
    assert not (tmp_path / "a").exists()
