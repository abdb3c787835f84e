"""What a send seals, or hands on sealed as it came."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from p2p_sim.core.columns import Layout, PerMessage, aligned
from p2p_sim.core.envelope import mismatch
from p2p_sim.core.errors import ProtocolError
from p2p_sim.core.fate import Attack
from p2p_sim.core.mail import Batch
from p2p_sim.core.message import READER, SEALED, USER, Message, Send
from p2p_sim.core.world import World

Array = npt.NDArray[Any]

MODELLED, REAL = "modelled", "real"
CRYPTO = (MODELLED, REAL)
"""How a run seals: modelled, the fields travel as they are and the cost is counted; real, as ciphertexts."""


class Seals(Protocol):
    """Really seals and opens, at one site."""

    def seal(self, message: Message, round: int, batches: list[Batch]) -> list[Batch]:
        """Return the batches with the bytes that travel beside their fields."""

    def open(self, message: Message, batch: Batch, attack: Attack) -> tuple[Batch, Array, Array]:
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
    came = {k: v for k, v in send.fields.items() if isinstance(v, PerMessage) and v.sealed_for is not None}
    if not came:
        return _readers(send, layout, keep, world, where), None
    own = [name for name in send.fields if name not in came]
    if own:
        raise ProtocolError(
            f"{where}: hands on {', '.join(came)} as sealed, and adds {', '.join(own)}: what is sealed together "
            "cannot be added to; declare the others in a message of their own"
        )
    found = [came[name].envelope for name in message.fields]
    hidden = [one for one in found if one is not None]
    if not layout.size:
        return {}, None
    if len(hidden) < len(came) or hidden[0].origin is None:
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
