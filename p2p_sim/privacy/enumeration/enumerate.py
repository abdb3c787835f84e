"""The exact law of a coalition's view for 3 or 4 users, by enumerating all draws of a protocol.

This is the oracle: whatever is computed from a formula is checked against it.

*Source:* ``docs/laws.md``, "Enumeration".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, overload

import numpy as np

from p2p_sim.backends import layout
from p2p_sim.backends.local import LocalSite
from p2p_sim.coalition import CHANNELS, Coalition
from p2p_sim.core import exact, kernels_numpy
from p2p_sim.core.address_book import World
from p2p_sim.core.engine import Engine
from p2p_sim.core.errors import InputError, near
from p2p_sim.core.fault_injection import FaultInjection
from p2p_sim.core.faults import Faults
from p2p_sim.core.message import USER, Message
from p2p_sim.core.party import Party
from p2p_sim.core.population import Population
from p2p_sim.core.protocol import Protocol
from p2p_sim.core.site import Directory, Site
from p2p_sim.core.trace_level import TraceLevel
from p2p_sim.privacy import many_values
from p2p_sim.privacy.enumeration.exhaustive_draws import Tape, TapeDraw, TapeFaultDraws
from p2p_sim.privacy.many_values import Array, Values
from p2p_sim.privacy.profile import number, probability
from p2p_sim.result_summary import Rows, Summary, counted

Observation = tuple[Any, ...]
"""All that a coalition saw on one way: messages, and its members' draws."""

MOST_USERS = 6


@dataclass(frozen=True, repr=False)
class EnumeratedView(Summary):
    """The law of a view in two neighbouring worlds: what is seen, to its probability."""

    view: str
    world: dict[Observation, Fraction]
    neighbour: dict[Observation, Fraction]
    basis: str = "exact"
    source: str = "enumeration of all draws"

    def __repr__(self) -> str:
        return f"<EnumeratedView of {self.view}: {counted(len(self.world.keys() | self.neighbour), 'observation')}>"

    def summary(self) -> tuple[str, Rows]:
        """Return what printing the view and notebooks show."""
        only = [
            sum((p if not q else 0 for p, q in self.pairs()), 0),
            sum((q if not p else 0 for p, q in self.pairs()), 0),
        ]
        rows = [
            ("observations", f"{len(self.world.keys() | self.neighbour):,}"),
            ("least ε with δ = 0", f"{self.pure_epsilon:.6g} nats"),
            ("δ at ε = 0", f"{float(self.delta_at(1)):.6g}"),
            ("seen in one world only", f"with probability {float(max(only)):.6g}"),
            ("basis", self.basis),
            ("source", self.source),
        ]
        return f"What view {self.view} sees in two worlds that differ in one label", rows

    def pairs(self) -> list[tuple[Fraction, Fraction]]:
        """Return (probability in the world, in the neighbour) of everything that can be seen."""
        outcomes = list(dict.fromkeys([*self.world, *self.neighbour]))
        return [(self.world.get(s, Fraction(0)), self.neighbour.get(s, Fraction(0))) for s in outcomes]

    def delta_at(self, ratio: Fraction | int) -> Fraction:
        """Return δ at e^ε = ``ratio``, exactly: the larger of both directions."""
        pairs = self._pairs
        zero = Fraction(0)
        return max(
            sum((max(zero, p - ratio * q) for p, q in pairs), zero),
            sum((max(zero, q - ratio * p) for p, q in pairs), zero),
        )

    @overload
    def delta(self, epsilon: float) -> float: ...
    @overload
    def delta(self, epsilon: Values) -> Array: ...
    def delta(self, epsilon: Any) -> Any:
        """Return δ at ε >= 0, in nats, or at each of several, in their shape; raises InputError for other values."""
        if many_values.several(epsilon):
            at, shape = many_values.checked("epsilon", epsilon, _exponent)
            return many_values.floats([self._delta(one) for one in at], shape)
        return self._delta(_exponent("epsilon", epsilon))

    @overload
    def epsilon(self, delta: float) -> float: ...
    @overload
    def epsilon(self, delta: Values) -> Array: ...
    def epsilon(self, delta: Any) -> Any:
        """Return the least ε >= 0, in nats, whose δ is at most ``delta``, in [0, 1], or that of each of several.

        Exact except for the logarithm, which is rounded to the nearest float.  Raises InputError for other values.
        """
        if many_values.several(delta):
            wanted, shape = many_values.checked("delta", delta, probability)
            return many_values.floats([self._epsilon(one) for one in wanted], shape)
        return self._epsilon(probability("delta", delta))

    def _delta(self, epsilon: float) -> float:
        if math.isinf(epsilon):
            certain = [(p if not q else 0, q if not p else 0) for p, q in self._pairs]
            return float(max(sum(column) for column in zip(*certain, strict=True)))
        return float(self.delta_at(exact.exp(epsilon)))

    def _epsilon(self, delta: float) -> float:
        wanted, pairs = Fraction(delta), self._pairs
        ratios = [_ratio(pairs, wanted), _ratio([(q, p) for p, q in pairs], wanted)]
        return math.inf if None in ratios else max(_log(ratio) for ratio in ratios if ratio is not None)

    @property
    def pure_epsilon(self) -> float:
        """The least ε with δ = 0; infinite if something can be seen in one world only."""
        if any((not p) != (not q) for p, q in self._pairs):
            return math.inf
        return max(abs(math.log(p / q)) for p, q in self._pairs)

    @cached_property
    def _pairs(self) -> list[tuple[Fraction, Fraction]]:
        """Pairs of one ratio put together, which changes no divergence."""
        merged: dict[Fraction | None, tuple[Fraction, Fraction]] = {}
        for p, q in self.pairs():
            key = p / q if q else None
            old = merged.get(key, (Fraction(0), Fraction(0)))
            merged[key] = (old[0] + p, old[1] + q)
        return list(merged.values())


