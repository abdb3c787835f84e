"""Where a run takes place: in this process, in Ray shards, or with one Ray actor a user."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from p2p_sim.backends.settings import NAMES, Settings
from p2p_sim.core.engine import Finished
from p2p_sim.core.errors import InputError
from p2p_sim.core.population import Population
from p2p_sim.core.protocol import Protocol
from p2p_sim.core.threads import cores

__all__ = ["NAMES", "Settings", "opened", "run", "shards_of"]


def run(
    protocol: Protocol, population: Population, seed: int, settings: Settings
) -> tuple[Finished, dict[str, float]]:
    """Run on the backend of the settings; return the result and the seconds by phase.

    Raises InputError if the fault ``stop`` names a step that the server's program does not have.
    """
    finished, timings = _run(protocol, population, seed, settings)
    stop = None if settings.faults is None else settings.faults.stop
    if stop is not None and not finished.totals.stopped:
        raise InputError(
            f"stop = {stop[0]}:{stop[1]}: the program of {stop[0]!r} has fewer steps; give one it has"
        )
    return finished, timings


def _run(
    protocol: Protocol, population: Population, seed: int, settings: Settings
) -> tuple[Finished, dict[str, float]]:
    if settings.backend == "shards":
        from p2p_sim.backends import shards

        return shards.run(protocol, population, seed, settings)
    if settings.backend == "actors":
        from p2p_sim.backends import actors

        return actors.run(protocol, population, seed, settings)
    from p2p_sim.backends import local

    start = time.perf_counter()
    names = ("digest", "trace", "progress", "blocks", "faults", "costs", "crypto", "log", "outputs")
    options = {name: getattr(settings, name) for name in names}
    threads = settings.threads_for(population.users)
    finished = local.run(protocol, population, seed, **options, threads=threads)
    return finished, {"rounds": time.perf_counter() - start}


def shards_of(settings: Settings, users: int, cpus: int) -> int:
    """Return how many Ray actors hold users on machines with so many processors in all; 0 for "local"."""
    if settings.backend == "local":
        return 0
    return users if settings.backend == "actors" else min(settings.shards or max(1, cpus), users)


@contextlib.contextmanager
def opened(settings: Settings, users: int) -> Iterator[None]:
    """Keep one Ray session open for several runs of up to ``users`` users each; nothing to do for "local"."""
    if settings.backend == "local":
        yield
        return
    from p2p_sim.backends import ray_session, shards

    wanted = users + 1 if settings.backend == "actors" else settings.shards or cores()
    with ray_session.session(settings.address, wanted, users * shards.STORE_BYTES_A_USER):
        yield
