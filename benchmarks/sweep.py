"""What a sweep of small runs costs, by run, and whether one that is killed comes to the same table.

``python -m benchmarks.sweep --runs 200 --cases digits,killed --json``.  Runs on digits, by two workers, from the shell
to the finished table; CPU seconds count every process.  ``alone``: the same runs one after the other in this process,
with nothing but the run itself: the rest is what a sweep adds, the start of its processes included.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import measure
from benchmarks.command_line import command_line
from p2p_sim import InputError
from p2p_sim.rundir import sweep_files

Progress = Callable[[str, int, int], None]
Row = dict[str, Any]

RUNS = 200
CASES = ("digits", "killed")
WORKERS = 2
_SECONDS = 0.5
"""A run, by the clock and on two cores."""

_ALPHAS, _EPSILONS = (0.05, 0.1, 0.15, 0.2, 0.3), (0.5, 1.0, 1.5, 2.0, 3.0)
_SETTINGS = len(_ALPHAS) + len(_EPSILONS)


def main(
    runs: int = RUNS, cases: tuple[str, ...] = CASES, repeat: int = 1, progress: Progress | None = None
) -> dict[str, Any]:
    """Measure the chosen cases; return the machine and one row a case.  Raises InputError for bad arguments.

    ``runs``: how many, a multiple of 10.  ``progress`` is called with (case, cases done, cases in all).
    """
    for name in cases:
        if name not in CASES:
            raise InputError(f"no case {name!r}; known are {', '.join(CASES)}")
    if runs < _SETTINGS or runs % _SETTINGS or repeat < 1:
        raise InputError(
            f"runs = {runs}, repeat = {repeat}: give a multiple of {_SETTINGS}, and at least 1 repeat"
        )
    rows: list[Row] = []
    for done, name in enumerate(each for each in CASES if each in cases):
        if progress is not None:
            progress(name, done, len(cases))
        for _ in range(repeat):
            with tempfile.TemporaryDirectory() as folder:  # a sweep keeps the runs that its folder has
                (Path(folder) / "grid.toml").write_text(_grid(runs // _SETTINGS))
                rows.append({"digits": _digits, "killed": _killed}[name](runs, Path(folder)))
    return {"machine": measure.machine(), "rows": rows}


def _grid(seeds: int) -> str:
    """Return a file of runs: so many seeds of each setting."""
    return f"""
data = "digits"
clusters = 9
split_seed = 0
seed = {list(range(seeds))}

[[grid]]
protocol = "peer-to-peer"
alpha = {list(_ALPHAS)}

[[grid]]
protocol = "randomized-response"
epsilon = {list(_EPSILONS)}
"""


def _words(out: str) -> list[str]:
    return [
        sys.executable, "-m", "p2p_sim.cli", "sweep", "grid.toml", "--workers", str(WORKERS), "--out", out
    ]  # fmt: skip


def _digits(runs: int, folder: Path) -> Row:
    """Measure a sweep, and its runs alone."""
    cost = measure.command_cost(_words("whole"), folder)
    alone = _alone(runs // _SETTINGS)
    figures = {
        "cpu_a_run": cost.cpu / runs, "wall_a_run": cost.wall / runs, "cpu_alone": alone / runs,
        "added": (cost.cpu - alone) / runs,
    }  # fmt: skip
    target = {"cpu_a_run": _SECONDS * WORKERS, "wall_a_run": _SECONDS}
    reached = all(figures[name] <= most for name, most in target.items())
    rounded = {name: round(value, 4) for name, value in figures.items()}
    return {
        "case": "digits",
        "runs": runs,
        "workers": WORKERS,
        **rounded,
        "target": target,
        "reached": reached,
    }


def _alone(seeds: int) -> float:
    """Return the CPU seconds of the runs of the grid in this process, in one thread."""
    from threadpoolctl import threadpool_limits

    from p2p_sim.learning import data_split, experiment
    from protocols import PeerToPeer, RandomizedResponse

    protocols = [*map(PeerToPeer, _ALPHAS), *map(RandomizedResponse, _EPSILONS)]
    data = data_split.read(protocols[0], "digits")
    with threadpool_limits(1):
        experiment.learn(protocols[0], data, clusters=9, seed=0, split_seed=0, threads=1, progress=False)
        begun = time.process_time()
        for protocol in protocols:
            for seed in range(seeds):
                experiment.learn(
                    protocol, data, clusters=9, seed=seed, split_seed=0, threads=1, progress=False
                )
        return time.process_time() - begun


def _killed(runs: int, folder: Path) -> Row:
    """Kill a sweep when a third of its runs are kept, give it again, and compare its table with a whole one's."""
    import pandas

    measure.command_cost(_words("whole"), folder)
    sweep = subprocess.Popen(
        _words("cut"), cwd=folder, env=measure.from_checkout(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )  # fmt: skip
    kept = folder / "cut" / sweep_files.RUNS
    while sweep.poll() is None and _lines(kept) < runs // 3:
        time.sleep(0.01)
    os.kill(sweep.pid, signal.SIGKILL)
    sweep.wait()
    before = _lines(kept)
    measure.command_cost(_words("cut"), folder)
    one, other = (pandas.read_parquet(folder / name / sweep_files.TABLE) for name in ("whole", "cut"))
    figures = {"kept": before, "made": _lines(kept), "equal": one.equals(other)}
    reached = figures["equal"] and before < runs == figures["made"]
    return {
        "case": "killed",
        "runs": runs,
        "workers": WORKERS,
        **figures,
        "target": {"equal": True},
        "reached": reached,
    }


def _lines(file: Path) -> int:
    return file.read_bytes().count(b"\n") if file.exists() else 0


if __name__ == "__main__":
    command_line(sys.modules[__name__], RUNS, "runs")