def _exponent(name: str, value: Any) -> float:
    epsilon = number(name, value)
    if exact.EXP_LIMIT < epsilon < math.inf:
        raise InputError(f"{name} = {value!r}: must be at most {exact.EXP_LIMIT:,}, or infinite")
    return epsilon


def _ratio(pairs: list[tuple[Fraction, Fraction]], delta: Fraction) -> Fraction | None:
    """Return the least ratio r >= 1 with sum of max(0, p - r q) at most ``delta``; None if there is none."""
    above = sorted((pair for pair in pairs if pair[0] > pair[1]), key=_quotient)
    p, q = (sum(side, Fraction(0)) for side in (zip(*above, strict=True) if above else ((), ())))
    if p - q <= delta:
        return Fraction(1)
    for pair in above:  # up to where this pair counts no more, the sum is p - r q
        if pair[1] == 0:
            return None  # what is left is seen in one world only
        ratio = (p - delta) / q
        if ratio <= pair[0] / pair[1]:
            return ratio
        p, q = p - pair[0], q - pair[1]
    raise AssertionError("beyond the largest ratio the sum is 0")


def _quotient(pair: tuple[Fraction, Fraction]) -> tuple[bool, Fraction]:
    """Return what sorts pairs by p / q, those without q last."""
    return (False, pair[0] / pair[1]) if pair[1] else (True, Fraction(0))


def _log(ratio: Fraction) -> float:
    """Return the natural logarithm of a ratio >= 1; close to 1 no digits are lost."""
    return math.log1p(ratio - 1) if ratio < 2 else math.log(ratio.numerator) - math.log(ratio.denominator)


def enumerate_view(
    protocol: Protocol,
    population: Population,
    *,
    view: str = "learner",
    change: int = 0,
    to: int | None = None,
    channels: str = "plain",
    faults: Faults | Sequence[str] | None = None,
) -> EnumeratedView:
    """Return the exact law of a view, with user ``change``'s label as it is and replaced.

    ``to``: her other label; by default the next one.  ``channels``: "plain", or "encrypted" towards the wire.
    ``faults``: what goes wrong, as in ``p2p_sim.run``: each decision is followed both ways, so few users get far.
    Unnamed users of the view are the first others.  Weights are exact fractions of the parameters as floats.
    Raises InputError above 6 users, for draws with too many outcomes, and if she herself is in the view.
    """
    return enumerate_views(
        protocol, population, (view,), change=change, to=to, channels=channels, faults=faults
    )[view]


def enumerate_views(
    protocol: Protocol,
    population: Population,
    views: Sequence[str],
    *,
    change: int = 0,
    to: int | None = None,
    channels: str = "plain",
    faults: Faults | Sequence[str] | None = None,
) -> dict[str, EnumeratedView]:
    """Return the exact laws of several views, by name; draws are followed once for all.  See ``enumerate_view``."""
    wrong = Faults.of(faults)
    layout.check(protocol, population, wrong)
    if channels not in CHANNELS:
        raise InputError(
            f"channels = {channels!r}: must be one of {', '.join(CHANNELS)}{near(str(channels), CHANNELS)}"
        )
    if population.users > MOST_USERS:
        raise InputError(
            f"{population.users} users: at most {MOST_USERS} can be enumerated; take a smaller population"
        )
    if not 0 <= change < population.users:
        raise InputError(f"change = {change}: users are 0 to {population.users - 1}")
    coalitions = {view: _coalition(protocol, population, view, change) for view in views}
    labels = protocol.label_count()
    other = (int(population.y[change]) + 1) % labels if to is None else to
    if not 0 <= other < labels or other == int(population.y[change]):
        raise InputError(f"to = {to!r}: must be another label, from 0 to {labels - 1}")
    y = population.y.copy()
    y[change] = other
    worlds = (population, replace(population, y=y))
    first, second = (_laws(protocol, _ways(protocol, world, wrong), coalitions, channels) for world in worlds)
    return {view: EnumeratedView(view, first[view], second[view]) for view in views}


