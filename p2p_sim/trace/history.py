"""One user's history from a run directory, of whose population no more is read than it takes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from p2p_sim.core.errors import InputError
from p2p_sim.core.population import Population
from p2p_sim.trace import about
from p2p_sim.trace.damaged import guarded
from p2p_sim.trace.opened import Opened
from p2p_sim.trace.recompute import nearby
from p2p_sim.trace.replay import LOST, Life, life_of
from p2p_sim.trace.unshipped import in_python


def history(path: Path, user: int) -> tuple[Opened, Population, Life]:
    """Return a run, of its population at least the user, and her life, recomputed.

    Raises InputError for a folder that is no run, a run from which nothing can be replayed, a population that was
    altered, and a user who is not there.
    """
    guarded(path, lambda: about.told_of(path))  # of a run that was cut off there is none
    run = Opened(path)
    if run.source is None:
        raise InputError(in_python(run, path, f"replay({user}"))
    if run.seed is None or not run.has_population:
        raise InputError(LOST)
    some, past = nearby(run, run.source, np.array([user]), digest=False)
    return run, some, life_of(run.source, past, user)
