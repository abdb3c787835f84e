"""What a site seals and opens, for real or not: operations are counted, and what does not open is refused."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from p2p_sim.core.fate import NO_ATTACK, Fate
from p2p_sim.core.ledger import Ledger
from p2p_sim.core.mail import Batch
from p2p_sim.core.message import READER, SEALED, USER, Message
from p2p_sim.core.plain import as_array
from p2p_sim.core.sealing import Seals
from p2p_sim.core.world import World

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Sealer:
    """Seals and opens at one site; ``seals``: None where that is modelled."""

    world: World
    ledger: Ledger
    fate: Fate | None
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
        attack = NO_ATTACK if self.fate is None else self.fate.attack(message, round, batch)
        if self.seals is None:
            batch, good = self._modelled(message, batch, attack.good(len(batch)))
            copies = attack.copied[good[attack.copied]]
        else:
            batch, good, copies = self.seals.open(message, batch, attack)
        for what, refused in attack.found(good).items():
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
