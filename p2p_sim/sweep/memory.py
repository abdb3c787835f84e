"""How many runs of a sweep a machine's memory holds at the same time, from plans of its largest ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from p2p_sim.backends.settings import Settings
from p2p_sim.core.errors import InputError, ProtocolError
from p2p_sim.core.faults import Faults
from p2p_sim.core.protocol import Protocol
from p2p_sim.core.threads import cores
from p2p_sim.learning import user_clusters, users_of_run
from p2p_sim.learning.training import models
from p2p_sim.network.room import memory
from p2p_sim.plan import Crowd, Machine, Saved, plan_of
from p2p_sim.plan.run_plan import most_bytes, size
from p2p_sim.result_summary import counted
from p2p_sim.sweep.one_run import OneRun, examples_of, protocol_of, trial_of

WORKER_BYTES = 300 << 20
"""Memory of a worker before its first run, with all that training needs; shards of a run do without that."""


@dataclass(frozen=True)
class Extent:
    """How many examples a data set has, how many features, and how many clusters by a column of its own (0: none)."""

    rows: int
    features: int
    clusters: int


@dataclass(frozen=True)
class Need:
    """Bytes of memory that one run takes at most, and which run this is; ``index`` -1: none was in doubt."""

    nbytes: int = 0
    index: int = -1

    def fitting(self, workers: int, room: int) -> int:
        """Return how many of some workers a machine's memory holds; raises InputError if it holds none."""
        fit = min(workers, room // self.nbytes) if self.nbytes else workers
        if not fit:
            raise InputError(
                f"run {self.index} cannot fit: it needs {size(self.nbytes)} of memory, and this machine has "
                f"{size(room)}: take fewer users or features, or a larger machine"
            )
        return fit

    def sentence(self, fit: int, workers: int, room: int) -> str:
        """Say that fewer runs than could be are made at the same time, and why."""
        return (
            f"{counted(fit, 'run')} at the same time instead of {workers}: run {self.index} needs about "
            f"{size(self.nbytes)} of memory, and this machine has {size(room)}"
        )


def need_of(runs: Iterable[tuple[int, OneRun]], extents: Mapping[str, Extent], enough: int) -> Need:
    """Return what the largest of some numbered runs takes; nothing if all surely take no more than ``enough`` bytes.

    ``extents``: of each set of examples.  Of settings in doubt the largest are planned, at about 0.5 s each; what a
    pilot run refuses, the run itself will say.
    """
    settings: set[str] = set()
    crude: list[tuple[int, int, OneRun]] = []
    for index, run in runs:
        trial = trial_of(run)
        if trial not in settings:
            settings.add(trial)
            crude.append((_rough(run, extents), index, run))
    found = Need()
    for most, index, run in sorted(crude, key=lambda each: -each[0]):
        if most <= max(found.nbytes, enough):
            break
        nbytes = _planned(run, extents)
        if nbytes > found.nbytes:
            found = Need(nbytes, index)
    return found if found.nbytes > enough else Need()


def _rough(run: OneRun, extents: Mapping[str, Extent]) -> int:
    """Return more bytes than a run takes, by a look of milliseconds."""
    protocol = protocol_of(run)
    crowd, learning = _crowd(run, protocol, extents)
    found = WORKER_BYTES + learning
    with suppress(InputError, ProtocolError):
        found += round(most_bytes(protocol, crowd, {"faults": run["settings"].get("faults")}))
    return found


def _planned(run: OneRun, extents: Mapping[str, Extent]) -> int:
    """Return the bytes that a run takes, within a factor of 2."""
    protocol = protocol_of(run)
    crowd, learning = _crowd(run, protocol, extents)
    settings = run["settings"]
    how: dict[str, Any] = {name: settings[name] for name in ("crypto",) if name in settings}
    how["faults"] = Faults.of(settings.get("faults"))
    here = [Machine("here", cores(), memory())]
    with suppress(InputError, ProtocolError):
        found = plan_of(protocol, crowd, Settings(threads=1, **how), here, Saved(Path(), False, learning))
        return max(found.shares[0].memory, WORKER_BYTES + learning)
    return WORKER_BYTES + learning


def _crowd(run: OneRun, protocol: Protocol, extents: Mapping[str, Extent]) -> tuple[Crowd, int]:
    """Return as many users as a run has, in clusters as large, and the bytes that examples and training take."""
    settings, key = run["settings"], examples_of(run, protocol)
    if key is None:
        users, width, size_ = settings["users"], settings.get("features", 0), settings.get("cluster_size")
    else:
        extent = extents[key]
        users, width = extent.rows, extent.features
        default = user_clusters.default_count(users)
        size_ = max(1, users // (extent.clusters or settings.get("clusters", default)))
    trains = settings.get("model") != models.NO_MODEL
    crowd = users_of_run.crowd(
        protocol, users, cluster_size=size_, graph=settings.get("graph"), seed=settings["seed"]
    )
    return crowd, users_of_run.bytes_of_examples(users, width, trains)
