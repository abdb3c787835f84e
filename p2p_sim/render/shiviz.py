"""Messages as a ShiViz log: what every party did, with vector clocks that are computed from the messages.

What a party sends in a round comes before what it receives in it, for messages are handed over when a round is done.
So a message comes after all that its sender received in earlier rounds, whether or not the program had read it.
"""

from __future__ import annotations

import json
from itertools import groupby

from p2p_sim.core.errors import InputError
from p2p_sim.render import graphml, text_labels
from p2p_sim.trace.slices import Event, Slice

PARSER = r"(?<event>.*)\n(?<host>\S*) (?<clock>{.*})"
"""The expression by which ShiViz reads the log; it is its first line, and an empty delimiter its second."""

MOST_ENTRIES = 2_000_000
"""Entries of all clocks together, up to which a log is written: about 30 MB."""

_BRACES = str.maketrans("{}", "()")  # they begin a clock

Clock = dict[str, int]


def shiviz(part: Slice, title: str, notes: tuple[str, ...] = ()) -> str:
    """Return the messages as a log: of each, what its sender and its recipient did.

    ``title`` and ``notes`` come first, where the expression passes over them.  Raises InputError if the clocks together
    have more than ``MOST_ENTRIES`` entries.
    """
    lines = [PARSER, "", *(text_labels.clean(words, 2000).translate(_BRACES) for words in (title, *notes))]
    for event, which, clock in clocks(part):
        does, other = (("sends", "to"), ("receives", "from"))[which]
        words = [does, event.kind, other, event.ends[1 - which]]
        words += [f"{name}={text}" for name, text in graphml.fields(part, event).items()]
        stamp = json.dumps({_host(name): count for name, count in clock.items()})
        lines += [
            text_labels.clean(" ".join(words), 300).translate(_BRACES),
            f"{_host(event.ends[which])} {stamp}",
        ]
    return "\n".join(lines) + "\n"


def clocks(part: Slice) -> list[tuple[Event, int, Clock]]:
    """Return what happened: a message, 0 for its sending or 1 for its receipt, and that party's vector clock after it.

    A clock counts what each party had done; one without an entry had done nothing.  Raises InputError as ``shiviz``.
    """
    happened: list[tuple[Event, int, Clock]] = []
    now: dict[str, Clock] = {}
    entries = 0
    for _, events in groupby(part.events(), key=lambda event: event.round):
        sent = []
        for event in events:
            sent.append((event, _tick(now, event.ends[0], {})))
            entries = _counted(entries, sent[-1][1])
        happened += [(event, 0, clock) for event, clock in sent]
        for event, clock in sent:
            happened.append((event, 1, _tick(now, event.ends[1], clock)))
            entries = _counted(entries, happened[-1][2])
    return happened


def _counted(entries: int, clock: Clock) -> int:
    """Return the entries of all clocks with one more; raises InputError if they become too many."""
    if entries + len(clock) > MOST_ENTRIES:
        raise InputError(
            f"the vector clocks of these messages have more than {MOST_ENTRIES:,} entries together: "
            "ask for fewer users or fewer messages"
        )
    return entries + len(clock)


def _tick(now: dict[str, Clock], host: str, heard: Clock) -> Clock:
    """Let a party do one thing, after it heard of a clock; return its own clock then."""
    clock = now.setdefault(host, {})
    for other, count in heard.items():
        clock[other] = max(clock.get(other, 0), count)
    clock[host] = clock.get(host, 0) + 1
    return dict(clock)


def _host(name: str) -> str:
    """Return a party's name without spaces, which end a host's name in the log."""
    return text_labels.clean(name).replace(" ", "_")
