"""What a run did not keep, recomputed from its seed: users alone in their closed world, all else by repeating it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError, ProtocolError
from p2p_sim.core.message import USER
from p2p_sim.core.population import Population
from p2p_sim.trace.replay import Past, relive

Array = npt.NDArray[Any]

MOST_USERS = 1_000_000
"""Users up to whom a whole run is repeated, for messages that were not kept and for draws."""


def again(run: Any, protocol: Any, members: Mapping[str, Array], *, whole: bool = False) -> Past:
    """Recompute the messages that some parties sent or received, and their draws.

    ``members``: by role; of users their ids, ascending, of a server [0], or [] to leave out its draws.  ``whole``: of
    users alone too, all messages of their closed world.  Raises InputError for a run saved without its population, for
    servers in a run of more than 1,000,000 users, and if what comes out is another run.
    """
    people = population_of(run)
    if people.users > MOST_USERS and set(members) != {USER}:
        kept = "" if run.trace == "full" else "run it with trace='full', or "
        raise InputError(
            f"only runs of up to {MOST_USERS:,} users are repeated, for messages that were not kept and for draws; "
            f"this one has {people.users:,}: {kept}look through the eyes of users only"
        )
    users = members[USER]
    rows = users if people.ids is None else np.searchsorted(people.ids, users)
    try:
        past = relive(
            protocol, people, run.seed, {**members, USER: rows}, run.faults, run.crypto, whole=whole
        )
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


def population_of(run: Any) -> Population:
    """Return the population of a run; raises InputError if it was saved without."""
    if run.population is None or run.seed is None:
        raise InputError(
            "this run was saved without its population: inputs, draws and messages that were not kept are not known; "
            "run it again with its population, or with trace='full' (--trace full)"
        )
    people: Population = run.population
    return people


def ids_of(people: Population) -> Array:
    """Return the ids of all users, ascending."""
    return np.arange(people.users) if people.ids is None else people.ids
