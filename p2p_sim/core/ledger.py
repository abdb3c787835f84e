"""Records of deliveries: counts, each user's maximum, the digest and the trace, taken at the receiver."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core import run_digest
from p2p_sim.core.address_book import World
from p2p_sim.core.kernels_numpy import Each, as_array
from p2p_sim.core.mail import Batch, Examined
from p2p_sim.core.message import USER, Message
from p2p_sim.core.party import Party
from p2p_sim.core.run_digest import Lanes
from p2p_sim.core.trace_level import TraceLevel

Array = npt.NDArray[Any]
Octets = npt.NDArray[np.uint8]
_ROWS = 1 << 18
"""Counts that are added at a time."""
Most = dict[tuple[str, int], tuple[int, int]]
"""By kind and round: the most that one user sent and received; 0 where that end is a server.

Messages to oneself are left out.  Sent is also what was lost; received are also second copies, and what came late.
"""


class Counts:
    """How many messages each of some users sent or received, from row ``first`` on: a byte a user.

    In any threads: where two count at once, the second has a byte a user of its own; a third waits.
    """

    def __init__(self, first: int, users: int, compute: ModuleType):
        self._first, self._users, self._compute = first, users, compute
        self._turns, self._lock = threading.Semaphore(2), threading.Lock()
        self._idle: list[Octets] = []
        self._around: dict[int, int] = {}  # how often the counts of the few came around to 0

    def add(self, rows: range | Array, peers: range | Array | None) -> None:
        """Count one message for each row, but those to oneself."""
        with self._turns:
            counts = self._taken()
            try:
                around = self._compute.tally(rows, peers, self._first, counts).tolist()
            finally:
                self._idle.append(counts)
        if around:
            with self._lock:
                for place in around:
                    self._around[place] = self._around.get(place, 0) + 1

    def _taken(self) -> Octets:
        try:
            return self._idle.pop()
        except IndexError:
            return np.zeros(self._users, np.uint8)

    def most(self, each: Each = map) -> int:
        """Return the largest count, when nobody counts any more.

        ``each``: what does work on some users after the others, or side by side.
        """
        large = (
            times * 256 + sum(int(counts[place]) for counts in self._idle)
            for place, times in self._around.items()
        )
        most: int = max([0, *each(self._most_of, range(0, self._users, _ROWS)), *large])
        return most

    def _most_of(self, low: int) -> int:
        """Return the largest count of some users from ``low`` on, without what came around."""
        parts = [counts[low : low + _ROWS] for counts in self._idle]
        most = [int(counts.max()) for counts in parts]
        if len(parts) < 2:
            return most[0] if most else 0
        wide = np.uint8 if sum(most) < 256 else np.uint16  # the narrow one takes a fraction of the time
        return int(np.add(*parts, dtype=wide).max())


class DeliveryTally:
    """Counts for the users of the rows ``first .. first + users - 1``; ``each``: see ``Counts.most``."""

    def __init__(self, first: int, users: int, compute: ModuleType, each: Each = map):
        self.most: Most = {}
        self._each = each
        self._first, self._users, self._compute = first, users, compute
        self._arrived: dict[tuple[str, int], Counts] = {}
        self._lock = threading.Lock()

    def most_sent(self, message: Message, batch: Batch, rows: range, own: int) -> int:
        """Return the most that one user sends of a block's batch, in any thread.

        ``rows``: of the block; ``own``: how many messages are to oneself.
        """
        if message.sender != USER or not len(batch):
            return 0
        if isinstance(batch.sender, range) or bool((batch.sender[1:] > batch.sender[:-1]).all()):
            return int(own < len(batch))  # one each, but to herself
        counts = Counts(rows.start, len(rows), self._compute)
        counts.add(batch.sender, self._peer(message, batch.to))
        return counts.most()

    def sent(self, message: Message, round: int, most: int) -> None:
        """Take down the most that one user sends of a kind in a round, where any does."""
        self._note(message.kind, round, most, 0)

    def answered(self, message: Message, round: int, asked: tuple[str, int]) -> None:
        """Take down that users answered all that they were asked: kind and round of a question that is closed."""
        self._note(message.kind, round, self.most.get(asked, (0, 0))[1], 0)

    def one_each(self, message: Message, round: int, travelled: int) -> None:
        """Take down messages of which nobody receives two."""
        self._note(message.kind, round, 0, min(travelled, 1))

    def arrived(self, message: Message, round: int, sender: range | Array, to: range | Array | None) -> None:
        """Take down some of what comes to this site's users, in any thread; ``close`` ends it."""
        if message.recipient != USER or to is None or not len(to):
            return
        with self._lock:
            if (message.kind, round) not in self._arrived:
                self._arrived[message.kind, round] = Counts(self._first, self._users, self._compute)
            counts = self._arrived[message.kind, round]
        counts.add(to, self._peer(message, sender))

    def close(self, kind: str, round: int) -> None:
        """Forget who received what of a kind in a round, when all has come."""
        counts = self._arrived.pop((kind, round), None)
        if counts is not None:
            self._note(kind, round, 0, counts.most(self._each))

    def finish(self) -> Most:
        """Return the most of all that was counted, at the end."""
        for key in list(self._arrived):
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


