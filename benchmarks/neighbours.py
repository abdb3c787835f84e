"""How long exact label shares of nearest neighbours take, and the losses that follow from them.

``python -m benchmarks.neighbours --users 200000 --json`` is the target's size: a made table as Census-Income has it, 33
categories and 7 numbers, 510 columns after encoding, and one neighbour for 200 people.  Memory is that of the process,
the table included.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

import p2p_sim
from benchmarks import measure
from benchmarks.command_line import command_line
from p2p_sim.leakage import estimated_loss, nearest_neighbours

Progress = Callable[[str, int, int], None]

USERS, CATEGORIES, NUMBERS = 200_000, 33, 7
CASES = ("losses",)
TARGETS: dict[str, dict[str, float]] = {"losses": {"seconds": 180.0, "peak_mib": 4096.0}}


def table(users: int) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """Make a table whose rows gather: each category is that of one of 40 kinds of people, or any."""
    rng = np.random.default_rng(1)
    kind = rng.integers(0, 40, users)
    sizes = [3] * 8 + [8] * 10 + [20] * 10 + [40] * 4 + [39]
    x = np.zeros((users, sum(sizes) + NUMBERS), np.float32)
    at = 0
    for size in sizes:
        usual = rng.integers(0, size, 40)[kind]
        values = np.where(rng.uniform(size=users) < 0.8, usual, rng.integers(0, size, users))
        x[np.arange(users), at + values] = 1
        at += size
    x[:, at:] = rng.normal(size=(users, NUMBERS)) + kind[:, None] / 20
    return x, (rng.uniform(size=users) < 0.02 + kind / 200).astype(np.int64)


def main(users: int, cases: tuple[str, ...], repeat: int, progress: Progress | None) -> dict[str, Any]:
    """Measure the chosen cases; return machine and rows.  Raises InputError for bad arguments."""
    for name in cases:
        if name not in CASES:
            raise p2p_sim.InputError(f"no case {name!r}; known are {', '.join(CASES)}")
    if users < 2000 or repeat < 1:
        raise p2p_sim.InputError(f"users = {users}, repeat = {repeat}: give at least 2000 users and 1 repeat")
    rows = []
    for case in dict.fromkeys(cases):
        x, y = table(users)
        k = max(10, users // 200)
        with measure.environment("P2P_SIM_NUMBA", "1"):
            nearest_neighbours.label_shares(x[:2000], y[:2000], 10)  # loads the compiled loops
            measure.reset_peak()
            costs = []
            for done in range(repeat):
                costs.append(measure.timed(lambda: estimated_loss.of_rows(x, y, k))())  # noqa: B023  # called at once
                if progress is not None:
                    progress(case, done + 1, repeat)
        row: dict[str, Any] = {
            "case": case, "users": users, "k": k, "columns": x.shape[1],
            "seconds": round(statistics.median(cost.wall for cost in costs), 3),
            "cpu_seconds": round(statistics.median(cost.cpu for cost in costs), 3),
            "peak_mib": round(measure.peak_memory() / (1 << 20), 1),
        }  # fmt: skip
        reached = all(row[name] <= most for name, most in TARGETS[case].items())
        rows.append(row | {"target": TARGETS[case], "reached": reached})
    return {"machine": measure.machine(), "rows": rows}


if __name__ == "__main__":
    command_line(sys.modules[__name__], USERS)
