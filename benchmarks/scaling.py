"""How cost grows with users, threads, shards and nodes, and a model of it, tested on sizes that it was not fitted to.

``p2p-sim bench scaling`` measures Algorithm 2 with clusters of consecutive users (hardly a message leaves its shard)
and of scattered users (nearly all do).  The nodes are Ray's, all on this machine: what they send each other goes
through its network stack.

Rows are of *strong* scaling (one size, more workers) and of *weak* scaling (users in proportion to workers, where there
are cores for them): medians of pairs measured in turn, by the clock and in CPU seconds of all processes.

The model is of CPU seconds.  It is fitted to the least of each setting, as other work of the machine can only add to
them; by least squares of relative errors, with no coefficient below 0:

    threads:  CPU = start + users * user + (threads - 1) * worker
    shards:   CPU = start + users * user + (shards - 1) * worker + bytes * byte + scattered users * scattered
    nodes:    the same + (nodes - 1) * node + bytes between nodes * byte_between_nodes

``bytes``: what goes from process to process; ``scattered``: the additional cost of users whose cluster is scattered.
The largest size is held out, and the errors there are reported; of nodes, a second fit holds out the largest number of
them.

The model then predicts the seconds of a billion users on a hundred nodes like this machine, all of whose cores are busy
all the time.  Start, workers and nodes take their time one after the other; users and bytes are divided among the cores
of all nodes; and bytes between nodes also go over a network, whose speed is assumed, as there is one machine here.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

import p2p_sim
from benchmarks import workload
from benchmarks.command_line import command_line
from benchmarks.measure import Cost, Timed, interleaved, machine, timed, tree_timed

USERS = 10_000_000
CASES = ("threads", "shards", "nodes")
WORKERS = (1, 2, 4)
HALVINGS = (4, 3, 2, 1, 0)
"""How often the given number of users is halved; the largest size is held out."""

SPREAD = ((1, 1), (2, 1), (4, 1), (2, 2), (4, 2), (4, 4))
"""Shards, and the nodes that they are spread over evenly."""

STORE_BYTES = 2 << 30
"""The object stores of all nodes together."""

NODES = 100
USERS_THERE = 10**9
NETWORK = 10e9 / 8
"""Bytes a second into each node: 10 Gbit/s."""

CROSSING_BYTES = 2 * 9
"""For a user whose peer is elsewhere: a question and an answer, each with an id, a place and a label at most."""

Row = dict[str, Any]


def main(users: int, cases: tuple[str, ...], repeat: int, progress: Callable[[str, int, int], None]) -> Row:
    """Measure, fit and predict; ``users``: the largest size."""
    rows: list[Row] = []
    for done, case in enumerate(cases):
        progress(case, done, len(cases))
        costs = measure(case, users, repeat)
        rows += [*costs, *(over_nodes if case == "nodes" else scaling)(case, costs), fitted(case, costs)]
    return {"machine": machine(), "rows": rows}


def measure(case: str, users: int, repeat: int) -> list[Row]:
    """Measure one backend at all sizes, numbers of workers and kinds of clusters, in turn; return a row a setting.

    A row lists its costs by round.  Costs of one round are comparable: they were measured one after the other, except
    that each cluster of nodes has rounds of its own.
    """
    from p2p_sim.backends.ray_session import session

    cores = len(os.sched_getaffinity(0))
    if case == "nodes":
        return [
            row for nodes in sorted({nodes for _, nodes in SPREAD}) for row in on_nodes(users, nodes, repeat)
        ]
    if case == "threads":
        workers, where = [each for each in WORKERS if each <= cores], contextlib.nullcontext()
    else:
        workers, where = list(WORKERS), session(None, max(WORKERS), STORE_BYTES)
    with where:
        return measured(case, users, [(each, 1) for each in workers], repeat)


def on_nodes(users: int, nodes: int, repeat: int) -> list[Row]:
    """Measure shards that are spread over nodes of Ray, each with an object store and a scheduler of its own."""
    rows: list[Row] = []
    for shards in sorted({shards for shards, there in SPREAD if there == nodes}):
        with cluster(nodes, shards // nodes) as address:
            rows += measured("nodes", users, [(shards, nodes)], repeat, address)
    return rows


@contextlib.contextmanager
def cluster(nodes: int, cpus: int) -> Iterator[str]:
    """Run a Ray cluster on this machine and give its address; ``cpus``: of each node, one for each of its shards."""
    from ray.cluster_utils import Cluster

    from p2p_sim.backends.ray_session import session

    each = {"num_cpus": cpus, "object_store_memory": STORE_BYTES // nodes}
    there = Cluster(initialize_head=True, head_node_args=each | {"include_dashboard": False})
    try:
        for _ in range(nodes - 1):
            there.add_node(**each)
        there.wait_for_nodes()
        with session(there.address, nodes * cpus, STORE_BYTES):
            yield there.address
    finally:
        there.shutdown()


def measured(
    case: str, users: int, places: Sequence[tuple[int, int]], repeat: int, address: str | None = None
) -> list[Row]:
    """Measure all sizes with each of ``places`` (workers, nodes), in turn; return a row a setting."""
    cores = len(os.sched_getaffinity(0))
    clock = timed if case == "threads" else tree_timed
    rows: list[Row] = []
    timers: list[Timed] = []
    for size in (users >> halved for halved in HALVINGS):
        for clusters in workload.BOTH if case != "threads" else workload.BOTH[:1]:
            population = workload.population(size, clusters, max(size // 40, 2))
            for workers, nodes in places:
                rows.append(setting(case, size, workers, nodes, clusters, cores))
                timers.append(clock(partial(one, case, population, workers, address)))
    interleaved(timers[-len(places) :], 1, lambda: None)  # loads kernels, starts actors
    costs = interleaved(timers, repeat, lambda: None)
    return [with_costs(row, each) for row, each in zip(rows, costs, strict=True)]


def one(case: str, population: p2p_sim.Population, workers: int, address: str | None) -> p2p_sim.Run:
    """Run once; ``workers``: threads or shards."""
    how: dict[str, Any] = (
        {"threads": workers}
        if case == "threads"
        else {"backend": "shards", "shards": workers, "address": address}
    )
    return p2p_sim.run(workload.PROTOCOL, population, seed=workload.SEED, digest=False, **how)


def setting(case: str, users: int, workers: int, nodes: int, clusters: str, cores: int) -> Row:
    """Return the columns of a setting, with the bytes between processes and, of these, between nodes."""
    apart = 0.0 if clusters == "contiguous" or case == "threads" else users * CROSSING_BYTES
    return {
        "case": case, "users": users, "workers": workers, "nodes": nodes, "at_once": min(workers, cores),
        "clusters": clusters, "bytes": round(apart * (1 - 1 / workers)),
        "bytes_between_nodes": round(apart * (1 - 1 / nodes)),
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
    """Return rows of strong scaling at the largest size, and of weak scaling where each worker has a core."""
    by = {(row["clusters"], row["users"], row["workers"]): row for row in rows}
    largest, found = max(users for _, users, _ in by), []

    def row_of(kind: str, clusters: str, workers: int, alone: int) -> Row:
        many, single = by[clusters, largest, workers], by[clusters, alone, 1]
        columns = {"users": largest, "workers": workers, "clusters": clusters}
        wall, cpu = (
            statistics.median(a / b for a, b in zip(many[clock], single[clock], strict=True))
            for clock in ("wall", "cpu")
        )
        ratios = {"wall_ratio": round(wall, 3), "cpu_per_user_ratio": round(cpu * alone / largest, 3)}
        return {"case": f"{case}, {kind}"} | columns | ratios

    for row in (row for row in rows if row["users"] == largest and row["workers"] > 1):
        found.append(row_of("strong", row["clusters"], row["workers"], largest))
        if row["workers"] == row["at_once"]:  # there is a core for each
            found.append(row_of("weak", row["clusters"], row["workers"], largest // row["workers"]))
    return found


def over_nodes(case: str, rows: list[Row]) -> list[Row]:
    """Return the cost of the largest size on several nodes, divided by that of as many shards on one; least of each."""
    largest = max(row["users"] for row in rows)
    least = {
        (row["clusters"], row["workers"], row["nodes"]): (min(row["wall"]), min(row["cpu"]))
        for row in rows
        if row["users"] == largest
    }
    found = []
    for (clusters, workers, nodes), (wall, cpu) in least.items():
        one_wall, one_cpu = least[clusters, workers, 1]
        if nodes > 1:
            columns = {"users": largest, "workers": workers, "nodes": nodes, "clusters": clusters}
            ratios = {"wall_ratio": round(wall / one_wall, 3), "cpu_per_user_ratio": round(cpu / one_cpu, 3)}
            found.append({"case": f"{case}, over one"} | columns | ratios)
    return found


NAMES = {
    "threads": ("start", "user", "worker"),
    "shards": ("start", "user", "worker", "byte", "scattered"),
    "nodes": ("start", "user", "worker", "byte", "scattered", "node", "byte_between_nodes"),
}
"""The coefficients, CPU seconds each."""


def features(row: Row) -> list[float]:
    """Return what the model's coefficients are multiplied with."""
    scattered = row["users"] if row["clusters"] == "scattered" else 0
    of = [
        1.0,
        row["users"],
        row["workers"] - 1,
        row["bytes"],
        scattered,
        row["nodes"] - 1,
        row["bytes_between_nodes"],
    ]
    return of[: len(NAMES[row["case"]])]


