"""Every protocol under faults: equal bits in any blocks, replay, views, saved runs, and bits unchanged without."""

from __future__ import annotations

import dataclasses
import math
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim import Population, ProtocolError
from p2p_sim.core import Message, Party, Protocol, Rounds
from p2p_sim.core.faults import Faults
from protocols import PeerToPeer, RandomizedResponse
from tests.contract.cases import POPULATIONS, PROTOCOLS, contiguous, people_of, scattered
from tests.contract.test_battery import equal

pytestmark = pytest.mark.slow

USERS = 61
WRONG = {
    "drop": ["drop=0.1"],
    "loss": ["loss=0.1"],
    "late": ["late=0.1"],
    "duplicate": ["duplicate=0.3"],
    "lie": ["lie=flip:0.2"],
    "stop": ["stop=learner:0"],
    "all": ["drop=0.05", "loss=0.05", "late=0.05", "duplicate=0.1", "lie=random:0.2"],
}
ATTACKED = ["tamper=0.1", "misdirect=0.1", "replay=0.2", "drop=0.05"]
CASES = [(name, wrong) for name in PROTOCOLS for wrong in WRONG.values()]
CASES += [
    (name, ATTACKED)
    for name, protocol in PROTOCOLS.items()
    if any(message.opener == message.recipient for message in protocol.messages().values())
]
GOLDEN = {
    ("peer-to-peer", "contiguous"): "64b7e2352e8857115a4e13d36cbf1ab9",
    ("peer-to-peer", "scattered"): "d027a8b824fd0e4e4e41d3f530e23851",
    ("peer-to-peer, everybody reports", "unclustered"): "bbd6684b9c664e1359b9d3c942c86aa4",
    ("randomized response, 5 labels", "contiguous"): "8d12c8c1577367cb394f20d9fbd45134",
    ("randomized response, flipping", "unclustered"): "e60a2099f4b1bd1ea7df0c23b6b90fe8",
}
"""Digests of 101 users at seed 7, from before there were faults."""


@pytest.mark.parametrize(("name", "made"), GOLDEN)
def test_without_faults_the_bits_are_those_of_before(name: str, made: str) -> None:
    people = POPULATIONS[made](101)
    for faults in (None, [], Faults(), ["loss=0"]):
        run = p2p_sim.run(PROTOCOLS[name], people, seed=7, faults=faults)
        assert (run.digest, run.faults, run.faults_seen) == (GOLDEN[name, made], None, {})


def outcome(protocol: Any, people: Population, faults: list[str], blocks: int) -> Any:
    """A run, or what a protocol says where too little is left for it."""
    try:
        return p2p_sim.run(protocol, people, seed=7, blocks=blocks, trace="full", faults=faults)
    except ProtocolError as error:
        return str(error)


@cache
def outcome_of(name: str, *wrong: str) -> Any:
    """The run in one block, for all tests that look at it."""
    return outcome(PROTOCOLS[name], people_of(PROTOCOLS[name], "scattered", USERS), list(wrong), 1)


@pytest.mark.parametrize(("name", "wrong"), CASES)
def test_equal_bits_in_any_blocks(name: str, wrong: list[str]) -> None:
    """In blocks of one user, the slowest, only where several things go wrong at once, and where a server stops."""
    protocol = PROTOCOLS[name]
    people = people_of(protocol, "scattered", USERS)
    whole = outcome_of(name, *wrong)
    for blocks in (4, USERS) if len(wrong) > 1 or wrong == WRONG["stop"] else (4,):
        parts = outcome(protocol, people, wrong, blocks)
        if isinstance(whole, str):
            assert isinstance(parts, str)
            continue
        assert parts.digest == whole.digest
        assert (parts.counts, parts.faults_seen) == (whole.counts, whole.faults_seen)
        assert all(equal(parts.output(role), whole.output(role)) for role in protocol.roles())
        assert all(equal(parts.messages(kind), whole.messages(kind)) for kind in protocol.messages())


@pytest.mark.parametrize(("name", "wrong"), CASES)
def test_replay_of_users_equals_the_run(name: str, wrong: list[str]) -> None:
    protocol = PROTOCOLS[name]
    run = outcome_of(name, *wrong)
    if isinstance(run, str):
        return
    messages = {kind: run.messages(kind) for kind in protocol.messages()}
    for user in range(0, USERS, 13):
        life = run.replay(user)
        for end, mine in (("sender", life.sent), ("recipient", life.received)):
            for kind, columns in mine.items():
                rows = messages[kind][end] == user
                assert equal(columns, {name: column[rows] for name, column in messages[kind].items()})


