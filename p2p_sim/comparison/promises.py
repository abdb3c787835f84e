"""Promises: a target for what one view learns, and constraints on others, read from text."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from p2p_sim.coalition import Coalition
from p2p_sim.core.errors import InputError, near
from p2p_sim.core.message import USER
from p2p_sim.core.number_texts import float_of, read_number
from p2p_sim.core.protocol import Protocol
from p2p_sim.privacy.calibrate import check_target
from p2p_sim.privacy.setting import LEARNER
from p2p_sim.privacy.table_rows import USERS, TableRow
from p2p_sim.report.delta import DELTA

_SERVER = re.compile(r"server:([a-z]\w*)")
_COALITION = re.compile(r"coalition\(([0-9]{1,9})\)")
_BEHAVING = re.compile(r"(.*?) \(([a-z ]+)\)")
_TARGET = ("view", "epsilon", "delta")
_CONSTRAINT = re.compile(r"\s*(.+?)\s*(?:<=|≤)\s*(\S+)\s*")


@dataclass(frozen=True)
class NamedView:
    """A view by name, for any protocol: as in ``p2p-sim account``, or ``server:NAME``, or ``coalition(N)``.

    ``coalition(3)`` is the learner together with three users, who see no less than three users alone.  ``users``:
    how those who look behave, "user (deviating)" as in the keys of a privacy table.
    """

    text: str
    users: str = "curious"

    @classmethod
    def read(cls, text: Any) -> NamedView:
        """Read a name; raises InputError if it is no text, or if users behave in an unknown way."""
        if not isinstance(text, str) or not text.strip():
            raise InputError(
                f"view = {text!r}: name who looks, such as learner, user, server:shuffler, coalition(3)"
            )
        found = _BEHAVING.fullmatch(text.strip())
        if found is None:
            return cls(text.strip())
        if found[2] not in USERS:
            raise InputError(
                f"view = {text!r}: in brackets stands how users behave: {', '.join(USERS)}{near(found[2], USERS)}"
            )
        return cls(found[1], found[2])

    @property
    def key(self) -> str:
        """The name of its row in a privacy table."""
        name = self._name(LEARNER)
        return name if self.users == "curious" else f"{name} ({self.users})"

    def row(self, kind: type[Protocol]) -> TableRow | None:
        """Return the row of a privacy table of a protocol; None if the protocol lacks a party of the view."""
        roles = kind.roles()
        servers = [role for role in roles if role != USER]
        main = LEARNER if LEARNER in servers else servers[0] if servers else ""
        name = self._name(main)
        if any(part not in roles for part in self._parties(name)):
            return None
        who = Coalition.parse(name, roles)
        return TableRow(name, str(who), who, self.users)

    def check(self, kinds: Sequence[type[Protocol]]) -> None:
        """Raise InputError if no protocol has all parties of the view."""
        if all(self.row(kind) is None for kind in kinds):
            every = dict.fromkeys(role for kind in kinds for role in kind.roles())
            wrong = next(part for part in self._parties(self._name(LEARNER)) if part not in every)
            raise InputError(
                f"view = {self.text!r}: no protocol here has a party {wrong!r}{near(wrong, list(every))}; parties are "
                f"{', '.join(every)}, wire, coalition(3), and several joined by +"
            )

    def _name(self, main: str) -> str:
        """Return its name as ``privacy.profile`` takes it; ``main``: the server with whom users collude."""
        if found := _COALITION.fullmatch(self.text):
            some = f"{int(found[1])}*{USER}"
            return f"{main}+{some}" if main else some
        return "+".join(
            found[1] if (found := _SERVER.fullmatch(part.strip())) else part.strip()
            for part in self.text.split("+")
        )

    @staticmethod
    def _parties(name: str) -> list[str]:
        """Return the parts of a name that are not users or the wire: servers, and what is no party at all."""
        parts = [part for part in name.split("+") if part != "wire"]
        return [part for part in parts if re.fullmatch(r"(?:[0-9]+\*)?user(?::[0-9]+)?", part) is None]


@dataclass(frozen=True)
class Promise:
    """That a view learns at most ``epsilon`` nats of one label, at the delta of the target."""

    view: NamedView
    epsilon: float

    def __str__(self) -> str:
        return f"{self.view.key} <= {self.epsilon:g}"


@dataclass(frozen=True)
class Promises:
    """A target to which protocols are calibrated, and constraints that must hold too, all at one ``delta``."""

    target: Promise
    constraints: tuple[Promise, ...]
    delta: float

    @property
    def every(self) -> tuple[Promise, ...]:
        """The target and the constraints."""
        return (self.target, *self.constraints)

    def text(self) -> str:
        """Return them in words."""
        beside = f", with {', '.join(map(str, self.constraints))}" if self.constraints else ""
        return f"{self.target}{beside}, at δ = {self.delta:g}"


def read(target: str | Mapping[str, Any], constraints: Sequence[str] | Mapping[str, float] = ()) -> Promises:
    """Read a target, such as "view=learner,epsilon=1,delta=1e-6", and constraints, such as "user<=2".

    Mappings have the same keys: {"view": "learner", "epsilon": 1}, and {"user": 2}.  Raises InputError for what cannot
    be read, epsilon below 0, delta outside [0, 1), and a view that is given two values.
    """
    values = _target(target)
    epsilon, delta = values.get("epsilon"), values.get("delta", DELTA)
    if epsilon is None:
        raise InputError(f"target = {target!r}: epsilon is missing: give view=learner,epsilon=1,delta=1e-6")
    check_target(epsilon, delta)
    first = Promise(NamedView.read(values.get("view", LEARNER)), float(epsilon))
    found = [_constraint(each) for each in _listed(constraints)]
    seen = {first.view.key: first}
    for each in found:
        if (before := seen.get(each.view.key)) is not None:
            raise InputError(
                f"{before} and {each}: two values for one view contradict each other; give view {each.view.key!r} the "
                "smaller one alone"
            )
        seen[each.view.key] = each
    return Promises(first, tuple(found), float(delta))


def _target(given: str | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(given, Mapping):
        values = dict(given)
    elif isinstance(given, str):
        pairs = [part.partition("=") for part in given.split(",") if part.strip()]
        if not all(equals for _, equals, _ in pairs):
            raise InputError(f"target = {given!r}: give pairs, such as view=learner,epsilon=1,delta=1e-6")
        names = [name.strip() for name, _, _ in pairs]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"target = {given!r}: {twice} is given twice; leave one out")
        values = {name: value.strip() for name, (_, _, value) in zip(names, pairs, strict=True)}
    else:
        raise InputError(
            f"target = {given!r}: give text, such as view=learner,epsilon=1,delta=1e-6, or a mapping"
        )
    for name in values:
        if name not in _TARGET:
            raise InputError(
                f"target: unknown {name!r}{near(str(name), _TARGET)}; it has {', '.join(_TARGET)}"
            )
    return {name: value if name == "view" else _number(name, value) for name, value in values.items()}


def _listed(given: Sequence[str] | Mapping[str, float]) -> list[str | tuple[str, Any]]:
    if isinstance(given, Mapping):
        return list(given.items())
    return [given] if isinstance(given, str) else list(given)


def _constraint(given: str | tuple[str, Any]) -> Promise:
    if isinstance(given, tuple):
        view, value = given
    else:
        found = _CONSTRAINT.fullmatch(given) if isinstance(given, str) else None
        if found is None:
            raise InputError(
                f"constraint = {given!r}: give a view and what it may learn at most, such as user<=2"
            )
        view, value = found.groups()
    epsilon = _number(f"constraint on {view}", value)
    if not (0 <= epsilon < math.inf):
        raise InputError(f"constraint on {view} = {epsilon!r}: must be a number of nats, at least 0")
    return Promise(NamedView.read(view), epsilon)


def _number(name: str, value: Any) -> float:
    try:
        if isinstance(value, float):
            return float(value)
        return float_of(value) if isinstance(value, int) else read_number(str(value))
    except ValueError as error:
        raise InputError(f"{name} {value!r:.60}: {error}") from None
