"""Locking: authenticated encryption under a key that two parties have agreed on, far cheaper than sealing.

Source: NIST SP 800-38D (AES-256-GCM).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from p2p_sim.core.errors import InputError
from p2p_sim.crypto.octets import Infos, Octets, Opened, Some, as_infos, as_keys, as_rows, chunks, joined
from p2p_sim.crypto.pool import spread

LOCK_BYTES = 16
"""Bytes that locking adds: the tag."""


def lock_all(
    keys: Some,
    rows: Octets,
    senders: npt.NDArray[np.integer],
    infos: Infos,
    *,
    round: int = 0,
    workers: int | None = None,
) -> Octets:
    """Lock rows (n, k), each under its key (n, 32); returns (n, k + 16).

    The nonce is the sender's id and the round: both parties of a pair hold the same key, and no key may see a nonce
    twice, so a party sends at most one row a round under one named key.  ``infos`` is authenticated too.
    Raises InputError for a nonce used twice with a key in this call.
    """
    rows = as_rows("rows", rows)
    table, bound = as_keys("keys", keys, len(rows)), as_infos(infos, len(rows))
    nonces = _nonces(senders, round, len(rows))
    _check_fresh(table, nonces)
    return spread(_lock_rows, table, nonces, bound, rows, workers=workers)[0]


def unlock_all(
    keys: Some,
    rows: Octets,
    senders: npt.NDArray[np.integer],
    infos: Infos,
    *,
    round: int = 0,
    workers: int | None = None,
) -> Opened:
    """Unlock rows (n, k + 16); a row that was changed, or is another sender's or round's, is zeros and not ok."""
    rows = as_rows("rows", rows)
    if rows.shape[1] < LOCK_BYTES:
        return Opened(np.zeros((len(rows), 0), np.uint8), np.zeros(len(rows), np.bool_))
    table, bound = as_keys("keys", keys, len(rows)), as_infos(infos, len(rows))
    nonces = _nonces(senders, round, len(rows))
    plain, ok = spread(_unlock_rows, table, nonces, bound, rows, workers=workers)
    return Opened(plain, ok)


def _nonces(senders: npt.NDArray[np.integer], round: int, count: int) -> Octets:
    ids = np.asarray(senders)
    if ids.shape != (count,) or ids.dtype.kind not in "iu" or (ids.size and int(ids.min()) < 0):
        raise InputError(f"senders: needs {count} ids of at least 0, not {ids.dtype} of {ids.shape}")
    if not 0 <= round < 1 << 32:
        raise InputError(f"round = {round}: needs 0 <= round < 2^32")
    nonces = np.empty((count, 12), np.uint8)
    nonces[:, :8] = ids.astype("<u8").view(np.uint8).reshape(count, 8)
    nonces[:, 8:] = np.frombuffer(round.to_bytes(4, "little"), np.uint8)
    return nonces


def _check_fresh(keys: bytes | Octets, nonces: Octets) -> None:
    used = nonces if isinstance(keys, bytes) else np.concatenate([keys, nonces], axis=1)
    twice = len(used) - len(np.unique(used.view(np.dtype((np.void, used.shape[1])))))
    if twice:
        raise InputError(
            f"{twice} rows repeat a sender under one key in one round: use a key of another name"
        )


def _each(
    keys: bytes | Octets, nonces: Octets, infos: bytes | list[bytes], rows: Octets
) -> Iterator[tuple[bytes, ...]]:
    n = len(rows)
    return zip(chunks(keys, n), chunks(nonces, n), chunks(rows, n), chunks(infos, n), strict=True)


def _lock_rows(
    keys: bytes | Octets, nonces: Octets, infos: bytes | list[bytes], rows: Octets
) -> tuple[Octets]:
    each = _each(keys, nonces, infos, rows)
    locked = [AESGCM(key).encrypt(nonce, plain, info) for key, nonce, plain, info in each]
    return (joined(locked, rows.shape[1] + LOCK_BYTES),)


def _unlock_rows(
    keys: bytes | Octets, nonces: Octets, infos: bytes | list[bytes], rows: Octets
) -> tuple[Octets, npt.NDArray[np.bool_]]:
    width = rows.shape[1] - LOCK_BYTES
    opened = [_unlock(*one) for one in _each(keys, nonces, infos, rows)]
    ok = np.array([plain is not None for plain in opened], np.bool_)
    return joined([bytes(width) if plain is None else plain for plain in opened], width), ok


def _unlock(key: bytes, nonce: bytes, locked: bytes, info: bytes) -> bytes | None:
    try:
        return AESGCM(key).decrypt(nonce, locked, info)
    except InvalidTag:
        return None
