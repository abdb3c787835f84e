"""Simulation key pairs: X25519 keys derived from the run's seed, never for protecting real data."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from p2p_sim.core.errors import InputError
from p2p_sim.core.random_words import SEED_LIMIT
from p2p_sim.crypto.octets import KEY_BYTES, Octets, joined
from p2p_sim.crypto.pool import spread

LABEL = b"p2p-sim simulation key, never for real data"


@dataclass(frozen=True)
class SimulationKeys:
    """Key pairs of simulated parties.  Whoever knows the seed knows every private key: never for real data.

    ``private``, ``public``: raw X25519 keys, uint8 (32,) for one party or (n, 32); ``role``: whose they are.
    """

    role: str
    private: Octets = field(repr=False)
    public: Octets = field(repr=False)

    @classmethod
    def from_seed(
        cls,
        seed: int,
        role: str,
        ids: int | npt.NDArray[np.integer] | range = 0,
        *,
        workers: int | None = None,
    ) -> SimulationKeys:
        """Derive the key pairs of parties ``ids`` of a role: one party for an int, (n, 32) for many.

        A private key is SHA-256 of label, seed, id and role.  Raises InputError for a seed or id out of range.
        """
        many = np.asarray(ids)
        if many.size and (many.dtype.kind not in "iu" or many.ndim > 1 or int(many.min()) < 0):
            raise InputError(f"ids: parties are numbered 0, 1, ...; got {many.dtype} of {many.shape}")
        if not 0 <= seed < SEED_LIMIT:
            raise InputError(f"seed = {seed}: needs 0 <= seed < 2^64")
        private = _derive(seed, role, many.reshape(-1))
        (public,) = spread(_publics, private, workers=workers)
        if many.ndim == 0:
            return cls(role, private[0], public[0])
        return cls(role, private, public)


def _derive(seed: int, role: str, ids: npt.NDArray[np.integer]) -> Octets:
    start = hashlib.sha256(LABEL + seed.to_bytes(8, "little"))
    end, parts = role.encode(), []
    for one in ids.tolist():
        digest = start.copy()
        # fixed widths come first, so that no two (seed, id, role) give the same bytes
        digest.update(one.to_bytes(8, "little") + end)
        parts.append(digest.digest())
    return joined(parts, KEY_BYTES)


def _publics(private: Octets) -> tuple[Octets]:
    load = X25519PrivateKey.from_private_bytes
    return (joined([load(row.tobytes()).public_key().public_bytes_raw() for row in private], KEY_BYTES),)


@lru_cache(maxsize=4096)
def private_key(raw: bytes) -> X25519PrivateKey:
    """Return the parsed private key.  The latest are kept, as parsing takes as long as a key agreement."""
    return X25519PrivateKey.from_private_bytes(raw)


@lru_cache(maxsize=4096)
def public_key(raw: bytes) -> X25519PublicKey:
    """Return the parsed public key; the latest are kept."""
    return X25519PublicKey.from_public_bytes(raw)