def fitted(case: str, rows: list[Row]) -> Row:
    """Return the model fitted without the largest size, with its errors there; of nodes, also what it predicts."""
    largest = max(row["users"] for row in rows)
    coefficients, errors = held_out(case, rows, lambda row: row["users"] == largest)
    result: Row = {
        "case": f"{case}, model", "held_out_users": largest, "held_out_errors": errors, "coefficients": coefficients,
    }  # fmt: skip
    if case == "nodes":
        most = max(row["nodes"] for row in rows)
        result["held_out_nodes"] = most
        result["errors_at_these_nodes"] = held_out(case, rows, lambda row: row["nodes"] == most)[1]
        cores = max(row["at_once"] for row in rows)
        result["predicted_seconds"] = {
            clusters: predicted(coefficients, cores, clusters == "scattered") for clusters in workload.BOTH
        }
        result["predicted_for"] = f"{USERS_THERE:.0e} users, {NODES} nodes, {NODES * cores} shards"
    return result


def held_out(
    case: str, rows: Sequence[Row], held: Callable[[Row], bool]
) -> tuple[dict[str, float], list[float]]:
    """Fit the model to the rows that are not held out; return its coefficients, and relative errors at the others."""
    from scipy.optimize import nnls

    seen = [row for row in rows if not held(row)]
    cpu = np.array([min(row["cpu"]) for row in seen])
    weights, _ = nnls(np.array([features(row) for row in seen]) / cpu[:, None], np.ones(len(seen)))
    errors = [float(np.dot(weights, features(row)) / min(row["cpu"]) - 1) for row in rows if held(row)]
    return dict(zip(NAMES[case], map(float, weights), strict=True)), [round(each, 3) for each in errors]


def predicted(coefficients: dict[str, float], cores: int, scattered: bool) -> float:
    """Return the seconds of a billion users on a hundred nodes; ``scattered``: all their peers are elsewhere."""
    crossed = scattered * USERS_THERE * CROSSING_BYTES
    each = coefficients["user"] + scattered * coefficients["scattered"]
    at_work = USERS_THERE * each + crossed * (coefficients["byte"] + coefficients["byte_between_nodes"])
    alone = (
        coefficients["start"]
        + (NODES * cores - 1) * coefficients["worker"]
        + (NODES - 1) * coefficients["node"]
    )
    return round(alone + at_work / NODES / cores + crossed / NODES / NETWORK, 1)


if __name__ == "__main__":
    command_line(sys.modules[__name__], USERS)
