"""How things are measured: interleaved pairs, CPU time of a process tree, memory of a fresh process."""

from __future__ import annotations

import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
_TICK = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Cost:
    """Seconds of CPU (of every process involved) and of wall clock."""

    cpu: float
    wall: float


Timed = Callable[[], Cost]


def timed(work: Callable[[], Any]) -> Timed:
    """Make a measurement of work that stays in this process; its CPU time counts every thread."""

    def measure() -> Cost:
        cpu, wall = time.process_time(), time.perf_counter()
        work()
        return Cost(time.process_time() - cpu, time.perf_counter() - wall)

    return measure


def tree_timed(work: Callable[[], Any]) -> Timed:
    """Make a measurement of work that other processes share, which this one has started."""

    def measure() -> Cost:
        cpu, wall = tree_cpu(), time.perf_counter()
        work()
        seconds = time.perf_counter() - wall
        return Cost(tree_cpu() - cpu, seconds)

    return measure


def interleaved(timers: list[Timed], repeat: int, step: Callable[[], None]) -> list[list[Cost]]:
    """Measure each ``repeat`` times in turn, so that all meet the same noise; one list a timer."""
    rounds = []
    for _ in range(repeat):
        rounds.append([timer() for timer in timers])
        step()
    return [list(column) for column in zip(*rounds, strict=True)]


def ratio(floor: list[Cost], engine: list[Cost], clock: str) -> float:
    """Return the median, over pairs, of the floor's time over the engine's: above 1 the engine is faster."""
    pairs = zip(floor, engine, strict=True)
    return float(statistics.median(getattr(a, clock) / getattr(b, clock) for a, b in pairs))


def tree(root: int | None = None) -> list[int]:
    """Return the process ids of this process, or of another, and of all its descendants."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has ended meanwhile
                continue
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found = [root or os.getpid()]
    for pid in found:  # which grows
        found += children.get(pid, [])
    return found


def held(pid: int) -> int:
    """Return the bytes of memory of a process, of pages that it shares its part; 0 if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return 1024 * next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def tree_cpu(root: int | None = None) -> float:
    """Return the CPU seconds so far of this process, all its descendants, and those of them that have ended.

    Read from each process's CPU clock (nanoseconds; /proc/PID/stat counts in ticks of 10 ms).
    """
    total = 0.0
    for pid in tree(root):
        try:
            fields = Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()
            total += time.clock_gettime((~pid << 3) | 2) + (int(fields[13]) + int(fields[14])) / _TICK
        except OSError:
            continue
    return total


def from_checkout() -> dict[str, str]:
    """Return the environment of commands that run this checkout's code, and keep what they compile of it."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPATH": str(ROOT)}


def command_cost(command: Sequence[str], folder: Path) -> Cost:
    """Run a command in a folder until it ends; return its CPU seconds, with those of its own children, and wall.

    Raises RuntimeError with what it said if it fails.
    """
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        list(command), cwd=folder, capture_output=True, text=True, check=False, env=from_checkout()
    )
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with status {done.returncode}:\n{done.stderr}")
    return Cost(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, wall)


@contextmanager
def environment(name: str, value: str) -> Iterator[None]:
    """Set an environment variable for a while."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


@contextmanager
def json_only() -> Iterator[Callable[[str], None]]:
    """Send whatever is printed here, and by Ray's processes, to stderr; yields a writer to stdout."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)

    def write(text: str) -> None:
        with os.fdopen(os.dup(kept), "w") as stream:
            stream.write(text)

    try:
        yield write
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


def memory_now() -> int:
    """Return the bytes this process has in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE


def reset_peak() -> None:
    """Forget this process's peak memory, so that the next peak is that of what follows."""
    Path("/proc/self/clear_refs").write_text("5")


def peak_memory() -> int:
    """Return this process's peak memory in bytes, since its start or since ``reset_peak``."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def in_fresh_process(module: str, *arguments: object) -> int:
    """Run ``python -m module arguments`` from the repository; return the number it prints."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with status {done.returncode}:\n{done.stderr}")
    return int(done.stdout)


def machine() -> dict[str, Any]:
    """Say what this was measured on."""
    known = [line.partition(":")[2].strip() for line in _cpu_info() if line.startswith("model name")]
    names = ("numpy", "numba", "ray")
    return {
        "cpu": known[0] if known else platform.processor() or platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * _PAGE / 2**30, 1),
        "load": round(
            os.getloadavg()[0], 1
        ),  # processes at work in the last minute; more than cores: others' too
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in names},
    }


def as_text(result: dict[str, Any]) -> str:
    """Return a result as JSON, one row a line; ``command``, if there is one, is what was asked for."""
    rows = ",\n  ".join(json.dumps(row) for row in result["rows"])
    asked = f' "command": {json.dumps(result["command"])},\n' if "command" in result else ""
    return f'{{"machine": {json.dumps(result["machine"])},\n{asked} "rows": [\n  {rows}\n ]}}\n'


def _cpu_info() -> list[str]:
    try:
        return Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return []
