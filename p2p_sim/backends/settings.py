"""The settings of a run; except for faults, they do not change the results."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

import numpy as np

from p2p_sim.backends.speeds import Log
from p2p_sim.backends.streamed_outputs import Target
from p2p_sim.core.engine import Progress
from p2p_sim.core.errors import InputError, near
from p2p_sim.core.faults import Faults
from p2p_sim.core.sealing import CRYPTO, MODELLED
from p2p_sim.core.threads import cores
from p2p_sim.core.trace_level import TraceLevel

NAMES = ("local", "shards", "actors")

NO_TRACE = TraceLevel("none")
WORTH_THREADS = 100_000
"""Users from which a run has several threads unless it is told otherwise: below, starting them costs what they save."""

MAX_ACTORS = 128
"""The largest number of users of backend "actors": each is a process, with about 80 MB and half a second to start."""


@dataclass(frozen=True)
class Settings:
    """The backend, the trace and the faults of a run; see ``p2p_sim.run``.

    ``address``: see ``address_of``, which it is where none is given and Ray is used.
    ``outputs``: where a local run, or shards that also make their users, put outputs; None: they are returned.
    ``log``: called with each event, see ``speeds.Log``.

    Raises InputError for a value that is not allowed, and for settings that contradict each other.
    """

    backend: str = "local"
    blocks: int | None = None
    shards: int | None = None
    address: str | None = None
    trace: TraceLevel = NO_TRACE
    digest: bool = True
    progress: Progress | None = None
    faults: Faults | None = None
    costs: bool = False
    crypto: str = MODELLED
    threads: int | None = None
    outputs: Target | None = None
    log: Log | None = None

    def __post_init__(self) -> None:
        if self.crypto not in CRYPTO:
            raise InputError(
                f"crypto = {self.crypto!r}: must be one of {', '.join(CRYPTO)}{near(str(self.crypto), CRYPTO)}"
            )
        backend, blocks, shards, address = self.backend, self.blocks, self.shards, self.address
        if backend not in NAMES:
            raise InputError(
                f"unknown backend {backend!r}{near(str(backend), NAMES)}; known backends: {', '.join(NAMES)}"
            )
        _check_count("blocks", blocks)
        _check_count("shards", shards)
        _check_count("threads", self.threads)
        if self.threads is not None and backend != "local":
            raise InputError(
                f"threads = {self.threads} means nothing to backend {backend!r}, whose processes have one each: use "
                "backend 'local', or leave it out"
            )
        if shards is not None and backend != "shards":
            raise InputError(
                f"shards = {shards} means nothing to backend {backend!r}: use backend 'shards', or leave it out"
            )
        if blocks is not None and backend == "actors":
            raise InputError(
                f"blocks = {blocks} means nothing to backend 'actors': every user is a block of her own"
            )
        if address is not None and backend == "local":
            raise InputError(
                f"address = {address!r} means nothing to backend 'local': use 'shards' or 'actors'"
            )
        if backend != "local":
            object.__setattr__(self, "address", address_of(address))

    def threads_for(self, users: int) -> int:
        """Return how many threads work on the blocks of a local run: by default one a core, for few users one."""
        if self.threads is not None:
            return int(self.threads)
        return cores() if users >= WORTH_THREADS else 1

    def announce(self, what: str) -> None:
        """Report the start of a phase to ``progress`` and ``log``."""
        if self.log is not None:
            self.log("phase", {"phase": what})
        if self.progress is not None:
            self.progress(what, 0, 1)


def address_of(given: str | None) -> str | None:
    """Return the address of the Ray cluster that is joined, by Ray's own rule; None: Ray is started here.

    One that is given wins; then a Ray that this process has joined already (None too: it is used as it is), then the
    environment variable RAY_ADDRESS, which Ray sets in its jobs.
    """
    ray = sys.modules.get("ray")
    if given is not None or (ray is not None and ray.is_initialized()):
        return given
    return os.environ.get("RAY_ADDRESS") or None


def _check_count(name: str, value: int | None) -> None:
    if value is not None and (
        isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1
    ):
        raise InputError(f"{name} = {value!r}: must be an integer of at least 1")


def check_users(users: int) -> None:
    """Raise InputError if there are too many users (more than 128) for an actor each."""
    if users > MAX_ACTORS:
        raise InputError(
            f"{users:,} users are too many for backend 'actors' (one process each, at most {MAX_ACTORS}): "
            "use backend 'shards', which gives the same bits"
        )
