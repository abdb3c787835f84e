"""In what a message column travels that its holder cannot read: whence it came, so that it can be handed on so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.message import Message, field_dtype, field_shape

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Trail:
    """Which messages of an inbox a column holds: ``picks``, masks and places, were applied one after the other.

    ``inbox``: an object of its own for each inbox.
    """

    inbox: Any
    picks: tuple[Array, ...] = ()

    def pick(self, which: Array) -> Trail:
        """Return the trail of the messages at some places, or under a mask."""
        return replace(self, picks=(*self.picks, which))

    @property
    def places(self) -> Array | None:
        """The places in the inbox, None for all in their order."""
        places = (np.flatnonzero(which) if which.dtype == np.bool_ else which for which in self.picks)
        return reduce(lambda held, which: held[which], places) if self.picks else None

    def same(self, other: Trail) -> bool:
        """Whether two columns hold the same messages in the same order."""
        if self.inbox is not other.inbox:
            return False
        if len(self.picks) == len(other.picks) and all(map(_is, self.picks, other.picks)):
            return True
        mine, others = self.places, other.places
        if mine is None or others is None:
            some = others if mine is None else mine
            return some is None or np.array_equal(some, np.arange(len(some)))
        return np.array_equal(mine, others)

    @property
    def distinct(self) -> bool:
        """Whether no message is held twice."""
        if all(which.dtype == np.bool_ for which in self.picks):
            return True
        places = self.places
        return places is None or not len(places) or int(np.bincount(places).max()) == 1


@dataclass(frozen=True)
class Envelope:
    """In what a column travels that its holder cannot read.

    ``origin``: role and round in which all of it was sealed, None if in several.  ``message``, ``field``: as what it
    came; ``trail``: which of an inbox it is.  ``octets`` (messages, bytes): the ciphertexts; where cryptography is
    modelled, (messages,) the users who can open them, None where that is not one user or the one addressed.
    """

    origin: tuple[str, int] | None
    message: Message
    field: str
    trail: Trail
    octets: Array | None = None

    def pick(self, which: Array) -> Envelope:
        """Return the envelopes at some places."""
        octets = None if self.octets is None else self.octets[which]
        return replace(self, trail=self.trail.pick(which), octets=octets)

    @property
    def layers(self) -> tuple[str, ...]:
        """The layers that are left: the engine takes off the one of who received it."""
        message = self.message
        return message.layers[1:] if message.opener == message.recipient else message.layers


def mismatch(found: Sequence[Envelope], message: Message, sizes: dict[str, int]) -> str | None:
    """Say why the columns, in the order of the fields of ``message``, cannot be handed on as it; None if they can.

    Handing on is passing on bytes: all the fields that were sealed together, in their order and types, once each, under
    the layers that are left.
    """
    first = found[0]
    came = first.message
    if [one.field for one in found] != list(came.fields) or _types(came, sizes) != _types(message, sizes):
        return (
            f"hands on {', '.join(one.field for one in found)} of {came.kind!r}: what was sealed together is handed on "
            f"together, all fields in their order and of their types: {', '.join(came.fields)}"
        )
    if first.layers != message.layers:
        left, declared = (" and ".join(layers) or "none" for layers in (first.layers, message.layers))
        return f"the layers of {came.kind!r} that are left are {left}; declared are {declared}"
    if not all(one.message is came and first.trail.same(one.trail) for one in found[1:]):
        return "joins fields of different messages: what was sealed together is handed on together"
    return None if first.trail.distinct else "hands on a message twice: the copy would be refused as one"


def _types(message: Message, sizes: dict[str, int]) -> list[Any]:
    return [(field_dtype(kind), field_shape(kind, sizes)) for kind in message.fields.values()]


def _is(one: Any, other: Any) -> bool:
    return one is other
