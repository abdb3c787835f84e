"""How long an audit takes, beside the engine alone running the same worlds; and how much of epsilon it finds.

``python -m benchmarks.audit --trials 100000 --cases learner,response --repeat 3 --json`` has the size of the targets.
A ratio is the engine's time over the audit's, median over interleaved pairs: 1 if the audit added nothing.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from typing import Any

import p2p_sim
from benchmarks import measure
from benchmarks.command_line import command_line
from benchmarks.measure import Timed
from p2p_sim import privacy
from p2p_sim.coalition import Coalition
from p2p_sim.privacy.auditing.worlds import Situation, users_a_batch
from protocols import PeerToPeer, RandomizedResponse

Progress = Callable[[str, int, int], None]

TRIALS = 20_000
"""Worlds a label by default, for a quick look."""

TARGET_TRIALS = 100_000
SIZE, DELTA = 1000, 1e-3
VIEWS = ("learner", "learner+user", "user", "wire")
CASES = (*VIEWS, "response")
RESPONSES = 1_000_000


def main(trials: int, cases: tuple[str, ...], repeat: int, progress: Progress | None) -> dict[str, Any]:
    """Measure the chosen cases; return machine and rows.  Raises InputError for bad arguments.

    ``trials``: worlds of 1,000 users a label.  ``progress`` is called with (case, measurements done, in all).
    """
    for name in cases:
        if name not in CASES:
            raise p2p_sim.InputError(f"no case {name!r}; known are {', '.join(CASES)}")
    if trials < 100 or repeat < 1:
        raise p2p_sim.InputError(
            f"trials = {trials}, repeat = {repeat}: give at least 100 trials and 1 repeat"
        )
    jobs = [(view, theta) for view in VIEWS if view in cases for theta in (1.0, 0.5)]
    rows, total, done = list[dict[str, Any]](), len(jobs) * repeat + ("response" in cases), 0
    for view, theta in jobs:

        def step(view: str = view) -> None:
            nonlocal done
            done += 1
            if progress is not None:
                progress(f"audit of {view}", done, total)

        rows.append(_peer_to_peer(view, theta, trials, repeat, step))
    if "response" in cases:
        rows.append(_response())
        if progress is not None:
            progress("audit of randomized response", total, total)
    return {"machine": measure.machine(), "rows": [_judged(row) for row in rows]}


def _peer_to_peer(
    view: str, theta: float, trials: int, repeat: int, step: Callable[[], None]
) -> dict[str, Any]:
    """Measure audits of Algorithm 2, each followed by the engine alone with the same batches."""
    protocol = PeerToPeer(0.1, theta)
    privacy.audit(protocol, view, cluster_size=SIZE, delta=DELTA, trials=100)  # loads and compiles
    measure.reset_peak()
    audit = measure.timed(
        lambda: privacy.audit(protocol, view, cluster_size=SIZE, delta=DELTA, trials=trials)
    )
    audits, engine = measure.interleaved([audit, _engine(protocol, view, trials)], repeat, step)
    figures = {
        "seconds": statistics.median(cost.wall for cost in audits),
        "engine_seconds": statistics.median(cost.wall for cost in engine),
        "ratio_cpu": measure.ratio(engine, audits, "cpu"),
        "ratio_wall": measure.ratio(engine, audits, "wall"),
        "peak_gib": measure.peak_memory() / 2**30,
    }
    target = (
        {"seconds": 30.0 * trials / TARGET_TRIALS, "ratio_cpu": 0.6, "peak_gib": 1.0}
        if view == "learner"
        else {}
    )
    return (
        {"case": view, "theta": theta, "cluster_size": SIZE, "trials": trials} | figures | {"target": target}
    )


def _engine(protocol: PeerToPeer, view: str, trials: int) -> Timed:
    """Return the measurement of the engine alone: the worlds and batches of the audit, with no message kept."""
    situation = Situation(protocol, Coalition.parse(view, protocol.roles()), SIZE, SIZE // 2)
    most = users_a_batch(protocol, SIZE, trials) // SIZE
    counts = [min(most, 2 * trials - first) for first in range(0, 2 * trials, most)]
    worlds = {count: situation.population(count) for count in set(counts)}

    def work() -> None:
        for seed, count in enumerate(counts):
            p2p_sim.run(protocol, worlds[count], seed=seed, digest=False)

    return measure.timed(work)


def _response() -> dict[str, Any]:
    """Measure the lower bound that an audit finds of randomized response with epsilon = 1."""
    audits: list[privacy.Audit] = []
    work = measure.timed(
        lambda: audits.append(privacy.audit(RandomizedResponse(1.0), delta=0.0, trials=RESPONSES))
    )
    figures = {"seconds": work().wall, "lower": audits[0].lower, "target": {"lower": 0.99}}
    return {"case": "response", "trials": RESPONSES} | figures


def _judged(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with whether it reaches its targets: at most those for seconds and memory, at least the others."""
    ceilings = ("seconds", "peak_gib")
    reached = [row[k] <= v if k in ceilings else row[k] >= v for k, v in row["target"].items()]
    row["reached"] = all(reached) if reached else None
    return {name: round(value, 4) if isinstance(value, float) else value for name, value in row.items()}


if __name__ == "__main__":
    command_line(sys.modules[__name__], TRIALS, "trials")
