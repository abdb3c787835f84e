"""The systems, the environments they need, and one run of one of them in processes of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
import venv
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import ROOT, held, tree, tree_cpu
from benchmarks.sidebyside import outcomes

LOCKS = Path(__file__).parent / "locks"
PROGRAMS = "benchmarks.sidebyside.programs"
IDLE = 10
"""How many times its CPU seconds a run may take by the clock: the machine may be busy, and programs may wait."""


@dataclass(frozen=True)
class System:
    """One row of the table.

    ``program``: a module of ``programs``; ``more``: what it is given beside users, seed and folder.  ``lock``: the file
    of ``locks`` that makes its environment, None for this one, "system" for the interpreter of the distribution.
    """

    name: str
    program: str
    lock: str | None = None
    more: tuple[str, ...] = ()


SYSTEMS = (
    System("p2p-sim, one thread", "p2p_sim_engine", more=("one-thread",)),
    System("p2p-sim, all threads", "p2p_sim_engine", more=("threads",)),
    System("p2p-sim, two shards", "p2p_sim_engine", more=("shards",)),
    System("p2p-sim, full trace", "p2p_sim_engine", more=("traced",)),
    System("p2p-sim, whole run folder", "p2p_sim_engine", more=("folder",)),
    System("numpy floor", "numpy_floor"),
    System("plain Python", "plain_python"),
    System("Mesa", "mesa_agents", "mesa"),
    System("SimPy", "simpy_stores", "simpy"),
    System("SimGrid", "simgrid_actors", "system"),
    System("pfl-research", "pfl_users", "pfl"),
    System("Flower", "flower_clients", "flower"),
)


class Failed(Exception):
    """A run ended with an error, took too long, or its outcome is not the exchange."""


@dataclass(frozen=True)
class Measured:
    """One run: its outcome, and the peak of what all its processes held together, in bytes."""

    outcome: outcomes.Outcome
    peak: int


def interpreter(system: System, environments: Path) -> str:
    """Return the system's Python; make its environment from its lock where there is none yet.  Raises Failed."""
    if system.lock is None:
        return sys.executable
    if system.lock == "system":
        found = subprocess.run(["/usr/bin/python3", "-c", "import simgrid"], capture_output=True, check=False)
        if found.returncode:
            raise Failed("not installed: apt-get install python3-simgrid")
        return "/usr/bin/python3"
    place = environments / system.lock
    python = place / "bin" / "python"
    if not (place / "ready").exists():
        venv.create(place, clear=True, with_pip=True)
        command = [
            str(python),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--requirement",
            str(LOCKS / f"{system.lock}.txt"),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Failed(f"{' '.join(command)}: {done.stderr.strip().splitlines()[-1]}")
        (place / "ready").touch()
    return str(python)


def measure(system: System, python: str, users: int, seed: int, seconds: float) -> Measured:
    """Run a system once, for at most so many CPU seconds and half of the memory that is free.  Raises Failed."""
    with tempfile.TemporaryDirectory() as folder:
        command = [python, "-m", f"{PROGRAMS}.{system.program}", str(users), str(seed), folder, *system.more]
        environment = os.environ | {"PYTHONPATH": str(ROOT), "RAY_USAGE_STATS_ENABLED": "0"}
        with tempfile.TemporaryFile("w+") as told:
            process = subprocess.Popen(
                command, cwd=folder, env=environment, stdout=told, stderr=told, start_new_session=True
            )
            try:
                peak = _watch(process, seconds, _free() // 2)
            finally:
                _kill(process)
            if process.returncode:
                told.seek(0)
                raise Failed(
                    f"status {process.returncode}: {(told.read().strip().splitlines() or ['?'])[-1][:200]}"
                )
        try:
            return Measured(outcomes.read(Path(folder), users), peak)
        except ValueError as error:
            raise Failed(f"not the exchange: {error}") from None


def _watch(process: subprocess.Popen[bytes], seconds: float, memory: int) -> int:
    """Return the peak of the process tree's memory when it has ended.  Raises Failed where it passes a limit.

    Long runs are looked at more rarely, as looking at all processes takes CPU time itself.
    """
    peak, began = 0, time.monotonic()
    while process.poll() is None:
        now = sum(map(held, tree(process.pid)))
        peak = max(peak, now)
        wall = time.monotonic() - began
        if tree_cpu(process.pid) > seconds:
            raise Failed(f"over {seconds:g} CPU s")
        if wall > IDLE * seconds:
            raise Failed(f"over {IDLE * seconds:g} s by the clock")
        if now > memory:
            raise Failed(f"over {memory / 2**30:.0f} GiB")
        time.sleep(min(0.05 + wall / 20, 1.0))
    return peak


def _free() -> int:
    """Return the bytes that new processes can have."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End what is left of a program, with all that it started."""
    for pid in tree(process.pid)[::-1] if process.poll() is None else []:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    process.wait()
