"""Paired runs: the same randomness, one label replaced, and what changes in every view."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.backends import layout
from p2p_sim.coalition import CHANNELS, WIRE, Coalition
from p2p_sim.core import seeds
from p2p_sim.core.errors import InputError, near
from p2p_sim.core.faults import Faults
from p2p_sim.core.message import USER, Message
from p2p_sim.core.population import Population
from p2p_sim.core.protocol import Protocol
from p2p_sim.core.sealing import MODELLED
from p2p_sim.observed_view import named
from p2p_sim.run import Run, run
from p2p_sim.trace.diff import differing

Array = npt.NDArray[Any]
Columns = dict[str, Array]


@dataclass(frozen=True, eq=False, repr=False)
class Pair:
    """Two runs that share all randomness and differ in one label: user ``change`` has ``labels[i]`` in ``runs[i]``."""

    runs: tuple[Run, Run]
    change: int
    labels: tuple[int, int]

    def __repr__(self) -> str:
        before, after = self.labels
        return f"<Pair of {self.runs[0].protocol.partition(':')[2]} runs, user {self.change}: {before} -> {after}>"

    def diff(self, view: str, *, channels: str = "plain") -> dict[str, Columns]:
        """Return the differences that a coalition sees, by kind; kinds without a difference are left out.

        Columns, one row a message: round, sender, recipient, seq; ``first`` and ``second``: whether it is in that run;
        ``readable``; and for each field NAME ``NAME_first`` and ``NAME_second``, 0 if that run lacks the message or the
        coalition cannot read it.  Raises InputError as ``Run.view`` does.
        """
        if channels not in CHANNELS:
            raise InputError(
                f"channels = {channels!r}: must be one of {', '.join(CHANNELS)}{near(str(channels), CHANNELS)}"
            )
        protocol, people = self._program, self.runs[0].population
        assert people is not None
        ids = np.arange(people.users) if people.ids is None else people.ids
        return self._visible_to(named(Coalition.parse(view, protocol.roles()), view, ids), channels)

    @property
    def _program(self) -> Protocol:
        program = self.runs[0].source
        assert program is not None  # both were run here
        return program

    def diffs(self, *, channels: str = "plain") -> dict[str, dict[str, Columns]]:
        """Return the differences of each server, of the wire, and of each single user who sees any."""
        roles = self._program.roles()
        found = {name: self.diff(name, channels=channels) for name in [*roles[1:], WIRE]}
        for user in self._affected_users():
            single = self._visible_to(Coalition(frozenset(), frozenset({user}), 0, False), channels)
            found |= {f"user:{user}": single} if single else {}
        return found

    def _visible_to(self, coalition: Coalition, channels: str) -> dict[str, Columns]:
        kinds = self._program.messages()
        cuts = {
            kind: _cut(coalition, kinds[kind], columns, channels)
            for kind, columns in self._differences.items()
        }
        return {kind: columns for kind, columns in cuts.items() if len(columns["round"])}

    def _affected_users(self) -> list[int]:
        """Return the users who sent or received a message that differs, ascending."""
        kinds: Mapping[str, Message] = self._program.messages()
        ends = [np.zeros(0, np.int64)]
        for kind, columns in self._differences.items():
            ends += [columns["sender"]] if kinds[kind].sender == USER else []
            ends += [columns["recipient"]] if kinds[kind].recipient == USER else []
        users: list[int] = np.unique(np.concatenate(ends)).tolist()
        return users

    @functools.cached_property
    def _differences(self) -> dict[str, Columns]:
        """All messages that are in one run only, or whose fields differ."""
        first, second = self.runs
        kinds: Mapping[str, Message] = self._program.messages()
        return {
            kind: differing(first.messages(kind), second.messages(kind), list(message.fields))
            for kind, message in kinds.items()
        }


def paired(
    protocol: Protocol,
    population: Population,
    *,
    change: int,
    to: int | None = None,
    seed: int | None = None,
    backend: str = "local",
    faults: Faults | Sequence[str] | None = None,
    crypto: str = MODELLED,
) -> Pair:
    """Run a protocol twice with the same seed, the second time with user ``change``'s label replaced.

    ``to``: her label in the second run; by default the next one.  ``seed``: of both runs, None draws a fresh one.
    ``faults``: of both runs, with the same randomness.  ``crypto``: see ``run``.  Raises InputError for an unknown user
    or label.
    """
    if not isinstance(population, Population):
        raise InputError(f"population = {population!r}: make one, such as Population.from_arrays(y=labels)")
    layout.check(protocol, population)
    row = population.row(change, f"change = {change!r}")
    labels = protocol.label_count()
    before = int(population.y[row])
    after = (before + 1) % labels if to is None else to
    if after not in range(labels) or after == before:
        raise InputError(f"to = {to!r}: must be another label than user {change}'s, from 0 to {labels - 1}")
    y = population.y.copy()
    y[row] = after
    number = seeds.chosen(seed)
    runs = [
        run(protocol, people, seed=number, backend=backend, trace="full", faults=faults, crypto=crypto)
        for people in (population, replace(population, y=y))
    ]
    return Pair((runs[0], runs[1]), int(change), (before, int(after)))


def _cut(coalition: Coalition, message: Message, columns: Columns, channels: str) -> Columns:
    """Return the differences that a coalition sees: not those in fields that it cannot read."""
    seen, readable = coalition.sees(message, columns, channels)
    seen = seen & (readable | ~(columns["first"] & columns["second"]))
    visible = {name: column[seen] for name, column in columns.items()}
    for name in message.fields:
        for end in ("first", "second"):
            visible[f"{name}_{end}"][~readable[seen]] = 0
    visible["readable"] = readable[seen]
    head = ("round", "sender", "recipient", "seq", "first", "second", "readable")
    return {name: visible[name] for name in [*head, *(name for name in visible if name not in head)]}
