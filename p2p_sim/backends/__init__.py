"""Where a run takes place: in this process, in Ray shards, or with one Ray actor a user."""

from __future__ import annotations

import time
from typing import Any

from p2p_sim.backends.settings import NAMES, Settings
from p2p_sim.core.engine import Finished
from p2p_sim.core.population import Population

__all__ = ["NAMES", "Settings", "run"]


def run(
    protocol: Any, population: Population, seed: int, settings: Settings
) -> tuple[Finished, dict[str, float]]:
    """Run on the backend that the settings name; return what came of it and seconds by phase."""
    if settings.backend == "shards":
        from p2p_sim.backends import shards

        return shards.run(protocol, population, seed, settings)
    if settings.backend == "actors":
        from p2p_sim.backends import actors

        return actors.run(protocol, population, seed, settings)
    from p2p_sim.backends import local

    start = time.perf_counter()
    kept: dict[str, Any] = {"digest": settings.digest, "trace": settings.trace, "progress": settings.progress}
    finished = local.run(protocol, population, seed, blocks=settings.blocks, **kept)
    return finished, {"rounds": time.perf_counter() - start}
