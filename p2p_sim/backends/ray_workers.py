"""Actors of a Ray cluster that make calls one after another, each in a process that keeps what it has loaded."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Protocol

import ray

from p2p_sim.backends import ray_session
from p2p_sim.backends.ray_lost_actors import LOSSES, for_memory, unloadable, why
from p2p_sim.core import code_fingerprint, module_finder
from p2p_sim.core.errors import InputError, RunLostError

_LOOK_SECONDS = 1.0


class Answering(Protocol):
    """A worker: takes calls as text and returns their results as text."""

    def answer(self, text: str) -> str:
        """Make a call; return its result."""


class _Host:
    """What runs in each actor: it answers calls, or says why not.

    ``own``: where the user's own modules are found; ``code``: that of the driver; ``worker``: makes what answers.
    """

    def __init__(
        self, own: tuple[module_finder.Own, ...], code: Mapping[str, str], worker: Callable[[], Answering]
    ):
        for each in own:
            each.open()
        other = code_fingerprint.differences(code_fingerprint.code_of(()), code)
        where = f"process {os.getpid()} on {ray.util.get_node_ip_address()}"
        self._refused = f"the Ray worker in {where} has other code: {other[0]}" if other else ""
        self._worker = worker()

    def answer(self, text: str) -> tuple[str, str]:
        """Return the worker's answer, and why this process makes no calls, empty if it does."""
        return ("", self._refused) if self._refused else (self._worker.answer(text), "")


@dataclass(eq=False)
class _Actor:
    handle: Any
    ready: bool = False


class RayWorkers:
    """Actors, one for each processor of the cluster; see ``workers``."""

    def __init__(self, worker: Callable[[], Answering], count: int, nbytes: int):
        self._worker, self._count = worker, count
        self._needs = {"num_cpus": 1} | ({"memory": nbytes} if nbytes else {})
        self._code = ray.put(code_fingerprint.code_of(()))
        self._idle: list[_Actor] = []
        self._busy: dict[Any, tuple[int, _Actor]] = {}

    def free(self) -> bool:
        """Whether a call can be given."""
        return bool(self._idle) or len(self._busy) < self._count

    def give(self, index: int, text: str) -> None:
        """Have a call made by an actor that is idle, or by a new one."""
        actor = self._idle.pop() if self._idle else self._start()
        self._busy[actor.handle.answer.remote(text)] = index, actor

    def take(self, until: float | None = None) -> tuple[int, str | None, str] | None:
        """Wait for the next call that ends; return its number and answer, or None and how its actor was lost.

        ``until``: a time by ``time.monotonic``, soon after which None is returned if no call has ended.
        Raises InputError for an actor with other code than this process, and RunLostError for one that ends before it
        has begun, and where Ray itself has ended.
        """
        while not (done := ray.wait(list(self._busy), timeout=_LOOK_SECONDS)[0]):
            ended = ray_session.lost()
            if ended is not None:
                raise RunLostError(f"Ray was lost, {ended}: give the same command again")
            if until is not None and time.monotonic() >= until:
                return None
        index, actor = self._busy.pop(done[0])
        try:
            answer, refused = ray.get(done[0])
        except LOSSES as error:
            if not actor.ready and (which := unloadable(error)):
                raise InputError(f"{which}; install the same there") from error
            if not (actor.ready or for_memory(error)):
                raise RunLostError(
                    f"a Ray worker ended before it began ({why(error)}): install the same as here on every node, and "
                    "give the same command again"
                ) from error
            return index, None, why(error)
        if refused:
            raise InputError(f"{refused}; install the same there")
        actor.ready = True
        self._idle.append(actor)
        return index, answer, ""

    def stop(self, index: int) -> None:
        """End the actor of a call, of which no answer is wanted any more."""
        call = next(each for each, (number, _) in self._busy.items() if number == index)
        _, actor = self._busy.pop(call)
        with suppress(Exception):  # Ray itself may be gone
            ray.kill(actor.handle)

    def end(self) -> None:
        """End all actors."""
        for actor in (*self._idle, *(actor for _, actor in self._busy.values())):
            with suppress(Exception):  # Ray itself may be gone
                ray.kill(actor.handle)

    def _start(self) -> _Actor:
        made = ray.remote(_Host).options(**self._needs)
        return _Actor(made.remote(module_finder.opened(), self._code, self._worker))


@contextmanager
def workers(
    address: str, worker: Callable[[], Answering], most: int, nbytes: int = 0
) -> Iterator[RayWorkers]:
    """Join the Ray cluster at ``address`` (host:port); yield workers, at most ``most``, which end with the block.

    ``worker``: the class, of a module that is installed, whose method ``answer`` (text to text) they call;
    ``nbytes``: memory that each takes, 0 where that is in no doubt.  Raises InputError if Ray does not answer there,
    or no node has room for one.
    """
    with ray_session.session(address, 0, 0):
        made = RayWorkers(worker, min(_room(address, nbytes), most), nbytes)
        try:
            yield made
        finally:
            made.end()


def _room(address: str, nbytes: int) -> int:
    """Return how many workers the nodes of a cluster have room for; raises InputError for none."""
    has = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    processors = [int(each.get("CPU", 0)) for each in has]
    if not any(processors):
        raise InputError(f"address = {address!r}: the cluster has no processor (CPU) to make runs on")
    if not nbytes:
        return sum(processors)
    memory = [int(each.get("memory", 0)) for each in has]
    found = sum(min(cpus, room // nbytes) for cpus, room in zip(processors, memory, strict=True))
    if not found:
        raise InputError(
            f"address = {address!r}: a run needs {nbytes / 1e9:.1f} GB of memory, and no node of the cluster has more "
            f"than {max(memory) / 1e9:.1f} GB for Ray: take fewer users or features, or larger machines"
        )
    return found
