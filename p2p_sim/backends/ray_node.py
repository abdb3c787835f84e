"""A Ray for one run: started in a child process, and ended with all of its processes.

In this process Ray's start would hear no signal and keep no time limit.  What it starts is one session of processes (in
the sense of POSIX), so that nothing of it is left when the session is killed.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from p2p_sim.backends import ray_start
from p2p_sim.core.errors import InputError

START_SECONDS = 300.0
"""How long Ray, and then each of its workers, may take to start; more is a machine that has too much to do."""

ELSEWHERE = (
    "RAY_ADDRESS", "RAY_REDIS_ADDRESS", "RAY_GCS_SERVER_PORT", "RAY_START_HOOK", "RAY_RUNTIME_ENV_HOOK",
    "RAY_JOB_CONFIG_JSON_ENV_VAR", "RAY_TMPDIR", "RAY_NAMESPACE", "RAY_FAKE_CLUSTER",
    "RAY_OVERRIDE_NODE_ID_FOR_TESTING",
)  # fmt: skip
"""Environment variables that would lead Ray to another cluster or folder, or have it run other code."""

_PRESTARTED = 4
_END_SECONDS = 10.0
_ENDED = re.compile(r"----- BEGIN (\w+)\.\w+ tail \(exit code\(s\)=(.*)\) -----")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Node:
    """Ray's processes for one run, in a folder that is ours alone and with a token that nobody else has.

    ``actors``: how many actors will be started; ``store_bytes``: size of the object store.
    """

    def __init__(self, actors: int, store_bytes: int):
        # a short path: Ray puts sockets below it, and opens its folder to everybody
        self._folder = tempfile.mkdtemp(prefix="p2p-", dir="/tmp" if Path("/tmp").is_dir() else None)
        self._log = Path(self._folder, "start.log")
        self.token = secrets.token_hex(32)
        words = [
            "start", "--head", "--block", "--port=0", "--num-gpus=0", "--include-dashboard=false",
            "--disable-usage-stats", "--no-monitor",
            # Ray starts one worker a processor at once: of many, each would keep the others from starting
            f"--num-cpus={min(actors, _PRESTARTED)}",
            f"--object-store-memory={store_bytes}", f"--temp-dir={self._folder}/ray",
        ]  # fmt: skip
        inherited = {name: value for name, value in os.environ.items() if name not in ELSEWHERE}
        own = {
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": self.token,
            # without this setting, Ray warns of every few actors above the number of processors
            "RAY_worker_maximum_startup_concurrency": str(actors),
            # Ray's usual 15 lets whatever else runs here keep the workers from even starting
            "RAY_worker_niceness": "0",
        }
        try:
            with self._log.open("wb") as log:
                self._process = subprocess.Popen(
                    [sys.executable, "-P", str(ray_start.__file__), self._folder, *words],
                    stdin=subprocess.PIPE, stdout=log, stderr=log, env=inherited | own, start_new_session=True,
                )  # fmt: skip
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise

    def address(self) -> str:
        """Wait until Ray is up and return its address; raises InputError if it ends or takes too long."""
        place = Path(self._folder, "ray", "ray_current_cluster")
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until:
            ended = self.lost()
            if ended is not None:
                raise InputError(
                    f"Ray did not start on this machine: {ended}; use backend 'local', which gives the same bits"
                )
            with contextlib.suppress(OSError):
                found = place.read_text().strip()
                if found:
                    return found
            time.sleep(0.05)
        raise InputError(f"Ray did not start within {START_SECONDS:.0f} s: {busy()}")

    def lost(self) -> str | None:
        """Return what of Ray has ended by itself, and how; None while all is well."""
        if self._process.poll() is None:
            return None
        with contextlib.suppress(OSError):
            lines = _COLOUR.sub("", self._log.read_text(errors="replace")).splitlines()
            for line in lines:
                found = _ENDED.search(line)
                if found is not None:
                    return f"its process {found[1]} ended (exit code {found[2]})"
            printed = [line.strip() for line in lines if line.strip()]
            if printed:
                return printed[-1]
        return f"`ray start` ended (exit code {self._process.returncode})"

    def end(self) -> None:
        """Kill all of Ray's processes and remove its folder."""
        until = time.monotonic() + _END_SECONDS
        while ray_start.kill_session(self._process.pid) and time.monotonic() < until:
            time.sleep(0.05)
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            self._process.wait(_END_SECONDS)
        if self._process.stdin is not None:
            self._process.stdin.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def busy() -> str:
    """Say how busy this machine is, and what to do if it is too busy for Ray."""
    load = f"{os.getloadavg()[0]:.0f} processes want to run on its {os.cpu_count()} processors"
    return f"this machine is too busy ({load}); end other programs, or use backend 'local', which gives the same bits"
