"""What traces cost: writing all messages of a run beside the floor, and reading them back.

``python -m benchmarks.trace --users 10000000 --cases write,user,page,web,stats,replay,predict,memory`` is the targets'
size.  A ratio is the floor's time over the whole traced run's, writing included: above 1 the run is faster.
``python -m benchmarks.trace memory RUN``: prints the peak bytes of a fresh process that looks at a stored trace.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import p2p_sim
from benchmarks import engine, measure, workload
from benchmarks.command_line import command_line
from benchmarks.measure import Timed
from p2p_sim.core.message import USER
from p2p_sim.core.population import Population
from p2p_sim.render.web.answers import Answers
from p2p_sim.report.view_summary import VIEW_FUNCTIONS
from p2p_sim.rundir import manifest, run_directory
from p2p_sim.rundir.trace_writer import MESSAGES, Draft
from p2p_sim.trace import stats
from p2p_sim.trace.replay import history_of, rerun_world
from p2p_sim.trace.size_estimate import predict

Progress = Callable[[str, int, int], None]
Row = dict[str, Any]

USERS = 10_000_000
CASES = ("write", "user", "page", "web", "stats", "replay", "predict", "memory")
AT_LEAST = frozenset({"ratio_cpu", "ratio_wall"})
"""Figures whose target is a floor; of the others it is a ceiling."""

_ASKED = 7


def main(
    users: int = USERS,
    cases: tuple[str, ...] = CASES,
    repeat: int = 5,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Measure the chosen cases; return the machine and one row a measurement.

    ``progress`` is called with (case, cases done, cases in all).  Raises InputError for bad arguments.
    """
    for name in cases:
        if name not in CASES:
            raise p2p_sim.InputError(f"no case {name!r}; known are {', '.join(CASES)}")
    if users < 10 or repeat < 1:
        raise p2p_sim.InputError(f"users = {users}, repeat = {repeat}: give at least 10 users and 1 repeat")
    chosen = [name for name in CASES if name in cases]
    rows: list[Row] = []
    each = {
        "write": _write, "user": _user, "page": _page, "web": _web, "stats": _stats, "replay": _replay,
        "predict": _predict, "memory": _memory,
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        for done, name in enumerate(chosen, 1):
            rows += each[name](Path(folder), users, repeat)
            if progress is not None:
                progress(name, done, len(chosen))
    return {"machine": measure.machine(), "rows": rows}


def _row(case: str, users: int, clusters: str, target: dict[str, float], **figures: Any) -> Row:
    reached = all(
        figures[name] >= bound if name in AT_LEAST else figures[name] <= bound
        for name, bound in target.items()
    )
    row = {
        "case": case,
        "users": users,
        "clusters": clusters,
        **figures,
        "target": target,
        "reached": reached,
    }
    return {name: round(value, 4) if isinstance(value, float) else value for name, value in row.items()}


def _write(folder: Path, users: int, repeat: int) -> list[Row]:
    """Whole runs of the local backend with every message written, with and without the digest."""
    rows = []
    for clusters in workload.BOTH:
        population = workload.population(users, clusters)
        for digest in (True, False):
            timers = [engine.floor_timer(population), traced_timer(population, folder, digest=digest)]
            measure.interleaved(timers, 1, lambda: None)
            floor, traced = measure.interleaved(timers, repeat, lambda: None)
            figures = {
                clock: measure.ratio(floor, traced, clock.removeprefix("ratio_")) for clock in AT_LEAST
            }
            kept = stored(folder, users, clusters)
            nbytes = sum(entry["bytes"] for entry in kept.manifest["files"]) / kept.kept
            target = {"ratio_cpu": 0.45, "bytes_per_message": 2.1}
            figures |= {"digest": digest, "bytes_per_message": nbytes, "messages": kept.kept}
            rows.append(_row("write", users, clusters, target, **dict(sorted(figures.items()))))
    return rows


def traced_timer(population: Population, folder: Path, *, digest: bool) -> Timed:
    """Make the measurement of one run whose messages are written."""

    def run() -> None:
        with Draft(folder / "timed") as draft:
            given = {"seed": workload.SEED, "digest": digest, "trace": "full", "out": draft}
            p2p_sim.run(workload.PROTOCOL, population, **given)

    return measure.timed(run)


@lru_cache(maxsize=2)
def path_of(folder: Path, users: int, clusters: workload.Clusters) -> Path:
    """Make a traced run once; return its directory."""
    path = folder / clusters
    given = {"seed": workload.SEED, "trace": "full", "out": path}
    p2p_sim.run(workload.PROTOCOL, workload.population(users, clusters), **given)
    return path


def stored(folder: Path, users: int, clusters: workload.Clusters) -> run_directory.Stored:
    """Open the trace of that run anew, as a new process would."""
    return run_directory.Stored(path_of(folder, users, clusters) / MESSAGES)


def _seconds(work: Callable[[], Any], repeat: int) -> float:
    """Return the median of some repeats."""
    spent = []
    for _ in range(repeat):
        before = time.perf_counter()
        work()
        spent.append(time.perf_counter() - before)
    return statistics.median(spent)


def _user(folder: Path, users: int, repeat: int) -> list[Row]:
    """All rows of one user, of every kind, from an unopened trace: checksums included."""
    rows = []
    for clusters in workload.BOTH:
        path_of(folder, users, clusters)

        def look(clusters: workload.Clusters = clusters) -> int:
            trace = stored(folder, users, clusters)
            return sum(trace.rows(kind, user=users // 3)[1] for kind in trace.kinds)

        figures = {"messages": look(), "seconds": _seconds(look, repeat)}
        rows.append(_row("user", users, clusters, {"seconds": 0.5}, **figures))
    return rows


def _page(folder: Path, users: int, repeat: int) -> list[Row]:
    """Fifty rows of every kind in their order, the first and some from the middle."""
    rows = []
    for clusters in workload.BOTH:
        path_of(folder, users, clusters)
        for offset in (0, users // 2):

            def look(clusters: workload.Clusters = clusters, offset: int = offset) -> None:
                trace = stored(folder, users, clusters)
                for kind in trace.kinds:
                    trace.rows(kind, limit=50, offset=offset)

            rows.append(_row("page", users, clusters, {}, offset=offset, seconds=_seconds(look, repeat)))
    return rows


def _web(folder: Path, users: int, _repeat: int) -> list[Row]:
    """What the page is answered: at first, of an unopened run; then another round, viewpoint and user, once each."""
    rows = []
    for clusters in workload.BOTH:
        path = path_of(folder, users, clusters)

        def first(path: Path = path) -> Answers:
            page = Answers(path, VIEW_FUNCTIONS)
            page.answer("overview", {})
            page.answer("lanes", {})
            return page

        page = first()
        looks: dict[str, tuple[float, Callable[[], Any]]] = {"first view": (3.0, first)}
        for name, value in (("round", "2"), ("view", "learner"), ("user", f"{users // 3}")):
            asked = {name: value}
            looks[name] = (1.0, lambda page=page, asked=asked: page.answer("lanes", asked))
        for of, (bound, look) in looks.items():
            (cost,) = measure.interleaved([measure.timed(look)], 1, lambda: None)[0]
            figures = {"cpu_seconds": cost.cpu, "seconds": cost.wall}
            rows.append(_row("web", users, clusters, {"cpu_seconds": bound}, of=of, **figures))
    return rows


def _stats(folder: Path, users: int, repeat: int) -> list[Row]:
    """What ``p2p-sim trace stats`` computes, the run loaded from its directory."""
    rows = []
    for clusters in workload.BOTH:
        path = path_of(folder, users, clusters)
        seconds = _seconds(lambda path=path: stats.stats(path), min(repeat, 3))
        rows.append(_row("stats", users, clusters, {"seconds": 10.0}, seconds=seconds))
    return rows


def _replay(_folder: Path, users: int, repeat: int) -> list[Row]:
    """One user's life recomputed, the population being there; in one thread, so that CPU is wall on an idle machine.

    With the compiled loops loaded, and by numpy alone, as in a process that starts for it.
    """
    rows = []
    whole = Population.synthetic(users=users, positive=0.3, seed=1)
    for clusters, bound in (("contiguous", 0.02), ("scattered", 0.02), ("none", 0.6)):
        people = whole if clusters == "none" else workload.population(users, clusters)  # type: ignore[arg-type]

        def again(people: Population = people) -> None:
            row = np.array([users // 3])
            past = rerun_world(workload.PROTOCOL, people, workload.SEED, {USER: row}, digest=False)
            history_of(workload.PROTOCOL, past, users // 3)

        for numba in (False, True):
            with measure.environment("P2P_SIM_NUMBA", "1" if numba else "0"):
                timers = measure.interleaved([measure.timed(again)], repeat + 1, lambda: None)[0][1:]
            cpu, wall = (
                statistics.median(getattr(cost, clock) for cost in timers) for clock in ("cpu", "wall")
            )
            figures = {"numba": numba, "cpu_seconds": cpu, "seconds": wall}
            rows.append(_row("replay", users, clusters, {"cpu_seconds": bound}, **figures))
    return rows


def _predict(folder: Path, users: int, repeat: int) -> list[Row]:
    """What is said beforehand, beside what was written."""
    rows = []
    for clusters in workload.BOTH:
        population = workload.population(users, clusters)
        kept = stored(folder, users, clusters)
        nbytes = sum(entry["bytes"] for entry in kept.manifest["files"])
        nbytes += (kept.folder / manifest.NAME).stat().st_size
        (found,) = predict(workload.PROTOCOL, population, "full")
        seconds = _seconds(lambda people=population: predict(workload.PROTOCOL, people, "full"), repeat)
        figures = {
            "seconds": seconds,
            "messages": found.messages / kept.kept,
            "nbytes": found.nbytes / nbytes,
        }
        rows.append(_row("predict", users, clusters, {}, **figures))
    return rows


def _memory(folder: Path, users: int, _repeat: int) -> list[Row]:
    """Peaks of fresh processes: the command line's traced run, and one that looks at a stored trace."""
    run = measure.in_fresh_process("benchmarks.memory", "whole", users, "traced") / 2**30
    path = path_of(folder, users, "scattered")
    look = measure.in_fresh_process("benchmarks.trace", "memory", path) / 2**30
    rows = [("run", "contiguous", run), ("look", "scattered", look)]
    return [
        _row("memory", users, clusters, {"peak_gib": 1.0}, of=what, peak_gib=peak)
        for what, clusters, peak in rows
    ]


def look_at(path: Path) -> int:
    """Read one user's rows, a page, and everything batch by batch; return the peak memory."""
    trace = run_directory.open_trace(path)
    for kind in trace.kinds:
        trace.rows(kind, user=17)
        trace.rows(kind, limit=50, offset=1000)
        for _ in trace.batches(kind):
            pass
    return measure.peak_memory()


if __name__ == "__main__":
    if sys.argv[1:2] == ["memory"]:
        with measure.json_only() as write:
            write(f"{look_at(Path(sys.argv[2]))}\n")
    else:
        command_line(sys.modules[__name__], USERS)
