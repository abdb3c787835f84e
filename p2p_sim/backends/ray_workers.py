"""Actors of a Ray cluster that make calls one after another, each in a process that keeps what it has loaded."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import ray

from p2p_sim.backends import ray_session
from p2p_sim.core import code_fingerprint, module_finder
from p2p_sim.core.errors import InputError, RunLostError

_LOOK_SECONDS = 1.0


class _Host:
    """The class of the actors.  ``own``: where the user's own modules are found; ``target``: module:Class."""

    def __init__(self, own: tuple[module_finder.Own, ...], target: str):
        for each in own:
            each.open()
        module, _, name = target.partition(":")
        self._worker = getattr(importlib.import_module(module), name)()

    def code(self) -> tuple[str, dict[str, str]]:
        """Return where this process runs, and the code that it has."""
        where = f"process {os.getpid()} on {ray.util.get_node_ip_address()}"
        return where, code_fingerprint.code_of(())

    def answer(self, text: str) -> str:
        """Call the worker."""
        return str(self._worker.answer(text))


class RayWorkers:
    """Actors, one for each processor of the cluster; see ``workers``."""

    def __init__(self, target: str, count: int):
        self._target, self._count = target, count
        self._here = code_fingerprint.code_of(())
        self._idle: list[Any] = []
        self._busy: dict[Any, tuple[int, Any]] = {}

    def free(self) -> bool:
        """Whether a call can be given."""
        return bool(self._idle) or len(self._busy) < self._count

    def give(self, index: int, text: str) -> None:
        """Have a call made by an actor that is idle, or by a new one."""
        actor = self._idle.pop() if self._idle else self._start()
        self._busy[actor.answer.remote(text)] = index, actor

    def take(self) -> tuple[int, str | None, str]:
        """Wait for the next call that ends; return its number and answer, or None and how its actor was lost.

        Raises InputError for an actor with other code than this process, and RunLostError where Ray itself has ended.
        """
        while True:
            done, _ = ray.wait(list(self._busy), timeout=_LOOK_SECONDS)
            if done:
                break
            ended = ray_session.lost()
            if ended is not None:
                raise RunLostError(f"Ray was lost, {ended}: give the same command again")
        index, actor = self._busy.pop(done[0])
        try:
            answer = ray.get(done[0])
        except ray.exceptions.RayActorError as error:
            return index, None, f"the Ray actor that made it was lost ({str(error).partition(chr(10))[0]})"
        self._idle.append(actor)
        return index, answer, ""

    def end(self) -> None:
        """End all actors."""
        for actor in (*self._idle, *(actor for _, actor in self._busy.values())):
            with suppress(Exception):  # Ray itself may be gone
                ray.kill(actor)

    def _start(self) -> Any:
        actor = ray.remote(_Host).options(num_cpus=1).remote(module_finder.opened(), self._target)
        try:
            where, there = ray.get(actor.code.remote())
        except ray.exceptions.RayError as error:
            first = str(error).strip().rpartition("\n")[2]
            raise InputError(
                f"a Ray worker cannot load p2p-sim ({first}): install the same on every node"
            ) from error
        other = code_fingerprint.differences(there, self._here)
        if other:
            raise InputError(
                f"the Ray worker in {where} does not have the code of this process ({other[0]}): install the same there"
            )
        return actor


@contextmanager
def workers(address: str, target: str, most: int) -> Iterator[RayWorkers]:
    """Join the Ray cluster at ``address`` (host:port); yield workers, at most ``most``, which end with the block.

    ``target``: the class whose method ``answer`` (text to text) they call, module:Class.  Raises InputError if Ray does
    not answer there, or has no processor.
    """
    with ray_session.session(address, 0, 0):
        processors = int(ray.cluster_resources().get("CPU", 0))
        if not processors:
            raise InputError(f"address = {address!r}: the cluster has no processor (CPU) to make runs on")
        made = RayWorkers(target, min(processors, most))
        try:
            yield made
        finally:
            made.end()
