"""What a run cost each role, and how long its protocol would take between parties joined by given links."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from p2p_sim.core.errors import InputError
from p2p_sim.core.message import USER, Message
from p2p_sim.network import channels, costs
from p2p_sim.network.channels import Links
from p2p_sim.network.costs import Costs, Leg, Work

if TYPE_CHECKING:
    from p2p_sim.crypto.rates import Rates

USERS = "20ms,10Mbit"
SERVERS = "1ms,1Gbit"


@dataclass(frozen=True)
class Bill:
    """What a run cost.

    ``roles``: what all parties of each role did together; ``parties``: how many they are; ``path``: each round's part
    of the simulated time; ``channel``, ``servers``: links, as text; ``rates``: seconds an operation, None if there were
    no operations.
    """

    roles: dict[str, Costs]
    parties: dict[str, int]
    path: tuple[Leg, ...]
    channel: str
    servers: str
    rates: Rates | None

    @property
    def seconds(self) -> float:
        """The simulated seconds of the protocol: of its critical path."""
        return sum(leg.seconds for leg in self.path)


def bill(run: Any, protocol: Any, channel: str, servers: str, rates: Rates | None) -> Bill:
    """Return what a run cost; see ``Run.costs``.  Roles that have no work are left out."""
    messages: dict[str, Message] = protocol.messages()
    roles = [role for role in protocol.roles() if role not in protocol.idle_roles()]
    parties = {role: run.users if role == USER else 1 for role in roles}
    links = _links(run, parties, {"channel": channel, "servers": servers})
    _check(run, messages)
    if run.work and rates is None:
        from p2p_sim.crypto.rates import measure  # cryptography is loaded on first use

        rates = measure()
    seconds = {key: spent for key, spent in _seconds(run, rates).items() if key[0] in parties}
    work = Work(run.work, seconds, run.users)
    by_round = costs.rounds(run.counts, messages, run.most or {}, work, run.faults_seen)
    done = costs.totals(by_round)
    bills = {role: done.get(role, Costs(role)) for role in parties}
    path = tuple(costs.critical_path(by_round, links))
    return Bill(bills, parties, path, channel, servers, rates if run.work else None)


def _seconds(run: Any, rates: Rates | None) -> dict[tuple[str, int], float]:
    """Return the seconds of each role before each round: measured ones of its programs, and its operations."""
    seconds: dict[tuple[str, int], float] = dict(run.compute)
    for (role, number, operation), times in run.work.items():
        assert rates is not None
        spent = rates.seconds({operation: times})
        seconds[role, number] = seconds.get((role, number), 0.0) + spent
    return seconds


def _links(run: Any, parties: Mapping[str, int], texts: Mapping[str, str]) -> dict[str, Links]:
    """Return the links of every role; of users who all have the same, one."""
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


def _check(run: Any, messages: Mapping[str, Message]) -> None:
    """Check that all is known that the time of a user depends on; raises InputError."""
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
