"""Masks: long pseudorandom vectors from short keys, by AES-256 in counter mode over zeros.

Source: NIST SP 800-38A (CTR); Bonawitz et al. 2017 for masks that cancel in a sum.
"""

from __future__ import annotations

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from p2p_sim.core.errors import InputError
from p2p_sim.core.random_words import Words
from p2p_sim.crypto.octets import KEY_BYTES, Octets, OneOrEach, as_rows, chunks, joined
from p2p_sim.crypto.pool import spread

WORD_BITS = 64


def keystream(key: bytes, start: bytes, count: int) -> bytes:
    """Return ``count`` bytes of AES-CTR from the initial counter block ``start`` (16 bytes)."""
    return Cipher(algorithms.AES(key), modes.CTR(start)).encryptor().update(bytes(count))


def masks(
    keys: OneOrEach, length: int, *, bits: int = WORD_BITS, stream: int = 0, workers: int | None = None
) -> Words:
    """Return ``length`` uniform values in 0 .. 2^bits - 1 for each key (n, 32): uint64 (n, length).

    One key of 32 bytes gives (1, length).  ``stream`` tells apart several masks of one key, such as rounds.
    Raises InputError for bits outside 1 .. 64, a negative length or a stream outside 0 .. 2^64 - 1.
    """
    if not 1 <= bits <= WORD_BITS:
        raise InputError(f"bits = {bits}: a mask has 1 to {WORD_BITS} bits")
    if length < 0 or not 0 <= stream < 1 << WORD_BITS:
        raise InputError(f"length = {length}, stream = {stream}: needs length >= 0 and 0 <= stream < 2^64")
    rows = as_rows("keys", np.atleast_2d(np.frombuffer(keys, np.uint8) if isinstance(keys, bytes) else keys))
    if rows.shape[1] != KEY_BYTES:
        raise InputError(f"keys: needs {KEY_BYTES} bytes a key, not {rows.shape[1]}")
    # the stream is the high half of the counter block: its low half counts blocks and never reaches it
    start = stream.to_bytes(8, "big") + bytes(8)
    (octets,) = spread(_keystreams, start, (8 * length).to_bytes(8, "little"), rows, workers=workers)
    values = octets.view("<u8").astype(np.uint64, copy=False)
    if bits < WORD_BITS:
        values &= np.uint64((1 << bits) - 1)
    return values


def _keystreams(start: bytes, count: bytes, keys: Octets) -> tuple[Octets]:
    width = int.from_bytes(count, "little")
    return (joined([keystream(key, start, width) for key in chunks(keys, len(keys))], width),)
