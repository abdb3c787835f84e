"""How much memory a graph takes: one that this machine cannot hold is refused before any work."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np

from p2p_sim.core.errors import InputError
from p2p_sim.network.blocks import Ints

_COMPLETE = 8  # bytes a user of a complete graph, which is not written out
_LEAST = (70, 60)  # bytes an edge and a user while a graph is built: less than was ever measured
_SURE = (120, 60)  # more than was ever measured
_PART = 0.8  # of the memory, for what is advised: there are other programs
_CGROUP = Path("/sys/fs/cgroup/memory.max")


def require(kind: str, degree: int, sizes: Ints, text: str) -> None:
    """Check that this machine's memory holds a graph of this kind while it is built, over groups of these sizes.

    ``text``: the graph as it was asked for.  Raises InputError with the bytes it takes and what would fit.
    """
    users, here = int(sizes.sum()), memory()
    least = _bytes(kind, degree, sizes, _LEAST)
    if least <= here:
        return
    links = edges(kind, degree, sizes)
    has = "" if kind == "complete" else f" has {links:,} edges and"
    raise InputError(
        f"graph = {text!r}: over {users:,} users it{has} takes {_size(least)} of memory or more, and this machine has "
        f"{_size(here)}: {_advice(kind, degree, sizes, int(here * _PART))}"
    )


def edges(kind: str, degree: int, sizes: Ints) -> int:
    """Return how many edges a graph has; of a complete one none is written out."""
    if kind == "complete":
        return 0
    n = sizes.astype(object)  # exact
    small = n * (n - 1) // 2
    large = {"grid": 2 * n, "scale-free": degree * (n - degree)}.get(kind, n * degree // 2)
    return int(np.where(sizes <= degree + 1, small, large).sum())


def memory() -> int:
    """Return the bytes that this process may use at most: of the machine, its container, or its own limit."""
    found = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    with suppress(ImportError):  # Unix alone has it
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        found += [limit] if limit != resource.RLIM_INFINITY else []
    with suppress(OSError, ValueError):  # no such file, or no limit
        found.append(int(_CGROUP.read_text()))
    return min(found)


def _bytes(kind: str, degree: int, sizes: Ints, each: tuple[int, int]) -> int:
    users = int(sizes.sum())
    return users * _COMPLETE if kind == "complete" else each[0] * edges(kind, degree, sizes) + each[1] * users


def _advice(kind: str, degree: int, sizes: Ints, room: int) -> str:
    """Return what surely fits: fewer users, or a smaller number of the graph."""
    users = int(sizes.sum())
    if len(sizes) == 1:
        fit = _most(lambda n: _bytes(kind, degree, np.array([n]), _SURE) <= room, users) // 2 * 2
        advice = [f"take at most {fit:,} users"] if fit > degree + 1 else []
    else:
        advice = []
    if degree:
        least = {"regular": 3, "small-world": 2, "ring": 2}.get(kind, 1)
        high = min(degree, int(sizes.max()) // 2)
        fit = _most(lambda d: _bytes(kind, d, sizes, _SURE) <= room, high)
        fit = fit // 2 * 2 if kind != "scale-free" else fit
        advice += [f"give {kind} a number of at most {fit:,}"] if fit >= least else []
    return ", or ".join(advice) or "take fewer users"


def _most(fits: Callable[[int], bool], high: int) -> int:
    """Return the largest number from 0 to ``high`` that fits, as all below it do."""
    low = 0
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def _size(octets: int) -> str:
    return f"{octets / 1e9:,.1f} GB"
