"""The digest of a run: every delivered message and every output, hashed row by row, in whatever order they come.

A row's hash is two 64-bit lanes; the digest is their sums modulo 2^64.  So blocks, sites and backends may add theirs
in any order.  A row is a message's kind, round, address and fields, or an output's role, column, position and value.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Mapping
from types import MappingProxyType, ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import ProtocolError
from p2p_sim.core.threads import ALONE, Threads

Array = npt.NDArray[Any]
Lanes = tuple[int, int]
_WORD = 1 << 64
_ROWS = 1 << 18
"""Rows of an output that are hashed at a time, by one thread."""


def added(one: Lanes, other: Lanes) -> Lanes:
    """Return the sums of two hashes."""
    return (one[0] + other[0]) % _WORD, (one[1] + other[1]) % _WORD


def text(lanes: Lanes) -> str:
    """Return a digest as 32 hexadecimal digits."""
    return f"{lanes[0]:016x}{lanes[1]:016x}"


def salt(name: str) -> int:
    """Return the 64-bit number that starts the hash of one kind of row."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")


def output_lanes(
    role: str,
    columns: Mapping[str, Array],
    compute: ModuleType,
    threads: Threads = ALONE,
    firsts: Mapping[str, int] = MappingProxyType({}),
) -> Lanes:
    """Hash a role's output: role, column, position and value (floats by their bits).

    ``firsts``: the position of the first row of a column, 0 where it does not say.
    """
    total = (0, 0)
    for name, column in columns.items():
        values = column
        if column.dtype.kind == "f":
            values = np.ascontiguousarray(column).view(f"u{column.dtype.itemsize}")
        elif column.dtype.kind not in "bui":
            raise ProtocolError(
                f"output {name!r} of role {role!r} has type {column.dtype}; give bool, integers or floats"
            )
        start, flattened, first = salt(f"output/{role}/{name}"), flat([values]), firsts.get(name, 0)

        def hashed(
            span: tuple[int, int], start: int = start, flattened: list[Array] = flattened, first: int = first
        ) -> Lanes:
            low, high = span
            rows = [range(first + low, first + high), *(c[low:high] for c in flattened)]
            lanes: Lanes = compute.absorb(start, rows, high - low)
            return lanes

        bounds = [*range(0, len(values), _ROWS), len(values)]
        for lanes in threads.map(hashed, list(itertools.pairwise(bounds))):
            total = added(total, lanes)
    return total


def flat(columns: Iterable[Array]) -> list[Array]:
    """Return columns of several values a row as several columns."""
    return [part for column in columns for part in ([column] if column.ndim == 1 else list(column.T))]
