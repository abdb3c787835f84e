"""What cryptography costs: shuffles modelled, beside plain numpy, and real; secure sums with users who drop out.

``python -m benchmarks.crypto --users 1000000 --cases modelled,real,sums --json`` is the targets' size: real shuffles
have a tenth of the users, secure sums a hundredth.  A ratio is the floor's time over the engine's, median over
interleaved pairs: above 1 the engine is faster.
"""

from __future__ import annotations

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
from benchmarks.floor import generator
from p2p_sim.core.population import Population
from p2p_sim.core.random_words import order, own_words, stream
from protocols import EncryptedShuffle, SecureAggregation

Array = npt.NDArray[Any]
Progress = Callable[[str, int, int], None]

USERS, SEED = 1_000_000, 7
CASES = ("modelled", "digest", "chain", "real", "sums")
BAG, DEGREE, DROP = 100, 20, 0.034
"""Users a bag, neighbours, and the chance to drop out before a step: after three, one in ten is gone."""

TARGETS: dict[str, dict[str, Any]] = {
    "modelled": {"ratio_cpu": 0.5},
    "real": {"seconds": 30.0, "digest_equal": True},
    "sums": {"seconds": 60.0, "exact": True},
}


@lru_cache(maxsize=1)
def population(users: int) -> Population:
    """Make bit labels in one cluster."""
    return Population.synthetic(users=users, cluster_size=users, positive=0.3, seed=1)


def floor(people: Population, protocol: EncryptedShuffle) -> tuple[Array, Array]:
    """Randomize and permute, once a shuffler, in plain numpy; the result is the engine's, bit for bit."""
    users, bound = people.users, np.uint64(int(protocol.randomizer.lying() * (1 << 64)))
    y = (people.y ^ (generator(SEED, "lie", 0).random_raw(users) < bound)).view(np.uint8)
    cluster = np.zeros(users, np.int64)
    for number in range(protocol.shufflers, 0, -1):
        name = "shuffler" if number == 1 else f"shuffler{number}"
        mixed = order(own_words(SEED, stream(name, "order", 1), 0, users))
        y, cluster = y[mixed], cluster[mixed]
    return cluster, y


def run(people: Population, protocol: Any, **how: Any) -> p2p_sim.Run:
    """Run once."""
    return p2p_sim.run(protocol, people, seed=SEED, **how)


def main(users: int, cases: tuple[str, ...], repeat: int, progress: Progress | None) -> dict[str, Any]:
    """Measure the chosen cases; return machine and rows.  Raises InputError for bad arguments."""
    for name in cases:
        if name not in CASES:
            raise p2p_sim.InputError(f"no case {name!r}; known are {', '.join(CASES)}")
    if users < 10_000 or repeat < 1:
        raise p2p_sim.InputError(
            f"users = {users}, repeat = {repeat}: give at least 10,000 users and 1 repeat"
        )
    chosen, rows = [name for name in CASES if name in cases], []
    check()
    for done, name in enumerate(chosen):
        if progress is not None:
            progress(name, done, len(chosen))
        row = _real(users // 10) if name == "real" else _sums(users // 100) if name == "sums" else None
        row = _modelled(name, users, repeat) if row is None else row
        goals = TARGETS.get(name, {})
        row["reached"] = all(
            row[what] <= goal if what == "seconds" else row[what] >= goal for what, goal in goals.items()
        )
        rows.append({"case": name, **row, "target": goals})
    return {"machine": measure.machine(), "rows": rows}


def check() -> None:
    """Assert, at a small size, that floor and engine agree in every bit."""
    people = Population.synthetic(users=10_000, cluster_size=10_000, positive=0.3, seed=1)
    for shufflers in (1, 3):
        protocol = EncryptedShuffle(1.0, shufflers=shufflers)
        learnt, (cluster, y) = run(people, protocol, digest=False).output("learner"), floor(people, protocol)
        if not (np.array_equal(learnt["y"], y) and np.array_equal(learnt["cluster"], cluster)):
            raise AssertionError("floor and engine release different labels: one of them is wrong")


def _modelled(name: str, users: int, repeat: int) -> dict[str, Any]:
    people, protocol = population(users), EncryptedShuffle(1.0, shufflers=3 if name == "chain" else 1)
    timers = [
        measure.timed(lambda: floor(people, protocol)),
        measure.timed(lambda: run(people, protocol, digest=name == "digest")),
    ]
    measure.interleaved(timers, 1, lambda: None)
    costs = measure.interleaved(timers, repeat, lambda: None)
    ratio = round(measure.ratio(costs[0], costs[1], "cpu"), 4)
    return {"users": users, "shufflers": protocol.shufflers, "digest": name == "digest", "ratio_cpu": ratio}


def _real(users: int) -> dict[str, Any]:
    people, protocol, found = population(users), EncryptedShuffle(1.0), []
    cost = _tree(lambda: found.append(run(people, protocol, crypto="real")))
    equal = found[0].digest == run(people, protocol).digest
    return {"users": users, "shufflers": 1, "digest_equal": equal, **cost}


def _tree(work: Callable[[], Any]) -> dict[str, float]:
    """Return seconds, and CPU seconds of this process and of those it starts for cryptography."""
    cpu, wall = measure.tree_cpu(), time.perf_counter()
    work()
    return {
        "seconds": round(time.perf_counter() - wall, 3),
        "cpu_seconds": round(measure.tree_cpu() - cpu, 3),
    }


def _sums(users: int) -> dict[str, Any]:
    people, found = Population.synthetic(users=users, cluster_size=BAG, positive=0.3, seed=1), []
    protocol, faults = SecureAggregation(BAG, degree=DEGREE), [f"drop={DROP}"]
    cost = _tree(lambda: found.append(run(people, protocol, crypto="real", faults=faults, trace="full")))
    learnt, reports = found[0].output("learner"), found[0].messages("report")
    true = np.bincount(
        reports["sender"] // BAG, weights=people.y[reports["sender"]], minlength=len(learnt["bag"])
    )
    fine = ~learnt["refused"]
    return {
        "users": users, "bag": BAG, "degree": DEGREE, **cost,
        "dropped_before_the_end": round(1 - float(learnt["size"].sum()) / users, 4),
        "refused_bags": int(learnt["refused"].sum()),
        "exact": bool((learnt["total"][fine] == true[learnt["bag"]][fine]).all() and fine.any()),
    }  # fmt: skip


if __name__ == "__main__":
    command_line(sys.modules[__name__], USERS)
