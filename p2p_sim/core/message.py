"""Message kinds and what a program does with them: send, reply, receive.

A kind is declared once, as a class attribute of its protocol, with a sentence and typed fields.  Calling it
makes an action; the program yields the action and the engine carries it out.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import ProtocolError
from p2p_sim.core.fixed_point import FixedPoint

if TYPE_CHECKING:
    from p2p_sim.core.columns import Inbox
    from p2p_sim.core.protocol import Protocol

USER = "user"
"""The role of the population; every other role is a server, one party."""

HEADER_BYTES = 16
"""Bytes counted for addressing a message that travels: sender and recipient, 8 bytes each."""

SEAL_BYTES = 48
"""Bytes that sealing adds: an encapsulated X25519 key of 32 and a tag of 16."""

SEALED = "_sealed"
"""Beside the fields of a message that really is sealed: its bytes, a uint8 column.  Where that is modelled: the id of
the user for whom it is sealed, if it goes by way of servers."""

READER = "_reader"
"""Beside the fields, until they are sealed: the users for whom."""

RESERVED = frozenset(
    {"to", "when", "reader", "sender", "recipient", "round", "count", "columns", "kind"}
    | {"seq", "nbytes", "readable", "where", "rank", "find", "rows", "layout", "message", "ticket", "looked"}
)
"""Names that an inbox or a message table uses itself."""


@dataclass(frozen=True)
class Vector:
    """A field of several integers or ``FixedPoint`` numbers: ``length`` is a number or the name of a parameter."""

    dtype: npt.DTypeLike | FixedPoint
    length: int | str


@dataclass(frozen=True)
class Bytes:
    """A field of ``length`` opaque bytes, a uint8 array of shape (messages, length)."""

    length: int


@dataclass(frozen=True)
class Label:
    """A field that holds a label, typed as ``me.y`` is: bool where the protocol handles two of them, else uint8."""


FieldType = np.dtype[Any] | FixedPoint | Vector | Bytes
"""The type of a field, as ``Message.fields`` has it."""


@dataclass(frozen=True, repr=False)
class Send:
    """One send of one kind by a block; made by calling a ``Message``."""

    message: Message
    to: Any
    when: Any
    fields: dict[str, Any]
    answers: Inbox | None = None
    reader: Any = None


@dataclass(frozen=True)
class Receive:
    """The wish to read the next issue of one kind; made by ``Message.receive``."""

    message: Message


class Message:
    """A message kind: sender role, recipient role, a sentence, typed fields.

    Field types: ``bool``, an integer type (``int`` is int64), ``Vector(np.uint64, "dim")``, ``Bytes(32)``, ``Label()``,
    floats as ``FixedPoint(resolution=2**-16, low=-8, high=8)``, so that digests depend on no machine's arithmetic.
    ``sealed_for`` names the one role that can read the fields; "user": the one user it is addressed to, or if it goes
    to a server the one whom the sender names by ``reader=``.  ``layers``: servers on the way whose keys it takes too,
    outermost first, since it was sealed once more for each.
    Raises ProtocolError for a field name that an inbox uses itself, or a type that cannot travel.
    """

    def __init__(
        self,
        sender: str,
        recipient: str,
        text: str,
        /,
        *,
        sealed_for: str | None = None,
        layers: tuple[str, ...] = (),
        **fields: Any,
    ):
        if layers and sealed_for is None:
            raise ProtocolError(f"layers = {layers!r}: name who opens the last one by sealed_for=")
        if layers and (USER in layers or recipient == sealed_for):
            raise ProtocolError(
                f"layers = {layers!r}, from {sender!r} to {recipient!r}: layers are those of servers on the way to "
                f"{sealed_for!r}, who are passed before"
            )
        self.kind, self.layers = "?", layers
        self.sender, self.recipient, self.text, self.sealed_for = sender, recipient, text, sealed_for
        self.fields: dict[str, FieldType] = {name: _field_type(name, kind) for name, kind in fields.items()}
        self.label_fields = frozenset(name for name, kind in fields.items() if isinstance(kind, Label))
        self._of_many: Message | None = None
        if self.label_fields:
            many = {n: np.uint8 if n in self.label_fields else kind for n, kind in fields.items()}
            self._of_many = copy.copy(self)
            self._of_many.fields = {name: _field_type(name, kind) for name, kind in many.items()}

    def __set_name__(self, owner: type, name: str) -> None:
        self.kind = name
        if self._of_many is not None:
            self._of_many.kind = name

    def __get__(self, protocol: Protocol | None, owner: type | None = None) -> Message:
        """Return this kind as a protocol sends it: its ``Label`` fields have the type of the labels it handles."""
        if protocol is None or self._of_many is None or protocol.label_count() == 2:
            return self
        return self._of_many

    def __repr__(self) -> str:
        return f"<message {self.kind}: {self.sender} -> {self.recipient}>"

    def __call__(self, *, to: Any = None, when: Any = True, reader: Any = None, **fields: Any) -> Send:
        """Send: party columns go once a party, ``PerMessage`` columns once a message.

        ``to``: recipients' ids, for kinds sent to users.  ``when``: which of them are sent.  ``reader``: ids of the
        users for whom they are sealed, where they go to a server.
        """
        self._check_fields(fields, reader)
        if (to is None) == (self.recipient == USER):
            need = (
                "needs to=: the recipients' ids"
                if to is None
                else "takes no to=: there is only one recipient"
            )
            raise ProtocolError(f"message {self.kind!r} goes to {self.recipient!r} and {need}")
        return Send(self, to, when, fields, reader=reader)

    def reply(self, inbox: Inbox, *, when: Any = True, reader: Any = None, **fields: Any) -> Send:
        """Answer every message of an inbox: to its sender, under its sequence number."""
        self._check_fields(fields, reader)
        return Send(self, None, when, fields, inbox, reader)

    def receive(self) -> Receive:
        """Wait for the next issue of this kind and read it."""
        return Receive(self)

    def nbytes(self, sizes: dict[str, int]) -> int:
        """Return the bytes of one such message on the wire, with vector lengths looked up in ``sizes``."""
        payload = 0
        for kind in self.fields.values():
            width = field_shape(kind, sizes)
            payload += field_dtype(kind).itemsize * (width[0] if width else 1)
        return HEADER_BYTES + payload + SEAL_BYTES * (bool(self.sealed_for) + len(self.layers))

    @property
    def opener(self) -> str | None:
        """The role whose key takes off the outermost layer of what was sealed; None if nothing was."""
        return self.layers[0] if self.layers else self.sealed_for

    def _check_fields(self, given: dict[str, Any], reader: Any) -> None:
        if reader is not None and (self.sealed_for != USER or self.recipient == USER):
            raise ProtocolError(
                f"message {self.kind!r} takes no reader=: it is sealed for {self.sealed_for!r} and goes to "
                f"{self.recipient!r}"
            )
        if given.keys() != self.fields.keys():
            missing, extra = (
                sorted(self.fields.keys() - given.keys()),
                sorted(given.keys() - self.fields.keys()),
            )
            parts = [f"lacks {', '.join(missing)}"] if missing else []
            parts += [f"has no field {', '.join(extra)}"] if extra else []
            raise ProtocolError(
                f"message {self.kind!r} {' and '.join(parts)}; its fields: {list(self.fields)}"
            )


def field_dtype(kind: FieldType) -> np.dtype[Any]:
    """Return the numpy type in which a field's values travel and are stored."""
    if (fixed := fixed_point(kind)) is not None:
        return fixed.dtype
    if isinstance(kind, Vector):
        assert not isinstance(kind.dtype, FixedPoint)
        return np.dtype(kind.dtype)
    return np.dtype(np.uint8 if isinstance(kind, Bytes) else kind)


