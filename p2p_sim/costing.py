"""The costs of a run for each role, and the simulated time of its protocol over given network links."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from p2p_sim.core.errors import InputError
from p2p_sim.core.ledger import Count
from p2p_sim.core.message import USER, Message
from p2p_sim.core.protocol import Protocol
from p2p_sim.network import channels
from p2p_sim.network.channels import Links
from p2p_sim.rundir.run_record import RunRecord

if TYPE_CHECKING:
    from p2p_sim.crypto.rates import Rates


NOT_RECEIVED = ("lost", "undelivered")
NOT_SENT = ("duplicate", "replayed")
"""Faults of messages that travelled but were not received, and that were received but not sent by their sender."""


@dataclass
class RoleCosts:
    """The costs of a role, summed over its parties: messages and bytes on the wire, operations, CPU seconds."""

    role: str
    messages_up: int = 0
    messages_down: int = 0
    bytes_up: int = 0
    bytes_down: int = 0
    operations: dict[str, int] = field(default_factory=dict)
    compute_seconds: float = 0.0

    def add(self, other: RoleCosts) -> None:
        """Add other costs of the same role."""
        self.messages_up += other.messages_up
        self.messages_down += other.messages_down
        self.bytes_up += other.bytes_up
        self.bytes_down += other.bytes_down
        self.compute_seconds += other.compute_seconds
        for name, count in other.operations.items():
            self.operations[name] = self.operations.get(name, 0) + count


@dataclass
class RoundCosts:
    """The costs of one role in one round, and the bytes and seconds of its busiest party."""

    costs: RoleCosts
    most_up: float = 0.0
    most_down: float = 0.0
    most_compute: float = 0.0


Round = dict[str, RoundCosts]
"""The costs of one round by role."""


@dataclass(frozen=True)
class Work:
    """Work before sending: ``operations`` by (role, round, name), CPU ``seconds`` by (role, round)."""

    operations: Mapping[tuple[str, int, str], int] = field(default_factory=dict)
    seconds: Mapping[tuple[str, int], float] = field(default_factory=dict)
    users: int = 1


NONE = Work()


@dataclass(frozen=True)
class PathStep:
    """One round of the critical path.

    ``sender``: the role that takes longest to compute and send; ``recipient``: the role that takes longest to receive;
    None if there is none.  Times are in seconds.
    """

    round: int
    sender: str | None
    computing: float
    sending: float
    recipient: str | None
    receiving: float

    @property
    def seconds(self) -> float:
        """The seconds of the whole step."""
        return self.computing + self.sending + self.receiving


def rounds(
    counts: Mapping[tuple[str, int], Count],
    messages: Mapping[str, Message],
    most: Mapping[tuple[str, int], tuple[int, int]],
    work: Work = NONE,
    faults: Mapping[tuple[str, str, int], int] = MappingProxyType({}),
) -> dict[int, Round]:
    """Return the costs of each round, ascending, from message counts by (kind, round).

    ``most``: for each (kind, round), the most messages that one user sends and that one user receives; a server sends
    or receives all of a kind.  ``faults``: messages by (fault, kind, round).  Raises InputError if ``most`` lacks a
    kind and round that users sent or received.
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


def critical_path(path: Mapping[int, Round], links: Mapping[str, Links]) -> list[PathStep]:
    """Return the slowest sender and recipient of each round; their seconds add up to those of the protocol."""
    legs = []
    for number, figures in path.items():
        leg = PathStep(number, None, 0.0, 0.0, None, 0.0)
        for role, figure in figures.items():
            sending = _link(links, role).sending(figure.most_up) if figure.most_up else 0.0
            if figure.most_compute + sending > leg.computing + leg.sending:
                leg = replace(leg, sender=role, computing=figure.most_compute, sending=sending)
            receiving = _link(links, role).receiving(figure.most_down) if figure.most_down else 0.0
            if receiving > leg.receiving:
                leg = replace(leg, recipient=role, receiving=receiving)
        legs.append(leg)
    return legs


