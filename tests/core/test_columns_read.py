"""What a program reads of its parties is found in its code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from p2p_sim.core import Message, Protocol
from p2p_sim.core.columns_read import reads
from protocols import ALL


class Base(Protocol):
    note = Message("user", "learner", "hands in a label", y=bool, cluster=np.int64)

    def learner(self, me):
        notes = yield self.note.receive()
        return {"y": notes.y, "cluster": notes.cluster}


def helper(me):
    return me.cluster.codes


def other(you):
    return you.cluster


@dataclass(frozen=True)
class Itself(Base):
    def user(self, party):
        yield self.note(y=party.y, cluster=party.cluster.codes)


@dataclass(frozen=True)
class InMethod(Base):
    def user(self, me):
        yield from self.more(me)

    def more(self, me):
        yield self.note(y=me.y, cluster=self.number(me.id, me))

    def number(self, ids, me):
        return np.where(ids >= 0, me.cluster.codes, 0)


@dataclass(frozen=True)
class InFunction(Base):
    def user(self, me):
        yield self.note(y=me.y, cluster=helper(me))


@dataclass(frozen=True)
class Inside(Base):
    def user(self, me):
        yield self.note(y=me.y, cluster=(lambda: me.cluster.codes)())


@dataclass(frozen=True)
class Inherited(Itself):
    more: int = 0


@dataclass(frozen=True)
class Own(Base):
    """A parameter, a message's field and another's variable have the name, too."""

    cluster: int = 3

    def user(self, me):
        yield self.note(y=me.y, cluster=me.id * 0 + self.cluster)

    def unused(self, me):
        return me.cluster

    def others(self, you):
        return other(you)


@pytest.mark.parametrize(
    "kind", [Itself, InMethod, InFunction, Inside, Inherited], ids=lambda kind: kind.__name__
)
def test_what_is_read_is_found(kind: Any) -> None:
    assert reads(kind, "user", "cluster")
    assert kind.in_clusters()
    assert not reads(kind, "user", "neighbours")


def test_what_only_has_the_name_is_not() -> None:
    assert reads(Own, "learner", "y") is reads(Own, "user", "cluster") is Own.in_clusters() is False
    assert reads(Own, "user", "y")


def test_shipped_protocols_are_in_clusters_as_before() -> None:
    found = {kind.__name__ for kind in ALL if kind.in_clusters()}
    assert found == {
        "PeerToPeer", "MultiStage", "ClusterResponse", "EncryptedShuffle", "PeerPermutation", "NetworkShuffle",
    }  # fmt: skip
