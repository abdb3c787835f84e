"""Replay: the whole history of some parties, recomputed from the seed by re-running their closed world.

For a saved run, start at ``recompute.history``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.backends import local
from p2p_sim.core.closed_world import closed_world
from p2p_sim.core.columns import Layout, PerMessage
from p2p_sim.core.draw import Observer
from p2p_sim.core.engine import Finished
from p2p_sim.core.faults import Faults
from p2p_sim.core.message import USER
from p2p_sim.core.population import Population
from p2p_sim.core.protocol import Protocol
from p2p_sim.core.sealing import MODELLED
from p2p_sim.core.trace_level import TraceLevel, Watch
from p2p_sim.result_summary import Rows, Summary
from p2p_sim.rundir.parquet_columns import joined
from p2p_sim.rundir.trace_reader import sorted_trace

Array = npt.NDArray[Any]

Draws = dict[str, dict[str, Array]]
"""By stream, ``role/name/step``: columns ``party`` (id), ``slot`` (which of several), ``value``."""


@dataclass
class Recorder:
    """Records the draws of some parties.  ``members``: their ids by role, ascending; a server has id 0."""

    members: Mapping[str, Array]
    _parts: dict[str, list[dict[str, Array]]] = field(default_factory=dict)

    def watch(self, role: str, ids: range | Array) -> Observer | None:
        """Return the observer of a block's draws; None if no member is in the block."""
        mine = self.members.get(role, np.zeros(0, np.int64))
        if isinstance(ids, range):
            low, high = np.searchsorted(mine, [ids.start, ids.stop])
            names, places = mine[low:high], mine[low:high] - ids.start
        else:  # ascending
            places = np.searchsorted(ids, mine)
            here = places < len(ids)
            places = places[here][ids[places[here]] == mine[here]]
            names = ids[places]
        if not len(places):
            return None

        def observe(name: str, step: int, value: Any) -> None:
            part = _select(places, names, value)
            self._parts.setdefault(f"{role}/{name}/{step}", []).append(part)

        return observe

    def columns(self) -> Draws:
        """Return the draws recorded so far."""
        return {stream: joined(parts) for stream, parts in self._parts.items()}


