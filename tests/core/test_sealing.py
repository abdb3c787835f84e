"""Sealed messages, in layers or for another user: who can read them, their bytes, and refused declarations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import p2p_sim
from p2p_sim import Population, ProtocolError
from p2p_sim.coalition import Coalition
from p2p_sim.core import Message, Party, Protocol, Rounds
from p2p_sim.core.message import HEADER_BYTES, SEAL_BYTES

ROLES = ("user", "relay", "guard", "learner")
ONION = Message(
    "user", "relay", "in three layers", sealed_for="learner", layers=("relay", "guard"), y=np.int64
)
PAIR = Message("user", "user", "sealed for whom it is addressed to", sealed_for="user", y=np.int64)
SENT = {"sender": np.array([0, 1, 2, 1]), "recipient": np.array([1, 2, 0, 1])}


def reads(view: str, message: Message, channels: str = "plain") -> list[int]:
    """Which of the messages a coalition can read, by index."""
    columns = SENT | ({"recipient": np.zeros(4, np.int64)} if message.recipient != "user" else {})
    return np.flatnonzero(Coalition.parse(view, ROLES).sees(message, columns, channels)[1]).tolist()


@pytest.mark.parametrize(
    ("view", "readable"),
    [
        ("relay", []),
        ("learner", []),
        ("learner+relay", []),
        ("learner+wire", []),
        ("learner+relay+wire", []),
        ("learner+relay+guard", [0, 1, 2, 3]),
        ("learner+guard+relay+wire", [0, 1, 2, 3]),
        ("relay+guard+wire", []),
        ("user:1", []),
        ("learner+user:1", [1, 3]),  # her own: she sealed the layers, the learner has the core's key
        ("learner+user:1+wire", [1, 3]),
    ],
)
def test_every_layer_takes_a_key(view: str, readable: list[int]) -> None:
    for channels in ("plain", "encrypted"):
        assert reads(view, ONION, channels) == readable


@pytest.mark.parametrize(
    ("view", "readable"),
    [("user:1", [0, 1, 3]), ("user:2+wire", [1, 2]), ("wire", []), ("learner+wire", []), ("learner", [])],
)
def test_what_is_sealed_for_a_user_is_read_by_her_alone(view: str, readable: list[int]) -> None:
    for channels in ("plain", "encrypted"):
        assert reads(view, PAIR, channels) == readable


def test_every_layer_has_its_bytes() -> None:
    assert ONION.nbytes({}) == HEADER_BYTES + 8 + 3 * SEAL_BYTES
    assert PAIR.nbytes({}) == HEADER_BYTES + 8 + SEAL_BYTES


def test_layers_without_a_core_are_refused() -> None:
    with pytest.raises(ProtocolError, match="name who opens the last one"):
        Message("user", "relay", "says", layers=("relay",), y=bool)


@dataclass(frozen=True)
class UnknownRole(Protocol):
    """A layer for a role that does not exist."""

    onion = Message("user", "relay", "sends", sealed_for="learner", layers=("guard",), y=bool)
    report = Message("relay", "learner", "reports", y=bool)

    def user(self, me: Party) -> Rounds:
        yield self.onion(y=me.y)

    def relay(self, me: Party) -> Rounds:
        yield self.onion.receive()
        yield self.report(y=True)

    def learner(self, me: Party) -> Rounds:
        yield self.report.receive()


def test_a_layer_for_nobody_is_refused() -> None:
    with pytest.raises(ProtocolError, match="'onion' is sealed for 'guard'; roles"):
        p2p_sim.run(UnknownRole(), Population.from_arrays(y=[True]), seed=0)


LETTER = Message("user", "relay", "for a user she names", sealed_for="user", layers=("relay",), y=np.int64)


@pytest.mark.parametrize(
    ("view", "readable"),
    [
        ("relay", []),
        ("relay+user:2", [2]),
        ("relay+user:2+wire", [2]),
        ("user:1+wire", [1, 3]),
        ("learner+relay", []),
    ],
)
def test_a_users_key_opens_no_letter_to_another(view: str, readable: list[int]) -> None:
    for channels in ("plain", "encrypted"):
        assert reads(view, LETTER, channels) == readable
