"""A cluster of three hosts on one machine, by hand, as root: network namespaces on a bridge, of which one is cut off.

``python -m benchmarks.hosts [USERS]`` prints JSON.  Each host has its own address, name, processes and ``/tmp``, and
its own ``ray start``; all see one shared folder.  It needs Linux, iproute2 and util-linux.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks import faults
from benchmarks.measure import ROOT, json_only, machine

_HEALTH = {
    "RAY_health_check_initial_delay_ms": "0", "RAY_health_check_period_ms": "200",
    "RAY_health_check_timeout_ms": "1000", "RAY_health_check_failure_threshold": "3",
}  # fmt: skip
"""How soon the head notices a host that is cut off: docs/failures.md."""

_PORT = 6379
_SHOWN = 300


@dataclass
class Lan:
    """A bridge in a namespace of its own, and the namespaces of hosts beside it."""

    name: str
    made: list[str] = field(default_factory=list)

    def __enter__(self) -> Lan:
        """Make the bridge."""
        self._namespace(self.name)
        _ip("-n", self.name, "link", "add", "bridge", "type", "bridge")
        _ip("-n", self.name, "link", "set", "bridge", "up")
        return self

    def __exit__(self, *_error: object) -> None:
        """Remove all namespaces, and with them their links."""
        for name in self.made:
            subprocess.run(["ip", "netns", "del", name], check=False)

    def join(self, number: int) -> str:
        """Make the namespace of a host, 10.87.0.NUMBER; return its name."""
        host, port = f"{self.name}-{number}", f"port{number}"
        self._namespace(host)
        _ip("-n", self.name, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", host)
        _ip("-n", self.name, "link", "set", port, "master", "bridge", "up")
        _ip("-n", host, "addr", "add", f"10.87.0.{number}/24", "dev", "eth0")
        _ip("-n", host, "link", "set", "eth0", "up")
        return host

    def plug(self, number: int, state: str) -> None:
        """Pull a host's cable out of the bridge (``down``) or put it back (``up``)."""
        _ip("-n", self.name, "link", "set", f"port{number}", state)

    def _namespace(self, name: str) -> None:
        _ip("netns", "add", name)
        self.made.append(name)
        _ip("-n", name, "link", "set", "lo", "up")


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


