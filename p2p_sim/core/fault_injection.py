"""Carries out faults: which users drop out, which messages arrive and are read, and which labels are false.

A decision is a draw of role "fault" for one user, or for one message by its id, so it is the same wherever, and in
however small a part of the run, it is made.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from p2p_sim.core import exact, kernels_numpy
from p2p_sim.core.address_book import World
from p2p_sim.core.faults import CHANCES, Faults, constant
from p2p_sim.core.ledger import Ledger
from p2p_sim.core.mail import Batch
from p2p_sim.core.message import USER, Message
from p2p_sim.core.population import Population
from p2p_sim.core.random_words import stream

Array = npt.NDArray[Any]
Bools = npt.NDArray[np.bool_]
Ids = range | Array

_SLOT = 31  # a recipient and a sequence number, 31 bits each, make the slot of a message


@dataclass(frozen=True)
class Forgeries:
    """Masks of a batch's messages: bytes changed, sealed under a wrong key, copied; None where nothing is."""

    tampered: Bools | None = None
    misdirected: Bools | None = None
    replayed: Bools | None = None

    @property
    def copied(self) -> Array:
        """The places of the messages that are copied."""
        return np.zeros(0, np.int64) if self.replayed is None else np.flatnonzero(self.replayed)

    def good(self, size: int) -> Bools:
        """Return a mask of the messages that open."""
        if self.tampered is None or self.misdirected is None:
            return np.ones(size, np.bool_)
        return ~(self.tampered | self.misdirected)

    def found(self, good: Bools) -> dict[str, Bools]:
        """Return masks of what did not open, by what was done to it; "unopened" if nothing was."""
        bad, found = ~good, {}
        for name in ("tampered", "misdirected"):
            mask = getattr(self, name)
            if mask is not None:
                found[name] = bad & mask
                bad = bad & ~mask
        return found | {"unopened": bad}


NO_FORGERIES = Forgeries()


class FaultDraws(Protocol):
    """Where decisions come from."""

    def users(self, name: str, step: int, p: float, ids: Ids) -> Bools:
        """Decide for each user, true with probability ``p``."""

    def labels(self, name: str, labels: int, ids: Ids) -> Array:
        """Return a uniform label for each user."""

    def messages(self, name: str, round: int, p: float, ids: tuple[Array, Array, Array]) -> Bools:
        """Decide for each message, given by its sender, recipient and sequence number."""


class KeyedFaultDraws:
    """Decisions as pure functions of the seed, by the bit contract."""

    def __init__(self, seed: int, compute: ModuleType):
        self._seed, self._compute = seed, compute

    def users(self, name: str, step: int, p: float, ids: Ids) -> Bools:
        """Compare each user's word of stream ``fault/NAME/STEP``."""
        return _below(self._words(name, step, ids), exact.threshold(name, p))

    def labels(self, name: str, labels: int, ids: Ids) -> Array:
        """Take the high half of word times ``labels``."""
        drawn: Array = self._compute.below(self._words(name, 0, ids), np.uint64(labels))
        return drawn

    def messages(self, name: str, round: int, p: float, ids: tuple[Array, Array, Array]) -> Bools:
        """Compare the sender's item word ``recipient * 2^31 + seq`` of stream ``fault/NAME/ROUND``."""
        sender, recipient, seq = (column.astype(np.int64) for column in ids)
        slots = (recipient << _SLOT) | seq
        words = self._compute.item_words(self._seed, stream("fault", name, round), sender, slots)
        return _below(words, exact.threshold(name, p))

    def _words(self, name: str, step: int, ids: Ids) -> Array:
        key = stream("fault", name, step)
        if isinstance(ids, range):
            drawn: Array = self._compute.words(self._seed, key, ids.start, len(ids))
            return drawn
        return np.asarray(self._compute.words_at(self._seed, key, ids))


