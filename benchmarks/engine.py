"""How fast the engine is, against the floor measured in the same call.

``python -m benchmarks.engine --users 10000000 --cases local,digest,numpy,threads,mechanisms,shards,actors --json``.
A ratio is the floor's time over the engine's, median over interleaved pairs: above 1 the engine is faster.
"""

from __future__ import annotations

import gc
import heapq
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import p2p_sim
from benchmarks import floor, measure, workload
from benchmarks.clustered import SHARDS, ray_session, shards_timer
from benchmarks.command_line import command_line
from benchmarks.measure import Cost, Timed
from p2p_sim.core import kernels
from p2p_sim.core.population import Population
from p2p_sim.core.threads import Threads
from protocols import (
    Alibi,
    BinnedResponse,
    ClusterResponse,
    DoubleResponse,
    DummyFeatures,
    IntervalResponse,
    MultiStage,
    PriorResponse,
    RandomizedResponse,
    UnbiasedResponse,
)

Progress = Callable[[str, int, int], None]
Row = dict[str, Any]

USERS = 10_000_000
CASES = ("local", "digest", "numpy", "threads", "mechanisms", "shards", "actors")
AT_MOST = frozenset(
    {"times_response", "bytes_per_user", "us_per_message", "peak_gib", "seconds", "wall_of_one", "cpu_of_one"}
)
"""Figures whose target is a ceiling; of the others it is a floor."""

ACTORS = 48
BOTH = workload.BOTH
MECHANISMS = {
    PriorResponse(1.0): 1.6,
    BinnedResponse(1.0): 3.0,
    UnbiasedResponse(1.0): 3.0,
    IntervalResponse(1.0): 3.0,
    DummyFeatures(0.5): 3.0,
    ClusterResponse(1.0): 3.0,
    Alibi(1.0): 3.0,
    DoubleResponse(0.5, "gaussian:2"): 3.0,
    MultiStage(1.0): 3.0,
}
"""Mechanisms, and how many times what randomized response takes they may take, which needs a quarter of a block of the
cipher a user.  Alibi needs one block, double response two: its messages alone, with nothing drawn, take 2.6 times as
long, for they hold features of 8 bytes; those of multi-stage, two a user, take about three times as long.  What double
response and multi-stage are above 3 is told in the changelog; memory that is handed out anew is a part of it."""
THREADS, SAME_DIGEST = 2, (1, 2, 3, 8)
"""Threads that are measured against one, and how many must give the same digest."""
_WIDTH = {
    "local": 4,
    "digest": 4,
    "numpy": 2,
    "threads": 4,
    "mechanisms": len(MECHANISMS),
    "shards": 2,
    "actors": 1,
}


