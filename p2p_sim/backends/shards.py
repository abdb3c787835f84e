"""Ray shards: each actor holds a range of users, in blocks; shards exchange bundles, servers run in this process."""

from __future__ import annotations

import itertools
import os
import time
from typing import Any

import ray

from p2p_sim.backends import layout
from p2p_sim.backends.local import LocalSite
from p2p_sim.backends.ray_session import Hosted, session
from p2p_sim.backends.ray_site import Plan, SiteActors, resolve, strip_tables, tables
from p2p_sim.backends.reexecution import until_whole
from p2p_sim.backends.settings import Settings
from p2p_sim.core import kernels as computing
from p2p_sim.core.engine import Engine, Finished, SiteHandle
from p2p_sim.core.errors import InputError
from p2p_sim.core.message import USER
from p2p_sim.core.population import Population
from p2p_sim.core.protocol import Protocol
from p2p_sim.core.site import Directory, Site

STORE_BYTES_A_USER = 64


def run(
    protocol: Protocol, population: Population, seed: int, settings: Settings
) -> tuple[Finished, dict[str, float]]:
    """Run over Ray shards; return the result, and the seconds of start-up, rounds and shut-down."""
    layout.check(protocol, population, settings.faults)
    wanted = min(settings.shards or os.cpu_count() or 1, population.users)
    start = time.perf_counter()
    settings.announce("starting Ray")
    with session(settings.address, wanted, population.users * STORE_BYTES_A_USER):
        compute = computing.choose(population.users)

        def set_up(hosted: list[Hosted], repeat: bool) -> Engine:
            shards = wanted
            if settings.address is not None:
                shards = _fitting(wanted, population.users, settings, repeat)
            return _set_up(protocol, population, seed, shards, settings, compute, hosted)

        finished, timings = until_whole(set_up, settings, compute, start)
        done = time.perf_counter()
    return finished, timings | {"shut-down": time.perf_counter() - done}


def _fitting(wanted: int, users: int, settings: Settings, repeat: bool) -> int:
    """Return how many shards to start on a cluster: as many as requested, or one for each CPU.

    ``repeat``: a machine may have been lost, and then there are no more shards than CPUs.
    """
    cpus = int(ray.cluster_resources().get("CPU", 0))
    if settings.shards is None:
        return min(users, max(1, cpus))
    if repeat:
        return max(1, min(wanted, cpus))
    if wanted > cpus:
        raise InputError(
            f"shards = {wanted}: the cluster at {settings.address} has {cpus} CPUs; use at most that many"
        )
    return wanted


def _set_up(
    protocol: Protocol,
    population: Population,
    seed: int,
    shards: int,
    settings: Settings,
    compute: Any,
    hosted: list[Hosted],
) -> Engine:
    """Find or start one actor a shard, each added to ``hosted`` at once; return the engine once all are ready."""
    cpus = 0 if settings.address is None else 1
    actors = SiteActors.of(protocol, hosted, num_cpus=cpus, scheduling_strategy="SPREAD")
    world = layout.world_of(protocol, population, settings.crypto)
    servers = [r for r in protocol.roles() if r != USER]
    bounds = layout.edges(population.users, shards)
    directory = Directory(tuple(bounds), tuple(range(shards)), dict.fromkeys(servers, shards))
    flags = (settings.digest, settings.trace)
    kernels = compute.__name__.rpartition(".")[2]
    plan = Plan(protocol, world, directory, seed, kernels, *flags, settings.faults, settings.costs)
    shared, without_tables = tables(population)
    shared_ref, binary = ray.put(shared), protocol.label_count() == 2
    for number, (low, high) in enumerate(itertools.pairwise(bounds)):
        columns = strip_tables(layout.slice_of(population, low, high, binary), shared, without_tables)
        parts = min(high - low, settings.blocks or -(-(high - low) // compute.BLOCK))
        cuts = layout.edges(high - low, parts)
        name = f"shard {number} (users {low} to {high - 1})"
        actors.start(name, (plan, number, [], low, cuts, columns, shared_ref))
    parties = {role: [layout.server_party(role, seed, compute, real=world.real)] for role in servers}
    injection = layout.injection_of(settings.faults, seed, compute)
    extra: dict[str, Any] = {"clock": time.thread_time, "seals": layout.seals_of(protocol, world, seed)}
    here = Site(protocol, world, directory, shards, parties, compute, *flags, injection=injection, **extra)
    actors.check()
    places: list[SiteHandle] = [*actors.places(directory.sites), LocalSite(here, resolve)]
    return Engine(protocol, directory, places, population.users, settings.progress)
