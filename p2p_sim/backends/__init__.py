"""Where a run takes place: in this process, in Ray shards, or with one Ray actor a user."""

from __future__ import annotations

import time
from typing import Any

from p2p_sim.core.engine import Finished, Progress
from p2p_sim.core.errors import InputError
from p2p_sim.core.ledger import TraceLevel
from p2p_sim.core.population import Population

NAMES = ("local", "shards", "actors")


def run(
    backend: str,
    protocol: Any,
    population: Population,
    seed: int,
    blocks: int | None,
    shards: int | None,
    address: str | None,
    trace: TraceLevel,
    digest: bool,
    progress: Progress | None,
) -> tuple[Finished, dict[str, float]]:
    """Run on the named backend; return what came of it and seconds by phase."""
    check(backend, blocks, shards, address)
    start = time.perf_counter()
    if backend == "local":
        from p2p_sim.backends import local

        finished = local.run(
            protocol, population, seed, blocks=blocks, digest=digest, trace=trace, progress=progress
        )
        return finished, {"rounds": time.perf_counter() - start}
    if backend == "actors":
        from p2p_sim.backends import actors

        return actors.run(
            protocol, population, seed, address=address, digest=digest, trace=trace, progress=progress
        )
    from p2p_sim.backends import shards as sharded

    return sharded.run(
        protocol, population, seed,
        blocks=blocks, shards=shards, address=address, digest=digest, trace=trace, progress=progress,
    )  # fmt: skip


def check(backend: str, blocks: int | None, shards: int | None, address: str | None) -> None:
    """Check what can be checked of these choices without a population; raises InputError."""
    if backend not in NAMES:
        raise InputError(f"unknown backend {backend!r}; known backends: {', '.join(NAMES)}")
    _check_count("blocks", blocks)
    _check_count("shards", shards)
    if shards is not None and backend != "shards":
        raise InputError(
            f"shards = {shards} means nothing to backend {backend!r}: use backend 'shards', or leave it out"
        )
    if blocks is not None and backend == "actors":
        raise InputError(
            f"blocks = {blocks} means nothing to backend 'actors': every user is a block of her own"
        )
    if address is not None and backend == "local":
        raise InputError(f"address = {address!r} means nothing to backend 'local': use 'shards' or 'actors'")


def _check_count(name: str, value: int | None) -> None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise InputError(f"{name} = {value!r}: must be an integer of at least 1")