@dataclass
class Count:
    """Messages delivered, those that travelled (a message to oneself does not), and their bytes.

    Lost messages and second copies travelled, and were not delivered.
    """

    messages: int = 0
    travelled: int = 0
    nbytes: int = 0

    def add(self, other: Count) -> None:
        """Add another count."""
        self.messages += other.messages
        self.travelled += other.travelled
        self.nbytes += other.nbytes


@dataclass
class Totals:
    """What the sites of a run know at its end; they add up."""

    counts: dict[tuple[str, int], Count] = field(default_factory=dict)
    lanes: Lanes = (0, 0)
    trace: dict[str, list[dict[str, Array]]] = field(default_factory=dict)
    files: list[dict[str, Any]] = field(default_factory=list)  # what the sinks wrote
    strayed: bool = False  # a user wrote to an id of her own making, not a drawn member or an asker
    faults: dict[tuple[str, str, int], int] = field(default_factory=dict)  # messages by (fault, kind, round)
    dropped: list[Array] = field(default_factory=list)  # ids of users who dropped out
    stopped: set[str] = field(default_factory=set)  # servers that stopped
    compute: dict[tuple[str, int], float] = field(
        default_factory=dict
    )  # CPU seconds by (role, round it leads to)
    work: dict[tuple[str, int, str], int] = field(default_factory=dict)  # operations by (role, round, name)
    most: Most = field(default_factory=dict)

    def add(self, other: Totals) -> None:
        """Add the totals of another site."""
        for key, count in other.counts.items():
            self.counts.setdefault(key, Count()).add(count)
        self.add_lanes(other.lanes)
        self.files += other.files
        self.strayed |= other.strayed
        self.dropped += other.dropped
        self.stopped |= other.stopped
        merge(self.most, other.most)
        for (role, round), seconds in other.compute.items():
            self.spend(role, round, seconds)
        for done, times in other.work.items():
            self.work[done] = self.work.get(done, 0) + times
        for what, number in other.faults.items():
            self.faults[what] = self.faults.get(what, 0) + number
        for kind, parts in other.trace.items():
            self.trace.setdefault(kind, []).extend(parts)

    def spend(self, role: str, round: int, seconds: float) -> None:
        """Add seconds in which a role computed what it sends in a round."""
        self.compute[role, round] = self.compute.get((role, round), 0.0) + seconds

    def add_lanes(self, lanes: Lanes) -> None:
        """Add to the digest."""
        self.lanes = run_digest.added(self.lanes, lanes)

    @property
    def digest(self) -> str:
        """The digest, 32 hexadecimal digits."""
        return run_digest.text(self.lanes)


