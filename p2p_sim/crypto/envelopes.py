"""Seals and opens the messages of a run: fields as bytes, under one layer of encryption for each key.

A layer is bound to the run, to the role and the round that sealed, to the kind's first layer and to who opens it.  Keys
are simulation keys, from the run's seed: they protect nothing from whoever knows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.address_book import World
from p2p_sim.core.errors import ProtocolError
from p2p_sim.core.fault_injection import Forgeries
from p2p_sim.core.kernels_numpy import as_array
from p2p_sim.core.mail import Batch
from p2p_sim.core.message import READER, SEAL_BYTES, SEALED, USER, Message
from p2p_sim.crypto import encode
from p2p_sim.crypto.keys import SimulationKeys
from p2p_sim.crypto.octets import Octets, repeated
from p2p_sim.crypto.seal import context, open_all, seal_all

Array = npt.NDArray[Any]
HEAD = 32
"""Bytes of the encapsulated key, before the ciphertext."""

STRANGER = "nobody of this run"


class Envelopes:
    """Seals and opens at one site.

    ``run_id``: unique to this run; ``workers``: processes, None is one a core.
    """

    def __init__(self, run_id: str, seed: int, world: World, workers: int | None):
        self._run_id, self._seed, self._world, self._workers = run_id, seed, world, workers
        self._servers: dict[str, SimulationKeys] = {}
        self._users = SimulationKeys(USER, np.zeros((0, 32), np.uint8), np.zeros((0, 32), np.uint8))
        self._ids = np.zeros(0, np.int64)

    def seal(self, message: Message, round: int, batches: list[Batch]) -> list[Batch]:
        """Return the batches with the bytes that travel beside their fields; what came sealed has them."""
        new = [i for i, batch in enumerate(batches) if batch.origin is None and len(batch)]
        if not new:
            return batches
        kinds, sizes = message.fields, self._world.sizes
        rows = np.concatenate([_packed(batches[i], kinds, sizes) for i in new])
        path, info = [*message.layers, str(message.sealed_for)], (message.sender, round)
        for role in reversed(path):
            keys: bytes | Octets
            if role == USER:
                keys = self._of_users(np.concatenate([self._reader(batches[i]) for i in new])).public
            else:
                keys = self._of(role).public.tobytes()
            rows = self._layered(keys, rows, self._info(info, role))
        out, at = list(batches), 0
        for i in new:
            size = len(batches[i])
            fields = {k: v for k, v in batches[i].fields.items() if k != READER}
            out[i] = replace(batches[i], fields=fields | {SEALED: rows[at : at + size]})
            at += size
        return out

    def open(self, message: Message, batch: Batch, forgeries: Forgeries) -> tuple[Batch, Array, Array]:
        """Open one layer; return the batch, a mask of what opened, and the places of messages with a refused copy.

        ``forgeries`` are first made on the bytes; decryption alone then decides what is refused.
        """
        if not len(batch):
            return batch, np.ones(0, np.bool_), np.zeros(0, np.int64)
        assert batch.origin is not None
        info = self._info(batch.origin, str(message.opener))
        octets = self._forged(batch.fields[SEALED], forgeries, info)
        size = len(batch)
        holders = np.concatenate([np.arange(size), forgeries.copied])
        if message.opener == USER:
            assert batch.to is not None
            ids = np.asarray(as_array(self._world.names(as_array(batch.to))), np.int64)
            keys: bytes | Octets = self._of_users(ids[holders]).private
        else:
            keys = self._of(str(message.opener)).private.tobytes()
        plain, ok = self._opened(keys, octets[holders], info)
        again = ok & repeated_among(octets[holders], ok)
        good = ok[:size] & ~again[:size]
        return self._peeled(message, batch, plain[:size], good), good, forgeries.copied[again[size:]]

    def _peeled(self, message: Message, batch: Batch, plain: Octets, good: Array) -> Batch:
        """Return the batch with what was inside: another layer, or the fields themselves."""
        if message.layers:
            return replace(batch, fields=batch.fields | {SEALED: plain})
        kinds, sizes = message.fields, self._world.sizes
        if plain.shape[1] != encode.width(kinds, sizes):
            raise ProtocolError(
                f"message {message.kind!r}: {plain.shape[1]} bytes were sealed where its fields take "
                f"{encode.width(kinds, sizes)}: hand on all fields of what came"
            )
        columns = encode.unpack(np.where(good[:, None], plain, np.uint8(0)), kinds, sizes)
        return replace(batch, fields={name: columns[name] for name in batch.plain})

    def _forged(self, octets: Octets, forgeries: Forgeries, info: bytes) -> Octets:
        if forgeries.tampered is None or forgeries.misdirected is None:
            return octets
        octets = octets.copy()
        octets[forgeries.tampered, HEAD] ^= np.uint8(1)
        wrong = np.zeros(
            (int(np.count_nonzero(forgeries.misdirected)), octets.shape[1] - SEAL_BYTES), np.uint8
        )
        octets[forgeries.misdirected] = seal_all(self._of(STRANGER).public.tobytes(), wrong, info, workers=1)
        return octets

    def _info(self, origin: tuple[str, int], opener: str) -> bytes:
        return context(self._run_id, origin[1], origin[0], opener)

    def _layered(self, keys: bytes | Octets, rows: Octets, info: bytes) -> Octets:
        """Seal; rows of one key one after the other, since parsing a key costs as much as using it."""
        if isinstance(keys, bytes):
            return seal_all(keys, rows, info, workers=self._workers)
        order = np.lexsort(keys[:, :8].T)
        out = np.empty((len(rows), rows.shape[1] + SEAL_BYTES), np.uint8)
        out[order] = seal_all(keys[order], rows[order], info, workers=self._workers)
        return out

    def _opened(self, keys: bytes | Octets, rows: Octets, info: bytes) -> tuple[Octets, Array]:
        if isinstance(keys, bytes):
            return open_all(keys, rows, info, workers=self._workers)
        order = np.lexsort(keys[:, :8].T)
        found = open_all(keys[order], rows[order], info, workers=self._workers)
        plain, ok = np.empty_like(found.rows), np.empty_like(found.ok)
        plain[order], ok[order] = found
        return plain, ok

    def _of(self, role: str) -> SimulationKeys:
        if role not in self._servers:
            self._servers[role] = SimulationKeys.from_seed(self._seed, role)
        return self._servers[role]

    def _of_users(self, ids: Array) -> SimulationKeys:
        """Return the keys of some users, (n, 32) each; made once."""
        missing = np.setdiff1d(ids, self._ids)
        if len(missing):
            made = SimulationKeys.from_seed(self._seed, USER, missing, workers=self._workers)
            self._ids = np.concatenate([self._ids, missing])
            order = np.argsort(self._ids)
            self._ids = self._ids[order]
            self._users = SimulationKeys(
                USER,
                np.concatenate([self._users.private, made.private])[order],
                np.concatenate([self._users.public, made.public])[order],
            )
        at = np.searchsorted(self._ids, ids)
        return SimulationKeys(USER, self._users.private[at], self._users.public[at])

    def _reader(self, batch: Batch) -> Array:
        """Return the ids of the users for whom a batch is sealed: those named, or those addressed."""
        if READER in batch.fields:
            return batch.fields[READER]
        assert batch.to is not None
        return np.asarray(as_array(self._world.names(as_array(batch.to))), np.int64)


def repeated_among(rows: Octets, ok: Array) -> Array:
    """Mark the rows that are copies of an earlier one, among those marked ok: a forgery displaces nothing genuine."""
    again = np.zeros(len(rows), np.bool_)
    again[ok] = repeated(rows[ok])
    return again


def _packed(batch: Batch, kinds: Mapping[str, Any], sizes: Mapping[str, int]) -> Octets:
    if not kinds:
        return np.zeros((len(batch), 0), np.uint8)
    return encode.pack({k: v for k, v in batch.plain.items() if k != READER}, kinds, sizes)
