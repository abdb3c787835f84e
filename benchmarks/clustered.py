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
        with rounds_apart() as spent:
            run = p2p_sim.run(
                workload.PROTOCOL,
                population,
                seed=workload.SEED,
                backend="shards",
                shards=SHARDS,
                digest=False,
            )
        wall = run.timings["rounds"] + run.timings.get("collect", 0.0)
        return Cost(spent[0].cpu, max(wall, spent[0].wall))

    return timer


@contextmanager
def rounds_apart() -> Iterator[list[Cost]]:
    """Take down what the round engine itself spends, in every process: neither start-up nor stopping."""
    spent: list[Cost] = []
    original = Engine.run

    def watched(self: Engine, *arguments: Any, **options: Any) -> Any:
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


@contextmanager
def ray_session(users: int) -> Iterator[None]:
    """Start Ray once for several runs, quietly, and stop it."""
    import ray

    with measure.environment("RAY_USAGE_STATS_ENABLED", "0"):
        ray.init(
            include_dashboard=False,
            log_to_driver=False,
            logging_level="error",
            object_store_memory=256 * 2**20 + 64 * users,
        )
        try:
            yield
        finally:
            ray.shutdown()
