"""The digest of a run: every delivered message and every output, hashed row by row, in whatever order they come.

A row's hash is two 64-bit lanes; the digest is their sums modulo 2^64.  So blocks, sites and backends may add theirs
in any order.  A row is a message's kind, round, address and fields, or an output's role, column, position and value.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from types import MappingProxyType, ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import ProtocolError

Array = npt.NDArray[Any]
Lanes = tuple[int, int]
_WORD = 1 << 64


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
    role: str, columns: Mapping[str, Array], compute: ModuleType, firsts: Mapping[str, int] = MappingProxyType({})
) -> Lanes:  # fmt: skip
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
        first = firsts.get(name, 0)
        rows = compute.absorb(
            salt(f"output/{role}/{name}"), [range(first, first + len(values)), *flat([values])], len(values)
        )
        total = added(total, rows)
    return total


def flat(columns: Iterable[Array]) -> list[Array]:
    """Return columns of several values a row as several columns."""
    return [part for column in columns for part in ([column] if column.ndim == 1 else list(column.T))]
