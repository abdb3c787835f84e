"""What a command costs from the shell to its finished folder, in CPU and wall, beside the floor.

``python -m benchmarks.command --users 10000000 --cases import,alone,help,thousand,run,threads,growth --json``.  Every
figure is of fresh processes, median of so many: imports, the run, accounting, and writing.  The floor is a process that
imports numpy alone, or, for a run, draws the same users, does Algorithm 2 in plain numpy and saves its columns.
``python -m benchmarks.command floor USERS FOLDER`` is that process.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import p2p_sim
from benchmarks import floor, measure
from benchmarks.command_line import command_line
from benchmarks.measure import command_cost
from p2p_sim.core.population import Population

Progress = Callable[[str, int, int], None]
Row = dict[str, Any]

USERS = 10_000_000
CASES = ("import", "alone", "help", "thousand", "run", "threads", "growth")
SEED, ALPHA, CLUSTER_SIZE = 7, 0.1, 1000
THETA = 1 - 2**-53
"""Of the floor, which draws whether each user reports; the command lets all report."""

_IMPORT_CPU, _ALONE_CPU = 0.4, 0.3
_HELP_CPU, _THOUSAND_CPU, _MOST_CPU, _TENTH_CPU = 0.3, 1.2, 3.0, 2.2
_CPU_OF_ONE = 1.1
WALL_OF_ONE = 0.58
"""Of two threads, in one thread's."""

_NOT_GUESSED = (1 << 62) + SEED
"""A seed that runs without their population take: a small one might be guessed."""
_IMPORTED = [sys.executable, "-c", "import p2p_sim"]
_ONLY_NUMPY = [sys.executable, "-c", "import numpy"]


