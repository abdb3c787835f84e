"""A site in a Ray actor, and the engine's handle on it.

Actors are started here; shards and one-user actors are both of this kind.
"""

from __future__ import annotations

import math
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import ray

from p2p_sim.backends import layout, ray_session, streamed_outputs
from p2p_sim.backends.ray_lost_actors import LOSSES, unloadable, why
from p2p_sim.backends.ray_node import START_SECONDS, busy
from p2p_sim.backends.ray_session import AGAIN, ActorLostError, Hosted
from p2p_sim.core import code_fingerprint, module_finder
from p2p_sim.core import kernels as computing
from p2p_sim.core.address_book import World
from p2p_sim.core.engine import Issue
from p2p_sim.core.errors import InputError, ProtocolError, RunLostError
from p2p_sim.core.faults import Faults
from p2p_sim.core.message import USER
from p2p_sim.core.population import Population
from p2p_sim.core.protocol import Protocol
from p2p_sim.core.site import Directory, Site
from p2p_sim.core.trace_level import TraceLevel

_OTHER_CODE = "the Ray worker in {} does not have the code of this process"
_INSTALL_SAME = (
    "install the same there; if this program called ray.init itself, leave that to p2p-sim (ray.shutdown() before the "
    "run)"
)
_SHOWN = 3
STARTING_AT_ONCE = 4
"""How many actors start at the same time."""

SILENT_SECONDS = 30.0
"""After so long without an answer, a warning says what is waited for."""

_LOOK_SECONDS = 1.0


@dataclass(frozen=True)
class SiteSettings:
    """The small settings that all sites of a run share."""

    protocol: Protocol
    world: World
    directory: Directory
    seed: int
    compute: str
    digest: bool
    trace: TraceLevel
    faults: Faults | None = None
    costs: bool = False
    outputs: streamed_outputs.Target | None = None


class SiteActor:
    """The class of the Ray actors: each holds one site.  ``own``: where the user's own modules are found."""

    def __init__(self, own: tuple[module_finder.Own, ...]):
        for each in own:
            each.open()

    def code(self, modules: tuple[str, ...]) -> tuple[str, dict[str, str]]:
        """Return where this process runs and the code of its modules; raises InputError if a module is missing."""
        where = f"process {os.getpid()} on {ray.util.get_node_ip_address()}"
        try:
            return where, code_fingerprint.code_of(modules)
        except ImportError as error:
            raise InputError(f"{_OTHER_CODE.format(where)}: {error}; {_INSTALL_SAME}") from error

    def ready(
        self,
        settings: SiteSettings,
        number: int,
        servers: list[str],
        first: int,
        cuts: list[int],
        columns: Any,
        shared: Any,
    ) -> bool:
        """Set up the site of a run; raises InputError if it cannot write its trace or outputs.

        ``columns``: of its users, or where they come from; ``shared``: tables that all sites read.
        """
        self.site: Site | None = (
            None  # that of the run before, if any, need not share the memory with the new one
        )
        compute = computing.load(settings.compute)
        if isinstance(columns, dict):
            columns = {
                name: replace(members, **shared[name]) if name in shared else members
                for name, members in columns.items()
            }
        parties = {
            role: [layout.server_party(role, settings.seed, compute, real=settings.world.real)]
            for role in servers
        }
        injection = layout.injection_of(settings.faults, settings.seed, compute)
        if len(cuts) > 1:
            own = layout.opened(columns, settings.world, first, settings.protocol.label_count(), injection)
            parties[USER] = layout.user_parties(own, settings.world, first, cuts, settings.seed, compute)
        flags = (settings.digest, settings.trace, None, injection, settings.costs)
        seals = layout.seals_of(
            settings.protocol, settings.world, settings.seed, 1
        )  # this process is one of many
        extra: dict[str, Any] = {"clock": time.thread_time, "seals": seals}
        site = Site(
            settings.protocol, settings.world, settings.directory, number, parties, compute, *flags, **extra
        )
        self.site, target = site, site.trace.target
        for place in (target, settings.outputs):
            if place is not None:
                place.check()
        return True

    def advance(self, role: str, clock: int, wanted: list[Issue | None], *bundles: Any) -> Any:
        """Run ``Site.advance``; the report and each site's bundle are separate Ray results."""
        assert self.site is not None
        begun = time.perf_counter()
        report, out = self.site.advance(role, clock, wanted, list(bundles))
        report.seconds, report.delivered = time.perf_counter() - begun, self.site.delivered
        return (report, *out)

    def finish(self, *bundles: Any) -> Any:
        """Run ``Site.finish``, and forget the site: this process may wait long for another run."""
        assert self.site is not None
        site, self.site = self.site, None
        return site.finish(list(bundles))

    def keep(self, *bundles: Any) -> Any:
        """Run ``Site.finish`` and keep the outputs here; return the totals, and the schemas of the outputs."""
        totals, outputs = self.finish(*bundles)
        self.outputs = streamed_outputs.SiteOutputs(outputs)
        return totals, self.outputs.schemas

    def write(self, *given: Any) -> Any:
        """Run ``SiteOutputs.write``, and forget the outputs."""
        outputs, self.outputs = self.outputs, streamed_outputs.SiteOutputs({})
        return outputs.write(*given)


