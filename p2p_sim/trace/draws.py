"""Draws taken down: what some parties drew, as columns, by stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.columns import Layout, PerMessage
from p2p_sim.core.draw import Observer

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
