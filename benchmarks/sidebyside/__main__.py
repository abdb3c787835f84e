"""``python -m benchmarks.sidebyside``: the same exchange in this project and in other simulators.

Writes JSON to stdout, and with --out a folder with the JSON, a table in Markdown, and a plot.  Every system runs in an
environment of its own, made from its lock (``locks/``) where it does not exist yet; SimGrid is Debian's
``python3-simgrid``.  Each size runs twice with one seed; a system goes on to ten times the users until a run takes
longer than --seconds, fails, or --most is reached.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any

from benchmarks.measure import json_only, machine
from benchmarks.sidebyside import tables
from benchmarks.sidebyside.systems import SYSTEMS, Failed, System, interpreter, measure

SEED = 7
SMALLEST = 1_000


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
            runs = [measure(system, python, users, SEED, seconds) for _ in range(2)]
        except Failed as error:
            return [*found, {"system": system.name, "users": users, "failed": str(error)}]
        outcome = [run.outcome for run in runs]
        cpu = statistics.median(one.cpu for one in outcome)
        found.append(
            {
                "system": system.name,
                "users": users,
                "messages_per_cpu_second": round(outcome[0].messages / cpu),
                "wall_seconds": round(statistics.median(one.wall for one in outcome), 4),
                "start_cpu_seconds": round(statistics.median(one.start_cpu for one in outcome), 2),
                "peak_bytes": max(run.peak for run in runs),
                "identical": len({one.digest for one in outcome}) == 1,
                "peers": outcome[0].peers,
            }
        )
        users *= 10
    return found


def main() -> None:
    """Read the command line, measure, and write."""
    about = (__doc__ or "").splitlines()[0]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sidebyside", description=about)
    parser.add_argument(
        "--system", action="append", help="one of the systems, or a part of its name; default all"
    )
    parser.add_argument("--most", type=lambda text: int(float(text)), default=10**8, help="users at most")
    parser.add_argument("--seconds", type=float, default=60.0, help="a run's limit, its start included")
    parser.add_argument("--environments", type=Path, default=Path.home() / ".cache" / "p2p-sim-sidebyside")
    parser.add_argument("--out", type=Path, help="a folder for the JSON, the table and the plot")
    given = parser.parse_args()
    chosen = [one for one in SYSTEMS if any(part in one.name for part in given.system or [""])]
    if not chosen:
        parser.error(f"--system {given.system[0]}: there are {'; '.join(one.name for one in SYSTEMS)}")
    with json_only() as write:
        result = {
            "machine": machine(),
            "rows": [
                row for one in chosen for row in rows(one, given.environments, given.most, given.seconds)
            ],
        }
        if given.out:
            given.out.mkdir(parents=True, exist_ok=True)
            (given.out / "side-by-side.json").write_text(json.dumps(result, indent=1) + "\n")
            (given.out / "side-by-side.md").write_text(tables.markdown(result))
            tables.plot(result, given.out / "side-by-side.svg")
        write(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
