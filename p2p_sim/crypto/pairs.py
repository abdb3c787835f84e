"""Keys that two parties share, and masks from keys, in two modes: real, and modelled with stand-ins of the same shape.

Real: X25519 with HKDF, and AES-CTR.  Modelled: the same exchange with exponents modulo the prime 2^61 - 1, and a mixing
function for masks.  Every step gives what the real one gives, equal keys on both sides and masks that cancel, some
twenty times faster; it keeps nothing secret from anybody who wants to compute it.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from p2p_sim.core.party import Party
from p2p_sim.core.random_words import Words
from p2p_sim.crypto import field as gf
from p2p_sim.crypto.octets import KEY_BYTES, Octets, joined

_BASE = np.uint64(37)
_ONE_BY_ONE = 256
"""Powers up to which Python's own integers are quicker than columns."""


class Mode(Protocol):
    """How keys and masks are computed."""

    def publics(self, private: Octets) -> Octets:
        """Return the public keys (n, 32) of private ones (n, 32)."""

    def agreed(self, private: Octets, public: Octets) -> Octets:
        """Return the key (n, 32) of each pair: the same from either's private and the other's public key."""

    def masks(self, keys: Octets) -> Words:
        """Return one uniform word of 64 bits for each key (n, 32)."""


class Counted:
    """A mode whose operations are counted, by the names of ``rates.Rates``."""

    def __init__(self, mode: Mode, me: Party):
        self._mode, self._me = mode, me

    def publics(self, private: Octets) -> Octets:
        """Count key pairs."""
        with self._me.doing(key=len(private)):
            return self._mode.publics(private)

    def agreed(self, private: Octets, public: Octets) -> Octets:
        """Count exchanges."""
        with self._me.doing(agree=len(private)):
            return self._mode.agreed(private, public)

    def masks(self, keys: Octets) -> Words:
        """Count expansions, and their words."""
        with self._me.doing(mask=len(keys), mask_word=len(keys)):
            return self._mode.masks(keys)


class Real:
    """X25519, HKDF-SHA256, AES-256 in counter mode; the library is loaded on first use."""

    def publics(self, private: Octets) -> Octets:
        """Multiply the base point."""
        from p2p_sim.crypto.keys import private_key

        rows = [private_key(row.tobytes()).public_key().public_bytes_raw() for row in private]
        return joined(rows, KEY_BYTES)

    def agreed(self, private: Octets, public: Octets) -> Octets:
        """Exchange, and derive a key for masks."""
        from p2p_sim.crypto.agree import agree_all
        from p2p_sim.crypto.keys import SimulationKeys

        mine, which = np.unique(private, axis=0, return_inverse=True)
        own = self.publics(mine)
        hidden = np.zeros_like(public)  # of the others only the public key is known
        known = SimulationKeys("user", np.concatenate([mine, hidden]), np.concatenate([own, public]))
        edges = np.stack([which.reshape(-1), len(mine) + np.arange(len(public))], axis=1)
        return agree_all(known, edges, ["mask"], b"secure aggregation")["mask"]

    def masks(self, keys: Octets) -> Words:
        """Encrypt zeros."""
        from p2p_sim.crypto import prg

        return prg.masks(keys, 1)[:, 0]


class Modelled:
    """Powers modulo 2^61 - 1 in place of X25519, a mixing function in place of AES: fast, and no secrecy."""

    def publics(self, private: Octets) -> Octets:
        """Raise the base to a private exponent."""
        return _key(_power(np.full(len(private), _BASE), _number(private)))

    def agreed(self, private: Octets, public: Octets) -> Octets:
        """Raise the other's public power to a private exponent."""
        return _key(_power(gf.from_words(_number(public)), _number(private)))

    def masks(self, keys: Octets) -> Words:
        """Mix the key's words."""
        total = np.zeros(len(keys), np.uint64)
        for word in np.ascontiguousarray(keys).view("<u8").astype(np.uint64).T:
            total = _mixed(total ^ word)
        return total


def mode(me: Party) -> Mode:
    """Return the mode of the run that a program is in; what the program does with it is counted."""
    return Counted(Real() if me.real else Modelled(), me)


def _number(keys: Octets) -> Words:
    return np.ascontiguousarray(keys[:, :8]).view("<u8")[:, 0].astype(np.uint64)


def _key(number: Words) -> Octets:
    rows = np.zeros((len(number), KEY_BYTES), np.uint8)
    rows[:, :8] = number.astype("<u8").view(np.uint8).reshape(-1, 8)
    return rows


def _power(base: Words, exponent: Words) -> Words:
    if len(base) <= _ONE_BY_ONE:
        pairs = zip(base.tolist(), exponent.tolist(), strict=True)
        return np.array([pow(number, times, gf.PRIME) for number, times in pairs], np.uint64)
    result = np.ones_like(base)
    for bit in range(64):
        odd = (exponent >> np.uint64(bit)) & np.uint64(1) == 1
        result = np.where(odd, gf.multiply(result, base), result)
        base = gf.multiply(base, base)
    return result


def _mixed(state: Words) -> Words:
    """Return the finalizer of splitmix64, each word by itself."""
    state = state + np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))
