"""Handing on what is sealed: what no ciphertext can do is refused in both modes, before a run is called real."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim import Population
from p2p_sim.core import Bytes, Message, Protocol, ProtocolError, Vector
from p2p_sim.core.columns import Trail

USERS = 6
MODES = ("modelled", "real")


def everybody() -> Population:
    return Population.from_arrays(y=np.zeros(USERS, np.bool_))


@dataclass(frozen=True)
class Post(Protocol):
    """A server hands on two fields that came sealed, in one way or another."""

    how: str
    dim: int = 2

    given = Message(
        "user", "post", "gives", sealed_for="learner", layers=("post",), a=np.int32, b=Vector(np.int8, "dim")
    )
    passed = Message("post", "learner", "passes on", sealed_for="learner", a=np.int32, b=Vector(np.int8, 2))
    renamed = Message("post", "learner", "the same", sealed_for="learner", p=np.int32, q=Vector(np.int8, 2))
    turned = Message(
        "post", "learner", "in another order", sealed_for="learner", b=Vector(np.int8, 2), a=np.int32
    )
    wider = Message(
        "post", "learner", "as another type", sealed_for="learner", a=np.int64, b=Vector(np.int8, 2)
    )
    part = Message("post", "learner", "a field alone", sealed_for="learner", a=np.int32)
    layered = Message(
        "post", "post", "under a layer that is off", sealed_for="learner", layers=("post",),
        a=np.int32, b=Vector(np.int8, 2),
    )  # fmt: skip

    def user(self, me: Any) -> Any:
        yield self.given(a=me.id * 1000, b=np.stack([me.id, -me.id], 1).astype(np.int8))

    def post(self, me: Any) -> Any:
        came = yield self.given.receive()
        odd = came.sender % 2 == 1
        some, others, order = came.where(odd), came.where(~odd), me.draw.permutation("order", each=came)
        twice = came.find(sender=me.each(np.array([3, 1, 3])))
        again = twice.where(twice.rank >= 0)
        a, b = came.a, came.b
        if self.how == "layered":
            yield self.layered(a=a, b=b)
        send = {
            "as it came": lambda: self.passed(a=a, b=b), "renamed": lambda: self.renamed(p=a, q=b),
            "filtered": lambda: self.passed(a=some.a, b=some.b),
            "ordered": lambda: self.passed(a=a.take(order), b=b.take(order)),
            "nothing": lambda: self.passed(a=a, b=b, when=False),
            "one by one": lambda: self.passed(a=a.take(came.rank), b=b),
            "turned": lambda: self.turned(a=a, b=b), "wider": lambda: self.wider(a=a, b=b),
            "part": lambda: self.part(a=a), "joined": lambda: self.passed(a=a.take(order), b=b),
            "others": lambda: self.passed(a=some.a, b=others.b),
            "found twice": lambda: self.passed(a=twice.a, b=twice.b),
            "filtered twice": lambda: self.passed(a=again.a, b=again.b),
            "taken twice": lambda: self.passed(a=a.take(came.rank * 0), b=b.take(came.rank * 0)),
        }[self.how]  # fmt: skip
        yield send()

    def learner(self, me: Any) -> Any:
        kinds = {"renamed": self.renamed, "turned": self.turned, "wider": self.wider, "part": self.part}
        came = yield kinds.get(self.how, self.passed).receive()
        return came.columns()


@pytest.mark.parametrize(
    ("how", "kept"),
    [
        ("as it came", range(USERS)), ("renamed", range(USERS)), ("filtered", [1, 3, 5]), ("ordered", None),
        ("one by one", range(USERS)), ("nothing", []),
    ],
)  # fmt: skip
def test_what_is_handed_on_whole_arrives(how: str, kept: Any) -> None:
    runs = [p2p_sim.run(Post(how), everybody(), seed=3, crypto=mode) for mode in MODES]
    assert runs[0].digest == runs[1].digest
    _, a, b = (column.tolist() for column in runs[1].output("learner").values())
    assert [[value // 1000, -value // 1000] for value in a] == b
    assert [value // 1000 for value in a] == list(kept) if kept is not None else sorted(a) != a


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("turned", "hands on b, a of 'given'"), ("wider", "in their order and of their types: a, b"),
        ("part", "hands on a of 'given'"), ("joined", "joins fields of different messages"),
        ("others", "columns of different inboxes meet"), ("found twice", "hands on a message twice"),
        ("filtered twice", "hands on a message twice"), ("taken twice", "hands on a message twice"),
        ("layered", "that are left are none; declared are post"),
    ],
)  # fmt: skip
def test_what_no_ciphertext_can_do_is_refused_in_both_modes(how: str, words: str, mode: str) -> None:
    with pytest.raises(ProtocolError, match=words):
        p2p_sim.run(Post(how), everybody(), seed=3, crypto=mode)


@dataclass(frozen=True)
class Letters(Protocol):
    """Users write to the next by way of a server, under a layer of its own; it hands some to the wrong one."""

    reader: Any = None
    astray: int = 0

    letter = Message("user", "post", "writes", sealed_for="user", layers=("post",), a=Bytes(1))
    handed = Message("post", "user", "hands over", sealed_for="user", a=Bytes(1))

    def user(self, me: Any) -> Any:
        after = (me.id + 1) % USERS if self.reader is None else self.reader
        yield self.letter(reader=after, a=me.id[:, None].astype(np.uint8))
        came = yield self.handed.receive()
        return {"a": came.a, "count": came.count}

    def post(self, me: Any) -> Any:
        came = yield self.letter.receive()
        yield self.handed(to=(came.sender + 1 + (came.sender < self.astray)) % USERS, a=came.a)


@pytest.mark.parametrize("faults", [None, ["tamper=0.3", "misdirect=0.2", "replay=0.5", "loss=0.1"]])
def test_a_letter_to_another_is_not_opened_in_either_mode(faults: Any) -> None:
    modelled, real = (
        p2p_sim.run(Letters(astray=2), everybody(), seed=3, crypto=mode, blocks=2, faults=faults)
        for mode in MODES
    )
    assert modelled.digest == real.digest
    assert modelled.faults_seen == real.faults_seen
    if faults is None:
        assert real.faults_seen == {("unopened", "handed", 2): 2}
        assert real.output("user")["count"].tolist() == [1, 0, 0, 1, 1, 1]
        assert real.output("user")["a"].tolist() == [[5], [2], [3], [4]]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("reader", "words"),
    [(USERS, "reader= names users 6 to 6"), (-1, "reader= names users"), (0.5, "reader= has type")],
)
def test_readers_are_users(reader: Any, words: str, mode: str) -> None:
    with pytest.raises(ProtocolError, match=words):
        p2p_sim.run(Letters(reader=reader), everybody(), crypto=mode, seed=0)


@dataclass(frozen=True)
class Empty(Protocol):
    """Sealed messages without a field."""

    nod = Message("user", "user", "nods", sealed_for="user")
    sign = Message("user", "learner", "signs", sealed_for="learner")

    def user(self, me: Any) -> Any:
        nods = yield self.nod(to=(me.id + 1) % USERS)
        yield self.sign(when=nods.sender.first(-1) % 2 == 0)

    def learner(self, me: Any) -> Any:
        signs = yield self.sign.receive()
        return signs.columns()


def test_messages_without_a_field_are_sealed_too() -> None:
    modelled, real = (p2p_sim.run(Empty(), everybody(), crypto=mode, seed=0) for mode in MODES)
    assert modelled.digest == real.digest
    assert modelled.work == real.work
    assert real.output("learner")["sender"].tolist() == [1, 3, 5]


def test_layers_are_servers_who_are_passed_before() -> None:
    for sender, recipient, sealed_for, layers in (
        ("user", "learner", "learner", ("post",)), ("user", "user", "user", ("post",)),
        ("user", "post", "learner", ("post", "user")), ("user", "user", "learner", ("user",)),
    ):  # fmt: skip
        with pytest.raises(ProtocolError, match="layers are those of servers on the way"):
            Message(sender, recipient, "says", sealed_for=sealed_for, layers=layers, y=bool)


def test_trails_are_compared_by_what_they_hold() -> None:
    start = Trail(object())
    mask, places = np.array([True, False, True]), np.array([0, 2])
    assert start.pick(mask).same(start.pick(places))
    assert start.pick(np.arange(3)).same(start)
    assert start.same(start.pick(np.ones(3, np.bool_)))
    assert not start.pick(mask).same(start)
    assert not start.pick(mask).same(Trail(object()).pick(mask))
    assert start.pick(mask).pick(np.array([1, 0])).same(start.pick(np.array([2, 0])))
    assert not start.pick(np.array([2, 2])).distinct
    assert start.pick(np.array([2, 2])).pick(np.array([True, False])).distinct
