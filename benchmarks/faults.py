"""What a run that loses something costs, by hand: it kills, and prints JSON.

``python -m benchmarks.faults nodes [KILLS [USERS]]``: three nodes of one machine, of which one, or the process of a
shard, is killed in each phase in turn.  Every other run is that of `p2p-sim run --users N --backend shards`, in which
shards make their users, and write outputs and trace.  The others have users in memory, and save nothing.
``python -m benchmarks.faults drivers [KILLS [USERS]]``: `p2p-sim run` is killed at random times, and resumed on others.
``python -m benchmarks.faults checkpoints [USERS]``: what writing at every round's border what is under way would take,
beside computing it again.
"""

from __future__ import annotations

import json
import math
import os
import pickle
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import p2p_sim
from benchmarks import workload
from benchmarks.measure import json_only, machine, tree
from p2p_sim.backends.local import LocalSite
from p2p_sim.core.errors import InputError
from p2p_sim.learning import experiment
from p2p_sim.run import Run

_HEALTH = {
    "health_check_initial_delay_ms": 0, "health_check_period_ms": 200, "health_check_timeout_ms": 1000,
    "health_check_failure_threshold": 3,
}  # fmt: skip
"""How Ray looks for dead nodes; with its own settings it takes up to 15 s to notice one."""

_AGAIN = "starting again"
"""What a run reports before it is computed again."""

_PLACES = ([], ["--backend", "shards", "--shards", "2"], ["--backend", "shards", "--shards", "3"])

_NOT_YET = ("making users", "preparing")
"""Phases in which a run has nothing that a node or a shard could take with it."""