def test_views_are_recomputed_with_the_faults(tmp_path: Path) -> None:
    kept = p2p_sim.run(PeerToPeer(0.2), scattered(USERS), seed=2**63 + 7, trace="full", faults=WRONG["all"])
    bare = p2p_sim.run(PeerToPeer(0.2), scattered(USERS), seed=2**63 + 7, faults=WRONG["all"])
    loaded = p2p_sim.load(bare.save(tmp_path / "run"))
    assert (loaded.faults, loaded.faults_seen) == (kept.faults, kept.faults_seen)
    assert all(np.array_equal(loaded.faulty[name], users) for name, users in kept.faulty.items())
    for view in ("learner", "user:17", "wire"):
        for kind in kept.source.messages():
            assert equal(loaded.view(view).messages[kind], kept.view(view).messages[kind])
    assert loaded.view("learner+user:17").draws
    open_run = p2p_sim.load(bare.save(tmp_path / "open", population=False))
    assert (open_run.faults, open_run.faulty) == (kept.faults, {})


def test_paired_runs_share_the_faults() -> None:
    pair = p2p_sim.paired(PeerToPeer(0.2), scattered(USERS), change=5, seed=3, faults=WRONG["all"])
    assert pair.runs[0].faults_seen == pair.runs[1].faults_seen
    assert set(pair.diff("learner")) <= {"report"}


@dataclasses.dataclass(frozen=True)
class Served(Protocol):
    """Users are told twice by a server how many there are, and return what they heard."""

    hello = Message("user", "learner", "says who is there", y=bool)
    told = Message("learner", "user", "says how many are there", n=np.int64)

    def user(self, me: Party) -> Rounds:
        yield self.hello(y=me.y)
        first = yield self.told.receive()
        second = yield self.told.receive()
        return {"id": me.id, "first": first.n.first(-1), "second": second.n.first(-1), "heard": second.n}

    def learner(self, me: Party) -> Rounds:
        hello = yield self.hello.receive()
        for _ in range(2):
            yield self.told(to=hello.sender, n=hello.count)
        return {"n": hello.count}


def test_who_waits_for_a_stopped_server_gets_nothing() -> None:
    people = contiguous(9)
    for step, heard in ((0, (-1, -1)), (1, (-1, -1)), (2, (9, -1)), (3, (9, 9))):
        for blocks in (1, 4):
            run = p2p_sim.run(Served(), people, seed=1, blocks=blocks, faults=[f"stop=learner:{step}"])
            out = run.output("user")
            assert (out["first"].tolist(), out["second"].tolist()) == ([heard[0]] * 9, [heard[1]] * 9)
            assert len(out["heard"]) == (9 if heard[1] == 9 else 0)
            assert run.output("learner") == {}
    assert p2p_sim.run(Served(), people, faults=["stop=learner:0"], seed=0).faults_seen == {
        ("undelivered", "hello", 1): 9
    }


def test_users_who_dropped_out_return_nothing() -> None:
    for blocks in (1, 5):
        run = p2p_sim.run(
            Served(), contiguous(60), seed=2, blocks=blocks, trace="full", faults=["drop=0.3", "loss=0.2"]
        )
        out, dropped = run.output("user"), run.faulty["dropped"]
        assert 5 < len(dropped) < 40
        assert sorted([*out["id"].tolist(), *dropped.tolist()]) == list(range(60))
        assert not np.isin(run.messages("told")["recipient"], dropped).any()
        assert not np.isin(run.messages("hello")["sender"], dropped).any()
        assert len(out["heard"]) == int((out["second"] >= 0).sum())
        assert len(run.output("learner")["n"]) == 1


def test_a_late_message_is_seen_but_not_read() -> None:
    run = p2p_sim.run(RandomizedResponse(1.0), contiguous(200), seed=1, trace="full", faults=["late=0.2"])
    late = run.faults_seen["late", "report", 1]
    assert len(run.messages("report")["y"]) == len(run.view("learner").messages["report"]["y"]) == 200
    assert len(run.output("learner")["y"]) == 200 - late


def test_duplicates_are_never_read_twice() -> None:
    protocol, people = PeerToPeer(0.2, 0.7), scattered(101)
    plain = p2p_sim.run(protocol, people, seed=4, trace="full")
    twice = p2p_sim.run(protocol, people, seed=4, trace="full", faults=["duplicate=1"])
    assert twice.digest == plain.digest
    for kind, count in plain.by_kind().items():
        again = twice.by_kind()[kind]
        assert (again.messages, again.travelled) == (count.messages, 2 * count.travelled)
        assert again.nbytes == 2 * count.nbytes
    assert sum(twice.faults_seen.values()) == sum(count.travelled for count in plain.by_kind().values())


def test_liars_keep_their_true_label() -> None:
    people = contiguous(300)
    run = p2p_sim.run(RandomizedResponse(math.inf), people, seed=3, faults=["lie=flip:0.2"])
    lied = np.flatnonzero(run.output("learner")["y"] != people.y)
    assert np.array_equal(lied, run.faulty["lied"])
    assert run.population is people
    assert run.replay(int(lied[0])).sent["report"]["y"][0] != people.y[lied[0]]
