"""How long the best attacks on counts of labels take: medians, of what a learner's view says of each of ``users``.

``python -m benchmarks.attack --json``.  ``bags`` are label proportions in bags of 64 and 512, ``noisy`` the same with
Laplace noise, ``crowd`` the shuffled labels of all users together, ``peers`` Algorithm 2 in clusters of 1,000.  The run
itself is not measured.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import p2p_sim
from benchmarks import measure
from benchmarks.command_line import command_line
from p2p_sim import InputError, Population
from p2p_sim.core.protocol import Protocol
from p2p_sim.privacy.registered import known
from protocols import EncryptedShuffle, LabelProportions, LaplaceLabelProportions, PeerToPeer

Progress = Callable[[str, int, int], None]

USERS = 1_000_000
SEED = 7
CASES = ("bags", "noisy", "crowd", "peers")
JOBS: tuple[tuple[str, str, float, Protocol], ...] = (
    ("bags", "bags of 64", 20.0, LabelProportions(64)),
    ("bags", "bags of 512", 240.0, LabelProportions(512)),
    ("noisy", "bags of 64, epsilon = 1", 20.0, LaplaceLabelProportions(1.0, 64)),
    ("noisy", "bags of 512, epsilon = 1", 240.0, LaplaceLabelProportions(1.0, 512)),
    ("crowd", "everybody shuffled, epsilon = 1", 60.0, EncryptedShuffle(1.0, over="everybody")),
    ("peers", "clusters of 1,000, alpha = 0.2", 240.0, PeerToPeer(0.2)),
)
"""(case, setting, limit in seconds, protocol)."""


def main(users: int, cases: tuple[str, ...], repeat: int, progress: Progress | None) -> dict[str, Any]:
    """Measure the cases; return machine and rows."""
    unknown = sorted(set(cases) - set(CASES))
    if unknown:
        raise InputError(f"unknown cases {unknown}; known are {CASES}")
    ones = np.random.default_rng(SEED).beta(0.5, 2.0, users)
    y = np.random.default_rng(SEED + 1).random(users) < ones
    eta, cluster = np.stack([1 - ones, ones], axis=1), np.arange(users) // 1000
    people, apart = Population.from_arrays(y=y), Population.from_arrays(y=y, cluster=cluster)
    jobs = [job for job in JOBS if job[0] in cases]
    rows = []
    for done, (case, setting, limit, protocol) in enumerate(jobs):
        if progress is not None:
            progress(f"{case}, {setting}", done, len(jobs))
        run = p2p_sim.run(protocol, apart if case == "peers" else people, seed=SEED, trace="full")
        view, attack = run.view("learner"), known(protocol).attack
        assert attack is not None
        seconds = []
        for _ in range(repeat):
            start = time.perf_counter()
            attack(protocol, view, eta)
            seconds.append(time.perf_counter() - start)
        median = statistics.median(seconds)
        row = {"case": case, "setting": setting, "seconds": round(median, 3), "target": {"seconds": limit}}
        rows.append(row | {"reached": median <= limit})
    return {"machine": measure.machine(), "rows": rows}


if __name__ == "__main__":
    command_line(sys.modules[__name__], USERS)
