"""A program: `ray start` for one run, and the end of all its processes when the caller ends, however that ends.

It is started by its path, and imports nothing of this package.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path


def kill_session(session: int, spared: int = 0) -> bool:
    """Kill the processes of a session but one; return whether there were any.

    A session in the sense of POSIX; Ray's workers are groups of their own in it.
    """
    found = False
    for process in _processes():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if process != spared and os.getsid(process) == session and not _ended(process):
                os.kill(process, signal.SIGKILL)
                found = True
    return found


def _processes() -> list[int]:
    """Return the ids of the processes on this machine."""
    proc = Path("/proc/self")
    if proc.exists():
        return [int(entry.name) for entry in proc.parent.iterdir() if entry.name.isdigit()]
    listed = subprocess.run(["ps", "-axo", "pid="], capture_output=True, text=True, check=True)
    return [int(word) for word in listed.stdout.split()]


def _ended(process: int) -> bool:
    """Whether a process has ended, and only waits for its parent to notice."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return False


def main(folder: str, words: list[str]) -> int:
    """Run `ray start` with some words; kill what it started and remove the folder if the caller ends first."""
    command = [sys.executable, "-P", "-m", "ray.scripts.scripts", *words]
    ray = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    orphaned = threading.Event()

    def watch() -> None:
        os.read(0, 1)  # nobody writes: this returns when the caller's end of the pipe is closed
        orphaned.set()
        until = time.monotonic() + 10
        while kill_session(os.getsid(0), os.getpid()) and time.monotonic() < until:
            time.sleep(0.05)
        shutil.rmtree(folder, ignore_errors=True)

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    status = ray.wait()
    if orphaned.is_set():
        watching.join()
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