class Ledger:
    """Takes down what one site receives; ``tally`` also who received how much, None if nobody asks."""

    def __init__(
        self,
        world: World,
        compute: ModuleType,
        digest: bool,
        trace: TraceLevel,
        tally: DeliveryTally | None = None,
        site: int = 0,
    ):
        self.totals, self._tally = Totals(), tally
        self._sink = None if trace.target is None or not trace.keeps else trace.target.open(site)
        self._world, self._compute, self._digest, self._trace = world, compute, digest, trace
        watched = trace.watched(world.users)
        self._watched = None if trace.watch is None else trace.watch.users
        if watched is not None:
            self._watched = np.zeros(world.users, np.bool_)
            self._watched[watched] = True
        self._few = np.zeros(0, np.int64) if self._watched is None else np.flatnonzero(self._watched)

    def examine(self, message: Message, round: int, batch: Batch, *, answers: bool = False) -> Examined:
        """Look at delivered messages, and count who receives them: in any thread, in any order.

        ``answers``: to parties who asked once each, so that each receives one.
        """
        size = len(batch)
        own = self.own(message, batch.sender, batch.to)
        if self._tally is not None and not answers:
            self._tally.arrived(message, round, batch.sender, batch.to)
        if not size or not (self._digest or self._keeps(message)):
            return Examined(own)
        senders = self._world.names(batch.sender) if message.sender == USER else 0
        recipients = self._world.names(batch.to) if message.recipient == USER and batch.to is not None else 0
        addresses = {"sender": senders, "recipient": recipients, "seq": 0 if batch.seq is None else batch.seq}
        if not self._digest:
            return Examined(own, addresses)
        columns = [*addresses.values(), *run_digest.flat(batch.plain.values())]
        lanes = self._compute.absorb(run_digest.salt(f"{message.kind}/{round}"), columns, size)
        return Examined(own, addresses, lanes)

    def record(
        self, message: Message, round: int, batch: Batch, found: Examined, *, answers: bool = False
    ) -> None:
        """Take down delivered messages, which were examined."""
        size, travelled = len(batch), len(batch) - found.to_self
        count = self.totals.counts.setdefault((message.kind, round), Count())
        count.add(Count(size, travelled, travelled * message.nbytes(self._world.sizes)))
        if self._tally is not None and answers and size:
            self._tally.one_each(message, round, travelled)
        self.totals.add_lanes(found.lanes)
        if size and self._keeps(message):
            addresses, fields = found.addresses, batch.plain
            mask = self._chosen(message, batch.sender, batch.to)
            if mask is not None:
                addresses = {name: _picked(column, mask) for name, column in addresses.items()}
                fields, size = {name: column[mask] for name, column in fields.items()}, int(mask.sum())
            self._keep(message.kind, round, addresses, fields, size)

    def parcel_ends(self) -> None:
        """Put away what was kept of one issue from one site."""
        if self._sink is not None:
            self.totals.files += self._sink.cut()

    def fault(
        self, what: str, message: Message, round: int, number: int, *, travelled: bool = False
    ) -> None:  # fmt: skip
        """Take down messages that something happened to; ``travelled``: they cost bytes, and were not delivered."""
        if not number:
            return
        key = what, message.kind, round
        self.totals.faults[key] = self.totals.faults.get(key, 0) + number
        if travelled:
            count = self.totals.counts.setdefault((message.kind, round), Count())
            count.add(Count(0, number, number * message.nbytes(self._world.sizes)))

    def refused(self, what: str, message: Message, round: int, batch: Batch) -> None:
        """Take down messages that came and were refused."""
        self.fault(what, message, round, len(batch), travelled=True)
        if self._tally is not None and len(batch):
            self._tally.arrived(message, round, batch.sender, batch.to)

    def own(self, message: Message, sender: range | Array, recipient: range | Array | None) -> int:
        """Return how many messages are to oneself; a server's to its own role is."""
        if message.sender != message.recipient:
            return 0
        return len(sender) if recipient is None else int(self._compute.meetings(sender, recipient))

    def work(self, role: str, round: int, operation: str, number: int) -> None:
        """Take down cryptographic operations that a role did before it sends in a round."""
        if number:
            key = role, round, operation
            self.totals.work[key] = self.totals.work.get(key, 0) + number

    def spent(self, role: str, round: int, me: Party, seconds: float) -> None:
        """Take down the operations that a program counted, and the seconds it took apart from them."""
        self.totals.spend(role, round, seconds - me.aside)
        me.aside = 0.0
        for operation, number in me.spent.items():
            self.work(role, round, operation, number)
        me.spent.clear()

    def _keeps(self, message: Message) -> bool:
        """Whether any message of a kind may be kept."""
        watch = self._trace.watch
        if watch is None or message.kind in watch.kinds:
            return self._trace.keeps
        return watch.users is not None and USER in (message.sender, message.recipient)

    def _chosen(
        self, message: Message, sender: range | Array, recipient: range | Array | None
    ) -> Array | None:
        """Return a mask of the messages to keep (rows of users as in ``record``), None for all."""
        watch = self._trace.watch
        if self._watched is None or (watch is not None and message.kind in watch.kinds):
            return None
        mask = np.zeros(len(sender), np.bool_)
        if message.sender == USER:
            mask |= self._among(sender)
        if message.recipient == USER and recipient is not None:
            mask |= self._among(recipient)
        return mask

    def _among(self, rows: range | Array) -> Array:
        """Return which of some rows are watched."""
        assert self._watched is not None
        if isinstance(rows, range):
            return self._watched[rows.start : rows.stop]
        if len(self._few) == 1:  # a look at each is faster than a table
            return np.asarray(rows == self._few[0])
        return self._watched[rows]

    def _keep(
        self,
        kind: str,
        round: int,
        addresses: dict[str, range | Array | int],
        fields: dict[str, Array],
        size: int,
    ) -> None:
        if self._sink is not None:
            if size:
                self._sink.take(kind, round, addresses, fields)
            return
        part: dict[str, Array] = {"round": np.broadcast_to(np.int32(round), size)}
        for name, column in addresses.items():
            part[name] = (
                np.broadcast_to(np.int32(column), size) if isinstance(column, int) else as_array(column)
            )
        self.totals.trace.setdefault(kind, []).append(part | fields)


def _picked(column: range | Array | int, mask: Array) -> Array | int:
    return column if isinstance(column, int) else as_array(column)[mask]
