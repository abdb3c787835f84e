"""The benchmark runs, says what it measured in one shape, and its floor is Algorithm 2 bit for bit."""

from __future__ import annotations

import json
import time
from typing import Any

import numpy as np
import pytest

import p2p_sim
from benchmarks import engine, measure, workload
from benchmarks.floor import check, floor
from p2p_sim.core.threads import Threads

COMMON = {
    "case": str,
    "users": int,
    "clusters": str,
    "digest": bool,
    "numba": bool,
    "ratio_cpu": (float, type(None)),
    "ratio_wall": (float, type(None)),
    "bytes_per_user": (float, type(None)),
    "ns_per_user_cpu": (float, type(None)),
    "floor_ns_per_user": (float, type(None)),
    "target": dict,
    "reached": bool,
}


@pytest.mark.slow
def test_rows_have_one_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is measured in a fresh process once a kind: each of them imports all there is."""
    fresh, kept = measure.in_fresh_process, dict[Any, int]()

    def once(module: str, what: str, users: int, *more: Any) -> int:
        kind = (module, what, "digest" in more)
        if kind not in kept:
            kept[kind] = fresh(module, what, users, *more)
        return kept[kind]

    monkeypatch.setattr(measure, "in_fresh_process", once)
    seen: list[tuple[str, int, int]] = []
    result = engine.main(
        users=20_000,
        cases=("local", "digest", "numpy", "mechanisms"),
        repeat=1,
        progress=lambda *step: seen.append(step),
    )
    assert json.loads(measure.as_text(result)) == result
    assert set(result["machine"]) == {"cpu", "cores", "memory_gib", "python", "numpy", "numba", "ray", "load"}
    for row in result["rows"]:
        for name, kind in COMMON.items():
            assert isinstance(row[name], kind), (name, row)
        assert all(name in row for name in row["target"])
    names = [(row["case"], row["users"], row["clusters"]) for row in result["rows"] if row["ratio_cpu"]]
    assert [name for name in names if name[0] == "local"] == [
        ("local", 20_000, "contiguous"),
        ("local", 20_000, "scattered"),
        ("local", 2_000, "contiguous"),
        ("local", 2_000, "scattered"),
    ]
    assert {row["numba"] for row in result["rows"] if row["case"] == "numpy"} == {False}
    compared = [row["mechanism"] for row in result["rows"] if row["case"] == "mechanisms"]
    assert compared == [protocol.command_name() for protocol in engine.MECHANISMS]
    assert sum("us_per_message" in row for row in result["rows"]) == 2
    assert [done for _, done, _ in seen] == list(range(1, seen[0][2] + 1))


@pytest.mark.parametrize("numba", ["0", "1"])
@pytest.mark.parametrize("clusters", workload.BOTH)
def test_floor_is_the_engine_bit_for_bit(
    clusters: workload.Clusters, numba: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("P2P_SIM_NUMBA", numba)
    population = workload.population(70_001, clusters, 700)
    output = p2p_sim.run(workload.PROTOCOL, population, seed=3).output("learner")
    check(population, output, seed=3, alpha=workload.ALPHA, theta=workload.THETA)
    with pytest.raises(AssertionError, match="floor and engine differ"):
        check(population, output, seed=4, alpha=workload.ALPHA, theta=workload.THETA)


def test_floor_does_not_depend_on_its_chunks() -> None:
    population = workload.population(10_001, "scattered", 700)
    one, other = (floor(population, seed=5, alpha=0.2, theta=0.5, chunk=c) for c in (400, 32_768))
    assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize(("cases", "users"), [(("lokal",), 100), (("local",), 5)])
def test_bad_arguments(cases: tuple[str, ...], users: int) -> None:
    with pytest.raises(p2p_sim.InputError):
        engine.main(users=users, cases=cases)


def test_the_best_wall_time_is_half_of_what_blocks_do_and_all_of_the_rest() -> None:
    def spin(_: int = 0) -> None:
        until = time.thread_time() + 0.01
        while time.thread_time() < until:
            pass

    def beside(rest: int) -> float:
        return engine.best_wall(lambda: [spin() for _ in range(rest)] + list(Threads(1).map(spin, range(8))))

    assert beside(0) == pytest.approx(0.5, abs=0.1)
    assert beside(8) == pytest.approx(0.75, abs=0.1)