@dataclass
class Bench:
    """One call: sizes, repeats, and the rows so far."""

    users: int
    repeat: int
    progress: Progress | None
    total: int
    rows: list[Row] = field(default_factory=list)
    done: int = 0

    def step(self, what: str) -> None:
        """Report that one more measurement is done."""
        self.done += 1
        if self.progress is not None:
            self.progress(what, min(self.done, self.total), self.total)

    def add(self, case: str, users: int, clusters: str, *, digest: bool, numba: bool, **figures: Any) -> None:
        """Add a row; ``figures`` holds what was measured and, as ``target``, what it must reach."""
        names = ("ratio_cpu", "ratio_wall", "bytes_per_user", "ns_per_user_cpu", "floor_ns_per_user")
        row: Row = {"case": case, "users": users, "clusters": clusters, "digest": digest, "numba": numba}
        row |= dict.fromkeys(names) | figures
        row["reached"] = all(
            row[name] is not None and (row[name] <= bound if name in AT_MOST else row[name] >= bound)
            for name, bound in row["target"].items()
        )
        self.rows.append({k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()})

    def local(self, case: str, clusters: workload.Clusters, target: dict[str, float], users: int = 0) -> None:
        """Measure the local backend; case ``digest`` also what the digest costs a message."""
        users, numba = users or self.users, case != "numpy"
        population = workload.population(users, clusters)
        with measure.environment("P2P_SIM_NUMBA", "1" if numba else "0"):
            timers = [floor_timer(population), local_timer(population, digest=case == "digest")]
            costs = self._interleaved(case, timers, warm=1)
            memory = self._fresh("beside", users, clusters, *(["digest"] if case == "digest" else [])) / users
        figures = _against_floor(costs[0], costs[1], users) | {"bytes_per_user": memory, "target": target}
        self.add(case, users, clusters, digest=case == "digest", numba=numba, **figures)

    def digest_cost(self, numba: bool, target: float) -> None:
        """Measure what the digest adds to a message, by pairs of runs with and without it."""
        population = workload.population(self.users, "contiguous")
        messages = sum(count.messages for count in run_local(population, digest=False).counts.values())
        with measure.environment("P2P_SIM_NUMBA", "1" if numba else "0"):
            timers = [local_timer(population, digest=flag) for flag in (False, True)]
            without, digested = self._interleaved("digest a message", timers, warm=1)
        added = [(b.cpu - a.cpu) / messages * 1e6 for a, b in zip(without, digested, strict=True)]
        figures = {"us_per_message": statistics.median(added), "target": {"us_per_message": target}}
        self.add("digest", self.users, "contiguous", digest=True, numba=numba, **figures)

    def threads(self, clusters: workload.Clusters, *, costs: bool) -> None:
        """Measure two threads against one, with the digest; ``costs``: also messages counted user by user."""
        population = workload.population(self.users, clusters)

        def run(threads: int) -> p2p_sim.Run:
            how: dict[str, Any] = {"seed": workload.SEED, "costs": costs, "threads": threads}
            return p2p_sim.run(workload.PROTOCOL, population, **how)

        timers = [measure.timed(partial(run, threads)) for threads in (THREADS, 1)]
        numba = compiled(self.users)  # loads it, if this many users repay that
        several, one = self._interleaved("threads", timers, warm=1)
        figures: Row = {
            "wall_of_one": measure.ratio(several, one, "wall"),
            "cpu_of_one": measure.ratio(several, one, "cpu"),
            "ns_per_user_cpu": statistics.median(cost.cpu for cost in several) / population.users * 1e9,
            "digest_equal": len({run(threads).digest for threads in SAME_DIGEST}) == 1,
        }
        figures |= {"threads": THREADS, "costs": costs}
        figures["best_wall_of_one"] = statistics.median(
            best_wall(partial(run, 1)) for _ in range(self.repeat)
        )
        target = {"wall_of_one": 0.58, "cpu_of_one": 1.1, "digest_equal": True}
        self.add("threads", self.users, clusters, digest=True, numba=numba, **figures, target=target)

    def mechanisms(self) -> None:
        """Measure local mechanisms, and a curator's, against randomized response, with the digest."""
        population = workload.with_features(max(1, self.users // 10), 2)
        numba = compiled(population.users)  # loads it, if this many users repay that
        for protocol, most in MECHANISMS.items():
            timers = [
                measure.timed(partial(p2p_sim.run, each, population, seed=workload.SEED))
                for each in (protocol, RandomizedResponse(1.0))
            ]
            costs, response = self._interleaved(protocol.command_name(), timers, warm=1)
            times, ns = (
                measure.ratio(costs, response, "cpu"),
                statistics.median(cost.cpu for cost in costs) / population.users * 1e9,
            )
            figures = {"mechanism": protocol.command_name(), "times_response": times, "ns_per_user_cpu": ns}
            self.add(
                "mechanisms", population.users, "contiguous", digest=True, numba=numba,
                **figures, target={"times_response": most},
            )  # fmt: skip

    def whole(self) -> None:
        """Measure the peak memory of the command line's run, from start to end."""
        peak = self._fresh("whole", self.users) / 2**30
        figures = {"peak_gib": peak, "target": {"peak_gib": 1.0}}
        self.add("memory", self.users, "contiguous", digest=True, numba=False, **figures)

    def shards(self, clusters: workload.Clusters) -> None:
        """Measure two shards, start-up apart, by the CPU time of the whole process tree."""
        population = workload.population(self.users, clusters)
        timers = [floor_timer(population), shards_timer(population)]
        costs = self._interleaved("shards", timers, warm=1)
        target = {"ratio_wall": 1.5, "ratio_cpu": 0.8}
        figures = _against_floor(costs[0], costs[1], self.users) | {"shards": SHARDS, "target": target}
        self.add("shards", self.users, clusters, digest=False, numba=compiled(self.users), **figures)

    def actors(self) -> None:
        """Measure a run with one Ray actor a user, from the start of Ray to its end."""
        population = workload.population(ACTORS, "scattered", 12)
        start = time.perf_counter()
        run = p2p_sim.run(workload.PROTOCOL, population, seed=workload.SEED, backend="actors")
        seconds = time.perf_counter() - start
        equal = run.digest == run_local(population, digest=True).digest
        target = {"seconds": 90.0, "digest_equal": True}
        figures = {"seconds": seconds, "digest_equal": equal, "target": target}
        self.add("actors", ACTORS, "scattered", digest=True, numba=False, **figures)
        self.step("actors")

    def _interleaved(self, what: str, timers: list[Timed], warm: int) -> list[list[Cost]]:
        for _ in range(warm):
            for timer in timers:
                timer()
        gc.collect()
        return measure.interleaved(timers, self.repeat, lambda: self.step(what))

    def _fresh(self, *arguments: object) -> int:
        return measure.in_fresh_process("benchmarks.memory", *arguments)


def main(
    users: int = 10_000_000,
    cases: tuple[str, ...] = CASES,
    repeat: int = 5,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Measure the chosen cases; return the machine and one row a measurement.

    ``progress`` is called with (case, measurements done, measurements in all).
    Raises InputError for bad arguments.
    """
    for name in cases:
        if name not in CASES:
            raise p2p_sim.InputError(f"no case {name!r}; known are {', '.join(CASES)}")
    if users < 10 or repeat < 1:
        raise p2p_sim.InputError(f"users = {users}, repeat = {repeat}: give at least 10 users and 1 repeat")
    chosen = [name for name in CASES if name in cases]
    total = sum(_WIDTH[name] * (1 if name == "actors" else repeat) for name in chosen)
    bench = Bench(users, repeat, progress, total)
    check_floor()
    if "local" in chosen:
        for clusters in BOTH:
            bench.local("local", clusters, {"ratio_cpu": 1.4, "bytes_per_user": 20})
        for clusters in BOTH:
            bench.local("local", clusters, {"ratio_cpu": 1.3}, max(1, users // 10))
        bench.whole()
    if "digest" in chosen:
        for clusters in BOTH:
            bench.local("digest", clusters, {"ratio_cpu": 1.0, "bytes_per_user": 20})
        bench.digest_cost(True, 0.03)
        bench.digest_cost(False, 0.1)
    if "numpy" in chosen:
        for clusters in BOTH:
            bench.local("numpy", clusters, {"ratio_cpu": 0.7})
    if "threads" in chosen:
        for costs in (False, True):
            for clusters in BOTH:
                bench.threads(clusters, costs=costs)
    if "mechanisms" in chosen:
        bench.mechanisms()
    if "shards" in chosen:
        with ray_session(users):
            for clusters in BOTH:
                bench.shards(clusters)
    if "actors" in chosen:
        bench.actors()
    return {"machine": measure.machine(), "rows": bench.rows}


def best_wall(work: Callable[[], object]) -> float:
    """Return the time of so many threads over that of one, were they never to wait for a core or for each other.

    From the CPU seconds of each block's work in one thread, given in their order to whichever thread is free, and of
    what the calling thread does alone.  It says on a busy machine, too, what an idle one can reach at best.
    """
    honest, inside, ends = Threads.map, 0.0, 0.0

    def timed(self: Threads, work: Callable[[Any], Any], items: Any) -> Any:
        nonlocal inside, ends
        free, before = [0.0] * THREADS, inside

        def each(item: Any) -> Any:
            nonlocal inside
            begun = time.thread_time()
            try:
                return work(item)
            finally:
                spent = time.thread_time() - begun
                inside += spent
                heapq.heapreplace(free, free[0] + spent)

        try:
            yield from honest(self, each if len(items) > 1 else work, items)
        finally:
            ends += max(free) if inside > before else 0.0

    begun = time.thread_time()
    Threads.map = timed  # type: ignore[method-assign]
    try:
        work()
    finally:
        Threads.map = honest  # type: ignore[method-assign]
    whole = time.thread_time() - begun
    return (whole - inside + ends) / whole


def check_floor() -> None:
    """Assert, at a small size and for both layouts, that floor and engine agree in every bit."""
    for clusters in BOTH:
        population = workload.population(70_001, clusters, 700)
        output = run_local(population, digest=False).output("learner")
        floor.check(population, output, seed=workload.SEED, alpha=workload.ALPHA, theta=workload.THETA)


def run_local(population: Population, *, digest: bool) -> p2p_sim.Run:
    """Run the local backend once, on one thread as the floor is."""
    return p2p_sim.run(workload.PROTOCOL, population, seed=workload.SEED, digest=digest, threads=1)


def local_timer(population: Population, *, digest: bool) -> Timed:
    """Make the measurement of one local run."""
    return measure.timed(lambda: run_local(population, digest=digest))


def floor_timer(population: Population) -> Timed:
    """Make the measurement of one pass of the floor."""
    return measure.timed(
        lambda: floor.floor(population, seed=workload.SEED, alpha=workload.ALPHA, theta=workload.THETA)
    )


def compiled(users: int) -> bool:
    """Whether a run of that size uses numba."""
    return kernels.choose(users).__name__.endswith(kernels.NUMBA)


def _against_floor(floor_costs: list[Cost], engine_costs: list[Cost], users: int) -> dict[str, float]:
    def ns(costs: list[Cost]) -> float:
        return statistics.median(cost.cpu for cost in costs) / users * 1e9

    return {
        "ratio_cpu": measure.ratio(floor_costs, engine_costs, "cpu"),
        "ratio_wall": measure.ratio(floor_costs, engine_costs, "wall"),
        "ns_per_user_cpu": ns(engine_costs),
        "floor_ns_per_user": ns(floor_costs),
    }


if __name__ == "__main__":
    command_line(sys.modules[__name__], USERS)
