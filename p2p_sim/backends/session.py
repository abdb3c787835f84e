"""A Ray session: started without output, joined with a time limit, and always ended.

If Ray already runs in this process, it is used and left running.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from p2p_sim.backends.address import probe
from p2p_sim.core import module_finder
from p2p_sim.core.errors import InputError

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")

import ray  # the settings above are read on import
from ray.job_config import JobConfig

STORE_LIMITS = (100 << 20, 2 << 30)


class _Job(JobConfig):  # type: ignore[misc]
    """Makes workers import from the folders of this process, in its order, before any others.

    Ray puts the current folder and the script's folder first and has no setting for it, so the search path that it
    sends to workers is replaced here.
    """

    def _serialize(self) -> Any:
        self._py_driver_sys_path = module_finder.folders()[::-1]  # each is put before all others
        return super()._serialize()


@contextlib.contextmanager
def session(address: str | None, actors: int, store_bytes: int) -> Iterator[None]:
    """Join the Ray cluster at ``address`` (host:port), or start Ray here for ``actors`` actors; always end it.

    ``store_bytes``: size of the object store, limited to 100 MiB to 2 GiB.  Meanwhile the standard output of Ray's
    processes goes to standard error.  Raises InputError within 20 seconds if Ray does not answer.
    """
    if ray.is_initialized():
        here = ray.get_runtime_context().gcs_address
        if address is not None and not _same(address, here):
            raise InputError(
                f"address = {address!r}: this process is joined to Ray at {here}; call ray.shutdown() first"
            )
        yield
        return
    if address is not None:
        probe(address)
    folder = tempfile.mkdtemp(prefix="p2p-", dir="/tmp" if os.path.isdir("/tmp") else None)  # noqa: PTH112
    with _stdout_to_stderr():
        try:
            with _sigterm_kept():
                if address is not None:
                    _join(address)
                else:
                    _start(actors, store_bytes, folder)
            yield
        finally:
            ray.shutdown()
            _remove(folder)


def _same(one: str, other: str) -> bool:
    """Return whether two texts are one address: host name and IP, or this machine's loopback and its own IP."""
    places = []
    for address in (one, other):
        host, _, port = address.rpartition(":")
        try:
            number = socket.gethostbyname(host.strip("[]"))
        except OSError:
            number = host
        places.append((ray.util.get_node_ip_address() if number.startswith("127.") else number, port))
    return places[0] == places[1]


def _remove(folder: str) -> None:
    """Remove Ray's folder; a process that is just ending may still write into it, so retry for two seconds."""
    for _ in range(20):
        shutil.rmtree(folder, ignore_errors=True)
        if not Path(folder).exists():
            return
        time.sleep(0.1)


def _join(address: str) -> None:
    try:
        ray.init(address=address, job_config=_Job(), log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError) as error:
        first = str(error).strip().partition("\n")[0]
        raise InputError(
            f"address = {address!r}: Ray answers there, but this machine cannot join it ({first}); "
            "make it a node with `ray start --address=...`"
        ) from error


def _start(actors: int, store_bytes: int, folder: str) -> None:
    # without this setting, Ray warns of every few actors above the number of processors
    with _environment("RAY_worker_maximum_startup_concurrency", str(actors)):
        ray.init(
            num_cpus=actors,
            num_gpus=0,
            job_config=_Job(),
            include_dashboard=False,
            object_store_memory=min(max(store_bytes, STORE_LIMITS[0]), STORE_LIMITS[1]),
            log_to_driver=False,
            logging_level=logging.ERROR,
            _temp_dir=f"{folder}/ray",  # Ray opens its folder to everybody: keep it in one that is ours
        )


@contextlib.contextmanager
def _sigterm_kept() -> Iterator[None]:
    """Keep the program's own handler of SIGTERM: Ray's handler aborts the program after three seconds."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    except SystemExit:  # Ray's own, at a SIGTERM while it started
        if callable(before):
            before(signal.SIGTERM, None)
        raise
    finally:
        if callable(before) and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    """Set an environment variable for processes started inside the ``with`` block."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


@contextlib.contextmanager
def ended(actors: list[Any]) -> Iterator[None]:
    """Kill the actors that are in the list at the end, also after an error."""
    try:
        yield
    finally:
        for actor in actors:
            with contextlib.suppress(Exception):  # Ray itself may be gone
                ray.kill(actor)


@contextlib.contextmanager
def _stdout_to_stderr() -> Iterator[None]:
    """Send standard output to standard error: Ray's processes inherit it and warn on it, results must stay clean."""
    sys.stdout.flush()
    try:
        saved = os.dup(1)
    except OSError:  # no standard output: nothing to protect
        yield
        return
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(saved, 1)
        os.close(saved)
