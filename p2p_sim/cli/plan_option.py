"""What ``p2p-sim run`` says before it starts: the plan of ``--plan``, and the refusal of what cannot fit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from p2p_sim import backends
from p2p_sim.core.argument_checks import check_whole
from p2p_sim.core.errors import InputError, ProtocolError
from p2p_sim.core.faults import Faults
from p2p_sim.learning import experiment
from p2p_sim.network import edges
from p2p_sim.plan import Crowd, RunPlan, Saved, is_in_doubt, machines, plan_of

if TYPE_CHECKING:
    from p2p_sim.core.population import Population
    from p2p_sim.core.protocol import Protocol

_FLOAT = 8  # bytes of a feature
_TEST_ROWS, _COPIES = 1.25, 2  # synthetic users and test rows, in users; copies that training makes


def settings_of(command: Any) -> backends.Settings:
    """Return how and where a run takes place, of the options of ``p2p-sim run``."""
    return backends.Settings(
        command.backend, command.blocks, command.shards, command.address,
        digest=not command.no_digest, faults=Faults.of(command.fault), costs=True, crypto=command.crypto,
        threads=command.threads,
    )  # fmt: skip


def saved_by(command: Any, users: int, features: int) -> Saved:
    """Return what a run writes and where, and what training takes beside the users."""
    trains = features and command.model != experiment.NO_MODEL
    training = round(users * features * _FLOAT * (_TEST_ROWS + _COPIES)) if trains else 0
    return Saved(Path(command.out or "runs").expanduser(), not command.no_population, training)


def synthetic(command: Any, protocol: Protocol) -> Crowd | None:
    """Return the crowd of ``--users``, of whom no more than a few are made; None for the edges of a file.

    Raises InputError for impossible users.
    """
    if command.graph is not None and command.graph.endswith(edges.SUFFIXES):
        return None
    check_whole("users", command.users)
    shares = command.label_shares()
    size, drawn = experiment.drawn(
        protocol, command.cluster_size, command.share, shares, command.features or 0, command.seed
    )
    crowd = Crowd.synthetic(command.users, size, drawn)

    def joined(users: int) -> Population:
        return experiment.join(protocol, crowd.make(users), command.graph, command.seed)[0]

    return crowd if command.graph is None else replace(crowd, make=joined, apart=False)


def check(command: Any, protocol: Protocol, crowd: Crowd, features: int) -> None:
    """Raise InputError with the numbers if a run cannot fit; most runs fit by far, which takes milliseconds to see.

    Where a run of few users fails, the run itself will say why, or do without.
    """
    settings, saved = settings_of(command), saved_by(command, crowd.users, features)
    plan: RunPlan | None = None
    with suppress(InputError, ProtocolError):
        here = machines(settings)
        if is_in_doubt(protocol, crowd, settings, here, saved, command.trace):
            plan = plan_of(protocol, crowd, settings, here, saved, command.trace)
    if plan is not None:
        plan.check()


def plan(command: Any, protocol: Protocol, crowd: Crowd, features: int) -> RunPlan:
    """Return the plan of a run; raises what a run would raise."""
    settings, saved = settings_of(command), saved_by(command, crowd.users, features)
    return plan_of(protocol, crowd, settings, machines(settings), saved, command.trace)


@contextmanager
def cluster(command: Any) -> Iterator[None]:
    """Join the cluster of ``--address`` once, for the plan and for the run."""
    if command.address is None:
        yield
        return
    with backends.opened(settings_of(command), 1):
        yield
