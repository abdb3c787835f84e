"""Memory of one fresh process, printed in bytes.

``python -m benchmarks.memory beside USERS contiguous|scattered [digest]``: how far a local run takes the
process beyond what it held with the population and the compiled kernels.
``python -m benchmarks.memory whole USERS [traced]``: the peak of ``p2p-sim run peer-to-peer`` from start to end.
"""

from __future__ import annotations

import ctypes
import runpy
import sys
import tempfile
from contextlib import chdir

import p2p_sim
from benchmarks import workload
from benchmarks.measure import json_only, memory_now, peak_memory, reset_peak


def beside(users: int, clusters: workload.Clusters, digest: bool) -> int:
    """Return by how many bytes a local run raises the peak, its outputs included."""
    population = workload.population(users, clusters)
    workload.population.cache_clear()
    for flag in (False, True):  # loads the kernels, in the variant the run will use
        warm = workload.population(250_000, clusters)
        p2p_sim.run(workload.PROTOCOL, warm, seed=workload.SEED, digest=flag)
    workload.population.cache_clear()
    ctypes.CDLL(None).malloc_trim(0)
    reset_peak()
    before = memory_now()
    run = p2p_sim.run(workload.PROTOCOL, population, seed=workload.SEED, digest=digest)
    growth = peak_memory() - before
    assert run.counts
    return growth


def whole(users: int, trace: str) -> int:
    """Return the peak of the command line's run."""
    options: dict[str, object] = {"users": users, "cluster-size": workload.CLUSTER_SIZE, "trace": trace}
    options |= {"alpha": workload.ALPHA, "theta": workload.THETA}
    sys.argv = ["p2p-sim", "run", "peer-to-peer", *(f"--{name}={value}" for name, value in options.items())]
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        try:
            runpy.run_module("p2p_sim.cli", run_name="__main__", alter_sys=True)
        except SystemExit as end:
            if end.code:
                raise
    return peak_memory()


if __name__ == "__main__":
    with json_only() as write:
        verb, users, *rest = sys.argv[1:]
        clusters: workload.Clusters = "scattered" if "scattered" in rest else "contiguous"
        trace = "full" if "traced" in rest else "none"
        size = whole(int(users), trace) if verb == "whole" else beside(int(users), clusters, "digest" in rest)
        write(f"{size}\n")