@dataclass
class Host:
    """A host: a namespace of the network, and of processes, mounts and names; Ray runs in it."""

    number: int
    space: str
    tmp: Path
    token: str
    mounts: dict[Path, Path] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """Its address on the LAN."""
        return f"10.87.0.{self.number}"

    def start(self) -> None:
        """Start Ray in it: the head on host 1, whom the others join."""
        self.tmp.mkdir(exist_ok=True)
        head = ["--head", f"--port={_PORT}", "--include-dashboard=false"]
        joined = head if self.number == 1 else [f"--address=10.87.0.1:{_PORT}"]
        ray = [
            sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--disable-usage-stats", "--num-cpus=1",
            f"--node-ip-address={self.address}", "--object-store-memory=200000000",
            *joined,
        ]  # fmt: skip
        binds = [f"mount --bind {each} {place}" for place, each in self.mounts.items()]
        script = " && ".join(
            [*binds, f"mount --bind {self.tmp} /tmp", f"hostname host{self.number}", 'exec "$@"']
        )
        own = ["unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc"]
        with Path(f"{self.tmp}.log").open("ab") as log:
            self.process = subprocess.Popen(
                ["ip", "netns", "exec", self.space, *own, "sh", "-c", script, "sh", *ray],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=_environment(self.token), cwd=ROOT,
            )  # fmt: skip

    def end(self) -> None:
        """End all its processes."""
        self.process.kill()
        self.process.wait()

    def first(self) -> int:
        """Return the process that all others of this host come from."""
        until = time.monotonic() + 30
        while time.monotonic() < until:
            found = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
            if found:
                return int(found[0])
            time.sleep(0.05)
        raise RuntimeError(f"host {self.number} did not start: see {self.tmp}.log")

    def command(self, *words: str, cwd: Path = ROOT) -> subprocess.Popen[str]:
        """Start a program of Python in it."""
        inside = ["nsenter", f"--target={self.first()}", "--net", "--mount", "--uts", "--pid", f"--wd={cwd}"]
        return subprocess.Popen(
            [*inside, sys.executable, "-m", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, env=_environment(self.token),
        )  # fmt: skip


def _environment(token: str) -> dict[str, str]:
    """Return the environment of a host: only those who know the token may join."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    return kept | _HEALTH | {
        "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1",
    }  # fmt: skip


@dataclass
class Trial:
    """Three hosts, and runs among them that are held against the same run without any cluster."""

    lan: Lan
    hosts: list[Host]
    shared: Path
    users: int
    rows: list[dict[str, Any]] = field(default_factory=list)

    def local(self) -> None:
        """Make the run that all others are held against."""
        words = self._words("whole", "--out", "whole", "--backend", "local")
        subprocess.run(
            [sys.executable, "-m", *words], check=True, cwd=self.shared, stdout=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )  # fmt: skip

    def _words(self, name: str, *more: str) -> list[str]:
        asked = ["--users", str(self.users), "--seed", "7", "--trace", "sample=1000"]
        return ["p2p_sim.cli", "run", "peer-to-peer", *asked, "--log", f"{self.shared / name}.jsonl", *more]

    def run(
        self,
        what: str,
        host: int = 1,
        *,
        head: int = 1,
        folder: str = "",
        after: int | None = None,
        then: Callable[[], object] = bool,
    ) -> dict[str, Any]:
        """Run among the hosts, from one of them; note what came of it.

        ``then`` is called once ``after`` rounds are over; ``folder``: of the run, where it is not the usual one.
        """
        self.wait()
        name = f"run{len(self.rows)}"
        words = ["--out", folder or name, "--backend", "shards", "--shards", "3"]
        words += ["--address", f"10.87.0.{head}:{_PORT}"]
        begun = time.perf_counter()
        program = self.hosts[host - 1].command(*self._words(name, *words), cwd=self.shared)
        if after is not None:
            self._wait_for(name, after, program)
            then()
        _, said = program.communicate(timeout=240)
        row = {
            "what": what, "after_rounds": after, "exit": program.returncode,
            "noticed": said.count("computed again from"),
            "equal": faults._same(self.shared / "whole", self.shared / name),
            "seconds": round(time.perf_counter() - begun, 2), "said": _said(said), "name": name,
        }  # fmt: skip
        self.rows.append(row)
        print(json.dumps(row), file=sys.stderr, flush=True)
        return row

    def _wait_for(self, name: str, rounds: int, program: subprocess.Popen[str]) -> None:
        """Wait until a run has its actors and has come through so many rounds."""
        log = self.shared / f"{name}.jsonl"
        until = time.monotonic() + 120
        while program.poll() is None and time.monotonic() < until:
            events = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
            if sum(each["event"] == "round" for each in events) >= max(rounds, 1):
                return
            time.sleep(0.01)

    def resume(self, row: dict[str, Any]) -> None:
        """Go on with a run that was cut off, here and without a cluster."""
        words = ["p2p_sim.cli", "run", "--resume", row["name"], "--backend", "local"]
        done = subprocess.run(
            [sys.executable, "-m", *words], check=False, cwd=self.shared, capture_output=True, text=True,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        row["resumed"], row["resumed_said"] = done.returncode, _said(done.stderr)
        row["equal"] = faults._same(self.shared / "whole", self.shared / row["name"])

    def wait(self) -> None:
        """Wait until Ray knows three live hosts."""
        script = (
            "import ray, sys; ray.init(address=sys.argv[1], log_to_driver=False, logging_level='ERROR'); "
            "print(sum(node['Alive'] for node in ray.nodes()))"
        )
        until = time.monotonic() + 120
        while time.monotonic() < until:
            asked = self.hosts[0].command(*_python(script, f"10.87.0.1:{_PORT}"))
            said, error = asked.communicate()
            if said.strip() == str(len(self.hosts)):
                return
            for host in self.hosts:
                if host.process.poll() is not None:
                    end = Path(f"{host.tmp}.log").read_text()[-2000:]
                    raise RuntimeError(f"the Ray of host {host.number} has ended: {end}")
            time.sleep(0.5)
        raise RuntimeError(f"the hosts do not find each other: {said}{error[-2000:]}")

    def again(self, number: int) -> None:
        """Put a host's cable back, and start its Ray anew."""
        self.hosts[number - 1].end()
        self.lan.plug(number, "up")
        self.hosts[number - 1].start()


def _python(script: str, *words: str) -> list[str]:
    """Return a program for ``python -m`` that is a line of Python."""
    return ["benchmarks.hosts", "--line", script, *words]


def _said(text: str) -> str:
    """Return the last warning or error of a command."""
    lines = [line for line in text.splitlines() if "warning" in line.lower() or "error" in line.lower()]
    return (lines[-1] if lines else text.strip().rpartition("\n")[2])[:_SHOWN]


@contextmanager
def cluster(users: int) -> Iterator[Trial]:
    """Make the hosts; end their processes and remove their namespaces whatever happens."""
    with ExitStack() as stack:
        # not in /tmp, of which every host has its own
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/var/tmp", prefix="p2p-hosts-")))
        (root / "shared").mkdir()
        lan = stack.enter_context(Lan(f"p2p{os.getpid()}"))
        token = secrets.token_hex(32)
        hosts = [Host(n, lan.join(n), root / f"tmp{n}", token) for n in (1, 2, 3)]
        for host in hosts:
            host.start()
            stack.callback(host.end)
        yield Trial(lan, hosts, root / "shared", users)


def _other_version(root: Path) -> dict[Path, Path]:
    """Return what to mount so that a host has another version of cryptography, as far as it says."""
    found = Path(str(metadata.distribution("cryptography").locate_file("."))).resolve()
    place = next(found.glob("cryptography-*.dist-info")) / "METADATA"
    text, version = place.read_text(), metadata.version("cryptography")
    other = root / "METADATA"
    other.write_text(text.replace(f"\nVersion: {version}\n", "\nVersion: 1.2.3\n", 1))
    return {place: other}


def check(users: int) -> dict[str, Any]:
    """Run undisturbed, with a host cut off at each border, with the head cut off, and with bad input."""
    with cluster(users) as trial:
        trial.local()
        lan, hosts = trial.lan, trial.hosts
        trial.run("undisturbed")
        trial.run("undisturbed, asked for on host 2", 2)
        for after in (1, 2, 3):
            trial.run("host 3 cut off", after=after, then=lambda: lan.plug(3, "down"))
            trial.again(3)

        def blink() -> None:
            lan.plug(3, "down")
            time.sleep(0.5)
            lan.plug(3, "up")

        trial.run("host 3 cut off for 0.5 s", after=1, then=blink)
        trial.run("a folder that the others do not see", folder="/tmp/mine")
        hosts[2].end()
        hosts[2].mounts = _other_version(trial.shared.parent)
        hosts[2].start()
        trial.run("another version on host 3")
        hosts[2].mounts = {}
        trial.again(3)
        trial.run("an address that does not answer", head=9)
        row = trial.run("the head cut off, asked for on host 2", 2, after=1, then=lambda: lan.plug(1, "down"))
        trial.resume(row)
        return {"machine": machine(), "users": users, "rows": trial.rows}


if __name__ == "__main__":
    if sys.argv[1:2] == ["--line"]:
        line, sys.argv = sys.argv[2], sys.argv[2:]
        exec(line)
    else:
        with json_only() as write_out:
            size = int(float(sys.argv[1])) if sys.argv[1:] else 3_000_000
            write_out(json.dumps(check(size), indent=1) + "\n")
