"""What a run did not keep, recomputed from its seed, and one user's history from a folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError, ProtocolError
from p2p_sim.core.message import USER
from p2p_sim.core.population import Population
from p2p_sim.core.protocol import Protocol
from p2p_sim.rundir import run_json
from p2p_sim.rundir.integrity import guarded
from p2p_sim.rundir.population_file import rows_of, unread
from p2p_sim.rundir.run_directory import LazyRun
from p2p_sim.rundir.run_json import in_python
from p2p_sim.rundir.run_record import RunRecord
from p2p_sim.trace.replay import LOST, Life, Past, life_of, relive

Array = npt.NDArray[Any]

MOST_USERS = 1_000_000
"""Users up to whom a whole run is repeated, for messages that were not kept and for draws."""


def again(run: RunRecord, protocol: Protocol, members: Mapping[str, Array], *, whole: bool = False) -> Past:
    """Recompute the messages that some parties sent or received, and their draws.

    ``members``: by role; of users their ids, ascending, of a server [0], or [] to leave out its draws.  ``whole``: of
    users alone too, all messages of their closed world.  Raises InputError for a run saved without its population, for
    servers in a run of more than 1,000,000 users, and if what comes out is another run.
    """
    _check_kept(run)
    try:
        if set(members) == {USER}:
            past = nearby(run, protocol, members[USER], whole=whole)[1]
        else:
            _check_size(run)
            past = _relived(run, protocol, population_of(run), members, whole, digest=True)
    except ProtocolError as error:
        raise InputError(
            f"this run cannot be repeated from what was kept of it ({error}): run it with trace='full'"
        ) from error
    if None not in (past.digest, run.digest) and past.digest != run.digest:
        raise InputError(
            f"repeated from its seed, this run has digest {past.digest} instead of {run.digest}: it came from another "
            "version of the protocol, of its parameters or of the population"
        )
    return past


def nearby(
    run: RunRecord, protocol: Protocol, users: Array, *, whole: bool = False, digest: bool = True
) -> tuple[Population, Past]:
    """Run the closed world of some users (ids, ascending) again; return of the population at least them, and the past.

    Of a population that has not been read no more is read than it takes.  ``whole``: all messages of that world;
    ``digest``: of the run, if it takes everybody.  Raises InputError for a user who is not there.
    """
    left = unread(run)
    part = None if left is None else left.near(protocol, users)
    past = None if part is None else _tried(run, protocol, part, users, whole)
    if part is not None and past is not None:
        return part, past
    people = population_of(run)
    return people, _relived(run, protocol, people, {USER: users}, whole, digest)


def _tried(run: RunRecord, protocol: Protocol, part: Population, users: Array, whole: bool) -> Past | None:
    """Run a part of the users again; None if it takes everybody."""
    try:
        past = _relived(run, protocol, part, {USER: users}, whole, digest=False)
    except Exception:  # a program may not bear to be run on a part; if it is wrong altogether, it fails again
        return None
    return None if past.strayed else past


def _relived(
    run: RunRecord,
    protocol: Protocol,
    people: Population,
    members: Mapping[str, Array],
    whole: bool,
    digest: bool,
) -> Past:
    assert run.seed is not None  # checked before
    rows = {**members, USER: rows_of(people, members[USER])}
    return relive(protocol, people, run.seed, rows, run.faults, run.crypto, whole=whole, digest=digest)


def population_of(run: RunRecord) -> Population:
    """Return the population of a run; raises InputError if it was saved without."""
    _check_kept(run)
    people = run.population
    assert people is not None  # checked
    return people


def _check_kept(run: RunRecord) -> None:
    """Check that something can be recomputed; reading the population may still find that it is damaged."""
    if run.seed is None or (unread(run) is None and run.population is None):
        raise InputError(
            "this run was saved without its population: inputs, draws and messages that were not kept are not known; "
            "run it again with its population, or with trace='full' (--trace full)"
        )


def _check_size(run: RunRecord) -> None:
    left = unread(run)
    users = population_of(run).users if left is None or left.users is None else left.users
    if users > MOST_USERS:
        kept = "" if run.trace == "full" else "run it with trace='full', or "
        raise InputError(
            f"only runs of up to {MOST_USERS:,} users are repeated, for messages that were not kept and for draws; "
            f"this one has {users:,}: {kept}look through the eyes of users only"
        )


def ids_of(people: Population) -> Array:
    """Return the ids of all users, ascending."""
    return np.arange(people.users) if people.ids is None else people.ids


def history(path: Path, user: int) -> tuple[LazyRun, Population, Life]:
    """Return a run, of its population at least the user, and her life, recomputed.

    Raises InputError for a folder that is no run, a run from which nothing can be replayed, a population that was
    altered, and a user who is not there.
    """
    guarded(path, lambda: run_json.told_of(path))  # of a run that was cut off there is none
    run = LazyRun(path)
    if run.seed is None or not run.has_population:
        raise InputError(LOST)
    if run.source is None:
        raise InputError(in_python(run, path, f"replay({user}"))
    some, past = nearby(run, run.source, np.array([user]), digest=False)
    return run, some, life_of(run.source, past, user)
