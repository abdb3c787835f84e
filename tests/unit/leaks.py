"""The leak check: does any party's program hold a message field that its view does not show?

Every party is a block of its own.  A run is repeated with one field of one message changed on its way, and everything
else that is delivered kept as it was.  Whoever holds the field, a copy of it or anything computed from it, has another
state then: all that her program's frames reach, after every step.  Only those whose view shows the field may.
What a program is not offered, an inbox's loader and ticket and the data of a sealed column, is the engine's, not hers.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import numpy as np

from p2p_sim.backends import local
from p2p_sim.core.block import Block
from p2p_sim.core.columns import Inbox, PerMessage
from p2p_sim.core.draw import Draw
from p2p_sim.core.engine import Finished
from p2p_sim.core.errors import ProtocolError
from p2p_sim.core.message import USER, Message
from p2p_sim.core.site import Site
from p2p_sim.views import Coalition

Address = tuple[str, int, int, int, int]
"""Kind, round, sender, recipient, sequence number."""
Party = tuple[str, int]
State = dict[str, Any]


@dataclass
class Watched:
    """A run under watch.  ``change``: a message and its field that is changed; ``fixed``: what else is delivered."""

    change: tuple[Address, str] | None = None
    fixed: dict[Address, dict[str, Any]] = field(default_factory=dict)
    delivered: dict[Address, dict[str, Any]] = field(default_factory=dict)
    states: dict[Party, list[State]] = field(default_factory=dict)

    def run(self, protocol: Any, population: Any, seed: int) -> Finished:
        accept, step, resume = Site._accept, Block._step, Block.resume

        def on_its_way(site: Site, parcel: Any) -> None:
            for batch in parcel.batches:
                self._deliver(parcel.kind, parcel.round, batch)
            accept(site, parcel)

        def after_a_step(block: Block, handed: Any) -> Any:
            self._look(block, frames(block._program))
            return step(block, handed)

        def at_the_end(block: Block, inboxes: Any) -> Any:
            steps = resume(block, inboxes)
            if block.done:
                self._look(block, [{"output": block.output}])
            return steps

        with (
            mock.patch.object(Site, "_accept", on_its_way),
            mock.patch.object(Block, "_step", after_a_step),
            mock.patch.object(Block, "resume", at_the_end),
        ):
            return local.run(protocol, population, seed, blocks=population.users)

    def _deliver(self, kind: str, round: int, batch: Any) -> None:
        size = len(batch.sender)
        to = [0] * size if batch.to is None else list(batch.to)
        seq = [0] * size if batch.seq is None else list(batch.seq)
        columns = {name: np.array(column) for name, column in batch.fields.items()}
        for i, ends in enumerate(zip(batch.sender, to, seq, strict=True)):
            address = (kind, round, *(int(end) for end in ends))
            for name, column in columns.items():
                if self.fixed:
                    column[i] = self.fixed[address][name]
                if self.change == (address, name):
                    column[i] = ~column[i]
            self.delivered[address] = {name: column[i].copy() for name, column in columns.items()}
        batch.fields = columns

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
    return (
        own * (type(thing).__module__[:8] != "p2p_sim.")
        + inner
        + list(getattr(thing, "__dict__", {}).items())
    )


def leaks(protocol: Any, population: Any, seed: int = 3) -> list[str]:
    """Say which fields parties hold that their views do not show."""
    base = Watched()
    base.run(protocol, population, seed)
    found = []
    for address, fields in base.delivered.items():
        for name in fields:
            other = Watched((address, name), base.delivered)
            other.run(protocol, population, seed)
            assert other.delivered.keys() == base.delivered.keys()
            for party in base.states:
                if not shows(party, protocol, address):
                    held = holding(base.states[party], other.states[party])
                    found += [f"{party} holds {name} of {address}: {where}" for where in held]
    return found


def shows(party: Party, protocol: Any, address: Address) -> bool:
    """Whether a party's own view shows the fields of a message."""
    role, user = party
    inside = Coalition(frozenset({role} - {USER}), frozenset({user} if role == USER else ()), 0, False)
    ends = {name: np.array([end]) for name, end in zip(("sender", "recipient"), address[2:4], strict=True)}
    return bool(inside.sees(protocol.messages()[address[0]], ends, "plain")[1][0])


def holding(one: list[State], other: list[State]) -> list[str]:
    """Where two lives of a party differ: the first step, and the paths."""
    assert len(one) == len(other)
    for step, (a, b) in enumerate(zip(one, other, strict=True)):
        paths = [path for path in {**a, **b} if a.get(path) != b.get(path)]
        if paths:
            return [f"step {step}, {path}" for path in paths]
    return []
