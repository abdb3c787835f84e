"""How cost grows with users, threads and shards, and a model of it, held against sizes that it has not seen.

``p2p-sim bench scaling`` measures Algorithm 2 with clusters of consecutive users (hardly a message leaves its shard)
and of scattered ones (nearly all do).  Rows: *strong* scaling (one size, more workers) and *weak* (users in proportion
to workers, where there are cores for them), as medians of pairs measured in turn, by the clock and in CPU seconds of
all processes.  The model is of CPU seconds, the least of each setting, as other work of the machine can only add to
them; it is fitted to relative errors, with no coefficient negative:

    threads:  CPU = start + users * user + (threads - 1) * worker
    shards:   CPU = start + users * user + (shards - 1) * worker + bytes * byte + scattered users * scattered

``bytes``: what goes from process to process; ``scattered``: what users cost more whose cluster is scattered.  The
largest size is held out, and its errors are reported.  A prediction for a billion users on a hundred such nodes
follows, if every core is free and works without a pause: start and workers one after the other, users and bytes divided
among nodes and their cores, and bytes once more over the network between them, whose speed is assumed, as there is one
machine here.
"""

from __future__ import annotations

import contextlib
import os
import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import p2p_sim
from benchmarks import workload
from benchmarks.measure import Cost, Timed, interleaved, machine, timed, tree_timed

USERS = 10_000_000
CASES = ("threads", "shards")
WORKERS = (1, 2, 4)
HALVINGS = (4, 3, 2, 1, 0)
"""How often the given number of users is halved; the largest size is held out."""

NODES = 100
USERS_THERE = 10**9
NETWORK = 10e9 / 8
"""Bytes a second into each node: 10 Gbit/s."""

CROSSING_BYTES = 2 * 9
"""For a user whose peer is elsewhere: a question and an answer, each with an id, a place and a label at most."""

Row = dict[str, Any]


def main(users: int, cases: tuple[str, ...], repeat: int, progress: Callable[[str, int, int], None]) -> Row:
    """Measure, fit, predict; ``users``: the largest size, in at least two clusters for each shard."""
    rows: list[Row] = []
    for done, case in enumerate(cases):
        progress(case, done, len(cases))
        measured = measure(case, users, repeat)
        rows += [*measured, *scaling(case, measured), fitted(case, measured)]
    return {"machine": machine(), "rows": rows}