def _coalition(protocol: Protocol, population: Population, view: str, change: int) -> Coalition:
    others = [user for user in range(population.users) if user != change]
    coalition = Coalition.parse(view, protocol.roles()).named(others)
    if change in coalition.users or not coalition.users <= set(range(population.users)):
        raise InputError(
            f"view {view!r}: its users must be among {others}; user {change} is the one it learns about"
        )
    return coalition


@dataclass(frozen=True)
class Way:
    """One way through a program: its weight, all messages sent by kind, and what each role drew."""

    weight: Fraction
    trace: dict[str, list[dict[str, Any]]]
    drawn: dict[str, list[tuple[str, int, Any]]]


def _laws(
    protocol: Protocol, ways: Iterable[Way], coalitions: Mapping[str, Coalition], channels: str
) -> dict[str, dict[Observation, Fraction]]:
    """Return, for each coalition, the weight of all ways that show each of its observations."""
    messages: dict[str, Message] = protocol.messages()
    laws: dict[str, dict[Observation, Fraction]] = {name: {} for name in coalitions}
    for way in ways:
        for name, coalition in coalitions.items():
            observed = [
                row
                for kind, parts in way.trace.items()
                for part in parts
                for row in _observations(messages[kind], part, coalition, channels)
            ]
            own = [_own(role, log, coalition) for role, log in way.drawn.items()]
            observation = (tuple(sorted(observed)), *own)
            laws[name][observation] = laws[name].get(observation, Fraction(0)) + way.weight
    return laws


def _ways(protocol: Protocol, population: Population, faults: Faults | None) -> Iterator[Way]:
    """Run the program once for every tape: who looks at it does not matter yet."""
    labels = protocol.label_count()
    world = layout.world_of(protocol, population)
    tape = Tape()
    while True:
        columns = layout.slice_of(population, 0, population.users, labels == 2)
        injection = None if faults is None else FaultInjection(faults, TapeFaultDraws(tape))
        layout.lie(columns, world, 0, labels, injection)
        parties = _parties(protocol, population, columns, world, tape)
        directory = Directory((0, population.users), (0,), dict.fromkeys(set(parties) - {USER}, 0))
        site = Site(
            protocol,
            world,
            directory,
            0,
            parties,
            kernels_numpy,
            False,
            TraceLevel("full"),
            injection=injection,
        )
        totals = (
            Engine(protocol, directory, [LocalSite(site)], population.users).run(False, kernels_numpy).totals
        )
        draws: dict[str, Any] = {role: me[0].draw for role, me in parties.items()}
        yield Way(tape.weight, totals.trace, {role: draw.log for role, draw in draws.items()})
        if not tape.rewind():
            return


def _parties(
    protocol: Protocol, population: Population, columns: dict[str, Any], world: World, tape: Tape
) -> dict[str, list[Party]]:
    parties = {}
    for role in protocol.roles():
        rows = range(population.users) if role == USER else range(1)
        draw: Any = TapeDraw(tape, role, rows, compute=kernels_numpy)
        own = layout.block_of(columns, 0, population.users, world) if role == USER else {}
        parties[role] = [Party(role, rows, rows, draw, own)]
    return parties


def _observations(
    message: Message, part: dict[str, Any], coalition: Coalition, channels: str
) -> list[Observation]:
    """Return the rows of some messages that the coalition sees: addresses, and fields it can read."""
    visible, readable = coalition.sees(message, part, channels)
    rows = []
    for i in np.flatnonzero(visible).tolist():
        address = (message.kind, *(int(part[name][i]) for name in ("round", "sender", "recipient", "seq")))
        fields = tuple(part[name][i].tolist() for name in message.fields) if readable[i] else ()
        rows.append((*address, repr(fields)))
    return rows


def _own(role: str, log: list[tuple[str, int, Any]], coalition: Coalition) -> Observation:
    """Return what the members of one role drew."""
    if role != USER:
        return tuple((name, step, repr(values)) for name, step, values in log if role in coalition.servers)
    return tuple(
        (name, step, owner, value)
        for name, step, values in log
        for owner, value in values
        if owner in coalition.users
    )
