"""If a run loses a shard, or a machine with its shards, those that are left compute it again from its start.

Every draw follows from the seed, so the second time gives the same bits: see docs/failures.md.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from p2p_sim.backends import ray_session
from p2p_sim.backends.ray_session import AGAIN, ActorLostError, Hosted, hosts
from p2p_sim.backends.settings import Settings
from p2p_sim.core.engine import Engine, Finished
from p2p_sim.core.errors import RunLostError

REPEATS = 3
"""How often a run is computed again; one that loses shards for the fourth time has a fault that does not pass."""


def until_whole(
    set_up: Callable[[list[Hosted], bool], Engine], settings: Settings, compute: ModuleType, since: float
) -> tuple[Finished, dict[str, float]]:
    """Return the finished run, and seconds by phase; ``lost`` is there only after a repeat.

    ``set_up(actors, is_repeat)`` appends each actor it starts to ``actors`` at once, and returns the engine over them.
    ``since``: when the start-up began.  What lost attempts wrote of a trace is removed.  Raises RunLostError if an
    actor is lost in the last attempt, and at once if Ray itself is.
    """
    first, starved = time.perf_counter(), _starved()
    for repeat in range(REPEATS + 1):
        start = time.perf_counter()
        try:
            with hosts() as hosted:
                engine = set_up(hosted, repeat > 0)
                begun = time.perf_counter()
                finished = engine.run(settings.digest, compute)
        except ActorLostError as error:
            gone = f" (lost: {', '.join(error.gone)})" if error.gone else ""
            lost, ended = f"{error}{gone}{_kernel(starved)}", ray_session.lost()
            if ended is not None:
                raise RunLostError(f"{lost}; Ray was lost, {ended}.  {AGAIN}") from error
            starved = _starved()
        else:
            wasted = start - first
            timings = {"start-up": begun - since - wasted, "rounds": time.perf_counter() - begun}
            return finished, timings | ({"lost": wasted} if repeat else {})
        if repeat < REPEATS:
            warnings.warn(
                f"{lost}.  The run is computed again from its start, with the same bits (repeat {repeat + 1} of at "
                f"most {REPEATS})",
                stacklevel=2,
            )
            settings.announce("starting again")
            for written in (settings.trace.target, settings.outputs):
                if written is not None:
                    written.start_over()
    raise RunLostError(f"{lost}.  This was the last of {REPEATS} repeats.  {AGAIN}")


def _starved() -> int:
    """Return how many processes this machine's kernel has ended for lack of memory since it was started."""
    try:
        counts = dict(line.split() for line in Path("/proc/vmstat").read_text().splitlines())
    except (OSError, ValueError):
        return 0
    return int(counts.get("oom_kill", 0))


def _kernel(before: int) -> str:
    """Say so if the kernel has ended processes for lack of memory meanwhile: the actor may be one of them."""
    number = _starved() - before
    if number <= 0:
        return ""
    what = "a process" if number == 1 else f"{number} processes"
    return f"; meanwhile the kernel of this machine ended {what} for lack of memory: use fewer users or more machines"
