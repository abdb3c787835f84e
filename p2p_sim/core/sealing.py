"""Sealing in the engine: sealing and forwarding at a send, opening at a site, and what is refused."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from p2p_sim.core.address_book import World
from p2p_sim.core.columns import Layout, PerMessage, aligned, mismatch
from p2p_sim.core.errors import ProtocolError
from p2p_sim.core.fault_injection import NO_FORGERIES, FaultInjection, Forgeries
from p2p_sim.core.kernels_numpy import as_array
from p2p_sim.core.ledger import Ledger
from p2p_sim.core.mail import Batch
from p2p_sim.core.message import READER, SEALED, USER, Message, Send

Array = npt.NDArray[Any]

MODELLED, REAL = "modelled", "real"
CRYPTO = (MODELLED, REAL)
"""How a run seals: modelled, the fields travel as they are and the cost is counted; real, as ciphertexts."""


class Seals(Protocol):
    """Really seals and opens, at one site."""

    def seal(self, message: Message, round: int, batches: list[Batch]) -> list[Batch]:
        """Return the batches with the bytes that travel beside their fields."""

    def open(self, message: Message, batch: Batch, forgeries: Forgeries) -> tuple[Batch, Array, Array]:
        """Return a batch one layer less; a mask of what opened; and the places of what also came as a copy, refused."""


def envelopes(
    send: Send, layout: Layout, keep: Array | None, world: World, where: str
) -> tuple[dict[str, Array], tuple[str, int] | None]:
    """Return the hidden columns of a send, and the role and round in which what it hands on was sealed.

    Raises ProtocolError where a sealed message could not be made: it takes all the fields of one that came, as they
    were sealed together, or fields that the sender can read.
    """
    message = send.message
    if message.sealed_for is None:
        return {}, None
    sealed_fields = {
        k: v for k, v in send.fields.items() if isinstance(v, PerMessage) and v.sealed_for is not None
    }
    if not sealed_fields:
        return _readers(send, layout, keep, world, where), None
    own = [name for name in send.fields if name not in sealed_fields]
    if own:
        raise ProtocolError(
            f"{where}: hands on {', '.join(sealed_fields)} as sealed, and adds {', '.join(own)}: what is sealed "
            "together cannot be added to; declare the others in a message of their own"
        )
    found = [sealed_fields[name].envelope for name in message.fields]
    hidden = [one for one in found if one is not None]
    if not layout.size:
        return {}, None
    if len(hidden) < len(sealed_fields) or hidden[0].origin is None:
        raise ProtocolError(f"{where}: hands on what was sealed in different rounds: hand each on by itself")
    wrong = mismatch(hidden, message, world.sizes)
    if wrong is not None:
        raise ProtocolError(f"{where}: {wrong}")
    octets = hidden[0].octets
    if octets is None:
        return {}, hidden[0].origin
    return {SEALED: octets if keep is None else octets[keep]}, hidden[0].origin


def _readers(
    send: Send, layout: Layout, keep: Array | None, world: World, where: str
) -> dict[str, Array]:  # fmt: skip
    """Return the users for whom the messages are sealed, where that is not the one addressed."""
    message = send.message
    if message.sealed_for != USER or message.recipient == USER:
        return {}
    if send.reader is None:
        raise ProtocolError(f"{where}: is sealed for a user: name each message's by reader=")
    ids = np.broadcast_to(np.asarray(aligned(send.reader, layout)), (layout.size,))
    ids = ids if keep is None else ids[keep]
    world.rows(ids, where, "reader=")
    return {READER: ids.astype(np.int64)}


Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Sealer:
    """Seals and opens at one site; ``seals``: None where that is modelled."""

    world: World
    ledger: Ledger
    injection: FaultInjection | None
    seals: Seals | None

    def seal(self, message: Message, round: int, batches: list[Batch]) -> list[Batch]:
        """Seal what is not handed on sealed as it came."""
        for batch in batches:
            if batch.origin is None:
                travels = len(batch) - self.ledger.own(message, batch.sender, batch.to)
                self.ledger.work(message.sender, round, "seal", travels * (1 + len(message.layers)))
        if self.seals is not None:
            batches = self.seals.seal(message, round, batches)
        else:
            batches = [_addressed(batch) for batch in batches]
        return [b if b.origin else replace(b, origin=(message.sender, round)) for b in batches]

    def open(self, message: Message, round: int, batch: Batch) -> Batch:
        """Take off the outermost layer; what does not open, or came before, is refused and counted."""
        travels = len(batch) - self.ledger.own(message, batch.sender, batch.to)
        self.ledger.work(message.recipient, round + 1, "open", travels)
        forgeries = (
            NO_FORGERIES if self.injection is None else self.injection.forgeries(message, round, batch)
        )
        if self.seals is None:
            batch, good = self._modelled(message, batch, forgeries.good(len(batch)))
            copies = forgeries.copied[good[forgeries.copied]]
        else:
            batch, good, copies = self.seals.open(message, batch, forgeries)
        for what, refused in forgeries.found(good).items():
            self.ledger.refused(what, message, round, batch.pick(np.flatnonzero(refused)))
        self.ledger.refused("replayed", message, round, batch.pick(copies))
        return batch if good.all() else batch.pick(np.flatnonzero(good))

    def _modelled(self, message: Message, batch: Batch, good: Bools) -> tuple[Batch, Bools]:
        """Return a batch, and a mask of what its recipients can open."""
        if message.opener != USER or SEALED not in batch.fields:
            return batch, good
        assert batch.to is not None
        mine = batch.fields[SEALED] == as_array(self.world.names(batch.to))
        return replace(batch, fields=batch.plain), good & mine


def _addressed(batch: Batch) -> Batch:
    """Let the ids of the users for whom a batch is sealed travel where its bytes would."""
    fields = dict(batch.fields)
    if READER in fields:
        fields[SEALED] = fields.pop(READER)
    return replace(batch, fields=fields)
