"""What the page knows of a run before it looks at messages, and what it is told of viewpoints by others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from p2p_sim.core.ledger import Count
from p2p_sim.core.message import USER, Message
from p2p_sim.trace import query
from p2p_sim.trace.sight import Eyes


@dataclass(frozen=True)
class Known:
    """Message kinds and roles, also where the program is not there; a coalition is read from them.

    ``at_work``: kinds that the run's parameters use; ``servers``: those who do something; ``counts``: as
    ``Run.counts``, of a run that was cut off as far as it goes; ``cut``: how far that is, in words, empty for a run
    that came to its end.
    """

    kinds: dict[str, Message]
    at_work: tuple[str, ...]
    servers: tuple[str, ...]
    counts: Mapping[tuple[str, int], Count]
    cut: str = ""

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


@dataclass(frozen=True)
class Viewers:
    """Called with a run, a view such as "learner+user:17", and ``Known`` or channels: who looks, what she learns."""

    eyes: Callable[[Any, str, Known], Eyes]
    learnt: Callable[[Any, str, str], dict[str, Any]]


def known(run: Any) -> Known:
    """Return what is known of a run; raises InputError if its protocol is not a shipped one and no message was kept."""
    program = run.source
    kept, kinds = query.kept_of(run, program)
    counts = run.counts or kept.counts
    cut = (query.lacking(run, kept) or "") if query.cut_off(run) or not kept.complete else ""
    if program is None:
        named = [role for message in kinds.values() for role in (message.recipient, message.sender)]
        return Known(
            kinds, tuple(kinds), tuple(dict.fromkeys(role for role in named if role != USER)), counts, cut
        )
    servers = tuple(role for role in program.roles() if role not in (USER, *program.idle_roles()))
    return Known(kinds, tuple(program.kinds_at_work()), servers, counts, cut)
