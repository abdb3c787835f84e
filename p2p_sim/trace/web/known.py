"""What the page knows of a run's protocol: its message kinds and roles, also where its program is not there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from p2p_sim.core.message import USER, Message
from p2p_sim.trace import query


@dataclass(frozen=True)
class Known:
    """Message kinds and roles; what ``Run.coalition`` asks a protocol for.  ``servers``: those who do something."""

    kinds: dict[str, Message]
    servers: tuple[str, ...]

    @property
    def main(self) -> str:
        """Who is looked at first: the learner, otherwise a server, otherwise a user."""
        return "learner" if "learner" in self.servers else next(iter(self.servers), USER)

    def messages(self) -> dict[str, Message]:
        """Return the message kinds by name."""
        return self.kinds

    def roles(self) -> tuple[str, ...]:
        """Return the roles: the population's, then servers."""
        return (USER, *self.servers)


def known(run: Any) -> Known:
    """Return what is known of a run's protocol; raises InputError if it is no shipped one and kept no messages."""
    program = run.source
    _, kinds = query.kept_of(run, run, program)
    if program is None:
        named = [role for message in kinds.values() for role in (message.recipient, message.sender)]
        return Known(kinds, tuple(dict.fromkeys(role for role in named if role != USER)))
    idle = program.idle_roles() if hasattr(program, "idle_roles") else ()
    return Known(kinds, tuple(role for role in program.roles() if role not in (USER, *idle)))
