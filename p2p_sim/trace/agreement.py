"""Whether what was replayed is what the trace holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from p2p_sim.core.message import Message
from p2p_sim.trace.differences import as_value, differing, first_of
from p2p_sim.trace.reader import Source
from p2p_sim.trace.replay import Life


@dataclass(frozen=True)
class Agreement:
    """How a replayed life compares with a trace.

    ``held``: how many of her messages the trace has; ``replayed``: how many there are; ``different``: how many differ;
    ``first``: the first of them in causal order, ``first`` its fields in the replay, ``second`` in the trace.
    """

    held: int
    replayed: int
    different: int
    first: dict[str, Any] | None


def compared(life: Life, trace: Source, kinds: Mapping[str, Message], whole: bool) -> Agreement:
    """Compare a life with a trace.  ``whole``: whether the trace should hold all that she sent and received."""
    mine, held, found = life.messages(), 0, {}
    for kind, message in kinds.items():
        if kind not in mine:
            continue
        stored, number = trace.rows(kind, user=life.user)
        held += number
        apart = differing(mine[kind], stored, list(message.fields))
        counts = apart["second"] if not whole else apart["first"] | apart["second"]
        found[kind] = {name: column[counts] for name, column in apart.items()}
    place = first_of(found)
    told = None
    if place is not None:
        kind, row = place
        roles = kinds[kind].sender, kinds[kind].recipient
        told = as_value(kind, roles, found[kind], row, list(kinds[kind].fields))
    replayed = sum(len(columns["round"]) for columns in mine.values())
    return Agreement(held, replayed, sum(len(columns["round"]) for columns in found.values()), told)
