"""``Site``: the parties of a run that live in one process, in blocks.  Every backend is made of sites.

A site runs its blocks until they wait, divides what they sent into parcels by destination site, and keeps the
mailboxes of what it received.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.address_book import World
from p2p_sim.core.blas_threads import ONE_BLAS_THREAD
from p2p_sim.core.block import Block, Item, Step
from p2p_sim.core.columns import Inbox, Rows
from p2p_sim.core.errors import ProtocolError
from p2p_sim.core.fault_injection import FaultInjection
from p2p_sim.core.kernels_numpy import as_array
from p2p_sim.core.ledger import DeliveryTally, Ledger, Totals
from p2p_sim.core.mail import Batch, Examined, Mailbox, Parcel
from p2p_sim.core.message import USER, Message, field_dtype, field_shape
from p2p_sim.core.outgoing import Answer, looked
from p2p_sim.core.party import Party
from p2p_sim.core.protocol import Protocol
from p2p_sim.core.sealing import Sealer, Seals
from p2p_sim.core.threads import ALONE, Threads
from p2p_sim.core.trace_level import TraceLevel

Array = npt.NDArray[Any]
Bundle = list[Parcel]
"""Everything that one site hands to another after one call."""

Taken = tuple[list[tuple[Item, ...]], list[list[tuple[int, tuple[int, Batch | Answer]]]]]
"""Of each step its items, and what was sent in it: (number of the block, (place among the items, rows))."""


@dataclass(frozen=True)
class Directory:
    """Where everybody lives: user site i holds the rows ``bounds[i] .. bounds[i + 1] - 1``."""

    bounds: tuple[int, ...]
    user_sites: tuple[int, ...]
    servers: dict[str, int]

    @property
    def sites(self) -> int:
        """How many sites there are."""
        return len(set(self.user_sites) | set(self.servers.values()))

    def hosts(self, role: str) -> tuple[int, ...]:
        """Return the sites on which a role has parties."""
        return self.user_sites if role == USER else (self.servers[role],)


@dataclass
class SiteReport:
    """What a site tells the engine after a call.

    ``steps``: the items of each step taken.  ``full``: whether every party sent it exactly once.
    ``destinations``: the other sites for which there is something.  ``seconds``: how long the call took, where somebody
    has looked; ``delivered``: messages that have come to the site so far.
    """

    steps: list[tuple[Item, ...]]
    full: list[list[bool]]
    destinations: list[int]
    done: bool
    stopped: bool = False
    seconds: float = 0.0
    delivered: int = 0


@dataclass
class Site:
    """The parties of one process.

    ``parties``: the blocks of each role that lives here; ``injection``: what goes wrong; ``costs``: whether each user's
    messages are counted; ``clock``: the seconds that this thread has computed so far; ``seals``: what seals and opens,
    None where that is modelled; ``threads``: what works on the blocks.  Results do not depend on how many these are:
    they are put together in the order of the blocks, by the calling thread.  ``release``: is handed a role and what
    each of its blocks returns, in their order, by ``finish`` at the latest, which returns no outputs then.
    """

    protocol: Protocol
    world: World
    directory: Directory
    number: int
    parties: dict[str, list[Party]]
    compute: ModuleType
    digest: bool
    trace: TraceLevel
    progress: Callable[[str, int, int], None] | None = None
    injection: FaultInjection | None = None
    costs: bool = False
    clock: Callable[[], float] = float  # none: always 0.0
    seals: Seals | None = None
    threads: Threads = ALONE
    release: Callable[[str, dict[str, Array]], None] | None = None
    _mail: dict[tuple[str, int], Mailbox] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._messages: dict[str, Message] = self.protocol.messages()
        users = self.parties.get(USER, [])
        self._first = users[0].rows.start if users else 0
        self._users = sum(me.size for me in users)
        self._tally = None
        if self.costs:
            self._tally = DeliveryTally(self._first, self._users, self.compute, self.threads.map)
        self._ledger = Ledger(self.world, self.compute, self.digest, self.trace, self._tally, self.number)
        self._steps = dict.fromkeys(self.parties, 0)
        self._sorting = threading.RLock()
        self._injection = (
            self.injection if self.injection is not None and self.injection.touches_messages else None
        )
        self._stay = {  # kinds that come to this site as they are sent
            kind
            for kind, message in self._messages.items()
            if self._injection is None
            and message.sealed_for is None
            and self.directory.hosts(message.recipient) == (self.number,)
        }
        if self._injection is not None:
            self._injection.settle(self.world, self._first, self._users, self._ledger)
        self._sealer = Sealer(self.world, self._ledger, self._injection, self.seals)
        for me in itertools.chain.from_iterable(self.parties.values()):
            me.clock = self.clock
        last = {
            role: None if self._injection is None else self._injection.last(role) for role in self.parties
        }
        self._blocks = {
            role: [Block(self.protocol, me, self.world, i, last[role]) for i, me in enumerate(blocks)]
            for role, blocks in self.parties.items()
        }

    def advance(
        self, role: str, clock: int, wanted: list[tuple[str, int, bool] | None], bundles: list[Bundle]
    ) -> tuple[SiteReport, list[Bundle]]:
        """Run a role until it waits.  ``clock``: round of its last step; ``wanted``: issues of its inboxes."""
        for parcel in (parcel for bundle in bundles for parcel in bundle):
            self._accept(parcel)
        for issue in wanted:
            if issue is not None:
                self._box(self._messages[issue[0]], issue[1])
                if self._tally is not None:
                    self._tally.close(*issue[:2])
        steps, taken = self._resume(role, clock, wanted)
        for issue in wanted:
            if issue is not None:
                self._mail.pop(issue[:2], None)  # whoever still needs it holds it by its inbox
        out: list[Bundle] = [[] for _ in range(self.directory.sites)]
        full = [[False] * len(items) for items in steps]
        for place, sent in enumerate(taken):
            if self._injection is not None and sent and role == USER:
                self._injection.leave(self._steps[role] + place)
            for index in sorted({item for _, (item, _) in sent}):
                kind = steps[place][index][1]
                parts = [(number, part) for number, (item, part) in sent if item == index]
                full[place][index] = self._dispatch(role, self._messages[kind], clock + 1 + place, parts, out)
        self._steps[role] += len(steps)
        for parcel in out[self.number]:
            self._accept(parcel)
        out[self.number] = []
        destinations = [site for site, bundle in enumerate(out) if bundle]
        stopped = self._stopped(role)
        self._ledger.totals.stopped |= {role} if stopped else set()
        return SiteReport(steps, full, destinations, self._done(role), stopped), out

    def _resume(self, role: str, clock: int, wanted: list[tuple[str, int, bool] | None]) -> Taken:
        """Run the blocks of a role until they wait; return the items of each step, and what each block sent in it."""
        blocks = self._blocks[role]

        def resume(block: Block) -> tuple[Block, list[Step], float]:
            inboxes = [None if issue is None else self._open(issue, block) for issue in wanted]
            begun = self.clock()
            mine = block.resume(inboxes)
            seconds = self.clock() - begun
            for place, step in enumerate(mine):
                for item, part in step.sent:
                    if isinstance(part, Batch):
                        self._look(step.items[item][1], clock + 1 + place, part, block.me.rows)
            return block, mine, seconds

        taken: list[list[tuple[int, tuple[int, Batch | Answer]]]] = []
        steps: list[tuple[Item, ...]] | None = None
        with ONE_BLAS_THREAD, closing(self.threads.map(resume, blocks)) as done:
            for block, mine, seconds in done:
                self._ledger.spent(role, clock + 1, block.me, seconds)
                items = [step.items for step in mine]
                if steps is None:
                    steps, taken = items, [[] for _ in items]
                elif items != steps:
                    raise disagreement(role, steps, items)
                for place, step in enumerate(mine):
                    taken[place] += [(block.number, send) for send in step.sent]
                if block.done and self._releases_early(role):
                    self._release(block)
                if self.progress is not None:
                    self.progress("", block.me.rows.stop, blocks[-1].me.rows.stop)
        return steps or [], taken

    def _look(self, kind: str, round: int, batch: Batch, rows: range) -> None:
        """Examine at once, in the thread that made it, what comes to this site as it is."""
        message = self._messages[kind]
        if kind in self._stay:
            batch.examined = self._ledger.examine(message, round, batch)
            if self._tally is not None:
                batch.most_sent = self._tally.most_sent(message, batch, rows, batch.examined.to_self)

    def close(self) -> None:
        """End the programs of a run that has failed."""
        for block in itertools.chain.from_iterable(self._blocks.values()):
            block.close()

    def finish(self, bundles: list[Bundle]) -> tuple[Totals, dict[str, list[dict[str, Array]]]]:
        """Return this site's totals, and the outputs of its blocks by role, where they are not released.

        ``bundles``: what came too late for all.
        """
        for parcel in (parcel for bundle in bundles for parcel in bundle):
            self._accept(parcel)
        outputs: dict[str, list[dict[str, Array]]] = {}
        for role, blocks in self._blocks.items():
            if self.release is None:
                outputs[role] = [self._output(block) for block in blocks]
            elif not self._releases_early(role):
                for block in blocks:
                    self._release(block)
        if self._tally is not None:
            self._ledger.totals.most = self._tally.finish()
        return self._ledger.totals, outputs

    @property
    def delivered(self) -> int:
        """How many messages have come to this site so far."""
        return sum(count.messages for count in self._ledger.totals.counts.values())

    def _output(self, block: Block) -> dict[str, Array]:
        users = self._injection is not None and block.me.role == USER
        return block.output_of(self._injection.present(block.me.rows) if users and self._injection else None)

    def _releases_early(self, role: str) -> bool:
        """Whether blocks release their outputs as they end: not if users may drop out in the step that ends there.

        A server's is of one block, and is released when messages no longer take its memory.
        """
        drops = self._injection is not None and bool(self._injection.faults.drop)
        return self.release is not None and role == USER and not drops

    def _release(self, block: Block) -> None:
        """Hand over what a block has returned, and let go of it."""
        assert self.release is not None
        self.release(block.me.role, self._output(block))
        block.forget_output()

    def _done(self, role: str) -> bool:
        return all(block.done for block in self._blocks[role])

    def _stopped(self, role: str) -> bool:
        return any(block.stopped for block in self._blocks[role])

    def _accept(self, parcel: Parcel) -> None:
        message, arrived, injection = self._messages[parcel.kind], parcel.batches, self._injection
        if injection is not None:
            away = message.recipient != USER and self._stopped(message.recipient)
            arrived = [injection.arrive(message, parcel.round, b, away=away) for b in arrived]
        if message.opener == message.recipient:
            arrived = [self._sealer.open(message, parcel.round, batch) for batch in arrived]
        read = (
            arrived if injection is None else [injection.in_time(message, parcel.round, b) for b in arrived]
        )
        answers = parcel.answers and injection is None
        self._box(message, parcel.round).parcels.append(
            Parcel(parcel.kind, parcel.round, parcel.source, read, answers)
        )

        def examine(batch: Batch) -> Examined:
            return self._ledger.examine(message, parcel.round, batch, answers=answers)

        fresh = [batch for batch in arrived if batch.examined is None]
        with closing(self.threads.map(examine, fresh)) as found:
            for batch in arrived:
                each = next(found) if batch.examined is None else batch.examined
                batch.examined = None  # let go of
                self._ledger.record(message, parcel.round, batch, each, answers=answers)
        self._ledger.parcel_ends()

    def _box(self, message: Message, round: int) -> Mailbox:
        first, parties = (self._first, self._users) if message.recipient == USER else (0, 1)
        return self._mail.setdefault((message.kind, round), Mailbox(message.kind, round, first, parties))

    def _open(self, issue: tuple[str, int, bool], block: Block) -> Inbox:
        message = self._messages[issue[0]]
        box = self._box(message, issue[1])
        each = self.threads.map if len(self._blocks[block.me.role]) == 1 else map  # others have the threads

        def load() -> Rows:
            rows = box.answers(block.number, block.me.rows, self.compute)
            if rows is None:
                with self._sorting:  # whoever looks first sorts for all blocks
                    box.sort(self._empty(message), self.compute, each)
                low = block.me.rows.start - box.first
                rows = box.rows(low, low + block.me.size)
            origin = box.origin if message.sealed_for is not None else None
            return Rows(
                rows.layout,
                lambda: sender(rows),
                rows.seq,
                rows.fields,
                origin,
                one_a_sender=rows.one_a_sender,
            )

        def sender(rows: Rows) -> Array:
            with self._sorting:
                found = rows.sender
            return self._names(found, message)

        ticket = box if issue[2] and message.sender == message.recipient == USER else None
        return Inbox(message, load, block.me.role, ticket)

    def _names(self, sender: Array, message: Message) -> Array:
        names = self.world.names(sender) if message.sender == USER else sender
        return as_array(names).astype(np.int64, copy=False)

    def _empty(self, message: Message) -> dict[str, Array]:
        sizes = self.world.sizes
        return {k: np.zeros((0, *field_shape(f, sizes)), field_dtype(f)) for k, f in message.fields.items()}

    def _dispatch(
        self, role: str, message: Message, round: int, parts: list[tuple[int, Batch | Answer]], out: list[Bundle]
    ) -> bool:  # fmt: skip
        """Make parcels of what the blocks sent; return whether every party sent exactly one."""
        answers = [part for _, part in parts if isinstance(part, Answer)]
        if len(answers) == len(parts) and len({id(answer.inbox.ticket) for answer in answers}) == 1:
            self._answer(message, round, answers, out)
            return False
        blocks = self._blocks[role]
        batches = [looked(p, blocks[n].me, self.world, n) if isinstance(p, Answer) else p for n, p in parts]
        self._ledger.totals.strayed |= any(batch.strays for batch in batches)
        if self._injection is not None:
            batches = [self._injection.sent(message, round, batch) for batch in batches]
        if self._tally is not None and message.sender == USER and any(map(len, batches)):
            self._tally.sent(message, round, self._most_sent(message, parts, batches))
        if message.sealed_for is not None:
            batches = self._sealer.seal(message, round, batches)
        divided = [self._divide(message, batch) for batch in batches]
        for site in self.directory.hosts(message.recipient):
            mine = [part[site] for part in divided if site in part]
            if mine:
                out[site].append(Parcel(message.kind, round, self.number, mine))
        return self._injection is None and all(batch.full for batch in batches)

    def _most_sent(
        self, message: Message, parts: list[tuple[int, Batch | Answer]], batches: list[Batch]
    ) -> int:
        """Return the most that one user sends: each is in one block, and a block sends a kind once a step."""
        assert self._tally is not None
        tally, blocks = self._tally, self._blocks[message.sender]

        def most(each: tuple[Batch, range]) -> int:
            batch, rows = each
            return tally.most_sent(message, batch, rows, self._ledger.own(message, batch.sender, batch.to))

        fresh = [
            (batch, blocks[number].me.rows)
            for (number, _), batch in zip(parts, batches, strict=True)
            if batch.most_sent is None
        ]
        known = (batch.most_sent for batch in batches if batch.most_sent is not None)
        return max([*known, *self.threads.map(most, fresh)])

    def _divide(self, message: Message, batch: Batch) -> dict[int, Batch]:
        """Split a batch by destination site."""
        sites = self.directory.hosts(message.recipient)
        if not len(batch):
            return {}
        if batch.to is None or len(sites) == 1:
            return {sites[0]: batch}
        bounds, to = np.array(self.directory.bounds[1:-1], np.int64), as_array(batch.to)
        low, high = np.searchsorted(bounds, np.array([to.min(), to.max()]), side="right")
        if low == high:
            return {sites[low]: batch}
        order, starts = self.compute.divide(to, bounds)
        spans = [order[a:b] for a, b in itertools.pairwise(starts)]
        return {site: batch.pick(span) for site, span in zip(sites, spans, strict=True) if len(span)}

    def _answer(self, message: Message, round: int, answers: list[Answer], out: list[Bundle]) -> None:
        """Answer questions in their order of arrival: each gets the value of the party it was put to."""
        values = {
            k: self.compute.table([a.fields[k] for a in answers], self.threads.map) for k in message.fields
        }
        box: Mailbox = answers[0].inbox.ticket

        def answer(asked: Batch) -> Batch:
            assert asked.to is not None
            rows = as_array(asked.to)
            fields = {k: self.compute.gather(v, rows, self._first) for k, v in values.items()}
            answers = Batch(asked.to, asked.sender, None, fields, False, asked.block)
            if message.kind in self._stay:
                answers.examined = self._ledger.examine(message, round, answers, answers=True)
            return answers

        for asked in box.parcels:
            batches = list(self.threads.map(answer, asked.batches))
            out[asked.source].append(Parcel(message.kind, round, self.number, batches, answers=True))
            if self._tally is not None and batches:
                self._tally.answered(message, round, (box.kind, box.round))


def disagreement(role: str, one: list[tuple[Item, ...]], other: list[tuple[Item, ...]]) -> ProtocolError:
    """Say that two blocks of a role went different ways."""
    step = next(
        (i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )

    def words(steps: list[tuple[Item, ...]]) -> str:
        return (
            " and ".join(f"{verb} {kind}" for verb, kind in steps[step]) if step < len(steps) else "the end"
        )

    return ProtocolError(
        f"role {role!r}: one block comes to {words(one)}, another to {words(other)}: every block must yield the same "
        "kinds at the same step; put a condition on data into when=, never around a yield"
    )
