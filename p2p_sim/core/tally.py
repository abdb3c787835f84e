"""The most that any one user of a site sends and receives of a kind in a round: what the slowest of them waits for."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.mail import Batch
from p2p_sim.core.message import USER, Message

Array = npt.NDArray[Any]
Most = dict[tuple[str, int], tuple[int, int]]
"""By kind and round: the most that one user sent and received; 0 where that end is a server.

Messages to oneself are left out.  Sent is also what was lost; received are also second copies, and what came late.
"""


class Tally:
    """Counts for the users of the rows ``first .. first + users - 1``."""

    def __init__(self, first: int, users: int, compute: ModuleType):
        self.most: Most = {}
        self._first, self._users, self._compute = first, users, compute
        self._came: dict[tuple[str, int], Array] = {}

    def sent(self, message: Message, round: int, batches: Sequence[Batch]) -> None:
        """Take down all that this site's users send of a kind in a round."""
        if message.sender == USER and any(map(len, batches)):
            counts = np.zeros(self._users, np.int32)
            for batch in batches:
                self._compute.tally(batch.sender, self._peer(message, batch.to), self._first, counts)
            self._note(message.kind, round, int(counts.max()), 0)

    def came(self, message: Message, round: int, sender: range | Array, to: range | Array | None) -> None:
        """Take down some of what comes to this site's users; ``close`` ends it."""
        if message.recipient == USER and to is not None and len(to):
            key = message.kind, round
            if key not in self._came:
                self._came[key] = np.zeros(self._users, np.int32)
            self._compute.tally(to, self._peer(message, sender), self._first, self._came[key])

    def close(self, kind: str, round: int) -> None:
        """Forget who received what of a kind in a round, when all has come."""
        counts = self._came.pop((kind, round), None)
        if counts is not None:
            self._note(kind, round, 0, int(counts.max()))

    def finish(self) -> Most:
        """Return the most of all that was counted, at the end."""
        for key in list(self._came):
            self.close(*key)
        return self.most

    def _peer(self, message: Message, rows: range | Array | None) -> range | Array | None:
        return rows if message.sender == message.recipient else None

    def _note(self, kind: str, round: int, sent: int, received: int) -> None:
        merge(self.most, {(kind, round): (sent, received)})


def merge(most: Most, other: Most) -> None:
    """Add what other users sent and received."""
    for key, (sent, received) in other.items():
        before = most.get(key, (0, 0))
        most[key] = max(before[0], sent), max(before[1], received)
