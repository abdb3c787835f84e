"""What ``p2p-sim run`` says before it starts: the plan of ``--plan``, and the refusal of what cannot fit."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from p2p_sim import backends
from p2p_sim.cli import population_option
from p2p_sim.cli.options import set_options
from p2p_sim.cli.users import how_read
from p2p_sim.core.argument_checks import check_whole
from p2p_sim.core.errors import InputError, ProtocolError
from p2p_sim.core.faults import Faults
from p2p_sim.learning import data_split, synthetic_users, user_graph, users_of_run
from p2p_sim.learning.training import models
from p2p_sim.network import edges
from p2p_sim.plan import Crowd, RunPlan, Saved, is_in_doubt, machines, plan_of
from p2p_sim.report import terminal

if TYPE_CHECKING:
    from p2p_sim.cli.run import RunCommand
    from p2p_sim.core.population import Population
    from p2p_sim.core.protocol import Protocol


def settings_of(command: RunCommand) -> backends.Settings:
    """Return how and where a run takes place, of the options of ``p2p-sim run``."""
    return backends.Settings(
        command.backend, command.blocks, command.shards, command.address,
        digest=not command.no_digest, faults=Faults.of(command.fault), costs=True, crypto=command.crypto,
        threads=command.threads,
    )  # fmt: skip


def saved_by(
    command: RunCommand, protocol: Protocol, crowd: Crowd, features: int, trained: Mapping[str, Any]
) -> Saved:
    """Return what a run writes and where, and what training takes beside the users.

    ``trained``: of users in files, see ``population_option.examples``.
    """
    folder, trains = Path(command.out or "runs").expanduser(), command.model != models.NO_MODEL
    batches = _in_batches(command, protocol, crowd, trained) if trains else None
    if batches is not None:
        return Saved(folder, not command.no_population, batches.memory, batches.scratch)
    training = users_of_run.bytes_of_examples(crowd.users, features, trains) if trains else 0
    return Saved(folder, not command.no_population, training)


def _in_batches(
    command: RunCommand, protocol: Protocol, crowd: Crowd, trained: Mapping[str, Any]
) -> users_of_run.TrainingInBatches | None:
    """Return the training of a run where that goes in batches; None elsewhere."""
    if trained:
        width, further = trained["examples"].width, trained["test"].users
    elif in_batches(command, protocol):
        assert command.features is not None  # they are many
        width, further = command.features, synthetic_users.with_test_rows(crowd.users) - crowd.users
    else:
        return None
    tests = min(further, synthetic_users.most_test_rows(width))
    return users_of_run.TrainingInBatches(
        crowd.users, crowd.users // crowd.cluster, width, protocol.label_count(), tests
    )


def synthetic(command: RunCommand, protocol: Protocol) -> Crowd | None:
    """Return the crowd of ``--users``, of whom no more than a few are made; None for the edges of a file.

    Raises InputError for impossible users.
    """
    if command.graph is not None and command.graph.endswith(edges.SUFFIXES):
        return None
    assert command.users is not None  # the caller has looked
    assert command.seed is not None  # drawn before
    check_whole("users", command.users)
    features = 0 if in_batches(command, protocol) else command.features or 0
    return users_of_run.crowd(
        protocol, command.users, cluster_size=command.cluster_size, share=command.share, shares=command.label_shares(),
        features=features, graph=command.graph, seed=command.seed,
    )  # fmt: skip


def in_batches(command: RunCommand, protocol: Protocol) -> bool:
    """Return whether synthetic users have features that are drawn in batches."""
    return command.users is not None and synthetic_users.in_batches(
        protocol, command.users, command.features or 0, models.model_for(protocol, command.model),
        graph=command.graph, canaries=command.canaries, backend=command.backend, keep_features=command.attack,
    )  # fmt: skip


def check(
    command: RunCommand,
    protocol: Protocol,
    crowd: Crowd,
    features: int,
    trained: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Raise InputError with the numbers if a run cannot fit; most runs fit by far, which takes milliseconds to see.

    Where a run of few users fails, the run itself will say why, or do without.  ``trained``: see ``saved_by``.
    """
    saved = saved_by(command, protocol, crowd, features, trained)
    settings = settings_of(command)
    _say_fewer(settings, crowd.users)
    plan: RunPlan | None = None
    with suppress(InputError, ProtocolError):
        here = machines(settings)
        if is_in_doubt(protocol, crowd, settings, here, saved, command.trace):
            plan = plan_of(protocol, crowd, settings, here, saved, command.trace)
    if plan is not None:
        plan.check()


def say(command: RunCommand, protocol: Protocol, as_json: bool) -> int:
    """Print what the run will take, and return the exit status; raises InputError if it cannot fit."""
    from p2p_sim.learning import planted_canaries

    with terminal.stdout_to_stderr(), cluster(command):
        crowd = _crowd(command, protocol)
        if command.canaries is not None:
            planted_canaries.count_of(command.canaries, crowd.users)
        features = _features(command, crowd)
        settings = settings_of(command)
        _say_fewer(settings, crowd.users)
        saved = saved_by(command, protocol, crowd, features, population_option.examples(command, protocol))
        plan = plan_of(protocol, crowd, settings, machines(settings), saved, command.trace)
    sys.stdout.write(terminal.as_json(plan.document()) if as_json else terminal.fitted(f"{plan}\n"))
    plan.check()
    return 0


def _say_fewer(settings: backends.Settings, users: int) -> None:
    """Say on stderr that there are fewer shards than were asked for, if a shard would hold nobody."""
    if settings.shards is not None and settings.shards > users:
        print(f"--shards {settings.shards}: {users:,}, one for each user", file=sys.stderr, flush=True)


def _crowd(command: RunCommand, protocol: Protocol) -> Crowd:
    """Return the users of a run: as few of them as will do, or else all."""
    if command.population is not None and command.graph is None:
        return Crowd.stored(population_option.users(command))
    crowd = synthetic(command, protocol) if command.users is not None else None
    return Crowd.of(_everybody(command, protocol), protocol) if crowd is None else crowd


def _everybody(command: RunCommand, protocol: Protocol) -> Population:
    """Return all users of a run: those stored, of the data, or synthetic ones with the edges of a file."""
    assert command.seed is not None  # drawn before
    graph, seed = command.graph, command.seed
    if command.population is not None:
        return user_graph.join(protocol, population_option.users(command), graph, seed)[0]
    if command.data is None:
        assert command.users is not None
        drawn = set_options(command, "cluster_size", "share", "features") | {"shares": command.label_shares()}
        return users_of_run.synthetic(protocol, command.users, **drawn, graph=graph, seed=seed)[0]
    data = data_split.read(protocol, command.data, **how_read(command))
    among = set_options(command, "clusters", "test", "split_seed")
    return users_of_run.of_data(protocol, data, **among, graph=graph, seed=seed)[0]


def _features(command: RunCommand, crowd: Crowd) -> int:
    """Return how many features each user has."""
    if command.data is None:
        return command.features or 0
    x = crowd.make(1).x
    return 0 if x is None else int(x.shape[1])


@contextmanager
def cluster(command: RunCommand) -> Iterator[None]:
    """Join the cluster of ``--address`` once, for the plan and for the run."""
    if command.address is None:
        yield
        return
    with backends.opened(settings_of(command), 1):
        yield
