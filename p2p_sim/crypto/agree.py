"""Key agreement: two parties' X25519 keys give them named keys that nobody else has, the same for both.

Source: RFC 7748 (X25519), RFC 5869 (HKDF).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from p2p_sim.core.errors import InputError
from p2p_sim.crypto.keys import SimulationKeys, private_key, public_key
from p2p_sim.crypto.octets import KEY_BYTES, Octets, OneOrEach, as_keys, chunks, joined
from p2p_sim.crypto.pool import spread

SALT = b"p2p-sim agree 1"


def hkdf(secret: bytes, *, salt: bytes | None, info: bytes, length: int = KEY_BYTES) -> bytes:
    """Derive ``length`` bytes from a secret with HKDF-SHA256.  Source: RFC 5869."""
    return HKDF(hashes.SHA256(), length, salt, info).derive(secret)


def agree(private: OneOrEach, public: OneOrEach, names: Sequence[str], context: bytes) -> dict[str, bytes]:
    """Return the named keys (32 bytes each) of my private key and the other's public one, the same for both parties.

    ``context``: what the keys are for (``seal.context``).  Raises InputError for a key of small order or twice a name.
    """
    mine, other = _raw("private", private), _raw("public", public)
    own = private_key(mine).public_key().public_bytes_raw()
    keys = _pair_keys(mine, own, other, _names(names), context)
    return dict(zip(names, keys, strict=True))


def agree_all(
    keys: SimulationKeys,
    edges: npt.NDArray[np.integer],
    names: Sequence[str],
    context: bytes,
    *,
    workers: int | None = None,
) -> dict[str, Octets]:
    """Return the named keys of every edge: uint8 (e, 32) a name; each pair is computed once, as both would get it.

    ``edges``: (e, 2) positions in ``keys``, each pair once; ordered by the first they go faster.
    Raises InputError for an unknown party, a party paired with itself, or a pair given twice.
    """
    ends = _edges(edges, len(np.atleast_2d(keys.public)))
    first, second = ends[:, 0], ends[:, 1]
    table = spread(
        _edge_keys,
        b"\0".join(name.encode() for name in _names(names)),
        context,
        keys.private[first],
        keys.public[first],
        keys.public[second],
        workers=workers,
    )
    return dict(zip(names, table, strict=True))


def _edge_keys(names: bytes, context: bytes, mine: Octets, own: Octets, other: Octets) -> tuple[Octets, ...]:
    n, each = len(mine), [name.decode() for name in names.split(b"\0")]
    triples = zip(chunks(mine, n), chunks(own, n), chunks(other, n), strict=True)
    rows = [_pair_keys(*triple, each, context) for triple in triples]
    return tuple(joined([row[at] for row in rows], KEY_BYTES) for at in range(len(each)))


def _pair_keys(mine: bytes, own: bytes, other: bytes, names: Sequence[str], context: bytes) -> list[bytes]:
    try:
        secret = private_key(mine).exchange(public_key(other))
    except ValueError as error:
        raise InputError(
            f"public key {other.hex()} agrees on nothing: it is a point of small order"
        ) from error
    pair = min(own, other) + max(own, other)  # in one order, so that both derive the same
    return [hkdf(secret, salt=SALT, info=_info(pair, name, context)) for name in names]


def _info(pair: bytes, name: str, context: bytes) -> bytes:
    label = name.encode()
    return pair + len(label).to_bytes(4, "little") + label + context


def _raw(what: str, key: OneOrEach) -> bytes:
    row = as_keys(what, key, 1)
    return row if isinstance(row, bytes) else row.tobytes()


def _names(names: Sequence[str]) -> list[str]:
    if not names or len(set(names)) != len(names) or any("\0" in name for name in names):
        raise InputError(f"names of keys: {list(names)!r}; needs at least one, each once, without NUL")
    return list(names)


def _edges(edges: npt.NDArray[np.integer], parties: int) -> npt.NDArray[np.int64]:
    ends = np.asarray(edges)
    if ends.ndim != 2 or ends.shape[1] != 2 or ends.dtype.kind not in "iu":
        raise InputError(f"edges: needs integers of shape (e, 2), not {ends.dtype} of {ends.shape}")
    if ends.size and not 0 <= int(ends.min()) <= int(ends.max()) < parties:
        raise InputError(
            f"edges: parties are 0 .. {parties - 1}; found {int(ends.min())} .. {int(ends.max())}"
        )
    ends = ends.astype(np.int64)
    low, high = ends.min(axis=1), ends.max(axis=1)
    alone = np.flatnonzero(low == high)
    if alone.size:
        raise InputError(f"edges: edge {alone[0]} pairs party {low[alone[0]]} with itself")
    pairs = low * parties + high
    if len(np.unique(pairs)) != len(pairs):
        raise InputError(f"edges: {len(pairs) - len(np.unique(pairs))} pairs are given twice; give each once")
    return ends
