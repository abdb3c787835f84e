"""What coalitions see, made by hand: arrays of worlds as messages."""

from __future__ import annotations

import numpy as np

from p2p_sim.core.message import Message
from p2p_sim.privacy.auditing.seen import Seen, SeenMessages


def message(kind, sender, recipient, **fields):
    made = Message(sender, recipient, "a message made by hand", **fields)
    made.kind = kind
    return made


def columns(declared, sender, recipient, fields, rounds=None, readable=None):
    """Columns of a kind; a server's end is 0."""
    sender, recipient = np.broadcast_arrays(np.asarray(sender, np.int64), np.asarray(recipient, np.int64))
    rounds = np.ones(len(sender), np.int64) if rounds is None else np.asarray(rounds)
    return SeenMessages(declared, rounds, sender, recipient, fields, readable)


def reports(bits):
    """Every user of each world sends her bit to the learner; ``bits``: (worlds, size)."""
    worlds, size = bits.shape
    kind = message("report", "user", "learner", y=bool)
    sent = columns(kind, np.arange(worlds * size), 0, {"y": bits.reshape(-1)})
    return Seen(size, worlds, 0, {"report": sent})


def forwarded(bits):
    """A shuffler sends the bits of each world on, in the order they have."""
    worlds, size = bits.shape
    kind = message("mixed", "shuffler", "learner", y=bool, cluster=int)
    zero = np.zeros(worlds * size, np.int64)
    fields = {"y": bits.reshape(-1), "cluster": np.repeat(np.arange(worlds), size)}
    return Seen(size, worlds, 0, {"mixed": columns(kind, zero, zero, fields)})


def told(values, size=4):
    """A server tells user 1 of each world one value; ``values``: (worlds,) or (worlds, length)."""
    kind = message("total", "server", "user", s=int)
    return Seen(
        size, len(values), 0, {"total": columns(kind, 0, np.arange(len(values)) * size + 1, {"s": values})}
    )
