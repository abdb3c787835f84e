"""Where a run takes place: in this process, in Ray shards, or with one Ray actor a user."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from typing import Any

from p2p_sim.backends.settings import NAMES, Settings
from p2p_sim.core.engine import Finished
from p2p_sim.core.population import Population

__all__ = ["NAMES", "Settings", "opened", "run"]


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


@contextlib.contextmanager
def opened(settings: Settings, users: int) -> Iterator[None]:
    """Keep what the settings name open over several runs of up to ``users`` users, and close it on every way out."""
    if settings.backend == "local":
        yield
        return
    from p2p_sim.backends import session, shards

    wanted = users + 1 if settings.backend == "actors" else settings.shards or os.cpu_count() or 1
    with session.session(settings.address, wanted, users * shards.STORE_BYTES_A_USER):
        yield
