"""A site in a Ray actor, and the engine's handle on it.  Shards and one-user actors are both of this kind."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import ray

from p2p_sim.backends import layout
from p2p_sim.core import fingerprint, module_finder
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

_OTHER = "the Ray worker in {} does not have the code of this process"
_SAME = (
    "install the same there; if this program called ray.init itself, leave that to p2p-sim (ray.shutdown() before the "
    "run)"
)
_SHOWN = 3


@dataclass(frozen=True)
class Plan:
    """What every site of a run is told: small things that all share."""

    protocol: Protocol
    world: World
    directory: Directory
    seed: int
    compute: str
    digest: bool
    trace: TraceLevel
    faults: Faults | None = None
    costs: bool = False


class Host:
    """The actor's inside: one site.  ``own``: where modules of one's own are found."""

    def __init__(self, own: tuple[module_finder.Own, ...]):
        for each in own:
            each.open()

    def code(self, modules: tuple[str, ...]) -> tuple[str, dict[str, str]]:
        """Return where this process is and what it computes with; raises InputError if a module is not found."""
        where = f"process {os.getpid()} on {ray.util.get_node_ip_address()}"
        try:
            return where, fingerprint.code_of(modules)
        except ImportError as error:
            raise InputError(f"{_OTHER.format(where)}: {error}; {_SAME}") from error

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
        kept = (plan.digest, plan.trace, None, injection, plan.costs)
        seals = layout.seals_of(plan.protocol, plan.world, plan.seed, 1)  # this process is one of many
        how: dict[str, Any] = {"clock": time.thread_time, "seals": seals}
        self.site = Site(plan.protocol, plan.world, plan.directory, number, parties, compute, *kept, **how)
        target = self.site.trace.target
        if target is not None:
            target.check()
        return True

    def advance(self, role: str, clock: int, wanted: list[Issue | None], *bundles: Any) -> Any:
        """Run ``Site.advance``; the report and each site's bundle are results of their own."""
        report, out = self.site.advance(role, clock, wanted, list(bundles))
        return (report, *out)

    def finish(self, *bundles: Any) -> Any:
        """Run ``Site.finish``."""
        return self.site.finish(list(bundles))


@dataclass
class Hosts:
    """The actors of a run of a protocol, as they start; ``actors``: theirs, each added at once.

    None is waited for longer than for its code: no round is run unless that is the code of this process.
    """

    actors: list[Any]
    modules: tuple[str, ...]
    here: dict[str, str]
    told: dict[Any, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, protocol: Protocol, actors: list[Any]) -> Hosts:
        """Return the hosts of a protocol."""
        modules = fingerprint.modules_of(protocol)
        return cls(actors, modules, fingerprint.code_of(modules))

    def start(self, given: tuple[Any, ...], **options: Any) -> Any:
        """Start an actor with what ``Host.ready`` is given; return the handle that ``check`` waits for."""
        actor = ray.remote(Host).options(**options).remote(module_finder.opened())
        self.actors.append(actor)
        told = actor.code.remote(self.modules)
        ready = actor.ready.remote(*given)
        self.told[ready] = told
        return ready

    def check(self, ready: Sequence[Any]) -> None:
        """Wait for actors; raises InputError if one imports other code than this process, or cannot write."""
        try:
            told = fetch([self.told.pop(each) for each in ready])
        except RunLostError as error:
            why = str(error.__cause__).strip().rpartition("\n")[2]
            if "Error" not in why:  # its process died, and left no error of Python
                raise
            raise InputError(f"a Ray worker cannot load p2p-sim ({why}); {_SAME}") from error
        for where, there in told:
            other = fingerprint.differences(there, self.here)
            if other:
                more = f" and {len(other) - _SHOWN} more" if len(other) > _SHOWN else ""
                raise InputError(f"{_OTHER.format(where)} ({', '.join(other[:_SHOWN])}{more}); {_SAME}")
        fetch(list(ready))


class RayPlace:
    """The engine's handle on a host."""

    def __init__(self, actor: Any, sites: int):
        self.actor, self._sites = actor, sites

    def start(
        self, role: str, clock: int, wanted: list[Issue | None], bundles: list[Any]
    ) -> tuple[Any, list[Any]]:
        """Call ``advance``; bundles go from host to host without passing here."""
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
    """Fetch values; an error of a program is raised as it was raised there, a lost actor is explained."""
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
    """Fetch those bundles that lie elsewhere."""
    return [fetch(bundle) if isinstance(bundle, ray.ObjectRef) else bundle for bundle in bundles]


def tables(population: Population) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """Return the group tables that all sites share, and the same fields emptied (what a slice carries instead)."""
    shared: dict[str, dict[str, Any]] = {}
    for name, members in (("cluster", population.clusters), ("neighbours", population.graph)):
        if members is not None:
            shared[name] = {"starts": members.starts, "order": members.order, "labels": members.labels}
    return shared, {"starts": None, "order": None, "labels": None}


def slim(columns: dict[str, Any], shared: dict[str, Any], emptied: dict[str, Any]) -> dict[str, Any]:
    """Take the shared tables out of a slice, so that they are sent once and not once a site."""
    return {
        name: replace(column, **emptied) if name in shared else column for name, column in columns.items()
    }
