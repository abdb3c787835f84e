"""What a run counts for its costs: the most that one user sends and receives, and where CPU time went."""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim import Population
from p2p_sim.core import Message, Party, Protocol, Rounds, kernels
from p2p_sim.core.ledger import Counts
from p2p_sim.core.message import USER
from p2p_sim.core.threads import Threads
from tests.contract.cases import IN_TURN, POPULATIONS, PROTOCOLS, people_of

Most = dict[tuple[str, int], tuple[int, int]]


def from_trace(run: Any) -> Most:
    """The same, message by message."""
    found: Most = {}
    for kind, message in run.source.messages().items():
        columns = run.messages(kind)
        ends = [columns[name].tolist() for name in ("round", "sender", "recipient")]
        rows = [
            row for row in zip(*ends, strict=True) if row[1] != row[2] or message.sender != message.recipient
        ]
        for number in sorted({row[0] for row in rows}):
            sent, received = (Counter(row[i] for row in rows if row[0] == number) for i in (1, 2))
            pair = (
                max(sent.values()) if message.sender == USER else 0,
                max(received.values()) if message.recipient == USER else 0,
            )
            if any(pair):
                found[kind, number] = pair
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", PROTOCOLS)
def test_most_is_what_the_trace_says(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    protocol = PROTOCOLS[name]
    for made, numba in itertools.product([dict(IN_TURN)[name]], "01"):
        monkeypatch.setenv("P2P_SIM_NUMBA", numba)
        people = people_of(protocol, made, 37)
        for blocks in (1, 3, 37):
            run = p2p_sim.run(protocol, people, seed=7, blocks=blocks, trace="full", costs=True)
            assert {key: pair for key, pair in run.most.items() if any(pair)} == from_trace(run)


@dataclass(frozen=True)
class Note(Protocol):
    """Everybody writes to user 0, twice, herself included; then she writes to everybody, who reports it."""

    note = Message("user", "user", "a note", y=bool)
    report = Message("user", "learner", "a report", y=bool)

    def user(self, me: Party) -> Rounds:
        for _ in range(2):
            yield self.note(to=np.zeros(me.size, np.int64), y=me.y)
        everybody = me.all_of(me.cluster)
        notes = yield self.note(to=everybody, y=me.y, when=me.id == 0)
        yield self.report(y=notes.y)

    def learner(self, me: Party) -> Rounds:
        reports = yield self.report.receive()
        return reports.columns()


def test_by_hand() -> None:
    """To herself does not count: in rounds 1 and 2 users 1 and 2 write to user 0, in 3 she writes to them."""
    people = Population.from_arrays(y=[True, False, True])
    run = p2p_sim.run(Note(), people, costs=True, seed=0)
    assert run.most == {("note", 1): (1, 2), ("note", 2): (1, 2), ("note", 3): (2, 1), ("report", 4): (1, 0)}
    assert p2p_sim.run(Note(), people, seed=0).most is None, "not asked for"


def test_lost_messages_are_sent_and_second_copies_received() -> None:
    """With all lost, nobody receives; with all doubled, everybody receives twice what was sent to her."""
    people = Population.from_arrays(y=[True, False, True])
    lost = p2p_sim.run(Note(), people, costs=True, faults=["loss=1"], seed=0)
    assert lost.most == {("note", 1): (1, 0), ("note", 2): (1, 0), ("note", 3): (2, 0), ("report", 4): (1, 0)}
    doubled = p2p_sim.run(Note(), people, costs=True, faults=["duplicate=1", "late=1"], seed=0)
    assert doubled.most == {
        ("note", 1): (1, 4),
        ("note", 2): (1, 4),
        ("note", 3): (2, 2),
        ("report", 4): (1, 0),
    }
    gone = p2p_sim.run(Note(), people, costs=True, faults=["drop=1"], seed=0)
    assert gone.most == {}


@pytest.mark.parametrize(
    "faults", [["loss=0.2", "late=0.1", "duplicate=0.3", "drop=0.1"], ["stop=learner:0"]]
)
def test_equal_for_any_blocks_under_faults(faults: list[str]) -> None:
    protocol, people = PROTOCOLS["peer-to-peer"], POPULATIONS["scattered"](101)
    runs = [p2p_sim.run(protocol, people, seed=3, blocks=n, faults=faults, costs=True) for n in (1, 5, 101)]
    assert runs[0].most == runs[1].most == runs[2].most
    assert runs[0].most["ask", 1][0] == 1
    assert 1 < runs[0].most["ask", 1][1] < 40


CLOCK = [0.0]


@dataclass(frozen=True)
class Busy(Protocol):
    """By ``CLOCK``, a user takes 1 s to report, and 10 s after the answer; the learner 100 s to answer."""

    report = Message("user", "learner", "a report", y=bool)
    answer = Message("learner", "user", "an answer", y=bool)

    def user(self, me: Party) -> Rounds:
        CLOCK[0] += me.size
        yield self.report(y=me.y)
        yield self.answer.receive()
        CLOCK[0] += 10 * me.size

    def learner(self, me: Party) -> Rounds:
        reports = yield self.report.receive()
        CLOCK[0] += 100
        yield self.answer.reply(reports, y=reports.y)


@pytest.mark.parametrize("blocks", [1, 5])
def test_time_is_counted_before_what_is_sent_next(blocks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.thread_time", lambda: CLOCK[0])
    run = p2p_sim.run(Busy(), POPULATIONS["unclustered"](5), blocks=blocks, seed=0)
    assert run.compute == {("learner", 1): 0, ("user", 1): 5, ("learner", 2): 100, ("user", 3): 50}


@dataclass(frozen=True)
class Careful(Protocol):
    """By ``CLOCK``, half of a user's second goes into cryptography, whose time is told by its rates."""

    report = Message("user", "learner", "a report", y=bool)

    def user(self, me: Party) -> Rounds:
        CLOCK[0] += 0.5 * me.size
        with me.doing(key=me.size, mask=2 * me.size):
            CLOCK[0] += 0.5 * me.size
        with me.doing(key=me.size):
            pass
        yield self.report(y=me.y)

    def learner(self, me: Party) -> Rounds:
        reports = yield self.report.receive()
        CLOCK[0] += 100
        return reports.columns()


@pytest.mark.parametrize("blocks", [1, 5])
def test_cryptography_is_counted_apart(blocks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.thread_time", lambda: CLOCK[0])
    run = p2p_sim.run(Careful(), POPULATIONS["unclustered"](5), blocks=blocks, seed=0)
    assert run.compute == {("learner", 1): 0, ("user", 1): 2.5, ("learner", 2): 100}
    assert run.work == {("user", 1, "key"): 10, ("user", 1, "mask"): 10}


@pytest.mark.parametrize("numba", [kernels.NUMPY, kernels.NUMBA])
@pytest.mark.parametrize("threads", [1, 2, 8])
def test_threads_count_what_one_does(threads: int, numba: str) -> None:
    """Some users receive many times what a byte holds, and their messages come in all parts."""
    users, first = 600_000, 7
    draws = np.random.default_rng(0)
    few = [draws.integers(0, users, 3_000), np.full(1_500, 5), draws.integers(100, 110, 3_000)]
    rows = [np.sort(np.concatenate(few)).astype(np.int32) + np.int32(first) for _ in range(20)]
    counts, peers = Counts(first, users, kernels.load(numba)), np.full(7_500, first + 105, np.int32)
    with Threads(threads) as crew:
        for _ in crew.map(lambda some: counts.add(some, peers), rows):
            pass
        expected = np.bincount(np.concatenate(rows) - first, minlength=users)
        expected[105] = 0  # to themselves
        assert counts.most(crew.map) == counts.most() == expected.max() > 256 * 100


def test_two_threads_count_at_once_and_a_third_waits() -> None:
    meeting, at_once = threading.Barrier(2, timeout=10), []
    inside = 0

    def tally(_rows: Any, _peers: Any, _first: int, out: Any) -> Any:
        nonlocal inside
        inside += 1
        at_once.append(inside)
        meeting.wait()
        out[0] += 1
        time.sleep(0.01)
        inside -= 1
        return np.zeros(0, np.int32)

    counts = Counts(0, 4, SimpleNamespace(tally=tally))  # type: ignore[arg-type]
    with Threads(3) as crew:
        list(crew.map(lambda rows: counts.add(rows, None), [range(1)] * 6))
    assert counts.most() == 6
    assert max(at_once) == 2
