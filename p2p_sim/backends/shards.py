"""Ray shards: each actor holds the users of a range of rows, in blocks; blocks travel all-to-all, servers stay here."""

from __future__ import annotations

import itertools
import os
import time
from typing import Any

import ray

from p2p_sim.backends import layout
from p2p_sim.backends.local import LocalPlace
from p2p_sim.backends.ray_site import Host, Plan, RayPlace, fetch, resolve, slim, tables
from p2p_sim.backends.session import session
from p2p_sim.core import compute as computing
from p2p_sim.core.engine import Engine, Finished, Place, Progress
from p2p_sim.core.errors import InputError
from p2p_sim.core.ledger import TraceLevel
from p2p_sim.core.message import USER
from p2p_sim.core.population import Population
from p2p_sim.core.site import Directory, Site

STORE_BYTES_A_USER = 64


def run(
    protocol: Any,
    population: Population,
    seed: int,
    *,
    blocks: int | None,
    shards: int | None,
    address: str | None,
    digest: bool,
    trace: TraceLevel,
    progress: Progress | None,
) -> tuple[Finished, dict[str, float]]:
    """Run over Ray shards; return what came of it, and seconds of start-up, rounds and shut-down."""
    layout.check(protocol, population)
    wanted = min(shards or os.cpu_count() or 1, population.users)
    start = time.perf_counter()
    if progress is not None:
        progress("starting Ray", 0, 1)
    with session(address, wanted, population.users * STORE_BYTES_A_USER):
        if shards is None and address is not None:
            wanted = min(population.users, max(1, int(ray.cluster_resources().get("CPU", 1))))
        engine, actors, compute = _set_up(
            protocol, population, seed, wanted, blocks, address, digest, trace, progress
        )
        fetch([actor.ready.remote() for actor in actors])
        begun = time.perf_counter()
        try:
            finished = engine.run(digest, compute)
            ended = time.perf_counter()
        finally:
            for actor in actors:
                ray.kill(actor)
    timings = {"start-up": begun - start, "rounds": ended - begun, "shut-down": time.perf_counter() - ended}
    return finished, timings


def _set_up(
    protocol: Any, population: Population, seed: int, shards: int, blocks: int | None, address: str | None,
    digest: bool, trace: TraceLevel, progress: Progress | None,
) -> tuple[Engine, list[Any], Any]:  # fmt: skip
    cpus = ray.cluster_resources().get("CPU", 0)
    if address is not None and shards > cpus:
        raise InputError(
            f"shards = {shards}: the cluster at {address} has {cpus:g} CPUs; use at most that many"
        )
    compute = computing.choose(population.users)
    world, servers = layout.world_of(protocol, population), [r for r in protocol.roles() if r != USER]
    bounds = layout.edges(population.users, shards)
    directory = Directory(tuple(bounds), tuple(range(shards)), dict.fromkeys(servers, shards))
    plan = Plan(protocol, world, directory, seed, compute.__name__.rpartition(".")[2], digest, trace)
    shared, emptied = tables(population)
    shared_ref, binary = ray.put(shared), protocol.label_count() == 2
    options: dict[str, Any] = {"num_cpus": 0 if address is None else 1, "scheduling_strategy": "SPREAD"}
    actors = []
    for number, (low, high) in enumerate(itertools.pairwise(bounds)):
        columns = slim(layout.slice_of(population, low, high, binary), shared, emptied)
        parts = min(high - low, blocks or -(-(high - low) // compute.BLOCK))
        cuts = layout.edges(high - low, parts)
        host = ray.remote(Host).options(**options)
        actors.append(host.remote(plan, number, [], low, cuts, columns, shared_ref))
    parties = {role: [layout.server_party(role, seed, compute)] for role in servers}
    here = Site(protocol, world, directory, shards, parties, compute, digest, trace)
    places: list[Place] = [RayPlace(actor, directory.sites) for actor in actors]
    places.append(LocalPlace(here, resolve))
    return Engine(protocol, directory, places, population.users, progress), actors, compute