def _select(places: Array, names: Array, value: Any) -> dict[str, Array]:
    """Return the part of a block's draw that belongs to the parties at some positions."""
    if not isinstance(value, PerMessage):
        return {"party": names, "slot": np.zeros(len(names), np.int64), "value": value[places]}
    counts = value.layout.count[places]
    starts = np.zeros(len(places) + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    slot = Layout(starts).rank
    rows = np.repeat(value.layout.starts[:-1][places], counts) + slot
    return {"party": np.repeat(names, counts), "slot": slot, "value": value.data[rows]}


Messages = Mapping[str, dict[str, Array]]
"""Columns by kind, as ``Run.messages``."""

NO_REPLAY = (
    "this run was saved without its population, so nothing can be replayed: run it again without "
    "--no-population"
)


@dataclass(frozen=True)
class Drawn:
    """One draw of a user: its name, the step of the draw, and its value or values."""

    name: str
    step: int
    value: Any


@dataclass(frozen=True, repr=False)
class UserHistory(Summary):
    """What one user sent, received (columns by kind, as ``Run.messages``) and drew; ``world``: users run again."""

    user: int
    world: int
    sent: Messages
    received: Messages
    drawn: tuple[Drawn, ...]

    def __repr__(self) -> str:
        sent, received = (
            sum(len(columns["round"]) for columns in part.values()) for part in (self.sent, self.received)
        )
        return f"<UserHistory of user {self.user}: {sent:,} sent, {received:,} received>"

    def summary(self) -> tuple[str, Rows]:
        """Return a title and rows for terminals and notebooks: how many messages and draws, without their values."""
        rows = [
            (
                name,
                ", ".join(f"{len(columns['round']):,} {kind}" for kind, columns in part.items()) or "nothing",
            )
            for name, part in (("sent", self.sent), ("received", self.received))
        ]
        rows += [("draws", f"{len(self.drawn):,}"), ("users run again", f"{self.world:,}")]
        return f"History of user {self.user}", rows

    def messages(self) -> dict[str, dict[str, Array]]:
        """Return all messages that she sent or received, by kind; a message to herself once."""
        found = {}
        for kind in dict.fromkeys([*self.sent, *self.received]):
            parts = [part[kind] for part in (self.sent, self.received) if kind in part]
            if len(parts) == 2:  # between users
                others = parts[1]["sender"] != self.user
                parts[1] = {name: column[others] for name, column in parts[1].items()}
            found[kind] = joined(parts)
        return found


@dataclass(frozen=True)
class Rerun:
    """The messages of ``world`` users who were run again, and the draws of the members.

    ``digest``: of the run; None unless all users ran again.  ``strayed``: whether users wrote to users
    whom they neither drew nor answered, so that anybody may have written to anybody.
    """

    world: int
    messages: Messages
    draws: Draws
    digest: str | None
    strayed: bool


def history_of(protocol: Protocol, past: Rerun, user: int) -> UserHistory:
    """Return the history of the one user whom a rerun was made for."""
    sent: dict[str, dict[str, Array]] = {}
    received: dict[str, dict[str, Array]] = {}
    for kind, message in protocol.messages().items():
        columns = past.messages[kind]
        for end, role, into in (("sender", message.sender, sent), ("recipient", message.recipient, received)):
            if role == USER:
                mine = columns[end] == user
                into[kind] = {name: column[mine] for name, column in columns.items()}
    drawn = []
    for stream, draw in past.draws.items():
        name, _, step = stream.removeprefix(f"{USER}/").rpartition("/")
        values = draw["value"]
        drawn.append(Drawn(name, int(step), values[0] if len(values) == 1 else values))
    return UserHistory(int(user), past.world, sent, received, tuple(drawn))


def rerun_world(
    protocol: Protocol,
    population: Population,
    seed: int,
    members: Mapping[str, Array],
    faults: Faults | None = None,
    crypto: str = MODELLED,
    *,
    whole: bool = False,
    digest: bool = True,
) -> Rerun:
    """Run the closed world of some parties again.

    ``members``: those whose draws are recorded, by role: rows of users, ascending; 0 for a server.  If a server is
    among the roles, even with an empty array, all users run again.  Otherwise only the messages of the members are
    kept; ``whole``: all messages of their closed world.  ``digest``: compute it if all users run again.
    """
    alone = set(members) == {USER}
    rows = closed_world(protocol, population, members[USER]) if alone else np.arange(population.users)
    only = members[USER] if alone and not whole else None
    arguments = protocol, population, seed, members, faults, only, crypto, digest
    try:
        finished, recorder = _again(rows, *arguments)
        incomplete = finished.totals.strayed and len(rows) < population.users
    except Exception:  # a program may fail on a part of the users alone; another fault is raised again below
        if len(rows) == population.users:
            raise
        incomplete = True
    if incomplete:  # somebody outside may have written to them
        rows = np.arange(population.users)
        finished, recorder = _again(rows, *arguments)
    messages = sorted_trace(protocol, finished.totals.trace, TraceLevel("full"))
    complete = digest and len(rows) == population.users
    digest_of_run = finished.totals.digest if complete else None
    return Rerun(len(rows), messages, recorder.columns(), digest_of_run, finished.totals.strayed)


def _again(
    rows: Array,
    protocol: Protocol,
    population: Population,
    seed: int,
    members: Mapping[str, Array],
    faults: Faults | None,
    only: Array | None,
    crypto: str,
    digest: bool,
) -> tuple[Finished, Recorder]:
    """Run the users of some rows; record the draws of the members, and messages.

    ``only``: rows of users whose messages are recorded, None for all.
    """
    everybody = len(rows) == population.users
    world = population if everybody else population.part(rows)
    ids = {USER: members.get(USER, rows[:0])}
    if population.ids is not None:
        ids = {USER: population.ids[ids[USER]]}
    recorder = Recorder({**members, **ids})
    watched = None
    if only is not None:
        mine = np.zeros(len(rows), np.bool_)
        mine[np.searchsorted(rows, only)] = True
        watched = Watch(frozenset(), mine)
    options: dict[str, Any] = {
        "digest": digest and everybody,
        "trace": TraceLevel("full", watch=watched),
        "watch": recorder.watch,
    }
    return local.run(protocol, world, seed, **options, faults=faults, crypto=crypto), recorder
