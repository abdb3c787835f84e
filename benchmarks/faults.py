"""What a run that loses something costs, by hand: it kills, and prints JSON.

``python -m benchmarks.faults nodes [KILLS [USERS]]``: three nodes of one machine, of which one, or the process of a
shard, is killed in each phase in turn.
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
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import p2p_sim
from benchmarks import workload
from benchmarks.measure import json_only, machine, tree
from p2p_sim.backends.local import LocalSite

_HEALTH = {
    "health_check_initial_delay_ms": 0, "health_check_period_ms": 200, "health_check_timeout_ms": 1000,
    "health_check_failure_threshold": 3,
}  # fmt: skip
"""How Ray looks for dead nodes; with its own settings it takes up to 15 s to notice one."""

_AGAIN = "starting again"
"""What a run reports before it is computed again."""

_PLACES = ([], ["--backend", "shards", "--shards", "2"], ["--backend", "shards", "--shards", "3"])


def nodes(kills: int, users: int) -> dict[str, Any]:
    """Kill a node or a shard in each phase; return the digests that differ and the times over the undisturbed one.

    A ratio is of the seconds that were not spent on noticing the loss, which are told beside it.
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
    people = workload.population(users, "scattered", 1000)
    rows: list[dict[str, Any]] = []
    try:
        _timed(people, cluster.address, Killing(""))  # Ray is slow at first
        for number in range(kills):
            whole = _timed(people, cluster.address, Killing(""))
            phases = list(whole.phases)
            phase, what = phases[number % len(phases)], ("node", "shard")[number // len(phases) % 2]
            killing = Killing(phase, random.Random(number).uniform(0, whole.phases[phase]))
            if what == "node":
                lost = others.pop(0)
                killing.kill = lambda lost=lost: cluster.remove_node(lost, allow_graceful=False)  # type: ignore[misc]
            else:
                killing.kill = lambda number=number: _kill_shard(number)  # type: ignore[misc]
            done = _timed(people, cluster.address, killing)
            killing.wait()
            rows.append({
                "phase": phase, "after_seconds": round(killing.after, 2), "what": what,
                "killed": math.isfinite(killing.killed),
                "equal": done.digest == whole.digest, "noticed": done.lost, "seconds": round(done.seconds, 2),
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
        "equal": sum(row["equal"] for row in rows),
        "noticed": len(noticed), "median_ratio": statistics.median(ratios), "largest_ratio": max(ratios),
        "largest_detection_seconds": max((row["detection_seconds"] for row in rows), default=0.0), "rows": rows,
    }  # fmt: skip


@dataclass
class Killing:
    """Reports progress, and kills once, ``after`` seconds into a phase."""

    phase: str
    after: float = 0.0
    kill: Callable[[], object] | None = None
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
        self.killed = time.perf_counter()
        self.kill()

    def phases(self, end: float) -> dict[str, float]:
        """Return the seconds of each phase; the last one includes the end of the run."""
        times = [*self.begun.values(), end]
        return {label: times[i + 1] - times[i] for i, label in enumerate(self.begun)}


@dataclass(frozen=True)
class Done:
    """A run: its digest, seconds, how often it was computed again, and the seconds of its phases."""

    digest: str | None
    seconds: float
    lost: int
    phases: dict[str, float]


def _timed(people: Any, address: str, killing: Killing) -> Done:
    begun = time.perf_counter()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        run = p2p_sim.run(
            workload.PROTOCOL, people, seed=workload.SEED, backend="shards", shards=3, address=address,
            progress=killing,
        )  # fmt: skip
    again = sum("computed again" in str(each.message) for each in said)
    end = time.perf_counter()
    return Done(run.digest, end - begun, again, killing.phases(end))


def _kill_shard(number: int) -> None:
    """Kill the process of one shard of this program's own cluster, and of no other on this machine."""
    found = []
    for pid in tree():
        try:
            if Path("/proc", str(pid), "cmdline").read_bytes().startswith(b"ray::SiteActor"):
                found.append(pid)
        except OSError:  # it has ended meanwhile
            continue
    if found:
        os.kill(sorted(found)[number % len(found)], signal.SIGKILL)


def drivers(kills: int, users: int) -> dict[str, Any]:
    """Kill ``p2p-sim run`` at random times and resume it elsewhere; return how many runs are equal in every output.

    Those that come to their end before are left out of the count.
    """
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        _command(root, "first", users, []).wait()  # compiles its loops, once on a machine
        begun = time.perf_counter()
        _command(root, "whole", users, []).wait()
        rows: list[dict[str, Any]] = []
        seconds = 0.8 * (time.perf_counter() - begun)  # the rest goes before a run begins
        for number in range(3 * kills):
            if sum(row["killed"] for row in rows) == kills:
                break
            name, chance = f"run{number}", random.Random(number)
            first, then = _PLACES[number % 3], _PLACES[(number + 1 + number // 3 % 2) % 3]
            run, until = _command(root, name, users, first), time.monotonic() + 60
            while run.poll() is None and not list(root.glob(f"{name}.partial-*/asked.json")):
                if time.monotonic() > until:
                    raise RuntimeError(f"{name} did not begin")
                time.sleep(0.01)
            after = chance.uniform(0, seconds)  # in shards it takes longer, and starts Ray first
            time.sleep(after)
            run.kill()
            killed = run.wait() == -signal.SIGKILL
            words = [*then, *([] if then else ["--backend", "local"])]
            named = (root / name).exists()  # whole before it could say so
            resumed = killed and not named and _run(root, "run", "--resume", name, *words) == 0
            rows.append({
                "after_seconds": round(after, 2), "began_on": first, "resumed_on": then if killed else None,
                "killed": killed, "whole": named, "resumed": resumed, "equal": _same(root / "whole", root / name),
                "left": [each.name for each in root.glob(f"{name}.*")],
            })  # fmt: skip
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    return {
        "machine": machine(), "users": users, "killed": sum(row["killed"] for row in rows),
        "equal": sum(row["killed"] and row["equal"] for row in rows), "rows": rows,
    }  # fmt: skip


def _command(root: Path, name: str, users: int, where: list[str]) -> subprocess.Popen[bytes]:
    asked = ["--users", str(users), "--trace", "sample=1000", "--seed", str(workload.SEED), "--out", name]
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
    contents = [
        json.loads((each / "run.json").read_text()) for each in (one, other) if (each / "run.json").exists()
    ]
    if len(contents) < 2:
        return False
    parts = [
        {name: found for name, found in each["sha256"].items() if not name.startswith("messages/")} for each in contents
    ]  # fmt: skip
    return contents[0]["digest"] == contents[1]["digest"] and parts[0] == parts[1]


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
