"""Makes the runs of a sweep that are not made yet, and the table of all."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from p2p_sim import catalogue
from p2p_sim.backends.settings import address_of
from p2p_sim.check import quick
from p2p_sim.core import code_fingerprint
from p2p_sim.core.argument_checks import check_whole
from p2p_sim.core.engine import Progress
from p2p_sim.core.errors import InputError
from p2p_sim.core.paths import path_of
from p2p_sim.core.protocol import Protocol
from p2p_sim.core.threads import cores
from p2p_sim.network.room import memory
from p2p_sim.progress import silent
from p2p_sim.result_summary import counted
from p2p_sim.rundir import sweep_files
from p2p_sim.sweep import folder, grids, table, work_queue
from p2p_sim.sweep.folder import SweepFolder
from p2p_sim.sweep.grids import Grids
from p2p_sim.sweep.memory import Extent, need_of
from p2p_sim.sweep.one_run import OneRun, examples_of, protocol_of, protocol_text, read
from p2p_sim.sweep.processes import Workers
from p2p_sim.sweep.time_budget import TimeBudget
from p2p_sim.sweep.work_queue import Task
from p2p_sim.sweep.worker import Worker

SWEEPS = "sweeps"
"""Where sweeps are kept, in the current folder, unless another place is given."""

_LIBRARIES = ("scipy", "scikit-learn", "pandas")
"""Packages that rows depend on, beside those that decide the bits of a run."""

_A_PROCESSOR = 1 << 30
"""Bytes of memory that a cluster is taken to have for each of its processors without a look."""

_SHOWN = 3


@dataclass(frozen=True)
class Swept:
    """A sweep that came to its end.  ``before``: how many of its ``count`` runs were there already."""

    path: Path
    table: Any
    count: int
    before: int

    files = (sweep_files.TABLE, sweep_files.TABLE_CSV)

    @property
    def failed(self) -> int:
        """How many runs failed."""
        return int((self.table["status"] == table.FAILED).sum())


def made(
    given: str | Path | Mapping[str, Any] | Grids,
    *,
    out: str | Path | None,
    workers: int | None,
    address: str | None,
    tell: Progress | None,
    say: Callable[[str], None] | None = None,
    until: float | None = None,
) -> Swept:
    """Make a sweep; see ``p2p_sim.sweep``.

    ``say``: called with how many runs there are, before any is made.  ``until``: a time by ``time.monotonic``, at
    which it ends; what is not made by then is "left out" of its table, and made when the sweep goes on.
    """
    report = tell or silent
    address = where_made(workers, address)
    asked = given if isinstance(given, Grids) else grids.read(given)
    place = _place(asked, out)
    folder.check(place)
    if say is not None:
        say(f"{place}: {counted(asked.count, 'run')}")
    report(f"checking {asked.count:,} runs", 0, 0)
    examples, protocols = grids.check(asked, report)
    _check_in_small_worlds(protocols)
    contents, extents = _read(examples, report)
    about = {
        "source": asked.source,
        "runs": asked.count,
        "grids": json.loads(json.dumps(asked.grids)),
        "code": _code(protocols),
        "examples": contents,
    }
    with folder.held(place) as kept:
        if kept.about is not None:
            _check_same(kept, asked, about)
        before = len(kept.done)
        left = asked.count - before
        if before and say is not None:
            say(f"{before:,} of them were there already")
        try:
            if left:
                fresh = _fresh(asked, kept.done)
                wanted = min(left, workers or cores())
                with _workers(fresh, extents, wanted, address, left, say) as pool:
                    if kept.about is None:  # not before: a sweep that cannot be made leaves nothing
                        kept.begin(about)
                    budget = None if until is None else TimeBudget(until, wanted)
                    _make(asked, kept, pool, contents, report, budget)
        except KeyboardInterrupt:
            if say is not None:
                say(
                    f"{len(kept.done):,} of {asked.count:,} runs are kept: give the same command again to go on"
                )
            raise
        report("writing the table", 0, 0)
        whole = table.written(asked, kept)
    return Swept(place, whole, asked.count, before)


def where_made(workers: int | None, address: str | None) -> str | None:
    """Return the Ray cluster that does the work, None for processes here; raises InputError for bad ``workers``."""
    if workers is None:
        return address_of(address)
    check_whole("workers", workers)
    if address is not None:
        raise InputError(
            "workers and address are both given: a cluster has as many as it has processors; leave workers out"
        )
    return None


def _place(asked: Grids, out: str | Path | None) -> Path:
    """Return the folder of a sweep."""
    if out is not None:
        return path_of("out", out)
    if asked.source:
        return Path(SWEEPS) / Path(asked.source).stem
    number = 1
    while (place := Path(SWEEPS) / f"sweep-{number}").exists():
        number += 1
    return place


def _check_in_small_worlds(protocols: Sequence[Protocol]) -> None:
    """Check protocols of one's own, as ``p2p-sim run`` does; raises ProtocolError for one that depends on blocks."""
    for protocol in protocols:
        why = "" if catalogue.shipped(type(protocol)) else quick(protocol)
        if why:
            warnings.warn(f"{why}; see p2p-sim check --users", UserWarning, stacklevel=2)


