"""How fast reports walk on a graph, against the same walks in plain numpy measured in the same call.

``python -m benchmarks.walks --users 1000000 --cases hops,digest,numpy,graph --json`` is the target's size.
A ratio is the floor's time over the engine's, median over interleaved pairs: above 1 the engine is faster.
``python -m benchmarks.walks beside USERS``: bytes by which one run raises the peak of a fresh process.
"""

from __future__ import annotations

import ctypes
import gc
import statistics
import sys
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

import p2p_sim
from benchmarks import measure
from benchmarks.command_line import command_line
from benchmarks.floor import CHUNK, generator
from p2p_sim.core.population import Population
from p2p_sim.network import topologies
from protocols import NetworkShuffle

Array = npt.NDArray[Any]
Progress = Callable[[str, int, int], None]

USERS, SEED, DEGREE, STEPS = 1_000_000, 7, 20, 10
CASES = ("hops", "digest", "numpy", "graph")
TARGETS: dict[str, dict[str, float]] = {"hops": {"hops_per_second": 5e6}, "digest": {}, "numpy": {}}
PROTOCOL = NetworkShuffle(1.0, STEPS)


@lru_cache(maxsize=1)
def population(users: int) -> Population:
    """Make bit labels on a random regular graph."""
    return topologies.join(Population.synthetic(users=users, positive=0.3, seed=1), f"regular:{DEGREE}", 3)


def floor(people: Population, *, chunk: int = CHUNK) -> tuple[Array, Array]:
    """Walk in plain chunked numpy: last holders (ascending) and noisy labels, a holder's in random order.

    No messages, inboxes, seals or counts.  Labels are the engine's, bit for bit; places have the same law.
    """
    graph, users = people.graph, people.users
    assert graph is not None
    assert graph.order is not None
    degree, half, low_half = np.diff(graph.starts).astype(np.uint64), np.uint64(32), np.uint64(0xFFFFFFFF)
    lie, last = generator(SEED, "lie", 0), generator(SEED, "order", STEPS)
    hops = [generator(SEED, "next", step) for step in range(STEPS)]
    bound = np.uint64(int(PROTOCOL.randomizer.lying() * (1 << 64)))
    y, at, words = np.empty(users, np.uint8), np.empty(users, np.int32), np.empty(users, np.uint64)
    for low in range(0, users, chunk):
        high = min(low + chunk, users)
        y[low:high] = people.y[low:high] ^ (lie.random_raw(high - low) < bound)
        words[low:high] = last.random_raw(high - low)
        held = np.arange(low, high)
        for hop in hops:
            word, size = hop.random_raw(high - low), degree[held]
            place = ((word >> half) * size + (((word & low_half) * size) >> half)) >> half
            held = graph.order[graph.starts[held] + place.astype(np.int64)]
        at[low:high] = held
    order = np.lexsort((words, at))
    return at[order], y[order]


def run(people: Population, *, digest: bool = False) -> p2p_sim.Run:
    """Run the protocol once."""
    return p2p_sim.run(PROTOCOL, people, seed=SEED, digest=digest)


def beside(users: int) -> int:
    """Return by how many bytes a run raises the peak, its outputs included; population and graph are there before."""
    people = population(users)
    run(population.__wrapped__(1000))  # loads the kernels
    ctypes.CDLL(None).malloc_trim(0)
    measure.reset_peak()
    before = measure.memory_now()
    kept = run(people)
    growth = measure.peak_memory() - before
    assert kept.counts
    return growth


def main(users: int, cases: tuple[str, ...], repeat: int, progress: Progress | None) -> dict[str, Any]:
    """Measure the chosen cases; return machine and rows.  Raises InputError for bad arguments."""
    for name in cases:
        if name not in CASES:
            raise p2p_sim.InputError(f"no case {name!r}; known are {', '.join(CASES)}")
    if users < 100 or repeat < 1:
        raise p2p_sim.InputError(f"users = {users}, repeat = {repeat}: give at least 100 users and 1 repeat")
    chosen = [name for name in CASES if name in cases]
    total, done = sum(1 if name == "graph" else repeat for name in chosen), 0

    def step(what: str) -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(what, done, total)

    check()
    rows = [
        _graph(users, step) if name == "graph" else _hops(name, users, repeat, lambda name=name: step(name))
        for name in chosen
    ]
    return {"machine": measure.machine(), "rows": rows}


def check() -> None:
    """Assert, at a small size, that floor and engine hand over the same noisy labels, each once."""
    people = population.__wrapped__(10_000)
    learnt, (_, y) = run(people).output("learner"), floor(people)
    if not np.array_equal(np.sort(learnt["y"]), np.sort(y)):
        raise AssertionError("floor and engine hand over different labels: one of them is wrong")


def _hops(case: str, users: int, repeat: int, step: Callable[[], None]) -> dict[str, Any]:
    """Measure runs, each beside the floor."""
    people, numba = population(users), case != "numpy"
    with measure.environment("P2P_SIM_NUMBA", "1" if numba else "0"):
        timers = [
            measure.timed(lambda: floor(people)),
            measure.timed(lambda: run(people, digest=case == "digest")),
        ]
        for timer in timers:
            timer()
        gc.collect()
        floors, runs = measure.interleaved(timers, repeat, step)
        memory = measure.in_fresh_process("benchmarks.walks", "beside", users) / users
    hops = users * STEPS
    row: dict[str, Any] = {
        "case": case, "users": users, "degree": DEGREE, "steps": STEPS, "digest": case == "digest", "numba": numba,
        "hops_per_second": round(hops / statistics.median(cost.wall for cost in runs)),
        "hops_per_cpu_second": round(hops / statistics.median(cost.cpu for cost in runs)),
        "ratio_cpu": round(measure.ratio(floors, runs, "cpu"), 4),
        "ratio_wall": round(measure.ratio(floors, runs, "wall"), 4),
        "bytes_per_user": round(memory, 1), "target": TARGETS[case],
    }  # fmt: skip
    reached = [row[name] >= bound for name, bound in TARGETS[case].items()]
    return row | {"reached": all(reached) if reached else None}


def _graph(users: int, step: Callable[[str], None]) -> dict[str, Any]:
    """Measure how long building the graph takes, with the check that it is connected."""
    start = time.perf_counter()
    topologies.build(f"regular:{DEGREE}", users, 3)
    seconds = round(time.perf_counter() - start, 4)
    step("graph")
    return {
        "case": "graph",
        "users": users,
        "degree": DEGREE,
        "seconds": seconds,
        "target": {},
        "reached": None,
    }


if __name__ == "__main__":
    if sys.argv[1:2] == ["beside"]:
        with measure.json_only() as write:
            write(f"{beside(int(sys.argv[2]))}\n")
    else:
        command_line(sys.modules[__name__], USERS)
