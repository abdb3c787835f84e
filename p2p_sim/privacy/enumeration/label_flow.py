"""Whether what one user sent influences other parties' messages, by watching which fields programs read.

A protocol is run with two and with three users, every inbox being watched.  A party that looked at nothing which
depends on the user's label or draws sends nothing that depends on them: programs hold their inboxes alone.  Which of an
inbox it looked at is recorded field by field; a look at any field counts as one at how many came, and from whom.
What is sealed for somebody else can be handed on, and can decide nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Any, cast

import numpy as np

from p2p_sim.backends import local
from p2p_sim.coalition import Coalition
from p2p_sim.core.columns import Inbox, Rows
from p2p_sim.core.errors import InputError, MissingColumnError, ProtocolError, TooFewMembersError
from p2p_sim.core.message import SEALED, USER, Message, Send
from p2p_sim.core.population import Population
from p2p_sim.core.protocol import Protocol
from p2p_sim.core.trace_level import TraceLevel
from p2p_sim.privacy.enumeration.recent_results import memoized
from p2p_sim.privacy.enumeration.stand_ins import OUTSIDERS

USERS = (2, 3)
"""Users of the runs that are watched."""

MOST_WATCHED = 64
"""Users of the largest such run, of a program that needs more of them."""

MOST_COLLUDERS = 2
"""Colluders in the pairs of runs that look for who carries a label on."""

MOST_NAMED = 1000
"""Colluders with a name of their own: nobody writes to more of them on a way that is followed."""

SEEDS = 12
"""Pairs of runs a pair of labels."""

VICTIM = 0

Event = tuple[str, str, str]
"""("read", kind, field), ("hold", kind, field) if it is sealed, or ("send", kind, "")."""


Key = tuple[int, str, int, int, int]
"""Round, kind, sender, recipient, number of a message."""

ReadFields = dict[Key, tuple[tuple[str, str], ...]]
"""Messages by address: the fields that are read."""


@dataclass(frozen=True)
class ProgramEvents:
    """What the program of each role read and sent, in order, in a run of so many ``users``."""

    events: Mapping[str, tuple[Event, ...]]
    users: int

    @property
    def sends(self) -> tuple[str, ...]:
        """The kinds that a user sends, in order."""
        return tuple(kind for verb, kind, _ in self.events[USER] if verb == "send")

    def influenced(
        self, protocol: Protocol, varying: Mapping[str, Collection[str]]
    ) -> dict[str, dict[str, str]]:
        """Return the fields that others send after looking at what varies: kind to field to the kind looked at.

        ``varying``: the fields, "" for whether and to whom, of the user's own messages.
        """
        messages: dict[str, Message] = protocol.messages()
        found: dict[str, dict[str, str]] = {}
        while True:
            before = sum(map(len, found.values()))
            for events in self.events.values():
                read = held = ""
                for verb, kind, name in events:
                    doubtful = name in varying.get(kind, ()) or name in found.get(kind, {})
                    if verb == "read" and doubtful:
                        read = read or kind
                    elif verb == "hold" and doubtful:
                        held = held or kind
                    elif verb == "send" and (read or (held and messages[kind].sealed_for is not None)):
                        names = [*messages[kind].fields, *([""] if read else [])]
                        found.setdefault(kind, {}).update(dict.fromkeys(names, read or held))
            if sum(map(len, found.values())) == before:
                return found


_GIVEN = {
    "public": " (audits take its values, privacy.audit(..., public=...), enumerations a population with it)",
    "secret": " (enumerations take a population with it, audits do not)",
    "x": " (enumerations take a population with it, audits do not)",
}
"""Who else can be asked about a program that reads a column, by its part."""


@memoized
def watched_runs(protocol: Protocol) -> list[ProgramEvents] | str:
    """Return what programs read and sent, in runs of two and of three users; or why they cannot be run."""
    return _watched_runs(protocol, USERS)


def _watched_runs(protocol: Protocol, numbers: Sequence[int]) -> list[ProgramEvents] | str:
    found = []
    for users in numbers:
        watched = _Watched(protocol)
        try:
            program = cast(Protocol, watched)  # it passes on whatever else a protocol is asked
            local.run(program, _people(protocol, users, 0, 0), seed=0, digest=False)
        except MissingColumnError as error:  # whose values a law for everybody cannot know
            given = _GIVEN.get(error.part, "")
            return f"what a user sends depends on {error.what}, not on her label and draws alone{given}"
        except TooFewMembersError as error:  # who draws more others than there are is watched among more
            if error.needed <= users or error.needed > MOST_WATCHED:
                return str(error)
            return _watched_runs(protocol, (error.needed, error.needed + 1))
        except (InputError, ProtocolError) as error:
            return str(error)
        except Exception as error:
            return f"a run of {users} users stops with {type(error).__name__}: {error}"
        found.append(ProgramEvents({role: tuple(events) for role, events in watched.events.items()}, users))
    return found


def sees_and_reads(view: Coalition, message: Message, channels: str) -> tuple[bool, bool]:
    """Return whether a view sees such messages of others, who are not in it, and whether it can read them."""
    if message.sender != USER and view.has(message.sender):
        return False, False  # what its own servers send follows from what they received
    outsiders = (OUTSIDERS, OUTSIDERS + 1)
    ends = [outsiders[:1] if message.sender == USER else (0,)]
    ends.append((VICTIM, *_members(view), *outsiders) if message.recipient == USER else (0,))
    pairs = np.array(list(product(*ends)))
    columns = {"sender": pairs[:, 0], "recipient": pairs[:, 1]}
    some, readable = colluding(view).sees(message, columns, channels)
    return bool(some.any()), bool((some & readable).any())


def colluding(view: Coalition) -> Coalition:
    """Return the view with its users named 1, 2, ..; user 0 is the one about whom it learns."""
    return Coalition(view.servers, frozenset(_members(view)), 0, view.wire)


def _members(view: Coalition) -> range:
    return range(1, min(view.user_count, MOST_NAMED) + 1)


def witness(protocol: Protocol, view: Coalition, channels: str) -> tuple[str, str] | None:
    """Return a kind of message of others that changes with the label of one user, and how; None if none was found.

    Pairs of runs with the same words and one label replaced; of the messages that change, the earliest that the view
    sees.
    """
    few = Coalition(view.servers, frozenset(), min(view.user_count, MOST_COLLUDERS), view.wire)
    try:
        return _witness(protocol, few, channels)
    except Exception:  # what cannot be run names nobody; there is another reason then
        return None


@memoized
def _witness(protocol: Protocol, few: Coalition, channels: str) -> tuple[str, str] | None:
    users, labels = few.user_count + 3, protocol.label_count()
    for seed, other in product(range(SEEDS), sorted({1, labels - 1})):
        one, two = (
            _rows(protocol, _people(protocol, users, label, seed), colluding(few), channels, seed)
            for label in (0, other)
        )
        changed = {key for key, _ in one.items() ^ two.items()}
        if changed:
            kind = min(changed)[1]
            return kind, _change(one, two, [key for key in changed if key[1] == kind])
    return None


def _change(one: ReadFields, two: ReadFields, keys: list[Key]) -> str:
    """Return in words what of some messages changes."""
    if not all(key in one and key in two for key in keys):
        return "whether and to whom it is sent"
    names = {name for key in keys for (name, a), (_, b) in zip(one[key], two[key], strict=True) if a != b}
    return f"field {', '.join(sorted(names))}"


def _people(protocol: Protocol, users: int, label: int, seed: int) -> Population:
    """Return users of one cluster; user 0 has a certain label."""
    labels = protocol.label_count()
    y = np.array([label, *((seed + np.arange(1, users)) % labels)])
    return Population.from_arrays(
        y=y.astype(np.bool_) if labels == 2 else y.astype(np.uint8), cluster=np.zeros(users, np.int64)
    )


def _rows(
    protocol: Protocol, population: Population, view: Coalition, channels: str, seed: int
) -> ReadFields:
    """Return what a view sees of the messages of others, its own members left out, by address."""
    messages: dict[str, Message] = protocol.messages()
    trace = local.run(protocol, population, seed, digest=False, trace=TraceLevel("full")).totals.trace
    found = {}
    for kind, part in ((kind, part) for kind, parts in trace.items() for part in parts):
        message = messages[kind]
        if message.sender != USER and view.has(message.sender):
            continue
        some, readable = view.sees(message, part, channels)
        if message.sender == USER:
            some &= ~np.isin(part["sender"], [VICTIM, *view.users])
        for i in np.flatnonzero(some).tolist():
            names = message.fields if readable[i] else ()
            sender, recipient, seq = (int(part[name][i]) for name in ("sender", "recipient", "seq"))
            key = int(part["round"][i]), kind, sender, recipient, seq
            found[key] = tuple((name, repr(part[name][i].tolist())) for name in names)
    return found


@dataclass
class _Watched:
    """A protocol whose programs are watched."""

    protocol: Protocol
    events: dict[str, list[Event]] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        if name in self.protocol.roles():
            return partial(self._program, name)
        return getattr(self.protocol, name)

    def _program(self, role: str, me: Any) -> Any:
        events = self.events.setdefault(role, [])
        program = getattr(self.protocol, role)(me)
        answer = None
        while True:
            try:
                handed = program.send(answer)
            except StopIteration as end:
                return end.value
            for action in handed if isinstance(handed, tuple) else (handed,):
                if isinstance(action, Send):
                    if action.answers is not None:
                        events.append(("read", action.answers.kind, ""))
                    events.append(("send", action.message.kind, ""))
            answer = yield handed
            for inbox in answer if isinstance(answer, tuple) else (answer,):
                if isinstance(inbox, Inbox):
                    _watch(inbox, events)


def _watch(inbox: Inbox, events: list[Event]) -> None:
    """Let an inbox tell what is read of it."""
    load, verb, kind = inbox._load, "read" if inbox._sealed_for is None else "hold", inbox.kind

    def watched_load() -> Rows:
        events.append(("read", kind, ""))
        rows = load()
        watched_rows = _Rows(
            rows.layout, lambda: rows.sender, rows.seq, _Fields(rows.fields), rows.origin, rows.trail
        )
        return watched_rows.watched(lambda name: events.append((verb, kind, name)))

    inbox._load = watched_load


class _Fields(dict[str, Any]):
    """Columns that tell which of them are read."""

    on_read: Callable[[str], None] | None = None

    def __getitem__(self, name: str) -> Any:
        if self.on_read is not None and name != SEALED:
            self.on_read(name)
        return super().__getitem__(name)

    def items(self) -> Any:
        """Read all."""
        return [(name, self[name]) for name in self]

    def values(self) -> Any:
        """Read all."""
        return [self[name] for name in self]


class _Rows(Rows):
    """Rows that stay watched when some are picked."""

    def watched(self, on_read: Callable[[str], None] | None) -> _Rows:
        """Let the columns tell from now on."""
        assert isinstance(self.fields, _Fields)
        self.fields.on_read = on_read
        return self

    def pick(self, which: Any, layout: Any) -> Rows:
        """Return the chosen rows."""
        assert isinstance(self.fields, _Fields)
        columns = _Fields({name: dict.__getitem__(self.fields, name)[which] for name in self.fields})
        seq = None if self.seq is None else self.seq[which]
        picked = _Rows(layout, lambda: self.sender[which], seq, columns, self.origin, self.trail.pick(which))
        return picked.watched(self.fields.on_read)