def field_shape(kind: FieldType, sizes: dict[str, int]) -> tuple[int, ...]:
    """Return the shape of one value: () or (length,)."""
    if isinstance(kind, Vector):
        return (sizes[kind.length] if isinstance(kind.length, str) else kind.length,)
    return (kind.length,) if isinstance(kind, Bytes) else ()


def fixed_point(kind: FieldType) -> FixedPoint | None:
    """Return how the numbers of a field are rounded; None for a field of integers."""
    inner = kind.dtype if isinstance(kind, Vector) else kind
    return inner if isinstance(inner, FixedPoint) else None


def _field_type(name: str, kind: npt.DTypeLike | FieldType | Label) -> FieldType:
    if name in RESERVED or name.startswith("_"):
        raise ProtocolError(
            f"a field cannot be called {name!r}: inboxes use that name; reserved: {sorted(RESERVED)}"
        )
    if isinstance(kind, Label):
        return np.dtype(np.bool_)
    if isinstance(kind, (Bytes, FixedPoint)) or (isinstance(kind, Vector) and fixed_point(kind) is not None):
        return kind
    inner = np.dtype(kind.dtype if isinstance(kind, Vector) else np.int64 if kind is int else kind)
    if inner.kind not in "bui":
        raise ProtocolError(
            f"field {name!r} has type {inner}; a message carries bool, integers, Label, Vector or Bytes, and "
            "floats as fixed point, FixedPoint(resolution=2**-16, low=-8, high=8)"
        )
    return kind if isinstance(kind, Vector) else inner
