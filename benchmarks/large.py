"""What whole commands among 10^8 and 10^9 users take, and that the number of blocks changes nothing.

``python -m benchmarks.large --users 1e8 --cases local,shards,tenfold --json``.  Peer-to-peer with theta = 0.1 in
clusters of 1,000, from the shell to the finished folder.  ``local``: ``--users`` users; ``shards``: the same on two
shards; ``tenfold``: ten times as many, population not saved, beside as many as in ``local``, and again in 1,000
and in 3,000 blocks.  ``peak``: GiB that the command and all its processes held together, looked at often; pages that
processes share count once.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import measure
from benchmarks.command_line import command_line
from p2p_sim import InputError

Progress = Callable[[str, int, int], None]
Row = dict[str, Any]

USERS = 100_000_000
CASES = ("local", "shards", "tenfold")
CLUSTER_SIZE = 1000
BLOCKS = (1000, 3000)
_APART = ("--no-population", "--seed", str((1 << 62) + 7))  # a small seed might be guessed
_WALL, _PEAK = 15.0, 2.1
_PEAK_OF_SHARDS, _PEAK_OF_TENFOLD, _TIMES = 4.0, 16.0, 11.0


@dataclass(frozen=True)
class Taken:
    """Seconds by the clock and of CPU, the peak of memory in GiB, and the digest of the run."""

    wall: float
    cpu: float
    peak: float
    digest: str


def main(
    users: int = USERS, cases: tuple[str, ...] = CASES, repeat: int = 3, progress: Progress | None = None
) -> dict[str, Any]:
    """Measure the chosen cases; return the machine and one row a case.  Raises InputError for bad arguments.

    ``repeat``: how often those of ``users`` users are run; ten times as many run once.  ``progress`` is called with
    (case, cases done, cases in all).
    """
    for name in cases:
        if name not in CASES:
            raise InputError(f"no case {name!r}; known are {', '.join(CASES)}")
    if users < CLUSTER_SIZE or repeat < 1:
        raise InputError(
            f"users = {users}, repeat = {repeat}: give at least {CLUSTER_SIZE} users and 1 repeat"
        )
    rows: list[Row] = []
    chosen = [name for name in CASES if name in cases]
    with tempfile.TemporaryDirectory() as folder:
        for done, name in enumerate(chosen):
            if progress is not None:
                progress(name, done, len(chosen))
            case = {"local": _local, "shards": _shards, "tenfold": _tenfold}[name]
            rows.append(case(users, Path(folder), repeat))
    return {"machine": measure.machine(), "rows": rows}


def _local(users: int, folder: Path, repeat: int) -> Row:
    found = [_taken(users, folder) for _ in range(repeat)]
    return _row("local", users, found, {"wall": _WALL, "peak": _PEAK})


def _shards(users: int, folder: Path, repeat: int) -> Row:
    found = [_taken(users, folder, "--backend", "shards", "--shards", "2") for _ in range(repeat)]
    return _row("shards", users, found, {"wall": _WALL, "peak": _PEAK_OF_SHARDS})


def _tenfold(users: int, folder: Path, _: int) -> Row:
    few, many = _taken(users, folder, *_APART), _taken(10 * users, folder, *_APART)
    again = [_taken(10 * users, folder, *_APART, "--blocks", str(count)) for count in BLOCKS]
    found = _row(
        "tenfold", 10 * users, [many], {"times_a_tenth": _TIMES, "peak": _PEAK_OF_TENFOLD},
        {"times_a_tenth": many.wall / few.wall, "digests": len({each.digest for each in (many, *again)})},
    )  # fmt: skip
    return found | {
        "wall_in_blocks": {count: round(each.wall, 3) for count, each in zip(BLOCKS, again, strict=True)}
    }


def _row(
    case: str,
    users: int,
    found: Sequence[Taken],
    target: dict[str, float],
    more: dict[str, float] | None = None,
) -> Row:
    figures: dict[str, float] = {
        "wall": statistics.median(each.wall for each in found),
        "cpu": statistics.median(each.cpu for each in found),
        "peak": max(each.peak for each in found),
        "digests": len({each.digest for each in found}),
        **(more or {}),
    }
    shown = {name: round(value, 3) for name, value in figures.items()}
    reached = all(figures[name] <= most for name, most in {**target, "digests": 1}.items())
    return {"case": case, "users": users, **shown, "target": target, "reached": reached}


def _taken(users: int, folder: Path, *more: str) -> Taken:
    """Run the command; raises RuntimeError with what it said if it fails."""
    words = [
        sys.executable, "-m", "p2p_sim.cli", "run", "peer-to-peer", "--theta", "0.1", "--users", str(users),
        "--cluster-size", str(CLUSTER_SIZE), "--out", "run", "--force", *more,
        *([] if "--seed" in more else ["--seed", "7"]),
    ]  # fmt: skip
    peak, cpu, begun = 0, 0.0, time.perf_counter()
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(words, cwd=folder, env=measure.from_checkout(), stdout=said, stderr=said)
        while (ended := os.wait4(process.pid, os.WNOHANG))[0] == 0:
            peak = max(peak, sum(map(measure.held, measure.tree(process.pid))))
            cpu = max(cpu, measure.tree_cpu(process.pid))  # of Ray's processes, too, whom nobody waits for
            time.sleep(0.1)
        wall, (_, status, used) = time.perf_counter() - begun, ended
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            raise RuntimeError(f"{' '.join(words)} ended with status {process.returncode}:\n{said.read()}")
    digest = json.loads((folder / "run" / "run.json").read_text())["digest"]
    return Taken(wall, max(cpu, used.ru_utime + used.ru_stime), peak / 2**30, digest)


if __name__ == "__main__":
    command_line(sys.modules[__name__], USERS)