def totals(path: Mapping[int, Round]) -> dict[str, RoleCosts]:
    """Return the costs of each role over all rounds."""
    out: dict[str, RoleCosts] = {}
    for figures in path.values():
        for role, figure in figures.items():
            out.setdefault(role, RoleCosts(role)).add(figure.costs)
    return out


def _figures(by_round: dict[int, Round], number: int, role: str) -> RoundCosts:
    return by_round.setdefault(number, {}).setdefault(role, RoundCosts(RoleCosts(role)))


def _put(figures: RoundCosts, total: int, each: int, largest: int, up: bool) -> None:
    """Add messages of one kind that are sent (``up``) or received; ``largest``: the most of one party."""
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


USERS = "20ms,10Mbit"
SERVERS = "1ms,1Gbit"


@dataclass(frozen=True)
class RunCosts:
    """The costs of a run.

    ``roles``: costs summed over the parties of each role; ``parties``: how many these are; ``path``: the critical path,
    one step a round; ``channel``, ``servers``: links of users and servers, as text; ``rates``: seconds of each
    operation, None if there were no operations.
    """

    roles: dict[str, RoleCosts]
    parties: dict[str, int]
    path: tuple[PathStep, ...]
    channel: str
    servers: str
    rates: Rates | None

    @property
    def seconds(self) -> float:
        """The simulated seconds of the protocol: the length of its critical path."""
        return sum(leg.seconds for leg in self.path)


def run_costs(
    run: RunRecord, protocol: Protocol, channel: str, servers: str, rates: Rates | None
) -> RunCosts:
    """Return the costs of a run; see ``Run.costs``.  Idle roles are left out."""
    messages: dict[str, Message] = protocol.messages()
    roles = [role for role in protocol.roles() if role not in protocol.idle_roles()]
    users = _check(run, messages)
    parties = {role: users if role == USER else 1 for role in roles}
    links = _links(run, parties, {"channel": channel, "servers": servers})
    if run.work and rates is None:
        from p2p_sim.crypto.rates import measure  # cryptography is loaded on first use

        rates = measure()
    seconds = {key: spent for key, spent in _seconds(run, rates).items() if key[0] in parties}
    work = Work(run.work, seconds, users)
    by_round = rounds(run.counts, messages, run.most or {}, work, run.faults_seen)
    done = totals(by_round)
    bills = {role: done.get(role, RoleCosts(role)) for role in parties}
    path = tuple(critical_path(by_round, links))
    return RunCosts(bills, parties, path, channel, servers, rates if run.work else None)


def _seconds(run: RunRecord, rates: Rates | None) -> dict[tuple[str, int], float]:
    """Return CPU seconds by (role, round): measured ones of programs, plus those of cryptographic operations."""
    seconds: dict[tuple[str, int], float] = dict(run.compute)
    for (role, number, operation), times in run.work.items():
        assert rates is not None
        spent = rates.seconds({operation: times})
        seconds[role, number] = seconds.get((role, number), 0.0) + spent
    return seconds


def _links(run: RunRecord, parties: Mapping[str, int], texts: Mapping[str, str]) -> dict[str, Links]:
    """Return the links of every role; one link if all users have the same."""
    found = {}
    for role, number in parties.items():
        text = texts["channel" if role == USER else "servers"]
        law = channels.parse(text)
        if law.varies and run.seed is None:
            raise InputError(
                f"channel = {text!r} draws links from the run's seed, and this run was saved without it: give one "
                "latency and one bandwidth, such as 20ms,10Mbit"
            )
        found[role] = law.links(run.seed or 0, number if law.varies else 1, role)
    return found


def _check(run: RunRecord, messages: Mapping[str, Message]) -> int:
    """Return how many users there are; raises InputError if the run lacks counts that a user's time depends on."""
    if run.users is None:
        raise InputError("this run directory does not say how many users there were: run the protocol again")
    speaking = [
        kind
        for (kind, _), count in run.counts.items()
        if count.travelled and USER in (messages[kind].sender, messages[kind].recipient)
    ]
    if run.most is None and speaking:
        raise InputError(
            f"this run did not count user by user how many messages of kind {speaking[0]!r} were sent: run it with "
            "costs=True"
        )
    return run.users
