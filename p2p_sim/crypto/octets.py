"""Rows of bytes: keys, plaintexts and ciphertexts as uint8 arrays, with the checks that all primitives share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError

Octets = npt.NDArray[np.uint8]
OneOrEach = bytes | Octets
"""One value for all rows, as bytes or a uint8 array (k,), or one for each, (n, k)."""

Infos = bytes | Sequence[bytes]
"""One context for all rows, or one a row."""

KEY_BYTES = 32


class OpenedRows(NamedTuple):
    """What opening gave: ``rows`` (n, k), zeros where refused, and ``ok`` (n,), which rows were genuine."""

    rows: Octets
    ok: npt.NDArray[np.bool_]

    @property
    def refused(self) -> int:
        """How many rows could not be opened: tampered, for another recipient, or from another context."""
        return int(len(self.ok) - self.ok.sum())


def as_rows(what: str, rows: Any) -> Octets:
    """Return rows as a contiguous uint8 array (n, k); raises InputError naming what else was given."""
    array = np.asarray(rows)
    if array.dtype != np.uint8 or array.ndim != 2:
        raise InputError(f"{what}: needs a uint8 array of shape (n, k), not {array.dtype} of {array.shape}")
    return np.ascontiguousarray(array)


def as_keys(what: str, keys: Any, count: int) -> bytes | Octets:
    """Return one key of 32 bytes, or ``count`` of them as (count, 32); raises InputError for other shapes."""
    array = np.frombuffer(keys, np.uint8) if isinstance(keys, (bytes, bytearray)) else np.asarray(keys)
    if array.dtype != np.uint8 or array.shape not in ((KEY_BYTES,), (count, KEY_BYTES)):
        raise InputError(
            f"{what}: needs {KEY_BYTES} bytes, or uint8 of shape ({count}, {KEY_BYTES}), "
            f"not {array.dtype} of {array.shape}"
        )
    return array.tobytes() if array.ndim == 1 else np.ascontiguousarray(array)


def as_infos(infos: Infos, count: int) -> bytes | list[bytes]:
    """Return one context, or a list of ``count``; raises InputError for another number."""
    if isinstance(infos, (bytes, bytearray)):
        return bytes(infos)
    if len(infos) != count:
        raise InputError(f"infos: {len(infos)} contexts for {count} rows; give one for all, or one a row")
    return list(infos)


def chunks(values: bytes | Octets | Sequence[bytes], count: int) -> Iterator[bytes]:
    """Go through ``count`` values as bytes: the same one again and again, or row by row."""
    if isinstance(values, bytes):
        return iter([values] * count)
    if isinstance(values, np.ndarray):
        width = values.shape[1]
        flat = values.tobytes()
        return (
            (flat[at : at + width] for at in range(0, count * width, width)) if width else iter([b""] * count)
        )
    return iter(values)


def joined(parts: Sequence[bytes], width: int) -> Octets:
    """Return byte strings of one width as a writable array (n, width)."""
    return np.frombuffer(bytearray(b"".join(parts)), np.uint8).reshape(len(parts), width)


def repeated(rows: Octets) -> npt.NDArray[np.bool_]:
    """Mark each row that is an exact copy of an earlier one, (n,): sealing is randomised, so a copy is a replay.

    Mark among the rows that opened: a forged copy that comes first must not displace the genuine one.
    """
    rows = as_rows("rows", rows)
    again = np.ones(len(rows), np.bool_)
    if rows.shape[1]:
        view = rows.view(np.dtype((np.void, rows.shape[1]))).ravel()
        _, first = np.unique(view, return_index=True)
        again[first] = False
    else:
        again[:1] = False
    return again