@dataclass
class SiteActors:
    """Finds or starts the actors of a run, a few at a time; ``hosted``: receives each one at once.

    No round is run unless every actor has the code of this process.
    """

    hosted: list[Hosted]
    modules: tuple[str, ...]
    here: dict[str, str]
    options: dict[str, Any]
    _starting: dict[Any, tuple[str, Hosted, Any]] = field(default_factory=dict)
    _cpus: int = 0

    @classmethod
    def of(cls, protocol: Protocol, hosted: list[Hosted], **options: Any) -> SiteActors:
        """Return what finds or starts actors for a protocol; ``options``: for Ray."""
        modules = code_fingerprint.modules_of(protocol)
        return cls(hosted, modules, code_fingerprint.code_of(modules), options)

    def start(self, name: str, given: tuple[Any, ...], **options: Any) -> None:
        """Hand an actor what ``SiteActor.ready`` is given; wait first if a few are starting.

        All at once, their processes would starve each other.  ``options``: of this one, for Ray.
        """
        options = self.options | options
        self._cpus += options.get("num_cpus", 0)
        made_for = SiteActor, tuple(options.items()), module_finder.opened()
        host = ray_session.idle(made_for, self._has_code)
        if host is None:
            if len(self._starting) >= STARTING_AT_ONCE:
                self._check_one()
            actor = ray.remote(SiteActor).options(**options).remote(module_finder.opened())
            host = Hosted(actor, made_for)
        host.name = name
        self.hosted.append(host)
        known = self.here.keys() <= host.code.keys()  # and the same, or it would not have been taken
        check = None if known else host.actor.code.remote(self.modules)
        self._starting[host.actor.ready.remote(*given)] = (name, host, check)

    def _has_code(self, host: Hosted) -> bool:
        """Whether nothing that a worker has loaded was changed since, as far as this run needs it."""
        return all(host.code.get(name, value) == value for name, value in self.here.items())

    def check(self) -> None:
        """Wait for all actors; raises InputError if one has other code than this process, or cannot write its trace."""
        while self._starting:
            self._check_one()

    def places(self, sites: int) -> list[RaySite]:
        """Return the engine's handles on the actors."""
        return [RaySite(host.actor, sites, host.name) for host in self.hosted]

    def _check_one(self) -> None:
        waiting = list(self._starting)
        names = ", ".join(name for name, *_ in self._starting.values())
        ready = wait(waiting, f"start of {names}", START_SECONDS, self._check_room)
        name, host, check = self._starting.pop(ready)
        if check is not None:
            self._check_code(name, host, check)
        fetch(ready, f"start of {name}")

    def _check_room(self) -> None:
        """Raise ActorLostError if a machine was lost after CPUs were counted: Ray would wait for another for ever."""
        there = int(ray.cluster_resources().get("CPU", 0))
        if there < self._cpus:
            raise ActorLostError(
                f"a machine was lost while shards started: they need {self._cpus} CPUs, and the cluster has {there} "
                "left"
            )

    def _check_code(self, name: str, host: Hosted, check: Any) -> None:
        try:
            where, there = fetch(check, f"start of {name}")
        except RunLostError as error:
            which = unloadable(error.__cause__)
            if which is None:
                raise
            raise InputError(f"{which}; {_INSTALL_SAME}") from error
        other = code_fingerprint.differences(there, self.here)
        if other:
            more = f" and {len(other) - _SHOWN} more" if len(other) > _SHOWN else ""
            raise InputError(
                f"{_OTHER_CODE.format(where)} ({', '.join(other[:_SHOWN])}{more}); {_INSTALL_SAME}"
            )
        host.code |= there


