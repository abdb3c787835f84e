"""Slices: messages of a run as columns, as a viewer sees them: what she cannot read is redacted."""

from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.message import USER, Message
from p2p_sim.rundir.parquet_columns import joined

Array = npt.NDArray[Any]
Columns = dict[str, Array]

ADDRESS = ("round", "sender", "recipient", "seq")
_NOT_FIELDS = frozenset({*ADDRESS, "nbytes", "readable"})
_AT_ONCE = 4096  # messages that are turned into Python's values at once


def in_order(parts: Sequence[Columns], most: int | None = None) -> Columns:
    """Join parts of the messages of a kind in the order (round, recipient, sender, seq); ``most``: only the first."""
    together = joined(parts)
    order = np.lexsort([together[name] for name in ("seq", "sender", "recipient", "round")])
    return {name: column[order[:most]] for name, column in together.items()}


@dataclass(frozen=True)
class Event:
    """One message.  ``sender``, ``recipient``: ids, 0 for a server; ``fields``: None if the viewer cannot read them."""

    kind: str
    round: int
    sender: int
    recipient: int
    seq: int
    roles: tuple[str, str]
    nbytes: int
    fields: dict[str, Any] | None

    @property
    def id(self) -> str:
        """Its name: ``kind:round:sender:recipient:seq``."""
        return message_id(self.kind, self.round, self.sender, self.recipient, self.seq)

    @property
    def ends(self) -> tuple[str, str]:
        """Who sent and who received it: ``user:17``, ``learner``."""
        return party(self.roles[0], self.sender), party(self.roles[1], self.recipient)


@dataclass(frozen=True, eq=False)
class Slice:
    """Some messages of a run.

    ``kinds``: by kind, in the order of declaration: columns round, sender, recipient, seq, the fields, nbytes, and, if
    there is a viewer, ``readable``: where it is false the fields are 0.  The other mappings are by kind too:
    ``roles``: of sender and recipient; ``texts``: the kind's sentence; ``sealed``, ``layers``: who has the keys;
    ``total``: how many messages match, of which ``kinds`` may hold only the first.  ``notes``: where the messages come
    from and what is missing, in words.
    """

    kinds: dict[str, Columns]
    roles: dict[str, tuple[str, str]]
    texts: dict[str, str]
    sealed: dict[str, str | None]
    layers: dict[str, tuple[str, ...]]
    total: dict[str, int]
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        messages: Mapping[str, Message],
        columns: Mapping[str, Columns],
        total: Mapping[str, int] | None = None,
        notes: tuple[str, ...] = (),
    ) -> Slice:
        """Make a slice of columns by kind; ``messages``: of the protocol; ``total``: by default the number of rows."""
        kinds = {kind: dict(columns[kind]) for kind in messages if kind in columns}
        declared = {kind: messages[kind] for kind in kinds}
        sizes = {kind: len(found["round"]) for kind, found in kinds.items()}
        return cls(
            kinds,
            {kind: (message.sender, message.recipient) for kind, message in declared.items()},
            {kind: message.text for kind, message in declared.items()},
            {kind: message.sealed_for for kind, message in declared.items()},
            {kind: message.layers for kind, message in declared.items()},
            sizes if total is None else {kind: total[kind] for kind in kinds},
            notes,
        )

    def __len__(self) -> int:
        return sum(len(columns["round"]) for columns in self.kinds.values())

    @property
    def cut(self) -> dict[str, int]:
        """How many messages are left out, by kind; only kinds that lack some."""
        left = {kind: self.total[kind] - len(columns["round"]) for kind, columns in self.kinds.items()}
        return {kind: number for kind, number in left.items() if number}

    def fields(self, kind: str) -> list[str]:
        """Return the names of a kind's fields."""
        return [name for name in self.kinds[kind] if name not in _NOT_FIELDS]

    def ids(self) -> dict[str, list[str]]:
        """Return the messages' ids by kind, ``kind:round:sender:recipient:seq``, in the order of the columns."""
        return {
            kind: [message_id(kind, *address) for address in zip(*_lists(columns, ADDRESS), strict=True)]
            for kind, columns in self.kinds.items()
        }

    def events(self, order: tuple[Array, Array] | None = None) -> Iterator[Event]:
        """Yield the messages in a causal order: round, kind as declared, recipient, sender, seq.

        A message can only have been influenced by messages of earlier rounds.  ``order``: another one, as ``order``
        returns it.
        """
        names = list(self.kinds)
        kinds, places = self.order() if order is None else order
        for low in range(0, len(kinds), _AT_ONCE):
            kind, place = kinds[low : low + _AT_ONCE], places[low : low + _AT_ONCE]
            rows = {
                number: self._rows(names[number], place[kind == number])
                for number in np.unique(kind).tolist()
            }
            for number in kind.tolist():
                yield next(rows[number])

    def _rows(self, kind: str, places: Array) -> Iterator[Event]:
        """Yield some messages of a kind."""
        columns, fields = self.kinds[kind], self.fields(kind)
        found = {name: column[places].tolist() for name, column in columns.items()}
        readable = found.get("readable", [True] * len(places))
        for row in range(len(places)):
            round, sender, recipient, seq = (found[name][row] for name in ADDRESS)
            read = {name: found[name][row] for name in fields} if readable[row] else None
            yield Event(kind, round, sender, recipient, seq, self.roles[kind], found["nbytes"][row], read)

    def order(self) -> tuple[Array, Array]:
        """Return, of all messages in that order, which of ``kinds`` each is of and its row there."""
        sizes = [len(columns["round"]) for columns in self.kinds.values()]
        kind = np.repeat(np.arange(len(sizes)), sizes)
        place = np.concatenate([np.zeros(0, np.int64), *map(np.arange, sizes)])
        joined = {
            name: np.concatenate([np.zeros(0, np.int64), *(found[name] for found in self.kinds.values())])
            for name in ADDRESS
        }
        order = np.lexsort((joined["seq"], joined["sender"], joined["recipient"], kind, joined["round"]))
        return kind[order], place[order]


