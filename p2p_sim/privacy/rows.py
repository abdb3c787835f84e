"""Which views of a protocol are told of: the rows of every table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from p2p_sim.core.message import USER
from p2p_sim.views import WIRE, Coalition


@dataclass(frozen=True)
class View:
    """One row.  ``name``: as ``privacy.profile`` knows it; ``users``: curious or deviating."""

    name: str
    title: str
    who: Coalition
    users: str = "curious"

    @property
    def key(self) -> str:
        """Its name, which says too if its users deviate from the protocol."""
        return self.name if self.users == "curious" else f"{self.name} ({self.users})"

    @property
    def colluders(self) -> int:
        """How many users look."""
        return self.who.user_count

    @property
    def slow(self) -> bool:
        """Whether its law takes seconds."""
        return bool(self.who.servers) and self.colluders > 0 and not self.who.wire and self.users == "curious"


def rows(protocol: Any) -> list[View]:
    """Return the views that a table shows: every server, one peer, the wire, and who of them could join.

    Where users talk to one server alone, they form no coalitions worth a row.
    """
    roles = protocol.roles()
    servers = [role for role in roles if role not in (USER, *protocol.idle_roles())]
    speaking = any(kind.sender == kind.recipient == USER for kind in protocol.messages().values())

    def row(name: str, title: str = "", users: str = "curious") -> View:
        return View(name, title or name, Coalition.parse(name, roles), users)

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
    return [*alone, peer, few, *several, *together, row(WIRE), row(f"{main}+{WIRE}")]
