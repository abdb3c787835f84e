"""Any number of threads gives the bits of one: digests, counts, costs, outputs, messages, files and errors."""

from __future__ import annotations

import itertools
import json
import time
import warnings
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim import Population
from p2p_sim.backends import Settings, local
from p2p_sim.backends.settings import WORTH_THREADS
from p2p_sim.core import InputError, Message, Party, Protocol, Rounds
from p2p_sim.core.threads import cores
from p2p_sim.rundir import run_directory
from protocols import PeerToPeer
from tests.backends.programs import Gossip, HalfLooking
from tests.contract.cases import IN_TURN, POPULATIONS, PROTOCOLS, people_of
from tests.contract.test_battery import equal

COUNTS = (2, 3, 8)
WRONG = ["drop=0.05", "loss=0.1", "late=0.1", "duplicate=0.2", "lie=random:0.2"]
ATTACKS = ["tamper=0.1", "misdirect=0.1", "replay=0.2"]


def check_equal(protocol: Any, people: Population, counts: tuple[int, ...] = COUNTS, **how: Any) -> None:
    options: dict[str, Any] = {"seed": 7, "trace": "full", "costs": True, "blocks": 13} | how
    one = p2p_sim.run(protocol, people, threads=1, **options)
    for threads in counts:
        several = p2p_sim.run(protocol, people, threads=threads, **options)
        assert several.digest == one.digest
        assert several.counts == one.counts
        assert several.most == one.most
        assert several.work == one.work
        assert several.faults_seen == one.faults_seen
        assert several.compute.keys() == one.compute.keys()
        assert all(equal(several.outputs[role], columns) for role, columns in one.outputs.items())
        assert all(np.array_equal(several.faulty[name], users) for name, users in one.faulty.items())
        assert all(equal(several.messages(kind), one.messages(kind)) for kind in protocol.messages())


@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_protocol(name: str) -> None:
    protocol = PROTOCOLS[name]
    check_equal(protocol, people_of(protocol, dict(IN_TURN)[name], 61), (3,))


KINDS = list({type(protocol): protocol for protocol in PROTOCOLS.values()}.values())


@pytest.mark.parametrize("protocol", KINDS, ids=lambda p: type(p).__name__)
def test_faults_of_every_protocol(protocol: Any) -> None:
    sealed = any(message.opener == message.recipient for message in protocol.messages().values())
    faults = [*WRONG, *(ATTACKS if sealed else [])]
    check_equal(protocol, people_of(protocol, "scattered", 61), (3,), faults=faults)


@pytest.mark.parametrize("numba", ["0", "1"])
@pytest.mark.parametrize("retries", [0, 1])
def test_any_number_of_threads(retries: int, numba: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("P2P_SIM_NUMBA", numba)
    protocol, people = PeerToPeer(alpha=0.2, theta=0.6, retries=retries), POPULATIONS["scattered"](5_000)
    check_equal(protocol, people)
    check_equal(protocol, people, faults=["loss=0.2"])


def test_programs_that_look_and_programs_that_do_not() -> None:
    people = Population.from_arrays(y=np.arange(40) % 2 == 0)
    check_equal(HalfLooking(), people)
    ring = np.array([(i, (i + 1) % 30) for i in range(30)])
    check_equal(Gossip(), Population.from_arrays(y=np.arange(30) % 3 == 0).with_graph(ring))


def test_real_cryptography() -> None:
    check_equal(PROTOCOLS["secure aggregation"], POPULATIONS["contiguous"](40), (3,), crypto="real")


def test_files_of_a_trace_are_the_same(tmp_path: Path) -> None:
    people = POPULATIONS["scattered"](500)
    for threads in (1, 3):
        out = tmp_path / str(threads)
        p2p_sim.run(PeerToPeer(0.2, 0.5), people, seed=3, blocks=11, threads=threads, trace="full", out=out)
    one, three = (sorted((tmp_path / name / "messages").rglob("*.parquet")) for name in "13")
    assert len(one) == 3
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in three]


