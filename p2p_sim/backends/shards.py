"""Ray shards: each actor holds a range of users, in blocks; shards exchange bundles, servers run in this process."""

from __future__ import annotations

import functools
import itertools
import time
from typing import Any

import ray

from p2p_sim.backends import layout, streamed_outputs
from p2p_sim.backends.local import LocalSite
from p2p_sim.backends.ray_session import Hosted, session
from p2p_sim.backends.ray_site import SiteActors, SiteSettings, fetch, resolve, strip_tables, tables
from p2p_sim.backends.reexecution import until_whole
from p2p_sim.backends.settings import Settings
from p2p_sim.backends.speeds import Speeds, counters
from p2p_sim.core import kernels as computing
from p2p_sim.core.address_book import World
from p2p_sim.core.engine import Engine, Finished, SiteHandle
from p2p_sim.core.errors import InputError
from p2p_sim.core.message import USER
from p2p_sim.core.population import Population
from p2p_sim.core.population_in_parts import Origin, PopulationInParts
from p2p_sim.core.protocol import Protocol
from p2p_sim.core.site import Directory, Site
from p2p_sim.core.threads import cores
from p2p_sim.core.trace_level import TraceLevel

STORE_BYTES_A_USER = 64


def run(
    protocol: Protocol, population: Population, seed: int, settings: Settings
) -> tuple[Finished, dict[str, float]]:
    """Run over Ray shards; return the result, and the seconds of start-up, rounds and shut-down."""
    if not isinstance(population, PopulationInParts):  # one is looked at by the workers first
        layout.check(protocol, population, settings.faults)
    wanted = min(settings.shards or cores(), population.users)
    start = time.perf_counter()
    settings.announce("starting Ray")
    with session(settings.address, wanted, population.users * STORE_BYTES_A_USER):
        if isinstance(population, PopulationInParts):
            population.look(functools.partial(_look, shards=wanted))
            layout.check(protocol, population, settings.faults)
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
    of_all = SiteSettings(
        protocol, world, directory, seed, kernels, *flags, settings.faults, settings.costs, settings.outputs
    )
    binary = protocol.label_count() == 2
    shared: dict[str, Any] = {}
    if not isinstance(population, PopulationInParts):
        shared, without_tables = tables(population)
    shared_ref = ray.put(shared)
    for number, (low, high) in enumerate(itertools.pairwise(bounds)):
        columns = layout.source_of(population, low, high, binary)
        if isinstance(columns, dict):
            columns = strip_tables(columns, shared, without_tables)
        parts = min(high - low, settings.blocks or layout.blocks_of(high - low, compute.BLOCK))
        cuts = layout.edges(high - low, parts)
        name = f"shard {number} (users {low} to {high - 1})"
        actors.start(name, (of_all, number, [], low, cuts, columns, shared_ref))
    here: list[SiteHandle] = []
    if servers and isinstance(
        population, PopulationInParts
    ):  # what they are sent may be too much for this process
        given: tuple[Any, ...] = (of_all, shards, servers, 0, [0], {}, shared_ref)
        actors.start(f"actor of {', '.join(map(repr, servers))}", given, num_cpus=0)
    elif servers:
        here = [_servers(protocol, servers, seed, shards, world, directory, compute, flags, settings)]
    actors.check()
    places: list[SiteHandle] = [*actors.places(directory.sites), *here]
    names = [getattr(place, "name", "servers") for place in places]
    metrics = None if settings.address is None else counters(type(protocol).__name__)
    speeds = Speeds(population.users, names, settings.progress, settings.log, metrics)
    tell = None if settings.progress is None else speeds.tell
    engine = Engine(protocol, directory, places, population.users, tell, observe=speeds.round)
    if settings.outputs is not None:
        loops = kernels if settings.digest else None
        engine.collect = functools.partial(_collect, places, tuple(protocol.roles()), loops, settings)
    return engine


def _servers(
    protocol: Protocol,
    servers: list[str],
    seed: int,
    number: int,
    world: World,
    directory: Directory,
    compute: Any,
    flags: tuple[bool, TraceLevel],
    settings: Settings,
) -> LocalSite:
    """Return the site of the servers, in this process."""
    parties = {role: [layout.server_party(role, seed, compute, real=world.real)] for role in servers}
    injection = layout.injection_of(settings.faults, seed, compute)
    extra: dict[str, Any] = {"clock": time.thread_time, "seals": layout.seals_of(protocol, world, seed)}
    site = Site(protocol, world, directory, number, parties, compute, *flags, injection=injection, **extra)
    return LocalSite(site, resolve)


def _collect(
    places: list[Any],
    roles: tuple[str, ...],
    compute: str | None,
    settings: Settings,
    bundles: list[list[Any]],
) -> Finished:
    """Have every site write its outputs."""
    assert settings.outputs is not None
    settings.announce("writing outputs")
    ends = [place.keep(left) for place, left in zip(places, bundles, strict=True)]
    return streamed_outputs.collect(places, ends, roles, compute, settings.outputs)


def _look(origin: Origin, shards: int) -> list[Any]:
    """Let workers look at users who are made there; return what they found, in the order of ids."""
    at = itertools.pairwise(layout.edges(origin.users, shards))
    looks = [ray.remote(_looked).remote(origin, low, high) for low, high in at]
    return [fetch(look, "reading the population") for look in looks]


def _looked(origin: Origin, low: int, high: int) -> Any:
    return origin.look(low, high)
