"""Recomputes from the seed what a run did not keep, and one user's history from a run directory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError, MissingColumnError, ProtocolError
from p2p_sim.core.message import USER
from p2p_sim.core.population import Population
from p2p_sim.core.protocol import Protocol
from p2p_sim.rundir import run_json
from p2p_sim.rundir.integrity import guarded
from p2p_sim.rundir.population_file import rows_of, unread
from p2p_sim.rundir.run_directory import LazyRun
from p2p_sim.rundir.run_json import in_python
from p2p_sim.rundir.run_record import RunRecord
from p2p_sim.trace.replay import NO_REPLAY, Rerun, UserHistory, history_of, rerun_world

Array = npt.NDArray[Any]

MAX_USERS = 1_000_000
"""A whole run is run again, for messages that were not kept and for draws, only up to so many users."""


def rerun_parties(
    run: RunRecord, protocol: Protocol, members: Mapping[str, Array], *, whole: bool = False
) -> Rerun:
    """Recompute the messages that some parties sent or received, and their draws.

    ``members``: by role: ids of users, ascending; for a server [0], or [] to leave out its draws.  ``whole``: all
    messages of the closed world, even if only users are members.  Raises InputError for a run saved without its
    population, for servers in a run of more than 1,000,000 users, and if the result has another digest than the run.
    """
    _check_kept(run)
    try:
        if set(members) == {USER}:
            rerun = rerun_users(run, protocol, members[USER], whole=whole)[1]
        else:
            _check_size(run)
            rerun = _rerun(run, protocol, population_of(run), members, whole, digest=True)
    except ProtocolError as error:
        raise InputError(
            f"this run cannot be repeated from what was kept of it ({error}): run it with trace='full'"
        ) from error
    if None not in (rerun.digest, run.digest) and rerun.digest != run.digest:
        raise InputError(
            f"repeated from its seed, this run has digest {rerun.digest} instead of {run.digest}: it came from another "
            "version of the protocol, of its parameters or of the population"
        )
    return rerun


def rerun_users(
    run: RunRecord, protocol: Protocol, users: Array, *, whole: bool = False, digest: bool = True
) -> tuple[Population, Rerun]:
    """Run the closed world of some users (ids, ascending) again; return a population with these users, and the rerun.

    Of an unread population only the needed part is read.  ``whole``: keep all messages of the closed world.
    ``digest``: compute it if all users run.  Raises InputError for an unknown user.
    """
    unread_part = unread(run)
    part = None if unread_part is None else unread_part.near(protocol, users)
    rerun = None if part is None else _try_part(run, protocol, part, users, whole)
    if part is not None and rerun is not None:
        return part, rerun
    people = population_of(run)
    return people, _rerun(run, protocol, people, {USER: users}, whole, digest)


def _try_part(
    run: RunRecord, protocol: Protocol, part: Population, users: Array, whole: bool
) -> Rerun | None:
    """Run a part of the users again; None if that takes all users."""
    try:
        rerun = _rerun(run, protocol, part, {USER: users}, whole, digest=False)
    except Exception:  # a program may not bear to be run on a part; if it is wrong altogether, it fails again
        return None
    return None if rerun.strayed else rerun


def _rerun(
    run: RunRecord,
    protocol: Protocol,
    people: Population,
    members: Mapping[str, Array],
    whole: bool,
    digest: bool,
) -> Rerun:
    assert run.seed is not None  # checked before
    rows = {**members, USER: rows_of(people, members[USER])}
    try:
        return rerun_world(
            protocol, people, run.seed, rows, run.faults, run.crypto, whole=whole, digest=digest
        )
    except MissingColumnError as error:
        raise InputError(
            f"this run cannot be repeated from what was kept of it: its program reads {error.what}, and a run "
            "directory keeps public columns, and x of a protocol that says in feature_count how many features it needs "
            "(neither if an earlier version wrote it), but no secret columns: run it again, for messages with "
            "trace='full' (--trace full)"
        ) from error


def population_of(run: RunRecord) -> Population:
    """Return the population of a run; raises InputError if it was saved without."""
    _check_kept(run)
    people = run.population
    assert people is not None  # checked
    return people


def _check_kept(run: RunRecord) -> None:
    """Check that recomputing is possible; reading the population may still find damage."""
    if run.seed is None or (unread(run) is None and run.population is None):
        raise InputError(
            "this run was saved without its population, so inputs, draws and messages that were not kept are not "
            "known: run it again with its population, or with trace='full' (--trace full)"
        )


def _check_size(run: RunRecord) -> None:
    unread_part = unread(run)
    users = (
        population_of(run).users if unread_part is None or unread_part.users is None else unread_part.users
    )
    if users > MAX_USERS:
        kept = "" if run.trace == "full" else "run it with trace='full', or "
        raise InputError(
            f"only runs of up to {MAX_USERS:,} users are run again for draws and for messages that were not kept; "
            f"this one has {users:,}: {kept}choose a view of users only"
        )


def ids_of(people: Population) -> Array:
    """Return the ids of all users, ascending."""
    return np.arange(people.users) if people.ids is None else people.ids


def history(path: Path, user: int) -> tuple[LazyRun, Population, UserHistory]:
    """Return a run, a population with at least this user, and her recomputed history.

    Raises InputError for a folder that is no run directory, a run that cannot be replayed, an altered population, and
    an unknown user.
    """
    run = LazyRun(path)
    if run.cut_off:
        guarded(path, lambda: run_json.read_run_json(path))  # which says that there is none
    if run.seed is None or not run.has_population:
        raise InputError(NO_REPLAY)
    if run.source is None:
        raise InputError(in_python(run, path, f"replay({user}"))
    some, rerun = rerun_users(run, run.source, np.array([user]), digest=False)
    return run, some, history_of(run.source, rerun, user)