@dataclass(frozen=True)
class Star(Protocol):
    """Everybody writes to user 3, and twice to whoever is drawn; she tells the learner."""

    note = Message("user", "user", "a note", y=bool)
    report = Message("user", "learner", "a report", y=bool)

    def user(self, me: Party) -> Rounds:
        yield self.note(to=np.full(me.size, 3), y=me.y)
        notes = yield self.note(to=me.draw.member("peer", me.cluster, times=2), y=me.y)
        yield self.report(y=notes.y, when=notes.rank < 2)

    def learner(self, me: Party) -> Rounds:
        reports = yield self.report.receive()
        return reports.columns()


@pytest.mark.parametrize("numba", ["0", "1"])
def test_costs_of_a_user_to_whom_everybody_writes(numba: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """She receives more than a byte counts, from blocks that threads count at the same time."""
    monkeypatch.setenv("P2P_SIM_NUMBA", numba)
    people = POPULATIONS["scattered"](1_500)
    check_equal(Star(), people)
    run = p2p_sim.run(Star(), people, seed=0, blocks=13, threads=3, costs=True)
    assert run.most is not None
    assert run.most["note", 1] == (1, 1_499), "but not from herself"


def test_a_run_folder_is_written_by_threads_as_by_one(tmp_path: Path) -> None:
    people, protocol = POPULATIONS["scattered"](500), PeerToPeer(0.2, 0.5)
    found = []
    for threads in (1, 3):
        out = tmp_path / str(threads)
        p2p_sim.run(
            protocol, people, seed=3, blocks=11, threads=threads, out=out, costs=True, faults=["drop=0.1"]
        )
        found.append({path.relative_to(out): path.read_bytes() for path in out.rglob("*.parquet")})
    assert found[0] == found[1]
    assert len(found[0]) == 3
    hashes = [json.loads((tmp_path / name / "run.json").read_text())["sha256"] for name in "13"]
    assert hashes[0] == hashes[1]
    assert len(hashes[0]) == 3


def test_parts_side_by_side_raise_the_first_error_in_order_when_all_have_ended() -> None:
    ended = []

    def part(number: int) -> int:
        time.sleep(0.01 * (4 - number))
        ended.append(number)
        if number in (1, 2):
            raise ValueError(str(number))
        return number

    for threads in (1, 2, 8):
        ended.clear()
        with pytest.raises(ValueError, match="1"):
            run_directory.side_by_side([partial(part, number) for number in range(4)], threads)
        assert 0 in ended
        assert 1 in ended
        before = list(ended)
        time.sleep(0.05)
        assert ended == before, "nothing goes on"
        assert run_directory.side_by_side([partial(part, 0), partial(part, 3)], threads) == [0, 3]


@dataclass(frozen=True)
class Told(Protocol):
    """Users report; what happens on the way is the parameter."""

    wrong: str

    tell = Message("user", "learner", "tells", y=bool)

    def user(self, me: Party) -> Rounds:
        if self.wrong == "error" and me.id[0] >= 30:
            raise ValueError(f"of {me.id[0]}")
        if self.wrong == "address" and me.id[0] >= 30:
            me.draw.member("peer", me.id)
        if self.wrong == "memory" and me.id[0] >= 30:
            raise MemoryError(f"of {me.id[0]}")
        if self.wrong == "exit" and me.id[0] >= 30:
            raise SystemExit(3)
        if self.wrong == "kinds" and me.id[0] >= 30:
            return
        yield self.tell(y=me.y)
        if self.wrong == "columns":
            return {f"z{me.id[0] >= 30}": me.y}

    def learner(self, me: Party) -> Rounds:
        got = yield self.tell.receive()
        return got.columns()


@pytest.mark.parametrize("wrong", ["error", "address", "memory", "exit", "kinds", "columns"])
def test_errors_are_those_of_one_thread(wrong: str) -> None:
    people = Population.from_arrays(y=np.zeros(100, np.bool_))
    texts = []
    for threads in (1, *COUNTS):
        with pytest.raises((p2p_sim.ProtocolError, MemoryError)) as caught:
            p2p_sim.run(Told(wrong), people, seed=0, blocks=50, threads=threads)
        texts.append((caught.type, str(caught.value)))
    assert texts == [texts[0]] * 4
    assert "of 30" in texts[0][1] or wrong in ("address", "exit", "kinds", "columns")


@dataclass(frozen=True)
class Divides(Protocol):
    """Divides by zero; what that does is up to whoever runs it.  The first block sets it for itself, across a round."""

    tell = Message("user", "learner", "tells", y=bool)
    go = Message("learner", "user", "tells to go on", y=bool)

    def user(self, me: Party) -> Rounds:
        with np.errstate(all="ignore") if me.id[0] < 10 else np.errstate():
            yield self.tell(y=me.y)
            got = yield self.go.receive()
            large = np.ones(me.size) / np.zeros(me.size)
        return {"infinite": np.isinf(large) & (got.count > 0)}

    def learner(self, me: Party) -> Rounds:
        told = yield self.tell.receive()
        yield self.go.reply(told, y=told.y)


@pytest.mark.parametrize("threads", [1, 3])
def test_a_program_meets_the_numpy_of_its_caller_and_keeps_its_own_to_its_block(threads: int) -> None:
    people = Population.from_arrays(y=np.zeros(100, np.bool_))
    with np.errstate(all="ignore"):
        run = p2p_sim.run(Divides(), people, seed=0, blocks=10, threads=threads)
        assert run.output("user")["infinite"].all()
    with np.errstate(all="raise"), pytest.raises(p2p_sim.ProtocolError, match="divide by zero"):
        p2p_sim.run(Divides(), people, seed=0, blocks=10, threads=threads)
    with np.errstate(all="raise"):
        assert p2p_sim.run(Divides(), people.part(np.arange(10)), seed=0, threads=threads).digest
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        p2p_sim.run(Divides(), people, seed=0, blocks=10, threads=threads)
    assert len(caught) == 9, "one a block, but in the first"


def test_progress_rises_and_comes_from_one_thread() -> None:
    seen: list[tuple[str, int, int]] = []
    people = POPULATIONS["contiguous"](101)
    p2p_sim.run(
        PeerToPeer(0.2), people, seed=0, blocks=20, threads=3, progress=lambda *step: seen.append(step)
    )
    starts = [place for place, (label, _, _) in enumerate(seen) if label.startswith("user")]
    assert len(starts) == 3
    for place in starts:
        done = [count for _, count, _ in seen[place : place + 21]]
        assert done == [0, *itertools.accumulate(np.diff([101 * i // 20 for i in range(21)]).tolist())]


def test_how_many_there_are_by_default() -> None:
    assert Settings().threads_for(WORTH_THREADS) == cores()
    assert Settings().threads_for(WORTH_THREADS - 1) == 1
    assert Settings(threads=5).threads_for(10) == 5


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "2"])
def test_no_count_is_refused(threads: Any) -> None:
    with pytest.raises(InputError, match=r"threads = .*must be an integer of at least 1"):
        p2p_sim.run(PeerToPeer(0.2), POPULATIONS["contiguous"](10), seed=0, threads=threads)


def test_other_backends_have_one_thread_a_process() -> None:
    with pytest.raises(InputError, match=r"threads = 2 means nothing to backend 'shards'"):
        Settings(backend="shards", threads=2)


def test_an_observer_of_draws_sees_them_block_by_block() -> None:
    """Twin: who watches draws asks for one thread, and gets the order of the blocks."""
    seen: list[int] = []

    def watch(_role: str, ids: Any) -> Any:
        return lambda *_draw: seen.append(int(ids[0]))

    local.run(
        replace(PROTOCOLS["randomized response"]), POPULATIONS["unclustered"](40), 0, blocks=8, watch=watch
    )
    assert seen == sorted(seen)
    assert len(set(seen)) == 8