def nodes(kills: int, users: int) -> dict[str, Any]:
    """Kill a node or a shard in each phase; return the runs that differ and the times over the undisturbed one.

    A run is equal if its digest is, and every file that it has saved but those of messages.  One that begins when the
    cluster has too few processors left for its shards is refused, and not counted.  A ratio is of the seconds that were
    not spent on noticing the loss, which are told beside it.
    """
    from ray.cluster_utils import Cluster

    head = {
        "num_cpus": 1,
        "include_dashboard": False,
        "_system_config": _HEALTH,
        "object_store_memory": 200 << 20,
    }
    cluster = Cluster(initialize_head=True, head_node_args=head)
    small = {"num_cpus": 1, "object_store_memory": 200 << 20}
    others = [cluster.add_node(**small) for _ in range(2)]
    cases = {"by shards, saved": _by_shards, "in memory": _in_memory}
    rows: list[dict[str, Any]] = []
    try:
        _timed(_in_memory, users, cluster.address, Killing(""))  # Ray is slow at first
        for number in range(kills):
            case, turn = list(cases)[number % len(cases)], number // len(cases)
            whole = _timed(cases[case], users, cluster.address, Killing(""))
            phases = [each for each in whole.phases if each not in _NOT_YET]
            phase, what = phases[turn % len(phases)], ("node", "shard")[turn // len(phases) % 2]
            killing = Killing(phase, random.Random(number).uniform(0, whole.phases[phase]))
            if what == "node":
                lost = others.pop(0)
                killing.kill = lambda lost=lost: cluster.remove_node(lost, allow_graceful=False)  # type: ignore[misc]
            else:
                killing.kill = lambda number=number: _kill_shard(number)  # type: ignore[misc]
            done = _timed(cases[case], users, cluster.address, killing)
            killing.wait()
            rows.append({
                "users": case, "phase": phase, "after_seconds": round(killing.after, 2), "what": what,
                "killed": math.isfinite(killing.killed) and not done.refused, "refused": done.refused,
                "equal": (done.digest, done.files) == (whole.digest, whole.files), "files": len(done.files),
                "noticed": done.lost, "seconds": round(done.seconds, 2),
                "detection_seconds": round(killing.detection, 2), "undisturbed_seconds": round(whole.seconds, 2),
                "ratio": round((done.seconds - killing.detection) / whole.seconds, 2),
            })  # fmt: skip
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
            if what == "node":
                others.append(cluster.add_node(**small))
                cluster.wait_for_nodes()
    finally:
        cluster.shutdown()
    noticed = [row for row in rows if row["noticed"]]
    ratios = [row["ratio"] for row in noticed] or [1.0]
    return {
        "machine": machine(), "users": users, "kills": sum(row["killed"] for row in rows),
        "equal": sum(row["killed"] and row["equal"] for row in rows),
        "refused": sum(bool(row["refused"]) for row in rows), "phases": _by_phase(rows, "users"),
        "noticed": len(noticed), "median_ratio": statistics.median(ratios), "largest_ratio": max(ratios),
        "largest_detection_seconds": max((row["detection_seconds"] for row in rows), default=0.0), "rows": rows,
    }  # fmt: skip


@dataclass
class Killing:
    """Reports progress, and kills once, ``after`` seconds into a phase; ``kill`` returns False if nothing was there."""

    phase: str
    after: float = 0.0
    kill: Callable[[], bool | None] | None = None
    begun: dict[str, float] = field(default_factory=dict)
    killed: float = math.inf
    noticed: float = -math.inf
    clock: threading.Timer | None = None

    @property
    def detection(self) -> float:
        """The seconds between the kill and the repeat; 0 where the run ended without one."""
        return max(0.0, self.noticed - self.killed)

    def __call__(self, label: str, _done: int, _total: int) -> None:
        """Note when the phase began first; start the clock when it is the one."""
        if label == _AGAIN:
            self.noticed = time.perf_counter()
            return
        phase = label.partition(" (")[0]  # behind it stand the speeds of this run
        if phase and phase not in self.begun:
            self.begun[phase] = time.perf_counter()
            if phase == self.phase and self.kill is not None:
                self.clock = threading.Timer(self.after, self._kill)
                self.clock.start()

    def wait(self) -> None:
        """Wait for a kill that is still to come: the run was quicker than the undisturbed one."""
        if self.clock is not None:
            self.clock.join()

    def _kill(self) -> None:
        assert self.kill is not None
        begun = time.perf_counter()
        if self.kill() is not False:
            self.killed = begun

    def phases(self, end: float) -> dict[str, float]:
        """Return the seconds of each phase; the last one includes the end of the run."""
        times = [*self.begun.values(), end]
        return {label: times[i + 1] - times[i] for i, label in enumerate(self.begun)}


@dataclass(frozen=True)
class Done:
    """A run: its digest, seconds, how often it was computed again, the seconds of its phases, and what it has saved.

    ``files``: SHA-256 by name, of all but messages, which follow the shards; ``refused``: why it did not begin.
    """

    digest: str | None
    seconds: float
    lost: int
    phases: dict[str, float]
    files: dict[str, str]
    refused: str = ""


def _by_shards(users: int, folder: Path, **how: Any) -> Run:
    """Run as `p2p-sim run --users N` does."""
    return experiment.simulate(
        workload.PROTOCOL,
        users,
        cluster_size=1000,
        seed=workload.SEED,
        trace="sample=1000",
        out=folder,
        **how,
    )


def _in_memory(users: int, _folder: Path, **how: Any) -> Run:
    people = workload.population(users, "scattered", 1000)
    return p2p_sim.run(workload.PROTOCOL, people, seed=workload.SEED, **how)


def _timed(case: Callable[..., Run], users: int, address: str, killing: Killing) -> Done:
    with tempfile.TemporaryDirectory() as scratch, warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        folder, begun = Path(scratch, "run"), time.perf_counter()
        try:
            run = case(users, folder, backend="shards", shards=3, address=address, progress=killing)
        except InputError as error:
            if killing.kill is None:
                raise
            return Done(None, time.perf_counter() - begun, 0, {}, {}, str(error))
        end = time.perf_counter()
        files = _files(folder) if folder.exists() else {}
    again = sum("computed again" in str(each.message) for each in said)
    return Done(run.digest, end - begun, again, killing.phases(end), files)


def _kill_shard(number: int) -> bool:
    """Kill the process of one shard of this program's own cluster, and of no other on this machine, if there is one."""
    found = []
    for pid in tree():
        try:
            if Path("/proc", str(pid), "cmdline").read_bytes().startswith(b"ray::SiteActor"):
                found.append(pid)
        except OSError:  # it has ended meanwhile
            continue
    if found:
        os.kill(sorted(found)[number % len(found)], signal.SIGKILL)
    return bool(found)


def _by_phase(rows: list[dict[str, Any]], where: str) -> dict[str, dict[str, int]]:
    """Count kills by phase, for each value of a column."""
    found: dict[str, Counter[str]] = {}
    for row in rows:
        if row["killed"]:
            found.setdefault(row[where], Counter())[row["phase"]] += 1
    return {name: dict(counts) for name, counts in found.items()}


def drivers(kills: int, users: int) -> dict[str, Any]:
    """Kill ``p2p-sim run`` at random times and resume it elsewhere; return how many runs are equal in every output.

    A kill falls at any time of as long as an undisturbed run takes at that place; the log says in which phase that was.
    Runs that come to their end before are left out of the count.
    """
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        _command(root, "first", users, []).wait()  # compiles its loops, once on a machine
        seconds = [_undisturbed(root, f"whole{number}", users, where) for number, where in enumerate(_PLACES)]
        rows: list[dict[str, Any]] = []
        for number in range(3 * kills):
            if sum(row["killed"] for row in rows) == kills:
                break
            name, chance = f"run{number}", random.Random(number)
            first, then = _PLACES[number % 3], _PLACES[(number + 1 + number // 3 % 2) % 3]
            run, after = _command(root, name, users, first), chance.uniform(0, seconds[number % 3])
            _wait_until_asked(root, name, run)
            time.sleep(after)
            run.kill()
            killed = run.wait() == -signal.SIGKILL
            phase = phase_of((root / f"{name}.log").read_text())
            words = [*then, *([] if then else ["--backend", "local"])]
            named = (root / name).exists()  # whole before it could say so
            resumed = killed and not named and _run(root, "run", "--resume", name, *words) == 0
            rows.append({
                "after_seconds": round(after, 2), "of_seconds": round(seconds[number % 3], 2), "phase": phase,
                "began_on": " ".join(first) or "local", "resumed_on": then if killed else None,
                "killed": killed, "whole": named, "resumed": resumed, "equal": _same(root / "whole0", root / name),
                "left": sorted(each.name for each in root.glob(f"{name}.*") if each.suffix != ".log"),
            })  # fmt: skip
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    return {
        "machine": machine(), "users": users, "killed": sum(row["killed"] for row in rows),
        "equal": sum(row["killed"] and row["equal"] for row in rows), "phases": _by_phase(rows, "began_on"),
        "rows": rows,
    }  # fmt: skip


def _undisturbed(root: Path, name: str, users: int, where: list[str]) -> float:
    """Run to the end; return the seconds from the moment when the run could go on."""
    run = _command(root, name, users, where)
    _wait_until_asked(root, name, run)
    begun = time.monotonic()
    if run.wait():
        raise RuntimeError(f"{name} ended with exit status {run.returncode}")
    return time.monotonic() - begun


def _wait_until_asked(root: Path, name: str, run: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 60
    while run.poll() is None and not list(root.glob(f"{name}.partial-*/asked.json")):
        if time.monotonic() > until:
            raise RuntimeError(f"{name} did not begin")
        time.sleep(0.01)


def phase_of(log: str) -> str:
    """Return in which phase a run was when its log ended; ``log``: its lines of JSON, the last of which may be cut."""
    phase = "not begun"
    for line in log.splitlines(keepends=True):
        about = json.loads(line) if line.endswith("\n") else {"event": ""}
        if about["event"] == "phase":
            phase = about["phase"]
        elif about["event"] == "round":
            phase = f"after round {about['round']} of {about['role']}"
        elif about["event"] in ("started", "finished"):
            phase = about["event"]
    return phase


def _command(root: Path, name: str, users: int, where: list[str]) -> subprocess.Popen[bytes]:
    asked = ["--users", str(users), "--trace", "sample=1000", "--seed", str(workload.SEED), "--out", name]
    asked += ["--log", f"{name}.log"]
    words = ["run", "peer-to-peer", *asked, *where]
    return subprocess.Popen(
        [sys.executable, "-m", "p2p_sim.cli", *words], cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )  # fmt: skip


def _run(root: Path, *words: str) -> int:
    command = [sys.executable, "-m", "p2p_sim.cli", *words]
    return subprocess.run(
        command, cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
    ).returncode


def _same(one: Path, other: Path) -> bool:
    """Whether two runs have the same digest, and the same files but for messages, which follow the shards."""
    if not all((each / "run.json").exists() for each in (one, other)):
        return False
    digests = {json.loads((each / "run.json").read_text())["digest"] for each in (one, other)}
    return len(digests) == 1 and _files(one) == _files(other)


def _files(run: Path) -> dict[str, str]:
    """Return the SHA-256 of each file of a run but those of messages."""
    sums = json.loads((run / "run.json").read_text())["sha256"]
    return {name: found for name, found in sums.items() if not name.startswith("messages/")}


def checkpoints(users: int) -> dict[str, Any]:
    """Write what is under way at each round's border; return what that takes beside the rounds themselves.

    It is less than a checkpoint: where a program stands is a generator, and no part of it.
    """
    people = workload.population(users, "contiguous")
    plain, taken, sizes = [], [], []
    honest = LocalSite.start
    p2p_sim.run(
        workload.PROTOCOL, workload.population(250_000, "contiguous"), seed=workload.SEED
    )  # loads the loops
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        spent: list[tuple[float, int]] = []

        def start(self: LocalSite, *given: Any) -> Any:
            found = honest(self, *given)
            begun = time.perf_counter()
            file = Path(folder, f"{len(spent)}")
            with file.open("wb") as stream:
                pickle.dump(self.site._mail, stream, protocol=5)
                stream.flush()
                os.fsync(stream.fileno())
            spent.append((time.perf_counter() - begun, file.stat().st_size))
            file.unlink()
            return found

        for _ in range(5):
            plain.append(_seconds(people))
            spent.clear()
            LocalSite.start = start  # type: ignore[method-assign]
            try:
                _seconds(people)
            finally:
                LocalSite.start = honest  # type: ignore[method-assign]
            taken.append(sum(each for each, _ in spent))
            sizes.append(sum(each for _, each in spent))
    again = statistics.median(plain)
    write = statistics.median(taken)
    return {
        "machine": machine(), "users": users, "rounds_seconds": round(again, 3), "write_seconds": round(write, 3),
        "write_over_rounds": round(write / again, 2), "bytes_a_user": round(statistics.median(sizes) / users, 1),
    }  # fmt: skip


def _seconds(people: Any) -> float:
    begun = time.perf_counter()
    p2p_sim.run(workload.PROTOCOL, people, seed=workload.SEED)
    return time.perf_counter() - begun


_SIZE = {"nodes": 3_000_000, "drivers": 1_000_000, "checkpoints": 10_000_000}
_KILLS = {"nodes": 30, "drivers": 20}

if __name__ == "__main__":
    with json_only() as write_out:
        verb, *numbers = sys.argv[1:]
        given = [int(float(each)) for each in numbers]
        if verb == "checkpoints":
            result = checkpoints(*given or (_SIZE[verb],))
        else:
            kills, size, *_ = [*given, *(_KILLS[verb], _SIZE[verb])[len(given) :]]
            result = {"nodes": nodes, "drivers": drivers}[verb](kills, size)
        write_out(json.dumps(result, indent=1) + "\n")
