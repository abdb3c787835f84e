"""What a view says of each label by taking every way through a protocol, for every labeling: the oracle of attacks."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np

from p2p_sim.coalition import Coalition
from p2p_sim.core import Population
from p2p_sim.core.protocol import Protocol
from p2p_sim.core.trace_level import TraceLevel
from p2p_sim.observed_view import LazyColumns, View
from p2p_sim.privacy.enumeration.enumerate import Way, _observations, _own, _ways
from p2p_sim.rundir.trace_reader import sorted_trace
from p2p_sim.trace.slices import cut

Floats = np.ndarray[Any, np.dtype[np.float64]]


class EveryWay:
    """All ways through a protocol, for each labeling of a few users."""

    def __init__(self, protocol: Protocol, people: Population, labels: int = 2) -> None:
        self.protocol, self.people, self.labels = protocol, people, labels
        self.ways: dict[tuple[int, ...], list[Way]] = {}
        for y in itertools.product(range(labels), repeat=people.users):
            named = np.array(y, bool if labels == 2 else np.uint8)
            self.ways[y] = list(_ways(protocol, replace(people, y=named), None))

    def seen(self, name: str, channels: str, eta: Floats, most: int) -> Iterator[tuple[View, Floats]]:
        """Yield what a view can see, up to ``most`` cases, and P(it | y_i = c), (n, k), from all ways.

        ``eta`` (n, k): rows of the view's own users are certain.
        """
        coalition = Coalition.parse(name, self.protocol.roles()).named(range(self.people.users))
        fixed = {user: int(eta[user].argmax()) for user in coalition.users}
        kinds = self.protocol.messages()
        law: dict[Any, Floats] = {}
        example: dict[Any, tuple[tuple[int, ...], Way]] = {}
        for y, ways in self.ways.items():
            if any(y[user] != label for user, label in fixed.items()):
                continue
            chances = eta[np.arange(len(y)), y]
            others = np.array([np.delete(chances, i).prod() for i in range(len(y))])
            shares: dict[Any, Fraction] = {}
            for way in ways:
                rows = [
                    row
                    for kind, parts in way.trace.items()
                    for part in parts
                    for row in _observations(kinds[kind], part, coalition, channels)
                ]
                own = tuple(_own(role, log, coalition) for role, log in way.drawn.items())
                case = (tuple(sorted(rows)), own)
                shares[case] = shares.get(case, Fraction(0)) + way.weight
                example.setdefault(case, (y, way))
            for case, share in shares.items():
                table = law.setdefault(case, np.zeros(eta.shape))
                table[np.arange(len(y)), y] += others * float(share)
        cases = list(law)
        for case in cases[:: max(1, len(cases) // most)]:
            yield self._view(name, coalition, channels, *example[case]), law[case]

    def _view(self, name: str, coalition: Coalition, channels: str, y: tuple[int, ...], way: Way) -> View:
        kinds = self.protocol.messages()
        people = replace(self.people, y=np.array(y, bool if self.labels == 2 else np.uint8))
        kept = sorted_trace(self.protocol, way.trace, TraceLevel("full"))

        def shown(kind: str) -> Any:
            return cut(coalition, kinds[kind], kept[kind], channels)

        draws: dict[str, Any] = {}
        for role, log in way.drawn.items():
            for drawn, step, values in log:
                pairs = [
                    (owner, value) for owner, value in values if role != "user" or owner in coalition.users
                ]
                columns = {"party": [owner for owner, _ in pairs], "value": [value for _, value in pairs]}
                draws[f"{role}/{drawn}/{step}"] = {key: np.array(column) for key, column in columns.items()}
        past: Any = SimpleNamespace(draws=draws)
        return View(
            name, coalition, channels, LazyColumns(kinds, shown), None, kinds,
            lambda: people, lambda: people, lambda: past,
        )  # fmt: skip


def log_ratios(logs: Floats) -> Floats:
    """Return rows less their largest entry: what a constant of each row does not change."""
    return np.asarray(logs - logs.max(axis=1, keepdims=True))
