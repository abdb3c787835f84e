"""``python -m benchmarks.sidebyside``: the same exchange in this project and in other simulators.

Writes JSON to stdout, and with --out a folder with the JSON, a table in Markdown, and a plot.  Every system runs in an
environment of its own, made from its lock (``locks/``) where it does not exist yet; SimGrid is Debian's
``python3-simgrid``.  Each size runs at least twice with one seed, and up to five times where runs are short; the run
that took the least CPU counts, as other work of the machine can only add to it.  A system goes on to ten times the
users until a run takes longer than --seconds, holds half of the free memory, fails, or --most is reached.  What the
folder has about systems that are not chosen stays.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from benchmarks.measure import json_only, machine
from benchmarks.sidebyside import tables
from benchmarks.sidebyside.systems import SYSTEMS, Failed, Measured, System, interpreter, measure

SEED = 7
SMALLEST = 1_000
MOST_RUNS = 5
ENOUGH_SECONDS = 10.0
"""CPU seconds after which a size is not run again."""
JSON = "side-by-side.json"

HOPELESS = 1.25
"""How much longer than it may a run must be expected to take, from a tenth of its users, not to be tried."""


def rows(system: System, environments: Path, most: int, seconds: float) -> list[dict[str, Any]]:
    """Measure one system at growing sizes; the last row says why it ended where it failed."""
    found: list[dict[str, Any]] = []
    try:
        python = interpreter(system, environments)
    except Failed as error:
        return [{"system": system.name, "users": 0, "failed": str(error)}]
    users = SMALLEST
    while users <= most:
        print(f"{system.name}: {users} users", file=sys.stderr, flush=True)
        try:
            runs = repeated(system, python, users, seconds)
        except Failed as error:
            return [*found, {"system": system.name, "users": users, "failed": str(error)}]
        outcome = [run.outcome for run in runs]
        best = min(outcome, key=lambda one: one.cpu)
        found.append(
            {
                "system": system.name,
                "users": users,
                "messages_per_cpu_second": round(best.messages / best.cpu),
                "runs": len(runs),
                "most_cpu_of_least": round(max(one.cpu for one in outcome) / best.cpu, 2),
                "wall_seconds": round(min(one.wall for one in outcome), 4),
                "start_cpu_seconds": round(min(one.start_cpu for one in outcome), 2),
                "peak_bytes": max(run.peak for run in runs),
                "identical": len({one.digest for one in outcome}) == 1,
                "digest": outcome[0].digest,
                "load": round(os.getloadavg()[0], 1),
                "peers": outcome[0].peers,
            }
        )
        users *= 10
        if users <= most and best.cpu * 10 > HOPELESS * seconds:
            why = f"not run: ten times {best.cpu:.0f} CPU s is well over {seconds:g}"
            return [*found, {"system": system.name, "users": users, "failed": why}]
    return found


def repeated(system: System, python: str, users: int, seconds: float) -> list[Measured]:
    """Run one size twice, and again, up to five times, until enough CPU time is spent.  Raises Failed."""
    runs: list[Measured] = []
    spent = 0.0
    while len(runs) < 2 or (len(runs) < MOST_RUNS and spent < ENOUGH_SECONDS):
        runs.append(measure(system, python, users, SEED, seconds))
        spent += runs[-1].outcome.start_cpu + runs[-1].outcome.cpu
    return runs


def main() -> None:
    """Read the command line, measure, and write."""
    about = (__doc__ or "").splitlines()[0]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sidebyside", description=about)
    parser.add_argument(
        "--system", action="append", help="one of the systems, or a part of its name; default all"
    )
    parser.add_argument("--most", type=lambda text: int(float(text)), default=10**8, help="users at most")
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="a run's limit in CPU seconds, its start included"
    )
    parser.add_argument("--environments", type=Path, default=Path.home() / ".cache" / "p2p-sim-sidebyside")
    parser.add_argument("--out", type=Path, help="a folder for the JSON, the table and the plot")
    given = parser.parse_args()
    chosen = [one for one in SYSTEMS if any(part in one.name for part in given.system or [""])]
    if not chosen:
        parser.error(f"--system {given.system[0]}: there are {'; '.join(one.name for one in SYSTEMS)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the program under way is ended, too
    with json_only() as write:
        result: dict[str, Any] = {"machine": machine(), "rows": kept(given.out, chosen)}
        for one in chosen:
            result["rows"] += rows(one, given.environments, given.most, given.seconds)
            if given.out:
                save(result, given.out)
        write(json.dumps(result, indent=1) + "\n")


def kept(folder: Path | None, chosen: list[System]) -> list[dict[str, Any]]:
    """Return what an earlier call has left in the folder about systems that are not measured now."""
    if folder is None or not (folder / JSON).exists():
        return []
    again = {one.name for one in chosen}
    return [row for row in json.loads((folder / JSON).read_text())["rows"] if row["system"] not in again]


def save(result: dict[str, Any], folder: Path) -> None:
    """Write the JSON, the table and the plot, systems in their usual order."""
    order = [one.name for one in SYSTEMS]
    result["rows"].sort(key=lambda row: (order.index(row["system"]), row["users"]))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / JSON).write_text(json.dumps(result, indent=1) + "\n")
    (folder / "side-by-side.md").write_text(tables.markdown(result))
    tables.plot(result, folder / "side-by-side.svg")


if __name__ == "__main__":
    main()