def message_id(kind: str, round: int, sender: int, recipient: int, seq: int) -> str:
    """Return a message's name, ``kind:round:sender:recipient:seq``."""
    return f"{kind}:{round}:{sender}:{recipient}:{seq}"


def party(role: str, number: int) -> str:
    """Return a party's name, ``user:17`` or the server's role."""
    return f"{USER}:{number}" if role == USER else role


def _lists(columns: Columns, names: tuple[str, ...]) -> list[list[Any]]:
    return [columns[name].tolist() for name in names]


class Viewer(typing.Protocol):
    """The viewer of messages: a ``p2p_sim.coalition.Coalition`` whose users all have ids."""

    @property
    def servers(self) -> frozenset[str]:
        """Its servers."""

    @property
    def users(self) -> frozenset[int]:
        """Ids of its users."""

    @property
    def wire(self) -> bool:
        """Whether it watches what travels."""

    def sees(self, message: Message, columns: Columns, channels: str) -> tuple[Array, Array]:
        """Return two masks of messages: those it sees at all, and those whose fields it can read."""


def cut(viewer: Viewer, message: Message, columns: Mapping[str, Array], channels: str) -> Columns:
    """Return what a viewer sees of messages of one kind: unreadable fields are 0, ``readable`` marks the others."""
    seen, readable = viewer.sees(message, dict(columns), channels)
    if not seen.all():
        columns, readable = {name: column[seen] for name, column in columns.items()}, readable[seen]
    shown = dict(columns) | {"readable": readable}
    if not readable.all():
        for name in message.fields:
            shown[name] = columns[name].copy()
            shown[name][~readable] = 0
    return shown


def blind(viewer: Viewer, message: Message) -> bool:
    """Return whether the viewer sees no message of a kind, whoever sent it."""
    users = USER in (message.sender, message.recipient) and bool(viewer.users)
    return not (viewer.wire or users or {message.sender, message.recipient} & viewer.servers)


def sees_every(viewer: Viewer, message: Message) -> bool:
    """Return whether the viewer sees something of every message of a kind, whoever sent it."""
    handled = bool({message.sender, message.recipient} & viewer.servers)
    return handled or (viewer.wire and message.sender != message.recipient)
