"""The rows of every privacy table: which views of a protocol are listed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from p2p_sim.coalition import WIRE, Coalition
from p2p_sim.core.message import USER
from p2p_sim.core.protocol import Protocol

ALL_DEVIATING = "all deviating"
USERS = ("curious", "deviating", ALL_DEVIATING)
"""How those in a view behave: as the protocol says; its users do as they like; its servers do, too."""


@dataclass(frozen=True)
class TableRow:
    """One row.  ``name``: as ``privacy.profile`` knows it; ``users``: one of ``USERS``."""

    name: str
    title: str
    coalition: Coalition
    users: str = "curious"

    @property
    def key(self) -> str:
        """Its name, which says too if its users deviate from the protocol."""
        return self.name if self.users == "curious" else f"{self.name} ({self.users})"

    @property
    def colluders(self) -> int:
        """How many users look."""
        return self.coalition.user_count

    @property
    def slow(self) -> bool:
        """Whether its law may take seconds: servers and users together, who see no traffic."""
        return (
            bool(self.coalition.servers)
            and self.colluders > 0
            and not self.coalition.wire
            and self.users == "curious"
        )


def rows(protocol: Protocol) -> list[TableRow]:
    """Return the views that a table shows: every server, one peer, the wire, and coalitions of these.

    Where users talk to one server alone, they form no coalitions worth a row.  A server who passes on what users seal
    for each other has two more: with colluders who deviate, say by dropping out on purpose, and deviating herself.
    """
    roles = protocol.roles()
    servers = [role for role in roles if role not in (USER, *protocol.idle_roles())]
    speaking = any(kind.sender == kind.recipient == USER for kind in protocol.messages().values())

    def row(name: str, title: str = "", users: str = "curious") -> TableRow:
        return TableRow(name, title or name, Coalition.parse(name, roles), users)

    peer, deviating = row(USER, "user: one curious peer"), row(USER, "user: one deviating peer", "deviating")
    if not servers:
        return [peer, *([deviating] if speaking else []), row(WIRE)]
    alone = [row(server) for server in servers]
    if not speaking and len(servers) == 1:
        return [*alone, peer, row(WIRE)]
    main = next((role for role in servers if role == "learner"), *servers[:1])
    few = row(f"{main}+user", f"{main}+1*user")
    several = [row(f"{main}+3*user"), *([deviating] if speaking else [])]
    together = [row("+".join(servers))] if len(servers) > 1 else []
    for server in _passing_on(protocol):
        name = f"{server}+3*{USER}"
        several += [row(name, f"{name}: deviating users", "deviating")]
        several += [row(server, f"{server}: deviating server", ALL_DEVIATING)]
    return [*alone, peer, few, *several, *together, row(WIRE), row(f"{main}+{WIRE}")]


def named_rows(protocol: Protocol, names: Sequence[str]) -> list[TableRow]:
    """Return the rows of some views, once each, of the table or new; raises InputError for unknown parts."""
    every, chosen = rows(protocol), list[TableRow]()
    for name in names:
        who = Coalition.parse(name, protocol.roles())
        found = [view for view in every if view.coalition == who] or [TableRow(name, str(who), who)]
        chosen += [view for view in found if view not in chosen]
    return chosen


def curious_first(views: Sequence[TableRow]) -> list[TableRow]:
    """Return the rows with, before those of users who deviate, one of the same users who follow the protocol."""
    curious, found = {view.name for view in views if view.users == "curious"}, list[TableRow]()
    for view in views:
        if view.name not in curious:
            curious.add(view.name)
            found.append(TableRow(view.name, str(view.coalition), view.coalition))
        found.append(view)
    return found


def _passing_on(protocol: Protocol) -> list[str]:
    """Return the servers whom users hand what they seal for each other."""
    kinds = protocol.messages().values()
    return sorted({kind.recipient for kind in kinds if kind.sealed_for == USER and kind.recipient != USER})