class FaultInjection:
    """The faults of a run as one site carries them out."""

    def __init__(self, faults: Faults, chance: FaultDraws):
        self.faults, self._chance = faults, chance
        self._gone = np.zeros(0, np.bool_)

    @property
    def touches_messages(self) -> bool:
        """Whether any message can be touched."""
        return self.faults.stop is not None or any(getattr(self.faults, name) for name in CHANCES)

    def settle(self, world: World, first: int, users: int, ledger: Ledger) -> None:
        """Take charge of a site: the users of the rows from ``first`` on."""
        self._world, self._first, self._ledger = world, first, ledger
        self._gone = np.zeros(users, np.bool_)

    def last(self, role: str) -> int | None:
        """Return the step before which a role stops, None if it does not."""
        stop = self.faults.stop
        return stop[1] if stop is not None and stop[0] == role else None

    def labels_given(self, y: Array, ids: Ids, labels: int) -> Array:
        """Return the labels that the users' programs are given."""
        if self.faults.lie is None:
            return y
        kind, share = self.faults.lie
        liars = self._chance.users("lie", 0, share, ids)
        if kind == "random":
            replaced = self._chance.labels("label", labels, ids)
        elif kind == "flip":
            replaced = (y.astype(np.int64) + 1) % labels
        else:
            replaced = np.full(len(y), constant(kind))
        return np.where(liars, replaced.astype(y.dtype), y)

    def leave(self, step: int) -> None:
        """Let users drop out before a step in which their program sends."""
        if not self.faults.drop or not len(self._gone):
            return
        ids = self._world.names(range(self._first, self._first + len(self._gone)))
        leaving = self._chance.users("drop", step, self.faults.drop, ids) & ~self._gone
        self._gone |= leaving
        self._ledger.totals.dropped.append(np.asarray(kernels_numpy.as_array(ids)[leaving], np.int64))

    def present(self, rows: range) -> Bools | None:
        """Return a mask of the users of some rows who are still there, None if nobody can leave."""
        if not self.faults.drop:
            return None
        here: Bools = ~self._gone[rows.start - self._first : rows.stop - self._first]
        return here

    def sent(self, message: Message, round: int, batch: Batch) -> Batch:
        """Return what is sent of a batch: nothing by those who dropped out."""
        if message.sender != USER or not self.faults.drop:
            return batch
        here = ~self._gone[kernels_numpy.as_array(batch.sender) - self._first]
        self._ledger.fault("unsent", message, round, int(np.count_nonzero(~here)))
        return _picked(batch, here)

    def arrive(self, message: Message, round: int, batch: Batch, *, away: bool) -> Batch:
        """Return what arrives of a batch, each message once; count the others.

        ``away``: whether the server it goes to has stopped.
        """
        travels = self._travels(message, batch)
        arrives = ~(self._toss("loss", message, round, batch) & travels)
        self._ledger.fault("lost", message, round, int(np.count_nonzero(~arrives)), travelled=True)
        batch = _picked(batch, arrives)
        arrives = self._there(message, batch, away)
        self._ledger.fault("undelivered", message, round, int(np.count_nonzero(~arrives)), travelled=True)
        batch = _picked(batch, arrives)
        return self._once(message, round, batch)

    def in_time(self, message: Message, round: int, batch: Batch) -> Batch:
        """Return what of a batch that arrived is read."""
        late = self._toss("late", message, round, batch) & self._travels(message, batch)
        self._ledger.fault("late", message, round, int(np.count_nonzero(late)))
        return _picked(batch, ~late)

    def forgeries(self, message: Message, round: int, batch: Batch) -> Forgeries:
        """Return what is done to a sealed message on its way to who opens it."""
        if not any(getattr(self.faults, name) for name in ("tamper", "misdirect", "replay")):
            return NO_FORGERIES
        travels = self._travels(message, batch)
        tampered = self._toss("tamper", message, round, batch) & travels
        misdirected = self._toss("misdirect", message, round, batch) & travels & ~tampered
        replayed = self._toss("replay", message, round, batch) & travels & ~tampered & ~misdirected
        return Forgeries(tampered, misdirected, replayed)

    def _once(self, message: Message, round: int, batch: Batch) -> Batch:
        """Let some messages come twice, and refuse each whose id has come before."""
        twice = self._toss("duplicate", message, round, batch) & self._travels(message, batch)
        if not twice.any():
            return batch
        wire = batch.pick(np.concatenate([np.arange(len(batch)), np.flatnonzero(twice)]))
        new = first_of_each(*self._ids(message, wire))
        self._ledger.refused("duplicate", message, round, _picked(wire, ~new))
        return _picked(wire, new)

    def _there(self, message: Message, batch: Batch, away: bool) -> Bools:
        """Return a mask of the messages whose recipient is still there."""
        if message.recipient == USER and self.faults.drop and batch.to is not None:
            here: Bools = ~self._gone[kernels_numpy.as_array(batch.to) - self._first]
            return here
        return np.full(len(batch), not away)

    def _travels(self, message: Message, batch: Batch) -> Bools:
        """Return a mask of the messages that are not to oneself."""
        if message.sender != message.recipient:
            return np.ones(len(batch), np.bool_)
        if batch.to is None:
            return np.zeros(len(batch), np.bool_)
        return np.asarray(kernels_numpy.as_array(batch.sender) != kernels_numpy.as_array(batch.to))

    def _toss(self, name: str, message: Message, round: int, batch: Batch) -> Bools:
        p = getattr(self.faults, name)
        if not p or not len(batch):
            return np.zeros(len(batch), np.bool_)
        return self._chance.messages(f"{name}:{message.kind}", round, p, self._ids(message, batch))

    def _ids(self, message: Message, batch: Batch) -> tuple[Array, Array, Array]:
        """Return what tells a message from others of its kind and round: sender, recipient, sequence number."""
        zeros = np.zeros(len(batch), np.int64)
        sender = kernels_numpy.as_array(self._world.names(batch.sender)) if message.sender == USER else zeros
        users = message.recipient == USER and batch.to is not None
        recipient = (
            kernels_numpy.as_array(self._world.names(batch.to)) if users and batch.to is not None else zeros
        )
        return sender, recipient, zeros if batch.seq is None else kernels_numpy.as_array(batch.seq)


def first_of_each(*ids: Array) -> Bools:
    """Return a mask of the rows that no earlier row equals."""
    order = np.lexsort(ids)  # stable: of equal rows the earliest comes first
    new = np.ones(len(order), np.bool_)
    if len(order):
        new[1:] = np.any([column[order][1:] != column[order][:-1] for column in ids], axis=0)
    mask = np.zeros(len(order), np.bool_)
    mask[order[new]] = True
    return mask


def _picked(batch: Batch, mask: Bools) -> Batch:
    return batch if mask.all() else batch.pick(np.flatnonzero(mask))


def _below(words: Array, bound: int) -> Bools:
    return np.ones(len(words), np.bool_) if bound >= exact.WORD else np.asarray(words < np.uint64(bound))


def faulty(faults: Faults | None, dropped: list[Array], people: Population, seed: int) -> dict[str, Array]:
    """Return the ids of the users of a run who "dropped" out and who "lied", ascending."""
    found: dict[str, Array] = {}
    if faults is not None and faults.drop:
        found["dropped"] = np.sort(np.concatenate([np.zeros(0, np.int64), *dropped]))
    if faults is not None and faults.lie is not None:
        ids = range(people.users) if people.ids is None else people.ids
        lying = KeyedFaultDraws(seed, kernels_numpy).users("lie", 0, faults.lie[1], ids)
        found["lied"] = np.asarray(kernels_numpy.as_array(ids)[lying], np.int64)
    return found
