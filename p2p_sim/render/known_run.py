"""Which message kinds, roles and counts a run has, before any message is read; and what is asked of its views."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from p2p_sim.core.ledger import Count
from p2p_sim.core.message import USER, Message
from p2p_sim.rundir.run_record import RunRecord
from p2p_sim.trace import query
from p2p_sim.trace.slices import Viewer


@dataclass(frozen=True)
class KnownRun:
    """Message kinds and roles of a run, also if its protocol is not known; coalitions are read with them.

    ``at_work``: kinds that the run's parameters use; ``servers``: servers that are not idle; ``counts``: as
    ``Run.counts``, of a run that was cut off up to there; ``cut``: what such a run lacks, in words, otherwise empty.
    """

    kinds: dict[str, Message]
    at_work: tuple[str, ...]
    servers: tuple[str, ...]
    counts: Mapping[tuple[str, int], Count]
    cut: str = ""

    @classmethod
    def of(cls, run: RunRecord) -> KnownRun:
        """Return what a run's record says; raises InputError if its protocol is unknown and it kept no messages."""
        program = run.source
        kept, kinds = query.recorded_trace(run, program)
        counts = run.counts or kept.counts
        cut = (query.missing_note(run, kept) or "") if query.cut_off(run) or not kept.complete else ""
        if program is None:
            named = [role for message in kinds.values() for role in (message.recipient, message.sender)]
            return cls(
                kinds, tuple(kinds), tuple(dict.fromkeys(role for role in named if role != USER)), counts, cut
            )
        servers = tuple(role for role in program.roles() if role not in (USER, *program.idle_roles()))
        return cls(kinds, tuple(program.kinds_at_work()), servers, counts, cut)

    @property
    def main(self) -> str:
        """The view that is shown first: the learner, otherwise a server, otherwise a user."""
        return "learner" if "learner" in self.servers else next(iter(self.servers), USER)

    def messages(self) -> dict[str, Message]:
        """Return the message kinds by name."""
        return self.kinds

    def roles(self) -> tuple[str, ...]:
        """Return the roles: the population's, then servers."""
        return (USER, *self.servers)


@dataclass(frozen=True)
class ViewFunctions:
    """Called with a run, a view such as "learner+user:17", and ``KnownRun`` or channels: who looks, what she learns."""

    coalition: Callable[[RunRecord, str, KnownRun], Viewer]
    privacy: Callable[[RunRecord, str, str], dict[str, Any]]
