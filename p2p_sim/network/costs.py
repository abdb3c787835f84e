"""What a run costs each role, and how long the protocol would take: a small model, added up from counts.

Rounds are the engine's logical clock: a message of round r is sent after its sender's own rounds before r and after all
she has received, so rounds follow each other and their times add.  In a round

1. every sender computes, then puts her bytes on her link, and one latency passes: parties do so in parallel, so the
   slowest counts;
2. every recipient takes in her bytes from her link, the servers those of all users: again the slowest counts.

Roles send in parallel too.  Sending and receiving do not overlap within a round and nobody runs ahead of the clock,
so the time is an upper figure for this model, which leaves out contention inside the network, retransmission and
connection set-up.  The slowest user is taken to have the most messages *and* the slowest link; computing is shared
evenly among a role's parties.

What is lost, or finds its recipient gone, is sent and not received.  Second copies are made on the way: they are
received and not sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from p2p_sim.core.errors import InputError
from p2p_sim.core.ledger import Count
from p2p_sim.core.message import USER, Message
from p2p_sim.network.channels import Links

NOT_RECEIVED = ("lost", "undelivered")
NOT_SENT = ("duplicate", "replayed")
"""Faults of messages that travelled, as ``Totals.faults`` names them."""


@dataclass
class Costs:
    """What a role's parties do together: messages and bytes on the wire, operations, seconds of computing."""

    role: str
    messages_up: int = 0
    messages_down: int = 0
    bytes_up: int = 0
    bytes_down: int = 0
    operations: dict[str, int] = field(default_factory=dict)
    compute_seconds: float = 0.0

    def add(self, other: Costs) -> None:
        """Add what the same role did elsewhere."""
        self.messages_up += other.messages_up
        self.messages_down += other.messages_down
        self.bytes_up += other.bytes_up
        self.bytes_down += other.bytes_down
        self.compute_seconds += other.compute_seconds
        for name, count in other.operations.items():
            self.operations[name] = self.operations.get(name, 0) + count


@dataclass
class Figures:
    """One role in one round: its costs, and bytes and seconds of the party that has most."""

    costs: Costs
    most_up: float = 0.0
    most_down: float = 0.0
    most_compute: float = 0.0


Round = dict[str, Figures]
"""One round's figures by role."""


@dataclass(frozen=True)
class Work:
    """What roles do before they send: ``operations`` by (role, round, name), ``seconds`` by (role, round)."""

    operations: Mapping[tuple[str, int, str], int] = field(default_factory=dict)
    seconds: Mapping[tuple[str, int], float] = field(default_factory=dict)
    users: int = 1


NONE = Work()


@dataclass(frozen=True)
class Leg:
    """A round's part of the critical path.

    ``sender`` takes longest to compute and send, ``recipient`` to receive; None where nobody does.  Seconds.
    """

    round: int
    sender: str | None
    computing: float
    sending: float
    recipient: str | None
    receiving: float

    @property
    def seconds(self) -> float:
        """All of it."""
        return self.computing + self.sending + self.receiving


def rounds(
    counts: Mapping[tuple[str, int], Count],
    messages: Mapping[str, Message],
    most: Mapping[tuple[str, int], tuple[int, int]],
    work: Work = NONE,
    faults: Mapping[tuple[str, str, int], int] = MappingProxyType({}),
) -> dict[int, Round]:
    """Return the figures of each round, ascending, from the engine's counts by (kind, round).

    ``most``: for each (kind, round), the most that one user sends and the most that one receives; a server sends and
    receives all of a kind.  ``faults``: messages by (fault, kind, round).  Raises InputError where ``most`` lacks what
    users sent or received.
    """
    by_round: dict[int, Round] = {}
    for (kind, number), count in counts.items():
        if not count.travelled:
            continue
        message, each = messages[kind], count.nbytes // count.travelled
        for role, up, absent in ((message.sender, True, NOT_SENT), (message.recipient, False, NOT_RECEIVED)):
            total = count.travelled - sum(faults.get((what, kind, number), 0) for what in absent)
            if total:
                figures = _figures(by_round, number, role)
                largest = _largest(most, kind, number, up) if role == USER else total
                _put(figures, total, each, largest, up)
    for (role, number, operation), times in work.operations.items():
        done = _figures(by_round, number, role).costs.operations
        done[operation] = done.get(operation, 0) + times
    for (role, number), seconds in work.seconds.items():
        figures = _figures(by_round, number, role)
        figures.costs.compute_seconds += seconds
        figures.most_compute += seconds / (work.users if role == USER else 1)
    return dict(sorted(by_round.items()))


def critical_path(path: Mapping[int, Round], links: Mapping[str, Links]) -> list[Leg]:
    """Return each round's slowest sending and slowest receiving, whose seconds add up to the protocol's."""
    legs = []
    for number, figures in path.items():
        leg = Leg(number, None, 0.0, 0.0, None, 0.0)
        for role, figure in figures.items():
            sending = _link(links, role).sending(figure.most_up) if figure.most_up else 0.0
            if figure.most_compute + sending > leg.computing + leg.sending:
                leg = replace(leg, sender=role, computing=figure.most_compute, sending=sending)
            receiving = _link(links, role).receiving(figure.most_down) if figure.most_down else 0.0
            if receiving > leg.receiving:
                leg = replace(leg, recipient=role, receiving=receiving)
        legs.append(leg)
    return legs


def totals(path: Mapping[int, Round]) -> dict[str, Costs]:
    """Return what each role did over all rounds."""
    out: dict[str, Costs] = {}
    for figures in path.values():
        for role, figure in figures.items():
            out.setdefault(role, Costs(role)).add(figure.costs)
    return out


def _figures(by_round: dict[int, Round], number: int, role: str) -> Figures:
    return by_round.setdefault(number, {}).setdefault(role, Figures(Costs(role)))


def _put(figures: Figures, total: int, each: int, largest: int, up: bool) -> None:
    """Add messages of one kind that go up or down; ``largest``: how many of one party."""
    costs = figures.costs
    if up:
        costs.messages_up += total
        costs.bytes_up += total * each
        figures.most_up += largest * each
    else:
        costs.messages_down += total
        costs.bytes_down += total * each
        figures.most_down += largest * each


def _largest(most: Mapping[tuple[str, int], tuple[int, int]], kind: str, number: int, up: bool) -> int:
    """Return the most messages that one user sends or receives."""
    largest = most.get((kind, number), (0, 0))[0 if up else 1]
    if largest < 1:
        what = "sent" if up else "received"
        raise InputError(
            f"most[{kind!r}, {number}] does not say how many messages one user {what}: give 1 or more"
        )
    return largest


def _link(links: Mapping[str, Links], role: str) -> Links:
    if role not in links:
        raise InputError(f"no links for role {role!r}: there are links for {', '.join(links) or 'none'}")
    return links[role]
