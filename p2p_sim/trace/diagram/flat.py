"""The messages of a slice as one table, in the order of their rounds, with a number for every party."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.message import USER
from p2p_sim.trace.diagram import labels
from p2p_sim.trace.slices import ADDRESS, Slice

Array = npt.NDArray[Any]
_COLUMNS = (*ADDRESS, "nbytes")


@dataclass(frozen=True)
class Flat:
    """One row a message, ordered by round, kind (as declared), recipient, sender, seq.

    ``kind``: place in ``kinds``; ``row``: place among the slice's messages of that kind.  ``sender`` and ``recipient``:
    a user's id, or -1 - i for the i-th of ``servers``, which stand in the order in which messages reach them.
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
        return labels.party(*self.party(number))


def flat(part: Slice) -> Flat:
    """Lay out a slice as one table."""
    kinds = tuple(part.kinds)
    servers = _servers(part)
    number = {role: -1 - i for i, role in enumerate(servers)}
    columns: dict[str, list[Array]] = {name: [] for name in ("kind", "row", *_COLUMNS)}
    for i, (kind, found) in enumerate(part.kinds.items()):
        length = len(found["round"])
        columns["kind"].append(np.full(length, i))
        columns["row"].append(np.arange(length))
        for name in _COLUMNS:
            columns[name].append(np.asarray(found[name], np.int64))
        for end, role in zip(("sender", "recipient"), part.roles[kind], strict=True):
            if role != USER:
                columns[end][-1] = np.full(length, number.get(role, 0))  # an empty kind needs none
    joined = {
        name: np.concatenate([np.zeros(0, np.int64), *pieces]).astype(np.int64)
        for name, pieces in columns.items()
    }
    order = np.lexsort([joined[name] for name in ("seq", "sender", "recipient", "kind", "round")])
    return Flat(kinds, servers, **{name: column[order] for name, column in joined.items()})


def _servers(part: Slice) -> tuple[str, ...]:
    """Return the servers that occur, the one that messages reach first in front, ties as declared."""
    first: dict[str, tuple[int, int]] = {}
    for kind, columns in part.kinds.items():
        if not len(columns["round"]):
            continue
        at = int(np.min(columns["round"]))
        for late, role in zip((1, 0), part.roles[kind], strict=True):  # who sends speaks after who is reached
            if role != USER:
                first[role] = min(first.get(role, (at, late)), (at, late))
    declared = list(dict.fromkeys(role for ends in part.roles.values() for role in ends))
    return tuple(sorted(first, key=lambda role: (*first[role], declared.index(role))))
