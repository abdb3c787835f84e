"""One user's history from a run directory, of whose population no more is read than it takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from p2p_sim.core.errors import InputError
from p2p_sim.core.message import USER
from p2p_sim.core.population import Population
from p2p_sim.trace import about, people, store, sums
from p2p_sim.trace.near import near
from p2p_sim.trace.opened import Opened
from p2p_sim.trace.replay import LOST, Life, Past, life_of, relive
from p2p_sim.trace.unshipped import in_python


def history(path: Path, user: int) -> tuple[Opened, Population, Life]:
    """Return a run, of its population at least the user, and her life, recomputed.

    Raises InputError for a folder that is no run, a run from which nothing can be replayed, a population that was
    altered, and a user who is not there.
    """
    told = store.guarded(path, lambda: about.told_of(path))
    run, kept = Opened(path), told.get("sha256", {})
    if run.source is None:
        raise InputError(in_python(run, path, f"replay({user}"))
    sums.check(path, kept, people.FILE)
    if run.seed is None or not run.has_population:
        raise InputError(LOST)
    part = store.guarded(path / people.FILE, lambda: near(path, kept, run.source, user))
    past = None if part is None else _tried(run, part, user)
    if part is None or past is None:
        part = run.population
        past = _again(run, part, user)
    return run, part, life_of(run.source, past, user)


def _again(run: Any, some: Population, user: int) -> Past:
    row = np.array([some.row(user, f"user {user!r}")])
    return relive(run.source, some, run.seed, {USER: row}, run.faults, run.crypto, digest=False)


def _tried(run: Any, part: Population, user: int) -> Past | None:
    """Run a part of the users again; None if it takes everybody."""
    try:
        past = _again(run, part, user)
    except Exception:  # a program may not bear to be run on a part; if it is wrong altogether, it fails again
        return None
    return None if past.strayed else past
