"""What a run costs each role, and how long the protocol would take: a small model, added up from counts.

Rounds are the engine's logical clock: a message of round r is sent after its sender's own rounds before r and after all
she has received, so rounds follow each other and their times add.  In a round

1. every sender computes, then puts her bytes on her link, and one latency passes: parties do so in parallel, so the
   slowest counts;
2. every recipient takes in her bytes from her link, the servers those of all users: again the slowest counts.

Roles send in parallel too.  Sending and receiving do not overlap within a round and nobody runs ahead of the clock,
so the time is an upper figure for this model, which leaves out contention inside the network, retransmission and
connection set-up.  The slowest user is taken to have the most messages *and* the slowest link.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from p2p_sim.core.errors import InputError
from p2p_sim.core.ledger import Count
from p2p_sim.core.message import USER, Message
from p2p_sim.network.channels import Links


@dataclass(frozen=True)
class Work:
    """Operations of a role in a round, done before it sends: ``count`` by all its parties, ``most`` by one of them.

    ``rate``: operations a second of one party.
    """

    role: str
    round: int
    operation: str
    count: int
    most: int
    rate: float


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


@dataclass
class Figures:
    """One role in one round: its costs, and bytes and seconds of the party that has most."""

    costs: Costs
    most_up: float = 0.0
    most_down: float = 0.0
    most_compute: float = 0.0


Round = dict[str, Figures]
"""One round's figures by role."""


def rounds(
    counts: Mapping[tuple[str, int], Count],
    messages: Mapping[str, Message],
    most: Mapping[str, tuple[int, int]],
    work: Iterable[Work] = (),
) -> list[Round]:
    """Return the figures of each round, in order, from the engine's counts by (kind, round).

    ``most``: for each kind, the most that one user sends and the most that one receives in a round; a server sends
    and receives all of a kind.  Raises InputError where ``most`` lacks a kind between or with users, or is too small.
    """
    by_round: dict[int, Round] = {}
    for (kind, number), count in counts.items():
        if not count.travelled:
            continue
        message, each = messages[kind], count.nbytes / count.travelled
        limits = _limits(kind, message, count.travelled, most)
        sender = _figures(by_round, number, message.sender)
        sender.costs.messages_up += count.travelled
        sender.costs.bytes_up += count.nbytes
        sender.most_up += limits[0] * each
        recipient = _figures(by_round, number, message.recipient)
        recipient.costs.messages_down += count.travelled
        recipient.costs.bytes_down += count.nbytes
        recipient.most_down += limits[1] * each
    for part in work:
        _check(part)
        figures = _figures(by_round, part.round, part.role)
        done = figures.costs.operations
        done[part.operation] = done.get(part.operation, 0) + part.count
        figures.costs.compute_seconds += part.count / part.rate
        figures.most_compute += part.most / part.rate
    return [by_round[number] for number in sorted(by_round)]


def critical_path(path: Iterable[Round], links: Mapping[str, Links]) -> float:
    """Return the simulated seconds of a protocol: the sum over rounds of slowest sending and slowest receiving."""
    total = 0.0
    for figures in path:
        sending, receiving = [0.0], [0.0]
        for role, figure in figures.items():
            up, down = figure.most_up, figure.most_down
            sending.append(figure.most_compute + (_link(links, role).sending(up) if up else 0.0))
            receiving.append(_link(links, role).receiving(down) if down else 0.0)
        total += max(sending) + max(receiving)
    return total


def totals(path: Iterable[Round]) -> dict[str, Costs]:
    """Return what each role did over all rounds."""
    out: dict[str, Costs] = {}
    for figures in path:
        for role, figure in figures.items():
            one, sum_ = figure.costs, out.setdefault(role, Costs(role))
            sum_.messages_up += one.messages_up
            sum_.messages_down += one.messages_down
            sum_.bytes_up += one.bytes_up
            sum_.bytes_down += one.bytes_down
            sum_.compute_seconds += one.compute_seconds
            for name, count in one.operations.items():
                sum_.operations[name] = sum_.operations.get(name, 0) + count
    return out


def _figures(by_round: dict[int, Round], number: int, role: str) -> Figures:
    return by_round.setdefault(number, {}).setdefault(role, Figures(Costs(role)))


def _limits(
    kind: str, message: Message, travelled: int, most: Mapping[str, tuple[int, int]]
) -> tuple[int, int]:
    """Return the most messages of a kind that one party sends and receives; of a server, all."""
    if USER not in (message.sender, message.recipient):
        return travelled, travelled
    if kind not in most:
        raise InputError(f"most lacks kind {kind!r}: give the most one user sends and receives in a round")
    sent, received = most[kind]
    if sent < 1 or received < 1:
        raise InputError(
            f"most[{kind!r}] = {most[kind]}: {travelled:,} such messages travelled; give 1 or more"
        )
    return (
        min(sent, travelled) if message.sender == USER else travelled,
        min(received, travelled) if message.recipient == USER else travelled,
    )


def _link(links: Mapping[str, Links], role: str) -> Links:
    if role not in links:
        raise InputError(f"no links for role {role!r}: there are links for {', '.join(links) or 'none'}")
    return links[role]


def _check(part: Work) -> None:
    if not 0 <= part.most <= part.count or not part.rate > 0:
        raise InputError(
            f"work {part.operation!r} of {part.role!r}: count {part.count}, most {part.most}, rate {part.rate}: "
            "needed are 0 <= most <= count and a rate above 0"
        )
