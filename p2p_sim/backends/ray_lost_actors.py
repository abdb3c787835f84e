"""What Ray raises where a process or a machine has gone, and what that means, in words."""

from __future__ import annotations

import re

import ray

LOSSES = (
    ray.exceptions.RayActorError,
    ray.exceptions.WorkerCrashedError,
    ray.exceptions.NodeDiedError,
    ray.exceptions.OutOfMemoryError,
    ray.exceptions.ObjectLostError,
    ray.exceptions.ObjectFetchTimedOutError,
)
"""What Ray raises for these, and for what they had sent."""
_USED = re.compile(r"was ([\d.]+ ?\w*B) used / ([\d.]+ ?\w*B) limit")
_LOST = "a Ray actor of this run was lost"
_PLACE = re.compile(r"\(pid=(\d+), ip=([^,)]+)")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def unloadable(error: BaseException | None) -> str | None:
    """Return which worker could not even begin, and the error of Python that it ended with; None if it left none.

    Such as: ``the Ray worker in process 7 on 10.0.0.5 cannot load p2p-sim (ModuleNotFoundError: No module ...)``.
    """
    text = _COLOUR.sub("", str(error)).strip()
    last = text.rpartition("\n")[2].strip()
    if "Error" not in last:  # its process died
        return None
    place = _PLACE.search(text)
    worker = f"the Ray worker in process {place[1]} on {place[2]}" if place else "a Ray worker"
    return f"{worker} cannot load p2p-sim ({last})"


def for_memory(error: Exception) -> bool:
    """Whether Ray ended a process because its machine ran out of memory."""
    return isinstance(error, ray.exceptions.OutOfMemoryError) or "memory usage threshold" in str(error)


def why(error: Exception) -> str:
    """Return in words how an actor was lost."""
    text = " ".join(str(error).split())
    if for_memory(error):
        used = _USED.search(text)
        full = f" ({used[1]} of {used[2]} were used)" if used else ""
        return (
            f"{_LOST}: memory ran out on its machine{full}, and Ray ended it: use fewer users or more machines, or end "
            "other programs there"
        )
    if isinstance(error, ray.exceptions.ActorUnavailableError):
        return f"{_LOST}: its process does not answer"
    if isinstance(error, ray.exceptions.RayActorError):
        if "node" in text and ("died" in text or "dead" in text) and "process has died" not in text:
            return f"{_LOST}: its machine left the cluster"
        if "SystemExit" in text or "INTENDED_USER_EXIT" in text:
            return f"{_LOST}: its own code ended the process (sys.exit)"
        return f"{_LOST}: its process was killed or has crashed, or memory ran out"
    if isinstance(error, ray.exceptions.ObjectLostError):
        return "what an actor of this run had sent was lost, with its machine"
    return f"{_LOST}: {type(error).__name__}, {text[:200]}"
