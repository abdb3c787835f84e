"""Measuring runs on Ray: one session for several runs, start-up apart, CPU time of every process."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import p2p_sim
from benchmarks import measure, workload
from benchmarks.measure import Cost, Timed
from p2p_sim.core.engine import Engine
from p2p_sim.core.population import Population

SHARDS = 2


def shards_timer(population: Population) -> Timed:
    """Make the measurement of one run on Ray: what lies between the shards' start and their end."""

    def timer() -> Cost:
        options: dict[str, Any] = {"backend": "shards", "shards": SHARDS, "digest": False}
        with rounds_apart() as spent:
            p2p_sim.run(workload.PROTOCOL, population, seed=workload.SEED, **options)
        return spent[0]

    return timer


@contextmanager
def rounds_apart() -> Iterator[list[Cost]]:
    """Take down what the round engine itself spends, in every process: neither start-up nor stopping."""
    spent: list[Cost] = []
    original = Engine.run

    def watched(self: Engine, *arguments: Any, **options: Any) -> Any:
        settle()
        cpu, wall = measure.tree_cpu(), time.perf_counter()
        result = original(self, *arguments, **options)
        wall = time.perf_counter() - wall
        spent.append(Cost(measure.tree_cpu() - cpu, wall))
        return result

    Engine.run = watched  # type: ignore[method-assign]
    try:
        yield spent
    finally:
        Engine.run = original  # type: ignore[method-assign]


def settle(limit: float = 10.0) -> None:
    """Wait until the process tree rests: Ray goes on starting spare workers when the shards are ready."""
    pause, end, before = 0.25, time.perf_counter() + limit, measure.tree_cpu()
    while time.perf_counter() < end:
        time.sleep(pause)
        now = measure.tree_cpu()
        if now - before < 0.15 * pause:
            return
        before = now


@contextmanager
def ray_session(users: int) -> Iterator[None]:
    """Start Ray once for several runs, as the backend would for one, and stop it."""
    from p2p_sim.backends.ray_session import session
    from p2p_sim.backends.shards import STORE_BYTES_A_USER

    with session(None, SHARDS, users * STORE_BYTES_A_USER):
        yield