class RaySite:
    """The engine's handle on a site in a Ray actor; ``name``: of the actor, for people."""

    def __init__(self, actor: Any, sites: int, name: str):
        self.actor, self._sites, self.name = actor, sites, name
        self._doing = name

    def start(
        self, role: str, clock: int, wanted: list[Issue | None], bundles: list[Any]
    ) -> tuple[Any, list[Any]]:
        """Call ``advance``; bundles go from actor to actor without passing through this process."""
        call = self.actor.advance.options(num_returns=1 + self._sites)
        self._doing = f"role {role!r}, round {clock + 1}, {self.name}"
        report, *out = call.remote(role, clock, wanted, *bundles)
        return report, out

    def wait(self, handle: Any) -> Any:
        """Fetch a value."""
        return fetch(handle, self._doing)

    def finish(self, bundles: list[Any]) -> Any:
        """Call ``finish``."""
        self._doing = f"collecting results, {self.name}"
        return self.actor.finish.remote(*bundles)

    def keep(self, bundles: list[Any]) -> Any:
        """Call ``keep``."""
        self._doing = f"collecting results, {self.name}"
        return self.actor.keep.remote(*bundles)

    def write(self, *given: Any) -> Any:
        """Call ``write``."""
        self._doing = f"writing outputs, {self.name}"
        return self.actor.write.remote(*given)


def wait(
    handles: list[Any], doing: str, limit: float = math.inf, look: Callable[[], None] | None = None
) -> Any:
    """Wait until one of some values is there; return its handle.

    After 30 seconds a warning says what is waited for.  ``look``: called every second.  Raises RunLostError if Ray
    itself has ended, and after ``limit`` seconds; and what ``look`` raises.
    """
    start, warned = time.monotonic(), False
    while True:
        done, _ = ray.wait(handles, timeout=_LOOK_SECONDS)
        if done:
            return done[0]
        ended = ray_session.lost()
        if ended is not None:
            raise RunLostError(f"{doing}: Ray was lost, {ended}. {AGAIN}")
        if look is not None:
            look()
        silent = time.monotonic() - start
        if silent > limit:
            raise RunLostError(f"{doing}: no answer within {limit:.0f} s: {busy()}")
        if silent > SILENT_SECONDS and not warned:
            warned = True
            warnings.warn(
                f"{doing}: silent for {SILENT_SECONDS:.0f} s, busy or frozen; still waiting (Ctrl-C ends the run)",
                stacklevel=2,
            )


def fetch(handle: Any, doing: str) -> Any:
    """Fetch a value; ``doing``: what is done and where, for errors.

    Raises the error of a program as the actor raised it, InputError if a worker lacks a module, and ActorLostError
    for a lost actor.
    """
    wait([handle], doing)
    try:
        return ray.get(handle)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, (InputError, ProtocolError)):
            raise error.cause from None
        if isinstance(error.cause, LOSSES):  # of whoever should have sent what this one was to read
            raise ActorLostError(f"{doing}: {why(error.cause)}") from error
        missing = _missing(error)
        if missing:
            raise InputError(
                f"{doing}: the Ray worker cannot import what this process imports ({missing}); {_INSTALL_SAME}"
            ) from error
        raise
    except LOSSES as error:
        raise ActorLostError(f"{doing}: {why(error)}") from error
    except ray.exceptions.RayError as error:
        raise RunLostError(f"{doing}: {why(error)}. {AGAIN}") from error


def _missing(error: Exception) -> str:
    """Return what a worker said of a module that it cannot import while it reads its arguments; otherwise nothing."""
    cause = getattr(error, "cause", None)
    if not isinstance(cause, (ImportError, ray.exceptions.RaySystemError)):
        return ""
    lines = [line.strip() for line in str(cause).splitlines()]
    named = [line for line in lines if "No module named" in line or "cannot import name" in line]
    return named[-1] if named else ""


def resolve(bundles: list[Any]) -> list[Any]:
    """Fetch the bundles that are in the object store."""
    return [
        fetch(bundle, "servers wait for messages") if isinstance(bundle, ray.ObjectRef) else bundle
        for bundle in bundles
    ]


def tables(population: Population) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """Return the group tables that all sites share, and empty fields that replace them in each slice."""
    shared: dict[str, dict[str, Any]] = {}
    for name, members in (("cluster", population.clusters), ("neighbours", population.graph)):
        if members is not None:
            shared[name] = {"starts": members.starts, "order": members.order, "labels": members.labels}
    return shared, {"starts": None, "order": None, "labels": None}


def strip_tables(
    columns: dict[str, Any], shared: dict[str, Any], without_tables: dict[str, Any]
) -> dict[str, Any]:
    """Remove the shared tables from a slice, so that they are sent once and not once a site."""
    return {
        name: replace(column, **without_tables) if name in shared else column
        for name, column in columns.items()
    }
