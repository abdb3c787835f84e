"""The local backend: all parties in this process, users in blocks that fit the processor's cache."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.backends import layout
from p2p_sim.backends.speeds import Log, Speeds
from p2p_sim.backends.streamed_outputs import LocalOutputs, Target
from p2p_sim.core import kernels as computing
from p2p_sim.core.draw import Observer
from p2p_sim.core.engine import Engine, Finished, Issue, Progress, SiteHandle
from p2p_sim.core.faults import Faults
from p2p_sim.core.message import USER
from p2p_sim.core.population import Population
from p2p_sim.core.protocol import Protocol
from p2p_sim.core.sealing import MODELLED
from p2p_sim.core.site import Directory, Site
from p2p_sim.core.threads import Threads
from p2p_sim.core.trace_level import TraceLevel

Watch = Callable[[str, range | npt.NDArray[np.integer[Any]]], Observer | None]
"""Called with the role and ids of each block; returns the observer of its draws, or None."""


def nobody(_role: str, _ids: Any) -> None:
    """Observe no draws."""


class LocalSite:
    """The engine's handle on a site in this process.

    ``resolve``: fetches bundles of other sites; ``spent``: is told the CPU seconds of each step.
    """

    def __init__(
        self,
        site: Site,
        resolve: Callable[[list[Any]], list[Any]] = list,
        spent: Callable[[float], None] | None = None,
    ):
        self.site, self._resolve, self._spent = site, resolve, spent

    def start(
        self, role: str, clock: int, wanted: list[Issue | None], bundles: list[Any]
    ) -> tuple[Any, list[Any]]:
        """Run ``Site.advance`` at once."""
        begun, spent = time.perf_counter(), time.process_time()
        report, out = self.site.advance(role, clock, wanted, self._resolve(bundles))
        report.seconds, report.delivered = time.perf_counter() - begun, self.site.delivered
        if self._spent is not None:
            self._spent(time.process_time() - spent)
        return report, out

    def wait(self, handle: Any) -> Any:
        """Return the value itself."""
        return handle

    def finish(self, bundles: list[Any]) -> Any:
        """Return the site's totals and outputs."""
        return self.site.finish(self._resolve(bundles))


def run(
    protocol: Protocol,
    population: Population,
    seed: int,
    *,
    blocks: int | None = None,
    digest: bool = True,
    trace: TraceLevel = TraceLevel("none"),  # noqa: B008 (frozen)
    progress: Progress | None = None,
    watch: Watch = nobody,
    faults: Faults | None = None,
    costs: bool = False,
    crypto: str = MODELLED,
    threads: int = 1,
    log: Log | None = None,
    outputs: Target | None = None,
) -> Finished:
    """Run a protocol in this process.

    ``blocks``: number of blocks of users, None for the best size.  ``watch``: returns the observer of a block's draws.
    ``costs``: whether to count messages user by user.  ``threads``: how many work on blocks; the results are those of
    one.  Real cryptography has processes of its own, one a core, and no threads beside them.  ``log``: is told of each
    round.  ``outputs``: where these go block by block; None: into memory.
    """
    layout.check(protocol, population, faults)
    if progress is not None:
        progress("preparing", 0, 1)
    compute = computing.choose_or_switch(population.users)
    users, world = population.users, layout.world_of(protocol, population, crypto)
    parts = min(users, blocks or layout.blocks_of(users, compute.BLOCK))
    labels, injection = protocol.label_count(), layout.injection_of(faults, seed, compute)
    given = layout.source_of(population, 0, users, labels == 2)
    columns = layout.opened(given, world, 0, labels, injection)
    parties = {USER: layout.user_parties(columns, world, 0, layout.edges(users, parts), seed, compute)}
    servers = [role for role in protocol.roles() if role != USER]
    parties |= {role: [layout.server_party(role, seed, compute, real=world.real)] for role in servers}
    for me in (me for blocks_of_role in parties.values() for me in blocks_of_role):
        me.draw.observer = watch(me.role, me.ids)
    directory = Directory((0, users), (0,), dict.fromkeys(servers, 0))
    seals, clock = layout.seals_of(protocol, world, seed), time.thread_time
    flags = (digest, trace, progress, injection, costs)
    speeds = Speeds(users, ["this process"], progress, log)
    tell = None if progress is None else speeds.tell
    with ExitStack() as open_now:
        crew = open_now.enter_context(Threads(1 if world.real else threads))
        site = Site(
            protocol, world, directory, 0, parties, compute, *flags, clock=clock, seals=seals, threads=crew
        )
        places: list[SiteHandle] = [LocalSite(site, spent=_switch_when_due(compute, progress))]
        engine = Engine(protocol, directory, places, users, tell, crew, observe=speeds.round)
        if outputs is not None:
            here = open_now.enter_context(LocalOutputs(outputs, compute if digest else None, crew.count))
            site.release = here.take
            engine.collect = lambda late: here.finished(site.finish(late[0])[0], list(protocol.roles()))
        try:
            return engine.run(digest, compute)
        except BaseException:
            site.close()
            raise


def _switch_when_due(compute: ModuleType, progress: Progress | None) -> Callable[[float], None] | None:
    """Return what is told of CPU seconds and has numpy's loops become numba's when that pays; None where they stay."""
    if not isinstance(compute, computing.NumpyThenNumba):
        return None

    def spent(seconds: float) -> None:
        if compute.due(seconds):
            if progress is not None:
                progress("loading compiled loops, which are compiled the first time", 0, 1)
            compute.switch()

    return spent
