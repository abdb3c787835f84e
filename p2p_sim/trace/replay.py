"""Replay: the whole history of some parties, recomputed from the seed by re-running their closed world."""

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
from p2p_sim.rundir.trace_reader import sorted_trace

Array = npt.NDArray[Any]

Draws = dict[str, dict[str, Array]]
"""By stream, ``role/name/step``: columns ``party`` (id), ``slot`` (which of several), ``value``."""


@dataclass
class Recorder:
    """Takes down the draws of some parties.  ``members``: by role, their ids, ascending; a server's is 0."""

    members: Mapping[str, Array]
    _parts: dict[str, list[dict[str, Array]]] = field(default_factory=dict)

    def watch(self, role: str, ids: range | Array) -> Observer | None:
        """Return who is told of a block's draws; None if none of its parties is asked about."""
        mine = self.members.get(role, np.zeros(0, np.int64))
        if isinstance(ids, range):
            low, high = np.searchsorted(mine, [ids.start, ids.stop])
            names, places = mine[low:high], mine[low:high] - ids.start
        else:  # ascending, and mostly many
            places = np.searchsorted(ids, mine)
            here = places < len(ids)
            places = places[here][ids[places[here]] == mine[here]]
            names = ids[places]
        if not len(places):
            return None

        def observe(name: str, step: int, value: Any) -> None:
            part = _of_some(places, names, value)
            self._parts.setdefault(f"{role}/{name}/{step}", []).append(part)

        return observe

    def columns(self) -> Draws:
        """Return what was drawn so far."""
        return {
            stream: {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
            for stream, parts in self._parts.items()
        }


def _of_some(places: Array, names: Array, value: Any) -> dict[str, Array]:
    """Cut what a block drew to the parties at some places."""
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

LOST = (
    "this run was saved without its population: nothing can be replayed from it; run it again without "
    "--no-population"
)


@dataclass(frozen=True)
class Drawn:
    """One draw of a user: its name, the step in which she drew it, her value or values."""

    name: str
    step: int
    value: Any


@dataclass(frozen=True)
class Life:
    """What one user sent and received (columns by kind, as ``Run.messages``) and drew, and her world's size."""

    user: int
    world: int
    sent: Messages
    received: Messages
    drawn: tuple[Drawn, ...]

    def messages(self) -> dict[str, dict[str, Array]]:
        """Return all that she sent or received, by kind, what she sent herself once."""
        joined = {}
        for kind in dict.fromkeys([*self.sent, *self.received]):
            parts = [part[kind] for part in (self.sent, self.received) if kind in part]
            if len(parts) == 2:  # between users
                others = parts[1]["sender"] != self.user
                parts[1] = {name: column[others] for name, column in parts[1].items()}
            joined[kind] = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        return joined


@dataclass(frozen=True)
class Past:
    """What was recomputed by running ``world`` users: messages, and the draws of those asked about.

    ``digest``: of the run, None unless it was run again as a whole.  ``strayed``: users wrote to others than drawn
    members and askers, so that anybody may have written to anybody.
    """

    world: int
    messages: Messages
    draws: Draws
    digest: str | None
    strayed: bool


def life_of(protocol: Protocol, past: Past, user: int) -> Life:
    """Return the life of one user, about whom alone the past was asked."""
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
    return Life(int(user), past.world, sent, received, tuple(drawn))


def relive(
    protocol: Protocol,
    population: Population,
    seed: int,
    members: Mapping[str, Array],
    faults: Faults | None = None,
    crypto: str = MODELLED,
    *,
    whole: bool = False,
    digest: bool = True,
) -> Past:
    """Run the closed world of some parties again.

    ``members``: by role, whose draws are taken down: rows of users, ascending; 0 for a server.  Any server among them,
    even with nobody (an empty array), means everybody.  Of users alone only what they sent and received is kept;
    ``whole``: all messages of their world.  ``digest``: of the run, if it is run again as a whole.
    """
    alone = set(members) == {USER}
    rows = closed_world(protocol, population, members[USER]) if alone else np.arange(population.users)
    only = members[USER] if alone and not whole else None
    given = protocol, population, seed, members, faults, only, crypto, digest
    try:
        finished, recorder = _again(rows, *given)
        narrow = finished.totals.strayed and len(rows) < population.users
    except (
        Exception
    ):  # a program may not bear to be run on a part; if it is wrong altogether, it fails again below
        if len(rows) == population.users:
            raise
        narrow = True
    if narrow:  # somebody outside may have written to them
        rows = np.arange(population.users)
        finished, recorder = _again(rows, *given)
    messages = sorted_trace(protocol, finished.totals.trace, TraceLevel("full"))
    ran_again = digest and len(rows) == population.users
    digest_of_run = finished.totals.digest if ran_again else None
    return Past(len(rows), messages, recorder.columns(), digest_of_run, finished.totals.strayed)


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
    """Run the users of some rows; take down what the members draw, and messages, of ``only`` some rows' if given."""
    everybody = len(rows) == population.users
    world = population if everybody else population.part(rows)
    ids = {USER: members.get(USER, rows[:0])}
    if population.ids is not None:
        ids = {USER: population.ids[ids[USER]]}
    recorder = Recorder({**members, **ids})
    seen = None
    if only is not None:
        mine = np.zeros(len(rows), np.bool_)
        mine[np.searchsorted(rows, only)] = True
        seen = Watch(frozenset(), mine)
    kept: dict[str, Any] = {
        "digest": digest and everybody,
        "trace": TraceLevel("full", watch=seen),
        "watch": recorder.watch,
    }
    return local.run(protocol, world, seed, **kept, faults=faults, crypto=crypto), recorder