def _code(protocols: Sequence[Protocol]) -> dict[str, str]:
    """Return the versions and source files that rows depend on."""
    modules = sorted({name for protocol in protocols for name in code_fingerprint.modules_of(protocol)})
    found = code_fingerprint.code_of(modules)
    return found | {name: metadata.version(name) for name in _LIBRARIES}


def _read(examples: Mapping[str, OneRun], report: Progress) -> tuple[dict[str, str], dict[str, Extent]]:
    """Read every set of examples once, and return its SHA-256 and its extent.

    Raises InputError for one that cannot be read.
    """
    contents, extents = {}, {}
    for key, run in examples.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the workers say it
            data = read(run, protocol_of(run), report)
        clusters = 0 if data.cluster is None else len(np.unique(data.cluster))
        contents[key], extents[key] = data.content(), Extent(len(data.y), len(data.features), clusters)
    return contents, extents


def _check_same(kept: SweepFolder, asked: Grids, about: Mapping[str, Any]) -> None:
    """Check that a folder's sweep is the one that is asked for; raises InputError that names what changed."""
    then = kept.about or {}
    changes = asked.changes(then["grids"])
    other = code_fingerprint.differences(then.get("code", {}), about["code"])
    changes += [change.replace(" there", " then").replace(" here", " now") for change in other]
    for key, content in about["examples"].items():
        if then.get("examples", {}).get(key) != content:
            changes.append(f"the examples of {json.loads(key)['data']!r} are others than then")
    if changes:
        more = f"; and {len(changes) - _SHOWN} more" if len(changes) > _SHOWN else ""
        raise InputError(
            f"{str(kept.path)!r} has a sweep that differs: {'; '.join(changes[:_SHOWN])}{more}.  Runs of both do not "
            f"go into one table: give another --out, or {folder.ADVICE.partition(',')[0]}"
        )


def _fresh(asked: Grids, done: set[int]) -> Iterator[tuple[int, OneRun]]:
    """Yield the runs that are not made yet, with their numbers."""
    return ((index, run) for index, run in enumerate(asked.runs()) if index not in done)


def _workers(
    fresh: Iterable[tuple[int, OneRun]],
    extents: Mapping[str, Extent],
    wanted: int,
    address: str | None,
    left: int,
    say: Callable[[str], None] | None,
) -> AbstractContextManager[Workers]:
    """Return what makes runs, as many at the same time as memory holds; raises InputError if it does not hold one."""
    if address is not None:
        return work_queue.workers(Worker, left, address, need_of(fresh, extents, _A_PROCESSOR).nbytes)
    room = memory()
    need = need_of(fresh, extents, room // wanted)
    fit = need.fitting(wanted, room)
    if say is not None and fit < wanted:
        say(need.sentence(fit, wanted, room))
    return work_queue.workers(Worker, fit, None)


def _make(
    asked: Grids,
    kept: SweepFolder,
    workers: Workers,
    contents: Mapping[str, str],
    report: Progress,
    budget: TimeBudget | None,
) -> None:
    """Have all runs made that are not there.

    ``budget``: what it leaves no time for is left out; None: there is time for all.
    """
    done = kept.done
    if budget is not None:
        budget.begin(protocol_text(run) for _, run in _fresh(asked, done))
    tasks = (Task(index, _asked(run, contents), protocol_text(run)) for index, run in _fresh(asked, done))
    heard: set[str] = set()
    ended, failed = len(done), 0
    for each in work_queue.ended(tasks, workers, budget):
        if each.out_of_time:
            continue
        answer = {"error": each.why, "again": True} if each.answer is None else json.loads(each.answer)
        _tell(each.index, answer.pop("warnings", ()), heard)
        kept.add(each.index, answer)
        ended, failed = ended + 1, failed + ("error" in answer)
        report(f"runs of the sweep{f', {failed:,} failed' if failed else ''}", ended, asked.count)


def _asked(run: OneRun, contents: Mapping[str, str]) -> str:
    """Return a run as ``Worker.answer`` takes it."""
    key = examples_of(run, protocol_of(run))
    return json.dumps({"run": run, "content": None if key is None else contents[key]})


def _tell(index: int, said: Any, heard: set[str]) -> None:
    """Warn of what a run warned of, once for all runs."""
    for text in said:
        if text not in heard:
            heard.add(text)
            warnings.warn(f"run {index}: {text}", UserWarning, stacklevel=2)
