"""One Ray actor for each user, holding one example, and one for each server: the closest to a real deployment.

It is a check of equivalence and a way to watch single parties, not a way to scale.
"""

from __future__ import annotations

import time
from typing import Any

import ray

from p2p_sim.backends import layout
from p2p_sim.backends.ray_site import Host, Plan, RayPlace, fetch, slim, tables
from p2p_sim.backends.session import session
from p2p_sim.core import plain
from p2p_sim.core.engine import Engine, Finished, Place, Progress
from p2p_sim.core.errors import InputError
from p2p_sim.core.ledger import TraceLevel
from p2p_sim.core.message import USER
from p2p_sim.core.population import Population
from p2p_sim.core.site import Directory

LIMIT = 128
"""Most users this backend takes: a process each, about 80 MB and a second to start."""

BOOTING = 4
"""How many actors boot at a time."""

STORE_BYTES = 100 << 20


def run(
    protocol: Any,
    population: Population,
    seed: int,
    *,
    address: str | None,
    digest: bool,
    trace: TraceLevel,
    progress: Progress | None,
) -> tuple[Finished, dict[str, float]]:
    """Run with an actor a party; raises InputError above 128 users."""
    layout.check(protocol, population)
    if population.users > LIMIT:
        raise InputError(
            f"{population.users:,} users are too many for backend 'actors' (one process each, at most {LIMIT}): "
            "use backend 'shards', which gives the same bits"
        )
    start = time.perf_counter()
    if progress is not None:
        progress("starting Ray", 0, 1)
    with session(address, population.users + 1, STORE_BYTES):
        engine, actors = _set_up(protocol, population, seed, digest, trace, progress)
        begun = time.perf_counter()
        try:
            finished = engine.run(digest, plain)
            ended = time.perf_counter()
        finally:
            for actor in actors:
                ray.kill(actor)
    timings = {"start-up": begun - start, "rounds": ended - begun, "shut-down": time.perf_counter() - ended}
    return finished, timings


def _set_up(
    protocol: Any,
    population: Population,
    seed: int,
    digest: bool,
    trace: TraceLevel,
    progress: Progress | None,
) -> tuple[Engine, list[Any]]:
    users, servers = population.users, [role for role in protocol.roles() if role != USER]
    world = layout.world_of(protocol, population)
    directory = Directory(
        tuple(range(users + 1)), tuple(range(users)), {role: users + i for i, role in enumerate(servers)}
    )
    plan = Plan(
        protocol, world, directory, seed, "plain", digest, trace
    )  # numpy: an actor need not load numba
    shared, emptied = tables(population)
    shared_ref, binary = ray.put(shared), protocol.label_count() == 2
    hosts: list[tuple[Any, ...]] = []
    for row in range(users):
        columns = slim(layout.slice_of(population, row, row + 1, binary), shared, emptied)
        hosts.append((plan, row, [], row, [0, 1], columns, shared_ref))
    hosts += [(plan, users + i, [role], 0, [0], {}, shared_ref) for i, role in enumerate(servers)]
    actors = _start(hosts, progress)
    places: list[Place] = [RayPlace(actor, directory.sites) for actor in actors]
    return Engine(protocol, directory, places, users, progress), actors


def _start(hosts: list[tuple[Any, ...]], progress: Progress | None) -> list[Any]:
    """Start the actors a few at a time: all at once, their processes would starve each other."""
    actors: list[Any] = []
    booting: list[Any] = []
    for host in hosts:
        if len(booting) == BOOTING:
            done, booting = ray.wait(booting)
            fetch(done)
        actors.append(ray.remote(Host).options(num_cpus=0).remote(*host))
        booting.append(actors[-1].ready.remote())
        if progress is not None:
            progress("starting actors", len(actors), len(hosts))
    fetch(booting)
    return actors
