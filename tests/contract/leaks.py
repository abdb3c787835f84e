"""The leak check: does any party's program hold a message field that its view does not show?

Every party is a block of its own.  A run is repeated with one field of one message changed on its way, and everything
else that is delivered kept as it was, whatever programs send now.  Whoever holds the field, a copy of it or anything
computed from it, has another state then: all that her program's frames reach, after every step.  Only those whose view
shows the field may.  A program that fails, or refuses, has noticed the change: that it failed is her state from there
on, and for all others the run goes on as it was.
What a program is not offered, an inbox's loader and ticket and the data of a sealed column, is the engine's, not hers.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any
from unittest import mock

import numpy as np

from p2p_sim.backends import local
from p2p_sim.coalition import Coalition
from p2p_sim.core.block import Block, Step
from p2p_sim.core.columns import Inbox, PerMessage
from p2p_sim.core.draw import Draw
from p2p_sim.core.errors import ProtocolError
from p2p_sim.core.mail import Batch, Parcel
from p2p_sim.core.message import USER, Message
from p2p_sim.core.party import Party
from p2p_sim.core.site import Site

Address = tuple[str, int, int, int, int]
"""Kind, round, sender, recipient, sequence number."""
Where = tuple[str, int]
"""A party: its role and first row."""
State = dict[str, Any]
FAILED = "failed"


@dataclass
class Watched:
    """A run under watch.  ``change``: a message and its field that is changed in what ``base`` delivered."""

    change: tuple[Address, str] | None = None
    base: Watched | None = None
    delivered: dict[Address, dict[str, Any]] = field(default_factory=dict)
    states: dict[Where, list[State]] = field(default_factory=dict)
    sent: dict[tuple[str, int], tuple[bool, list[list[Parcel]]]] = field(default_factory=dict)
    went: dict[Where, list[tuple[list[Step], bool]]] = field(default_factory=dict)

    def run(self, protocol: Any, population: Any, seed: int) -> None:
        send, step, resume = Site._dispatch, Block._step, Block.resume

        def on_its_way(site: Site, role: str, message: Message, round: int, parts: Any, out: Any) -> bool:
            if self.base is None:
                mine: list[list[Parcel]] = [[] for _ in out]
                self.sent[message.kind, round] = send(site, role, message, round, parts, mine), mine
            full, kept = (self if self.base is None else self.base).sent[message.kind, round]
            for bundle, parcels in zip(out, kept, strict=True):
                bundle += [self._delivered(parcel) for parcel in parcels]
            return full

        def after_a_step(block: Block, handed: Any) -> Any:
            self._look(block, frames(block._program))
            return step(block, handed)

        def to_the_next(block: Block, inboxes: Any) -> Any:
            party = block.me.role, block.me.rows.start
            went = self.went.setdefault(party, [])
            if not self._failed(party):
                try:
                    went.append((resume(block, inboxes), block.done))
                    if block.done:
                        self._look(block, [{"output": block.output}])
                    return went[-1][0]
                except Exception as error:
                    if self.base is None:
                        raise
                    self.states.setdefault(party, []).append({FAILED: repr(error)})
            assert self.base is not None
            went.append(self.base.went[party][len(went)])
            steps, block.done = went[-1]
            block.output = block.output or {}
            return steps

        with (
            mock.patch.object(Site, "_dispatch", on_its_way),
            mock.patch.object(Block, "_step", after_a_step),
            mock.patch.object(Block, "resume", to_the_next),
        ):
            local.run(protocol, population, seed, blocks=population.users, digest=False)

    def _failed(self, party: Where) -> bool:
        return FAILED in self.states.get(party, [{}])[-1]

    def _delivered(self, parcel: Parcel) -> Parcel:
        """Return a copy of what is delivered, with the change."""
        return replace(parcel, batches=[self._copy(parcel.kind, parcel.round, b) for b in parcel.batches])

    def _copy(self, kind: str, round: int, batch: Batch) -> Batch:
        size = len(batch.sender)
        to = [0] * size if batch.to is None else list(batch.to)
        seq = [0] * size if batch.seq is None else list(batch.seq)
        columns = {name: np.array(column) for name, column in batch.fields.items()}
        for i, ends in enumerate(zip(batch.sender, to, seq, strict=True)):
            address = (kind, round, *(int(end) for end in ends))
            for name, column in columns.items():
                if self.change == (address, name):
                    column[i] = ~column[i]
            self.delivered[address] = {name: column[i].copy() for name, column in columns.items()}
        return replace(batch, fields=columns)

    def _look(self, block: Block, places: Any) -> None:
        found: State = {}
        seen: dict[int, Any] = {}  # the things themselves too, or a dead one's id would be given again
        for number, place in enumerate(places):
            for path, value in walk(place, "" if not number else f"frame {number}: ", seen):
                found[path] = value
        self.states.setdefault((block.me.role, block.me.rows.start), []).append(found)


def frames(program: Any) -> Iterator[dict[str, Any]]:
    """The variables of a program and of those it yields from, and the containers of their modules that they name."""
    while program is not None and getattr(program, "gi_frame", None) is not None:
        frame = program.gi_frame
        named = {n: frame.f_globals.get(n) for n in frame.f_code.co_names}
        yield frame.f_locals | {
            f"global {n}": v for n, v in named.items() if isinstance(v, (list, dict, set, np.ndarray))
        }
        program = program.gi_yieldfrom


def walk(thing: Any, path: str, seen: dict[int, Any]) -> Iterator[tuple[str, Any]]:
    """All values that can be reached from a thing as a program would, each with its path."""
    if isinstance(thing, (np.ndarray, np.generic)):
        yield path, thing.tobytes() if thing.dtype != object else repr(thing)
        return
    if thing is None or isinstance(thing, (bool, int, float, str, bytes, range)):
        yield path, thing
        return
    if id(thing) in seen or isinstance(thing, (Draw, Message, types.ModuleType, types.GeneratorType)):
        return
    seen[id(thing)] = thing
    for name, part in parts_of(thing):
        yield from walk(part, f"{path}.{name}" if path else str(name), seen)


def parts_of(thing: Any) -> list[tuple[Any, Any]]:
    if isinstance(thing, PerMessage):
        try:
            return [("data", thing.data), ("count", thing.count)]
        except ProtocolError:  # sealed: the program cannot compute with it
            return [("count", thing.count)]
    if isinstance(thing, Inbox):
        fresh = Inbox(thing.message, thing._load, thing._reader)  # a look must not change how it is answered
        return [(name, getattr(fresh, name)) for name in ("sender", "count", *thing.message.fields)]
    if isinstance(thing, dict):
        return list(thing.items())
    if isinstance(thing, (list, tuple, set, frozenset)):
        return list(enumerate(thing))
    if isinstance(thing, types.FunctionType):
        cells = zip(thing.__code__.co_freevars, thing.__closure__ or (), strict=True)
        return [(name, cell.cell_contents) for name, cell in cells]
    own = [(name, value) for name, value in vars(type(thing)).items() if not name.startswith("__")]
    inner = [(name, getattr(thing, name, None)) for name in getattr(type(thing), "__slots__", ())]
    held = list(getattr(thing, "__dict__", {}).items())
    if isinstance(thing, Party):
        held = [(name, value) for name, value in held if name != "aside"]  # seconds: never the same twice
    return own * (type(thing).__module__[:8] != "p2p_sim.") + inner + held


def leaks(protocol: Any, population: Any, seed: int = 3) -> list[str]:
    """Say which fields parties hold that their views do not show."""
    base = Watched()
    base.run(protocol, population, seed)
    found = []
    for address, fields in base.delivered.items():
        for name in fields:
            other = Watched((address, name), base)
            other.run(protocol, population, seed)
            assert other.delivered.keys() == base.delivered.keys()
            for party in base.states:
                if not shows(party, protocol, address):
                    held = holding(base.states[party], other.states[party])
                    found += [f"{party} holds {name} of {address}: {where}" for where in held]
    return found


def shows(party: Where, protocol: Any, address: Address) -> bool:
    """Whether a party's own view shows the fields of a message."""
    role, user = party
    inside = Coalition(frozenset({role} - {USER}), frozenset({user} if role == USER else ()), 0, False)
    ends = {name: np.array([end]) for name, end in zip(("sender", "recipient"), address[2:4], strict=True)}
    return bool(inside.sees(protocol.messages()[address[0]], ends, "plain")[1][0])


def holding(one: list[State], other: list[State]) -> list[str]:
    """Where two lives of a party differ: the first step, and the paths."""
    assert len(one) == len(other) or FAILED in other[-1]
    for step, (a, b) in enumerate(zip(one, other, strict=False)):
        if FAILED in b:
            return [f"step {step}, {FAILED}: {b[FAILED]}"]
        paths = [path for path in {**a, **b} if a.get(path) != b.get(path)]
        if paths:
            return [f"step {step}, {path}" for path in paths]
    return []