def main(
    users: int = USERS,
    cases: tuple[str, ...] = CASES,
    repeat: int = 5,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Measure the chosen cases; return the machine and one row a measurement.

    ``users``: of the case "run", which also measures a tenth of them, and of "growth", also a
    hundredth.  ``progress`` is called with (case, cases done, cases in all).  Raises InputError for bad arguments.
    """
    for name in cases:
        if name not in CASES:
            raise p2p_sim.InputError(f"no case {name!r}; known are {', '.join(CASES)}")
    if users < 10 or repeat < 1:
        raise p2p_sim.InputError(f"users = {users}, repeat = {repeat}: give at least 10 users and 1 repeat")
    chosen = [name for name in CASES if name in cases]
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        for done, name in enumerate(chosen, 1):
            if name in ("import", "alone", "help"):
                words, most = {
                    "import": (_IMPORTED, _IMPORT_CPU),
                    "alone": (_our(), _ALONE_CPU),
                    "help": (_our("--help"), _HELP_CPU),
                }[name]
                rows.append(_beside_floor(name, 0, words, _ONLY_NUMPY, here, repeat, most))
            if name == "thousand":
                rows.append(_beside_floor(name, 1000, _run(1000), _ONLY_NUMPY, here, repeat, _THOUSAND_CPU))
            if name == "run":
                for size, most in ((users, _MOST_CPU), (max(10, users // 10), _TENTH_CPU)):
                    plain = [sys.executable, "-m", "benchmarks.command", "floor", str(size), str(here)]
                    rows.append(_beside_floor(name, size, _run(size), plain, here, repeat, most))
            if name == "threads":
                rows.append(_threads(users, here, repeat))
            if name == "growth":
                rows.append(_growth(users, here, repeat))
            if progress is not None:
                progress(name, done, len(chosen))
    return {"machine": measure.machine(), "rows": rows}


def _beside_floor(
    case: str, users: int, ours: list[str], plain: list[str], folder: Path, repeat: int, most: float
) -> Row:
    """Measure a command and its floor in turn."""
    command_cost(ours, folder)  # the first may compile what it imports
    pairs = [(command_cost(ours, folder), command_cost(plain, folder)) for _ in range(repeat)]
    figures = {
        "cpu": statistics.median(one.cpu for one, _ in pairs),
        "wall": statistics.median(one.wall for one, _ in pairs),
        "floor_cpu": statistics.median(other.cpu for _, other in pairs),
        "floor_wall": statistics.median(other.wall for _, other in pairs),
        "times_floor_cpu": statistics.median(one.cpu / other.cpu for one, other in pairs),
    }
    return _row(case, users, {"cpu": most}, figures)


def _threads(users: int, folder: Path, repeat: int) -> Row:
    """Measure the whole command on two threads against one; both must leave the same digest."""
    pairs, digests = [], set[str]()
    for _ in range(repeat):
        costs = []
        for threads in (2, 1):
            costs.append(command_cost([*_run(users), "--threads", str(threads)], folder))
            digests.add(json.loads((folder / "run" / "run.json").read_text())["digest"])
        pairs.append(costs)
    figures = {
        "wall_of_one": statistics.median(two.wall / one.wall for two, one in pairs),
        "cpu_of_one": statistics.median(two.cpu / one.cpu for two, one in pairs),
        "digest_equal": len(digests) == 1,
    }
    return _row("threads", users, {"wall_of_one": WALL_OF_ONE, "cpu_of_one": _CPU_OF_ONE}, figures)


def _growth(users: int, folder: Path, repeat: int) -> Row:
    """Measure how CPU grows with users, from a hundredth of them on, with the start of the command and without."""
    sizes = [max(10, users // 100), max(10, users // 10), users]
    given = ("--theta", "0.1", "--cluster-size", str(min(sizes[0], 100_000)), "--no-population")
    words = [*([*_run(size, _NOT_GUESSED), *given] for size in sizes), _run(10)]
    command_cost(words[0], folder)  # the first may compile what it imports
    rounds = [[command_cost(each, folder).cpu for each in words] for _ in range(repeat)]
    figures = {
        "cpu_of_a_hundredth": statistics.median(each[0] for each in rounds),
        "cpu_of_a_tenth": statistics.median(each[1] for each in rounds),
        "cpu": statistics.median(each[2] for each in rounds),
        "times_a_hundredth": statistics.median(most / least for least, _, most, _ in rounds),
        "times_a_tenth": statistics.median(most / less for _, less, most, _ in rounds),
        "work_times_a_tenth": statistics.median((most - start) / (less - start) if less > start else 0.0
                                                for _, less, most, start in rounds),
    }  # fmt: skip
    return _row(
        "growth", users, {"times_a_hundredth": 100, "times_a_tenth": 10, "work_times_a_tenth": 10}, figures
    )


def _row(case: str, users: int, target: dict[str, float], figures: dict[str, Any]) -> Row:
    shown = {name: round(value, 4) if isinstance(value, float) else value for name, value in figures.items()}
    reached = all(figures[name] <= most for name, most in target.items()) and figures.get(
        "digest_equal", True
    )
    return {"case": case, "users": users, **shown, "target": target, "reached": reached}


def _our(*words: str) -> list[str]:
    return [sys.executable, "-m", "p2p_sim.cli", *words]


def _run(users: int, seed: int = SEED) -> list[str]:
    return _our("run", "peer-to-peer", "--users", str(users), "--seed", str(seed), "--out", "run", "--force")


def plainly(users: int, folder: Path) -> None:
    """Do what the command does, as a script would: draw users, run Algorithm 2, save what it took and gave."""
    people = Population.synthetic(users=users, cluster_size=CLUSTER_SIZE, seed=SEED)
    assert people.clusters is not None
    senders, labels = floor.floor(people, seed=SEED, alpha=ALPHA, theta=THETA)
    columns = {"y": people.y, "cluster": people.clusters.codes, "sender": senders, "label": labels}
    np.savez(folder / "floor.npz", **columns)  # type: ignore[arg-type]


if __name__ == "__main__":
    if sys.argv[1:2] == ["floor"]:
        plainly(int(sys.argv[2]), Path(sys.argv[3]))
    else:
        command_line(sys.modules[__name__], USERS)
