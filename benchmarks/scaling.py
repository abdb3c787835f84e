"""How time grows with users, threads and shards, and a model of it, held against sizes that it has not seen.

``p2p-sim bench scaling`` measures Algorithm 2 with clusters of consecutive users (hardly a message leaves its shard)
and of scattered ones (nearly all do).  Rows: *strong* scaling (one size, more workers) and *weak* (users in proportion
to workers, where there are cores for them), by wall.  The model, fitted to relative errors, coefficients not negative:

    threads:  wall = start + users * (serial + parallel / workers)
    shards:   wall = start + each * shards + users / workers * (parallel + crossing * share that crosses)

``workers``: threads or shards, at most the machine's cores.  The largest size is held out, and its errors are reported.
A prediction for a billion users on a hundred such nodes follows from it; what a network between nodes takes is added
from bytes and bandwidth, as there is one machine here.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import Any

import numpy as np

import p2p_sim
from benchmarks import workload
from benchmarks.measure import Cost, interleaved, machine, timed

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
    """Measure one backend at all sizes, numbers of workers and kinds of clusters: medians of walls, interleaved."""
    from p2p_sim.backends.ray_session import session

    cores = len(os.sched_getaffinity(0))
    where = session(None, max(WORKERS), 2 << 30) if case == "shards" else contextlib.nullcontext()
    rows = []
    with where:
        for size in (users >> halved for halved in HALVINGS):
            for clusters in workload.BOTH if case == "shards" else workload.BOTH[:1]:
                population = workload.population(size, clusters, max(size // 40, 2))
                kinds = [workers for workers in WORKERS if case == "shards" or workers <= cores]
                timers = [timed(one(case, population, workers)) for workers in kinds]
                interleaved(timers, 1, lambda: None)  # loads kernels, starts actors
                costs = interleaved(timers, repeat, lambda: None)
                for workers, cost in zip(kinds, costs, strict=True):
                    rows.append(row(case, size, workers, clusters, cost, cores))
    return rows


def one(case: str, population: p2p_sim.Population, workers: int) -> Callable[[], object]:
    """Return a run with so many threads or shards."""
    how: dict[str, Any] = (
        {"threads": workers} if case == "threads" else {"backend": "shards", "shards": workers}
    )
    return lambda: p2p_sim.run(workload.PROTOCOL, population, seed=workload.SEED, digest=False, **how)


def row(case: str, users: int, workers: int, clusters: str, costs: list[Cost], cores: int) -> Row:
    """Return what was measured of one setting."""
    crossing = 0.0 if clusters == "contiguous" else 1 - 1 / workers
    wall = float(np.median([cost.wall for cost in costs]))
    return {
        "case": case, "users": users, "workers": workers, "at_once": min(workers, cores), "clusters": clusters,
        "crossing": round(crossing, 3), "wall_seconds": wall,
    }  # fmt: skip


def scaling(case: str, rows: list[Row]) -> list[Row]:
    """Return strong scaling at the largest size, and weak where users grow about as workers do."""
    by = {(one["clusters"], one["users"], one["workers"]): one["wall_seconds"] for one in rows}
    largest, found = max(users for _, users, _ in by), []

    def found_one(kind: str, clusters: str, workers: int, alone: int) -> Row:
        ratio = by[clusters, largest, workers] / by[clusters, alone, 1]
        told = {"users": largest, "workers": workers, "clusters": clusters, "wall_ratio": round(ratio, 3)}
        return {"case": f"{case}, {kind}"} | told

    for one in (one for one in rows if one["users"] == largest and one["workers"] > 1):
        found.append(found_one("strong", one["clusters"], one["workers"], largest))
        if one["workers"] == one["at_once"]:  # there is a core for each
            found.append(found_one("weak", one["clusters"], one["workers"], largest // one["workers"]))
    return found


def features(case: str, users: float, workers: float, at_once: float, crossing: float) -> list[float]:
    """Return what the model's coefficients are multiplied with."""
    if case == "threads":
        return [1.0, users, users / at_once]
    return [1.0, workers, users / at_once, users / at_once * crossing]


NAMES = {"threads": ("start", "serial", "parallel"), "shards": ("start", "each", "parallel", "crossing")}


def fitted(case: str, rows: list[Row]) -> Row:
    """Fit the model without the largest size; say its errors there, and what it predicts."""
    from scipy.optimize import nnls

    largest = max(one["users"] for one in rows)
    seen = [one for one in rows if one["users"] < largest]

    def given(one: Row) -> list[float]:
        return features(case, one["users"], one["workers"], one["at_once"], one["crossing"])

    walls = np.array([one["wall_seconds"] for one in seen])
    weights, _ = nnls(np.array([given(one) for one in seen]) / walls[:, None], np.ones(len(seen)))
    held = [one for one in rows if one["users"] == largest]
    errors = [float(np.dot(weights, given(one)) / one["wall_seconds"] - 1) for one in held]
    result: Row = {
        "case": f"{case}, model", "held_out_users": largest, "held_out_errors": [round(one, 3) for one in errors],
        "coefficients": dict(zip(NAMES[case], map(float, weights), strict=True)),
    }  # fmt: skip
    if case == "shards":
        workers = NODES * rows[-1]["at_once"]
        result["predicted_seconds"] = {
            clusters: predicted(weights, workers, crossing)
            for clusters, crossing in (("contiguous", 0.0), ("scattered", 1.0))
        }
        result["predicted_for"] = f"{USERS_THERE:.0e} users, {NODES} nodes, {workers} shards"
    return result


def predicted(weights: np.ndarray, workers: int, crossing: float) -> float:
    """Return the wall of a billion users on a hundred nodes, its network's time included."""
    there = float(np.dot(weights, features("shards", USERS_THERE, workers, workers, crossing)))
    return round(there + crossing * USERS_THERE * CROSSING_BYTES / NODES / NETWORK, 1)


if __name__ == "__main__":
    import sys

    from benchmarks.command import command_line

    command_line(sys.modules[__name__], USERS)
