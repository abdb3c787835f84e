"""No party's state holds what its view does not show; and of each way to leak, a twin that the check catches."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import numpy as np
import pytest

from p2p_sim import Population
from p2p_sim.core import Message, Protocol
from p2p_sim.core.columns import Inbox
from p2p_sim.core.mail import Mailbox
from p2p_sim.core.site import Site
from protocols import (
    ALL,
    Alibi,
    BinnedResponse,
    ClusterResponse,
    DoubleResponse,
    DummyFeatures,
    EncryptedShuffle,
    IntervalResponse,
    LabelProportions,
    LaplaceLabelProportions,
    MultiStage,
    NetworkShuffle,
    PeerPermutation,
    PeerToPeer,
    PriorResponse,
    RandomizedResponse,
    SecureAggregation,
    UnbiasedResponse,
)
from tests.contract.leaks import Watched, holding, leaks
from tests.core.test_program_forwarding import Shuffle
from tests.test_observed_view import Sealing

pytestmark = pytest.mark.slow

PEOPLE = Population.from_arrays(y=[True, False, False, True, True], cluster=[0, 1, 0, 1, 0])
THREE = Population.from_arrays(y=[True, False, True])
TWELVE = Population.from_arrays(y=np.arange(12) % 3 == 0, cluster=np.arange(12) // 6)


CASES: list[tuple[Any, Population]] = [
    (PeerToPeer(0.2, 0.7), PEOPLE),
    (PeerToPeer(0.0), PEOPLE),
    (RandomizedResponse(1.0), PEOPLE),
    (PriorResponse(1.0, prior="0.7,0.3"), PEOPLE),
    (MultiStage(1.0), PEOPLE),
    (BinnedResponse(1.0, 2), PEOPLE),
    (UnbiasedResponse(1.0, 2), PEOPLE),
    (IntervalResponse(1.0, 2), PEOPLE),
    (Alibi(1.0), PEOPLE),
    (ClusterResponse(1.0), PEOPLE),
    (DummyFeatures(0.5), PEOPLE),
    (DoubleResponse(0.5, "0|1", truth="0;1|1"), PEOPLE),
    (Shuffle(), PEOPLE),
    (Sealing(), TWELVE),
    (EncryptedShuffle(1.0), PEOPLE),
    (EncryptedShuffle(1.0, shufflers=3), PEOPLE),
    (NetworkShuffle(1.0, steps=2), PEOPLE.with_graph([[0, 1], [1, 2], [2, 0], [2, 3], [3, 4]])),
    (PeerPermutation(0.2), PEOPLE),
    (LabelProportions(2), PEOPLE),
    (LaplaceLabelProportions(1.0, 2), PEOPLE),
    (SecureAggregation(3, threshold=2, epsilon=1.0), THREE),
]


@pytest.mark.parametrize(("protocol", "population"), CASES, ids=lambda case: type(case).__name__)
def test_nobody_holds_what_her_view_does_not_show(protocol: Any, population: Population) -> None:
    assert leaks(protocol, population) == []


def test_every_shipped_protocol_is_looked_at() -> None:
    assert {type(protocol) for protocol, _ in CASES} >= set(ALL)


def test_the_check_looks_at_every_party_after_every_step() -> None:
    watched = Watched()
    watched.run(PeerToPeer(0.2), PEOPLE, 3)
    assert watched.states.keys() == {*(("user", u) for u in range(5)), ("learner", 0)}
    assert [len(states) for states in watched.states.values()] == [4] * 5 + [2]
    assert {"y_hat", "me.columns.y", "self.alpha"} <= watched.states["user", 0][0].keys()
    assert "labels.y_hat.data" in watched.states["user", 0][2]
    assert len(watched.delivered) == 15


def test_who_may_hold_a_field_does() -> None:
    """Power: the change of a field shows in the states of those who receive it."""
    base = Watched()
    base.run(PeerToPeer(0.2), PEOPLE, 3)
    address = next(a for a in base.delivered if a[0] == "label")
    other = Watched((address, "y_hat"), base)
    other.run(PeerToPeer(0.2), PEOPLE, 3)
    changed = {party for party, states in base.states.items() if states != other.states[party]}
    assert changed == {("user", address[3])}


def test_a_change_that_makes_a_program_fail_is_noticed_there_and_the_others_go_on() -> None:
    base = Watched()
    base.run(SecureAggregation(3, threshold=2), THREE, 3)
    address = next(a for a in base.delivered if a[0] == "neighbour")
    other = Watched((address, "place"), base)
    other.run(SecureAggregation(3, threshold=2), THREE, 3)
    reader = ("user", address[3])
    seen = holding(base.states[reader], other.states[reader])[0]
    assert seen.startswith("step 2, failed: ProtocolError(")
    assert "IndexError: " in seen
    for party, states in base.states.items():
        assert party == reader or states == other.states[party]
    assert other.delivered.keys() == base.delivered.keys()


SHARED: list[Any] = []


@dataclass(frozen=True)
class Peeking(Shuffle):
    """A shuffler that finds a way around the seal."""

    how: Any = None

    def shuffler(self, me):
        got = yield self.sealed.receive()
        found = self.how(got)
        yield self.mixed(y=got.y, who=got.who)
        return {"found": found}


PEEKS = {
    "the rows behind an inbox": lambda got: got.rows.fields["y"],
    "the data behind a column": lambda got: got.y._data,
    "a sum of it": lambda got: got.y._data.sum(),
    "another reader": lambda got: Inbox(got.message, got._load, "learner").y.first(False),
}


@pytest.mark.parametrize("how", PEEKS.values(), ids=PEEKS.keys())
def test_a_shuffler_that_looks_into_the_envelope_is_caught(how: Any) -> None:
    found = leaks(Peeking(how), PEOPLE)
    assert found
    assert all(line.startswith("('shuffler', 0) holds y of ('sealed', 1, ") for line in found)


@dataclass(frozen=True)
class Refusing(Shuffle):
    """A shuffler that peeks and refuses some labels, without keeping any; a learner who fails on what she may read."""

    who: str = "shuffler"

    def shuffler(self, me):
        got = yield self.sealed.receive()
        if self.who == "shuffler" and got.y._data.sum() != 3:
            raise ValueError("not these")
        yield self.mixed(y=got.y, who=got.who)

    def learner(self, me):
        got = yield self.mixed.receive()
        if self.who == "learner" and got.y.sum() != 3:
            raise ValueError("not these")


def test_who_fails_on_what_she_must_not_see_is_caught() -> None:
    found = leaks(Refusing(), PEOPLE)
    assert found
    assert all(line.startswith("('shuffler', 0) holds y of ('sealed', 1, ") for line in found)
    assert all("ValueError: not these" in line for line in found)
    assert leaks(Refusing("learner"), PEOPLE) == []


@dataclass(frozen=True)
class Chatting(Protocol):
    """Users who leave what they are told where all others find it."""

    where: Any = field(default=None)
    ask = Message("user", "user", "tells a label", y=bool)

    def user(self, me):
        asks = yield self.ask(to=me.draw.member("peer", me.cluster), y=me.y)
        heard = asks.y.sum()
        (SHARED if self.where is None else self.where.labels).append(int(heard[0]))
        yield self.ask(to=me.id, y=False)


@dataclass(frozen=True)
class Board:
    """What a check of parameters does not see into."""

    labels: list[int] = field(default_factory=list)


@pytest.mark.parametrize("where", [None, Board()], ids=["in the module", "in the protocol"])
def test_users_who_share_memory_are_caught(where: Any) -> None:
    class Fresh(Watched):
        def run(self, *given: Any) -> Any:
            SHARED.clear()
            if where is not None:
                where.labels.clear()
            return super().run(*given)

    with mock.patch("tests.contract.leaks.Watched", Fresh):
        found = leaks(Chatting(where), PEOPLE)
    assert any("global SHARED" in line if where is None else "self.where" in line for line in found)


def test_an_engine_that_breaks_the_seal_is_caught() -> None:
    opened = Site._open

    def broken(site: Site, issue: Any, block: Any) -> Inbox:
        inbox = opened(site, issue, block)
        inbox._reader = "learner"
        return inbox

    with mock.patch.object(Site, "_open", broken):
        found = leaks(Shuffle(), PEOPLE)
    assert any(line.startswith("('shuffler', 0) holds y") and "got.y.data" in line for line in found)


def test_an_engine_that_hands_out_a_neighbour_s_mail_is_caught() -> None:
    rows = Mailbox.rows

    def next_one(box: Mailbox, low: int, high: int) -> Any:
        shift = 1 if high < box.parties else 0
        return rows(box, low + shift, high + shift)

    with (
        mock.patch.object(Mailbox, "rows", next_one),
        mock.patch.object(Mailbox, "answers", return_value=None),
    ):
        found = leaks(Telling(), PEOPLE)
    assert any("output.heard" in line for line in found)
    assert leaks(Telling(), PEOPLE) == []


@dataclass(frozen=True)
class Telling(Protocol):
    """Everybody tells her peer her label."""

    tell = Message("user", "user", "tells a label", y=bool)

    def user(self, me):
        heard = yield self.tell(to=me.draw.member("peer", me.cluster), y=me.y)
        return {"heard": heard.y.sum()}
