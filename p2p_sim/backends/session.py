"""A Ray session: started quietly, joined with a time limit, and always ended.

Ray that is running in this process already is used and left running.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator

from p2p_sim.backends.address import probe

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")

import ray  # the settings above are read on import

STORE_LIMITS = (100 << 20, 2 << 30)


@contextlib.contextmanager
def session(address: str | None, actors: int, store_bytes: int) -> Iterator[None]:
    """Join the cluster at ``address`` (host:port), or start Ray here for ``actors``; end it on every way out.

    ``store_bytes``: wanted object store, kept between 100 MiB and 2 GiB.  While Ray lives, what its processes write to
    standard output goes to standard error.  Raises InputError within 20 seconds if nothing, or not Ray, answers.
    """
    if ray.is_initialized():
        yield
        return
    if address is not None:
        probe(address)
    folder = tempfile.mkdtemp(prefix="p2p-", dir="/tmp" if os.path.isdir("/tmp") else None)  # noqa: PTH112
    with _stdout_to_stderr():
        try:
            if address is not None:
                ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
            else:
                # without this, Ray warns of every few actors above the number of processors
                os.environ.setdefault("RAY_worker_maximum_startup_concurrency", str(actors))
                ray.init(
                    num_cpus=actors,
                    num_gpus=0,
                    include_dashboard=False,
                    object_store_memory=min(max(store_bytes, STORE_LIMITS[0]), STORE_LIMITS[1]),
                    log_to_driver=False,
                    logging_level=logging.ERROR,
                    _temp_dir=folder,
                )
            yield
        finally:
            ray.shutdown()
            shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _stdout_to_stderr() -> Iterator[None]:
    """Ray's own processes inherit standard output and warn on it: keep it clean for a caller's results."""
    sys.stdout.flush()
    try:
        kept = os.dup(1)
    except OSError:  # no standard output: nothing to protect
        yield
        return
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
