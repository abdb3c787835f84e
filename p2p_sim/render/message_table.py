"""Messages of several kinds as one table, in the order of pictures, with what a viewpoint sees and reads of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.message import USER, Message
from p2p_sim.render import text_labels
from p2p_sim.trace.slices import ADDRESS, Slice, Viewer

Array = npt.NDArray[Any]
_COLUMNS = (*ADDRESS, "nbytes")


@dataclass(frozen=True)
class MessageTable:
    """One row a message, ordered by round, kind (as declared), recipient, sender, sequence number.

    ``kind``: index in ``kinds``.  ``row``: index among the slice's messages of that kind.  ``sender``, ``recipient``: a
    user's id, or -1 - i for the i-th of ``servers``, which are in the order of their first messages.
    """

    kinds: tuple[str, ...]
    servers: tuple[str, ...]
    kind: Array
    row: Array
    round: Array
    sender: Array
    recipient: Array
    seq: Array
    nbytes: Array

    def __len__(self) -> int:
        return len(self.kind)

    def party(self, number: int) -> tuple[str, int]:
        """Return role and id of a party's number; a server's id is 0."""
        return (USER, number) if number >= 0 else (self.servers[-1 - number], 0)

    def name(self, number: int) -> str:
        """Return what a party is called: ``user:17``, or a server's role."""
        return text_labels.party(*self.party(number))

    def address(self, row: int) -> tuple[int, int, int, int]:
        """Return round, sender, recipient and seq of the message in a row, as its id has them: a server is 0."""
        sender, recipient = (max(int(column[row]), 0) for column in (self.sender, self.recipient))
        return int(self.round[row]), sender, recipient, int(self.seq[row])


def tabulate(part: Slice) -> MessageTable:
    """Return the messages of a slice as one table."""
    servers = _servers(part)
    number = {role: -1 - i for i, role in enumerate(servers)}
    kind, row = part.order()
    columns = {name: np.zeros(len(kind), np.int64) for name in _COLUMNS}
    for i, (name, found) in enumerate(part.kinds.items()):
        mine = np.flatnonzero(kind == i)
        for column in _COLUMNS:
            columns[column][mine] = found[column][row[mine]]
        for end, role in zip(("sender", "recipient"), part.roles[name], strict=True):
            if role != USER:
                columns[end][mine] = number.get(role, 0)  # an empty kind needs none
    return MessageTable(tuple(part.kinds), servers, kind, row, **columns)


def _servers(part: Slice) -> tuple[str, ...]:
    """Return the servers that occur, in order."""
    first = {
        kind: int(columns["round"].min()) for kind, columns in part.kinds.items() if len(columns["round"])
    }
    return servers_in_order(part.roles, first)


def servers_in_order(roles: Mapping[str, tuple[str, str]], first: Mapping[str, int]) -> tuple[str, ...]:
    """Return the servers that occur, by the round of their first message, ties as declared.

    ``roles``: of sender and recipient, by kind as declared; ``first``: the first round of each kind that occurs.
    """
    reached: dict[str, tuple[int, int]] = {}
    for kind, at in first.items():
        for late, role in zip(
            (1, 0), roles[kind], strict=True
        ):  # a recipient comes before a sender of the same round
            if role != USER:
                reached[role] = min(reached.get(role, (at, late)), (at, late))
    declared = list(dict.fromkeys(role for ends in roles.values() for role in ends))
    return tuple(sorted(reached, key=lambda role: (*reached[role], declared.index(role))))


Sight = Mapping[str, tuple[Array, Array]]
"""By kind, two masks of a slice's messages: those that a viewpoint sees, and those whose fields it reads."""


def sight_of(part: Slice, eyes: Viewer, channels: str) -> Sight:
    """Return which messages of a slice a viewer sees, and whose fields it reads."""
    found = {}
    for kind, columns in part.kinds.items():
        message = Message(
            *part.roles[kind], part.texts[kind], sealed_for=part.sealed[kind], layers=part.layers[kind]
        )
        seen, read = eyes.sees(message, columns, channels)
        found[kind] = (seen, seen & read)
    return found


def fields(part: Slice, table: MessageTable, row: int, letters: int = text_labels.VECTOR) -> dict[str, str]:
    """Return the fields of the message in a row as they are shown; ``letters``: of octets or several numbers."""
    kind, place = table.kinds[int(table.kind[row])], int(table.row[row])
    columns = part.kinds[kind]
    return {name: text_labels.value(columns[name][place], letters) for name in part.fields(kind)}


def masks(part: Slice, table: MessageTable, sight: Sight | None) -> tuple[Array, Array]:
    """Return masks of the rows that are seen, and of those whose fields are read.

    Without a ``sight`` all are seen; sealed fields are read where a column ``readable`` says so.
    """
    seen, read = np.ones(len(table), np.bool_), np.ones(len(table), np.bool_)
    for i, kind in enumerate(table.kinds):
        mine = table.kind == i
        if sight is not None:
            seen[mine], read[mine] = (mask[table.row[mine]] for mask in sight[kind])
        elif "readable" in part.kinds[kind]:
            read[mine] = part.kinds[kind]["readable"][table.row[mine]]
        elif part.sealed[kind] is not None:
            read[mine] = False
    return seen, read
