"""Sealing: HPKE in base mode, single shot, with DHKEM(X25519, HKDF-SHA256), HKDF-SHA256 and AES-128-GCM.

Sealing is randomised and not seeded: no digest, trace or comparison may use a ciphertext.
Source: RFC 9180.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from p2p_sim.core.errors import InputError
from p2p_sim.core.message import SEAL_BYTES
from p2p_sim.crypto.keys import private_key, public_key
from p2p_sim.crypto.octets import (
    Infos,
    Octets,
    OneOrEach,
    OpenedRows,
    as_infos,
    as_keys,
    as_rows,
    chunks,
    joined,
)
from p2p_sim.crypto.pool import spread

VERSION = b"p2p-sim seal 1"


class SealError(InputError):
    """A sealed message is refused; the text says what can be wrong with it."""


@cache
def suite() -> Suite:
    """Return the one suite in use; parsed once a process."""
    return Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_128_GCM)


def context(run_id: str | bytes, round: int, sender_role: str, *more: str | bytes | int) -> bytes:
    """Return the context of a message, to be bound as ``info``: opening under any other context fails.

    Every part is preceded by its type and length, so that no two lists of parts give the same bytes.
    """
    return VERSION + b"".join(_part(part) for part in (run_id, round, sender_role, *more))


def _part(part: str | bytes | int) -> bytes:
    kind, data = (
        (b"i", str(part).encode())
        if isinstance(part, int)
        else (b"s", part.encode())
        if isinstance(part, str)
        else (b"b", bytes(part))
    )
    return kind + len(data).to_bytes(4, "little") + data


def seal(public: OneOrEach, plaintext: bytes, info: bytes) -> bytes:
    """Seal one message for a public key (32 bytes): encapsulated key of 32 bytes, ciphertext, tag of 16.

    Raises InputError for a key that is no X25519 public key.
    """
    key = as_keys("public", public, 1)
    return _sealer(key if isinstance(key, bytes) else key.tobytes(), plaintext, info)


def open(private: OneOrEach, ciphertext: bytes, info: bytes) -> bytes:
    """Open one message with a private key (32 bytes); raises SealError where it was not sealed for this."""
    key = as_keys("private", private, 1)
    plaintext = _opener(key if isinstance(key, bytes) else key.tobytes(), ciphertext, info)
    if plaintext is None:
        raise SealError(
            f"a sealed message of {len(ciphertext)} bytes does not open: it was changed on the way, sealed for "
            "another recipient, or belongs to another run, round or sender role"
        )
    return plaintext


def seal_all(public: OneOrEach, rows: Octets, infos: Infos, *, workers: int | None = None) -> Octets:
    """Seal rows (n, k) for one public key, or for one a row (n, 32); returns (n, k + 48).

    ``infos``: one context for all, or n of them.  ``workers``: processes; the default is one a core.
    """
    rows = as_rows("rows", rows)
    keys, bound = as_keys("public", public, len(rows)), as_infos(infos, len(rows))
    return spread(_seal_rows, keys, bound, rows, workers=workers)[0]


def open_all(private: OneOrEach, rows: Octets, infos: Infos, *, workers: int | None = None) -> OpenedRows:
    """Open rows (n, k + 48) with one private key, or with one a row (n, 32); returns (n, k) and ok (n,).

    A row that does not open is zeros and not ok; the others go on.  Many keys: rows of one holder in a row are faster.
    """
    rows = as_rows("rows", rows)
    if rows.shape[1] < SEAL_BYTES:
        return OpenedRows(np.zeros((len(rows), 0), np.uint8), np.zeros(len(rows), np.bool_))
    keys, bound = as_keys("private", private, len(rows)), as_infos(infos, len(rows))
    plain, ok = spread(_open_rows, keys, bound, rows, workers=workers)
    return OpenedRows(plain, ok)


def _seal_rows(keys: bytes | Octets, infos: bytes | list[bytes], rows: Octets) -> tuple[Octets]:
    n, width = rows.shape
    each = zip(chunks(keys, n), chunks(rows, n), chunks(infos, n), strict=True)
    return (joined([_sealer(*one) for one in each], width + SEAL_BYTES),)


def _open_rows(
    keys: bytes | Octets, infos: bytes | list[bytes], rows: Octets
) -> tuple[Octets, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    n, width = rows.shape[0], rows.shape[1] - SEAL_BYTES
    each = zip(chunks(keys, n), chunks(rows, n), chunks(infos, n), strict=True)
    opened = [_opener(*one) for one in each]
    ok = np.array([plain is not None for plain in opened], np.bool_)
    nothing = bytes(width)
    return joined([nothing if plain is None else plain for plain in opened], width), ok


def _sealer(key: bytes, plaintext: bytes, info: bytes) -> bytes:
    try:
        return suite().encrypt(plaintext, public_key(key), info)
    except ValueError as error:  # a point of small order: everyone could open what is sealed for it
        raise InputError(
            f"public key {key.hex()} cannot be sealed for: it is a point of small order"
        ) from error


def _opener(key: bytes, ciphertext: bytes, info: bytes) -> bytes | None:
    try:
        return suite().decrypt(ciphertext, private_key(key), info)
    except (InvalidTag, ValueError):
        return None
