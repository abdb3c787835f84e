"""How long the accountant takes: medians, with all caches empty at each repeat.

``python -m benchmarks.account --json``.  ``users`` is the cluster size of the largest cases (1e6 in the targets).
"""

from __future__ import annotations

import math
import statistics
import sys
import time
from collections.abc import Callable
from functools import _lru_cache_wrapper
from importlib.util import find_spec
from typing import Any

from benchmarks import measure
from benchmarks.command_line import command_line
from p2p_sim import InputError, Population, privacy
from protocols import PeerToPeer, RandomizedResponse

Progress = Callable[[str, int, int], None]

USERS = 1_000_000
CASES = ("epsilon", "calibrate", "table", "compose", "enumerate")
DELTA = 1e-6
VIEWS = ("learner", "user", "learner+user", "learner+3*user", "wire", "learner+wire")


def main(users: int, cases: tuple[str, ...], repeat: int, progress: Progress | None) -> dict[str, Any]:
    """Measure the cases; return machine and rows."""
    unknown = sorted(set(cases) - set(CASES))
    if unknown:
        raise InputError(f"unknown cases {unknown}; known are {CASES}")
    jobs = [job for job in _jobs(users) if job[0] in cases]
    rows = []
    for done, (case, setting, limit, work) in enumerate(jobs):
        if progress is not None:
            progress(f"{case}, {setting}", done, len(jobs))
        seconds = [_timed(work) for _ in range(repeat)]
        median = statistics.median(seconds)
        row = {"case": case, "setting": setting, "seconds": round(median, 5), "target": {"seconds": limit}}
        rows.append(row | {"reached": median <= limit})
    if "compose" in cases and find_spec("dp_accounting") is not None:  # a dependency of the tests alone
        rows.append(_against_another(repeat))
    peak = measure.peak_memory() / 2**30
    rows.append({"case": "memory", "setting": "whole process", "peak_gib": round(peak, 3), "target": {"peak_gib": 1.0},
                 "reached": peak <= 1.0})  # fmt: skip
    return {"machine": measure.machine(), "rows": rows}


def _jobs(users: int) -> list[tuple[str, str, float, Callable[[], Any]]]:
    """Return (case, setting, limit in seconds, work)."""

    def epsilon(alpha: float, theta: float, size: int) -> Callable[[], Any]:
        return lambda: privacy.profile(PeerToPeer(alpha, theta), cluster_size=size).epsilon(DELTA)

    def calibrated() -> Any:
        return privacy.calibrate(
            PeerToPeer, vary="alpha", theta=1.0, cluster_size=100_000, epsilon=1.0, delta=DELTA
        ).value

    def table() -> Any:
        protocol = PeerToPeer(0.1, 0.1)
        return [privacy.profile(protocol, view, cluster_size=users).epsilon(DELTA) for view in VIEWS]

    def composed() -> Any:
        one = privacy.profile(RandomizedResponse(1.0), cluster_size=1)
        return privacy.composed(one, 50).epsilon(DELTA)

    def enumerated() -> Any:
        people = Population.from_arrays(y=[False, True, False])
        return privacy.enumerate_view(PeerToPeer(0.25, 0.5), people, view="learner+user").delta(0.5)

    jobs: list[tuple[str, str, float, Callable[[], Any]]] = []
    for alpha in (0.1, 0.2, 0.4):
        jobs.append(("epsilon", f"n = 10,000, theta = 1, alpha = {alpha}", 0.05, epsilon(alpha, 1.0, 10_000)))
        jobs.append(
            ("epsilon", f"n = {users:,}, theta = 0.1, alpha = {alpha}", 2.0, epsilon(alpha, 0.1, users))
        )
    jobs.append(("calibrate", "alpha, n = 100,000, theta = 1", 5.0, calibrated))
    jobs.append(("table", f"six views, n = {users:,}, alpha = 0.1, theta = 0.1", 10.0, table))
    jobs.append(("compose", "randomized response, epsilon 1, 50 times", 0.05, composed))
    jobs.append(("enumerate", "peer-to-peer, 3 users, learner+user", 10.0, enumerated))
    return jobs


def _against_another(repeat: int) -> dict[str, Any]:
    """Compare with dp-accounting: randomized response, 50 times, both timed in turn."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    def theirs() -> Any:
        return pld.from_randomized_response(2 / (1 + math.e), 2).self_compose(50).get_epsilon_for_delta(DELTA)

    def ours() -> Any:
        return privacy.composed(privacy.profile(RandomizedResponse(1.0)), 50).epsilon(DELTA)

    ratios = [_timed(theirs) / _timed(ours) for _ in range(repeat + 1)][1:]  # the first imports
    ratio = statistics.median(ratios)
    setting = "randomized response, 50 times: dp-accounting's time over ours"
    return {
        "case": "compose",
        "setting": setting,
        "ratio": round(ratio, 2),
        "target": {"ratio": 1.0},
        "reached": ratio >= 1,
    }


def _timed(work: Callable[[], Any]) -> float:
    _forget()
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _forget() -> None:
    """Empty every cache of the accountant."""
    for name, module in list(sys.modules.items()):
        if name.startswith("p2p_sim.privacy"):
            for value in list(vars(module).values()):
                if isinstance(value, _lru_cache_wrapper):
                    value.cache_clear()


if __name__ == "__main__":
    command_line(sys.modules[__name__], USERS)
