"""A site in a Ray actor, and the engine's handle on it.  Shards and one-user actors are both of this kind."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import ray

from p2p_sim.backends import layout
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


@dataclass(frozen=True)
class Plan:
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
        plan: Plan,
        number: int,
        servers: list[str],
        first: int,
        cuts: list[int],
        columns: Any,
        shared: Any,
    ) -> bool:
        """Set up the site; raises InputError if it cannot write its trace.

        ``columns``: of its users; ``shared``: tables that all sites read.
        """
        compute = computing.load(plan.compute)
        whole = {
            name: replace(members, **shared[name]) if name in shared else members
            for name, members in columns.items()
        }
        parties = {
            role: [layout.server_party(role, plan.seed, compute, real=plan.world.real)] for role in servers
        }
        injection = layout.injection_of(plan.faults, plan.seed, compute)
        if len(cuts) > 1:
            layout.lie(whole, plan.world, first, plan.protocol.label_count(), injection)
            parties[USER] = layout.user_parties(whole, plan.world, first, cuts, plan.seed, compute)
        flags = (plan.digest, plan.trace, None, injection, plan.costs)
        seals = layout.seals_of(plan.protocol, plan.world, plan.seed, 1)  # this process is one of many
        extra: dict[str, Any] = {"clock": time.thread_time, "seals": seals}
        self.site = Site(plan.protocol, plan.world, plan.directory, number, parties, compute, *flags, **extra)
        target = self.site.trace.target
        if target is not None:
            target.check()
        return True

    def advance(self, role: str, clock: int, wanted: list[Issue | None], *bundles: Any) -> Any:
        """Run ``Site.advance``; the report and each site's bundle are separate Ray results."""
        report, out = self.site.advance(role, clock, wanted, list(bundles))
        return (report, *out)

    def finish(self, *bundles: Any) -> Any:
        """Run ``Site.finish``."""
        return self.site.finish(list(bundles))


@dataclass
class SiteActors:
    """Starts the actors of a run; ``actors``: receives each one as soon as it is started.

    No round is run unless every actor has the code of this process.
    """

    actors: list[Any]
    modules: tuple[str, ...]
    here: dict[str, str]
    checks: dict[Any, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, protocol: Protocol, actors: list[Any]) -> SiteActors:
        """Return a starter of actors for a protocol."""
        modules = code_fingerprint.modules_of(protocol)
        return cls(actors, modules, code_fingerprint.code_of(modules))

    def start(self, given: tuple[Any, ...], **options: Any) -> Any:
        """Start an actor with what ``SiteActor.ready`` is given; return the handle that ``check`` waits for."""
        actor = ray.remote(SiteActor).options(**options).remote(module_finder.opened())
        self.actors.append(actor)
        check = actor.code.remote(self.modules)
        ready = actor.ready.remote(*given)
        self.checks[ready] = check
        return ready

    def check(self, ready: Sequence[Any]) -> None:
        """Wait for actors; raises InputError if one has other code than this process, or cannot write its trace."""
        try:
            codes = fetch([self.checks.pop(each) for each in ready])
        except RunLostError as error:
            why = str(error.__cause__).strip().rpartition("\n")[2]
            if "Error" not in why:  # its process died, and left no error of Python
                raise
            raise InputError(f"a Ray worker cannot load p2p-sim ({why}); {_INSTALL_SAME}") from error
        for where, there in codes:
            other = code_fingerprint.differences(there, self.here)
            if other:
                more = f" and {len(other) - _SHOWN} more" if len(other) > _SHOWN else ""
                raise InputError(
                    f"{_OTHER_CODE.format(where)} ({', '.join(other[:_SHOWN])}{more}); {_INSTALL_SAME}"
                )
        fetch(list(ready))


class RaySite:
    """The engine's handle on a site in a Ray actor."""

    def __init__(self, actor: Any, sites: int):
        self.actor, self._sites = actor, sites

    def start(
        self, role: str, clock: int, wanted: list[Issue | None], bundles: list[Any]
    ) -> tuple[Any, list[Any]]:
        """Call ``advance``; bundles go from actor to actor without passing through this process."""
        call = self.actor.advance.options(num_returns=1 + self._sites)
        report, *out = call.remote(role, clock, wanted, *bundles)
        return report, out

    def wait(self, handle: Any) -> Any:
        """Fetch a value."""
        return fetch(handle)

    def finish(self, bundles: list[Any]) -> Any:
        """Call ``finish``."""
        return self.actor.finish.remote(*bundles)


def fetch(handles: Any) -> Any:
    """Fetch values; raises the error of a program as the actor raised it, and RunLostError for a lost actor."""
    try:
        return ray.get(handles)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, (InputError, ProtocolError)):
            raise error.cause from None
        raise
    except (ray.exceptions.RayActorError, ray.exceptions.ObjectLostError) as error:
        raise RunLostError(
            f"a Ray actor of this run was lost ({type(error).__name__}); if memory ran out, use more shards or "
            "fewer users. Running again with the same seed gives the same bits"
        ) from error


def resolve(bundles: list[Any]) -> list[Any]:
    """Fetch the bundles that are in the object store."""
    return [fetch(bundle) if isinstance(bundle, ray.ObjectRef) else bundle for bundle in bundles]


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
