"""One Ray actor for each user, holding one example, and one for each server: the closest to a real deployment.

It is a check of equivalence and a way to watch single parties, not a way to scale.
"""

from __future__ import annotations

import time
from typing import Any

import ray

from p2p_sim.backends import layout
from p2p_sim.backends.ray_session import Hosted, session
from p2p_sim.backends.ray_site import SiteActors, SiteSettings, strip_tables, tables
from p2p_sim.backends.reexecution import until_whole
from p2p_sim.backends.settings import Settings, check_users
from p2p_sim.backends.speeds import Speeds
from p2p_sim.core import kernels, kernels_numpy
from p2p_sim.core.engine import Engine, Finished, SiteHandle
from p2p_sim.core.message import USER
from p2p_sim.core.population import Population
from p2p_sim.core.protocol import Protocol
from p2p_sim.core.site import Directory

STORE_BYTES = 100 << 20


def run(
    protocol: Protocol, population: Population, seed: int, settings: Settings
) -> tuple[Finished, dict[str, float]]:
    """Run with one actor a party; return the result and seconds by phase.  Raises InputError above 128 users."""
    layout.check(protocol, population, settings.faults)
    check_users(population.users)
    start = time.perf_counter()
    settings.announce("starting Ray")
    with session(settings.address, population.users + 1, STORE_BYTES):

        def set_up(hosted: list[Hosted], _repeat: bool) -> Engine:
            return _set_up(protocol, population, seed, settings, hosted)

        finished, timings = until_whole(set_up, settings, kernels_numpy, start)
        done = time.perf_counter()
    return finished, timings | {"shut-down": time.perf_counter() - done}


def _set_up(
    protocol: Protocol, population: Population, seed: int, settings: Settings, hosted: list[Hosted]
) -> Engine:
    """Find or start one actor a party; each is added to ``hosted`` at once.  Return the engine over them."""
    users, servers = population.users, [role for role in protocol.roles() if role != USER]
    world = layout.world_of(protocol, population, settings.crypto)
    directory = Directory(
        tuple(range(users + 1)), tuple(range(users)), {role: users + i for i, role in enumerate(servers)}
    )
    flags = (settings.digest, settings.trace, settings.faults, settings.costs)
    of_all = SiteSettings(
        protocol, world, directory, seed, kernels.NUMPY, *flags
    )  # numpy: an actor need not load numba
    shared, without_tables = tables(population)
    shared_ref, binary = ray.put(shared), protocol.label_count() == 2
    arguments: list[tuple[str, tuple[Any, ...]]] = []
    for row in range(users):
        columns = strip_tables(layout.slice_of(population, row, row + 1, binary), shared, without_tables)
        arguments.append((f"actor of user {row}", (of_all, row, [], row, [0, 1], columns, shared_ref)))
    arguments += [
        (f"actor of {role!r}", (of_all, users + i, [role], 0, [0], {}, shared_ref))
        for i, role in enumerate(servers)
    ]
    actors = SiteActors.of(protocol, hosted, num_cpus=0)
    for name, given in arguments:
        actors.start(name, given)
        if settings.progress is not None:
            settings.progress("starting actors", len(hosted), len(arguments))
    actors.check()
    places: list[SiteHandle] = [*actors.places(directory.sites)]
    names = [getattr(place, "name", "") for place in places]
    speeds = Speeds(users, names, settings.progress, settings.log)
    tell = None if settings.progress is None else speeds.tell
    return Engine(protocol, directory, places, users, tell, observe=speeds.round)