def measure(case: str, users: int, repeat: int) -> list[Row]:
    """Measure one backend at all sizes, numbers of workers and kinds of clusters, all in turn; one row a setting.

    A row has all its costs: those at one place of two rows were measured within one round.
    """
    from p2p_sim.backends.ray_session import session

    cores = len(os.sched_getaffinity(0))
    where = session(None, max(WORKERS), 2 << 30) if case == "shards" else contextlib.nullcontext()
    clock = tree_timed if case == "shards" else timed
    rows: list[Row] = []
    timers: list[Timed] = []
    with where:
        for size in (users >> halved for halved in HALVINGS):
            for clusters in workload.BOTH if case == "shards" else workload.BOTH[:1]:
                population = workload.population(size, clusters, max(size // 40, 2))
                for workers in (workers for workers in WORKERS if case == "shards" or workers <= cores):
                    rows.append(setting(case, size, workers, clusters, cores))
                    timers.append(clock(partial(one, case, population, workers)))
        interleaved(timers[-len(WORKERS) :], 1, lambda: None)  # loads kernels, starts actors
        costs = interleaved(timers, repeat, lambda: None)
    return [with_costs(row, each) for row, each in zip(rows, costs, strict=True)]


def one(case: str, population: p2p_sim.Population, workers: int) -> p2p_sim.Run:
    """Run with so many threads or shards."""
    how: dict[str, Any] = (
        {"threads": workers} if case == "threads" else {"backend": "shards", "shards": workers}
    )
    return p2p_sim.run(workload.PROTOCOL, population, seed=workload.SEED, digest=False, **how)


def setting(case: str, users: int, workers: int, clusters: str, cores: int) -> Row:
    """Return what is measured, and the bytes that go from process to process."""
    crossing = 0.0 if clusters == "contiguous" or case == "threads" else 1 - 1 / workers
    return {
        "case": case, "users": users, "workers": workers, "at_once": min(workers, cores), "clusters": clusters,
        "bytes": round(users * crossing * CROSSING_BYTES),
    }  # fmt: skip


def with_costs(row: Row, costs: list[Cost]) -> Row:
    """Return a row with its median costs, and all of them."""
    return row | {
        "cpu_seconds": round(statistics.median(cost.cpu for cost in costs), 5),
        "wall_seconds": round(statistics.median(cost.wall for cost in costs), 5),
        "cpu": [round(cost.cpu, 5) for cost in costs],
        "wall": [round(cost.wall, 5) for cost in costs],
    }


def scaling(case: str, rows: list[Row]) -> list[Row]:
    """Return strong scaling at the largest size, and weak where users grow about as workers do."""
    by = {(row["clusters"], row["users"], row["workers"]): row for row in rows}
    largest, found = max(users for _, users, _ in by), []

    def found_one(kind: str, clusters: str, workers: int, alone: int) -> Row:
        many, single = by[clusters, largest, workers], by[clusters, alone, 1]
        told = {"users": largest, "workers": workers, "clusters": clusters}
        wall, cpu = (
            statistics.median(a / b for a, b in zip(many[clock], single[clock], strict=True))
            for clock in ("wall", "cpu")
        )
        ratios = {"wall_ratio": round(wall, 3), "cpu_per_user_ratio": round(cpu * alone / largest, 3)}
        return {"case": f"{case}, {kind}"} | told | ratios

    for row in (row for row in rows if row["users"] == largest and row["workers"] > 1):
        found.append(found_one("strong", row["clusters"], row["workers"], largest))
        if row["workers"] == row["at_once"]:  # there is a core for each
            found.append(found_one("weak", row["clusters"], row["workers"], largest // row["workers"]))
    return found


NAMES = {
    "threads": ("start", "user", "worker"),
    "shards": ("start", "user", "worker", "byte", "scattered"),
}
"""The coefficients, CPU seconds each."""


def features(row: Row) -> list[float]:
    """Return what the model's coefficients are multiplied with."""
    scattered = row["users"] if row["clusters"] == "scattered" else 0
    return [1.0, row["users"], row["workers"] - 1, row["bytes"], scattered][: len(NAMES[row["case"]])]


def fitted(case: str, rows: list[Row]) -> Row:
    """Fit the model without the largest size; say its errors there, and what it predicts."""
    from scipy.optimize import nnls

    largest = max(row["users"] for row in rows)
    seen = [row for row in rows if row["users"] < largest]
    cpu = np.array([min(row["cpu"]) for row in seen])
    weights, _ = nnls(np.array([features(row) for row in seen]) / cpu[:, None], np.ones(len(seen)))
    held = [row for row in rows if row["users"] == largest]
    errors = [float(np.dot(weights, features(row)) / min(row["cpu"]) - 1) for row in held]
    coefficients = dict(zip(NAMES[case], map(float, weights), strict=True))
    result: Row = {
        "case": f"{case}, model", "held_out_users": largest, "held_out_errors": [round(one, 3) for one in errors],
        "coefficients": coefficients,
    }  # fmt: skip
    if case == "shards":
        cores = max(row["at_once"] for row in rows)
        result["predicted_seconds"] = {
            clusters: predicted(coefficients, cores, clusters == "scattered") for clusters in workload.BOTH
        }
        result["predicted_for"] = f"{USERS_THERE:.0e} users, {NODES} nodes, {NODES * cores} shards"
    return result


def predicted(coefficients: dict[str, float], cores: int, scattered: bool) -> float:
    """Return the seconds of a billion users on a hundred nodes; ``scattered``: all their peers are elsewhere."""
    crossed = scattered * USERS_THERE * CROSSING_BYTES
    each = coefficients["user"] + scattered * coefficients["scattered"]
    at_work = USERS_THERE * each + crossed * coefficients["byte"]
    alone = coefficients["start"] + (NODES * cores - 1) * coefficients["worker"]
    return round(alone + at_work / NODES / cores + crossed / NODES / NETWORK, 1)


if __name__ == "__main__":
    import sys

    from benchmarks.command import command_line

    command_line(sys.modules[__name__], USERS)
