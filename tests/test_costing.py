"""What a run costs, on protocols of three users, by own arithmetic."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim import InputError, Population
from p2p_sim.core import Message, Party, Protocol, Rounds
from p2p_sim.crypto.rates import Rates
from tests.contract.cases import POPULATIONS, PROTOCOLS
from tests.run_json_files import document_in

CLOCK = [0.0]
SLOW = {"channel": "20ms,8kbit", "servers": "5ms,80kbit"}
"""Users: 1,000 bytes a second; servers: 10,000."""

RATES = Rates(key=1, seal=2, open=3, agree=5, mask=13, mask_word=17, share=19, recover=23)


@dataclass(frozen=True)
class Ring(Protocol):
    """User u asks user u + 1, user 1 asks user 2 twice; all report what they heard.  ``CLOCK`` says how long it takes.

    Bytes: an ask 16, an answer 16 + 8, a report 16 + 1.
    """

    ask = Message("user", "user", "asks the next user")
    answer = Message("user", "user", "answers", word=np.uint64)
    report = Message("user", "learner", "reports", y=bool)

    def user(self, me: Party) -> Rounds:
        CLOCK[0] += 0.5 * me.size
        tokens = me.draw.below("twice", 1, times=2)
        asks = yield self.ask(to=(tokens + me.id + 1) % 3, when=(tokens.rank == 0) | (tokens + me.id == 1))
        CLOCK[0] += 1.0 * me.size
        answers = yield self.answer.reply(asks, word=np.ones(me.size, np.uint64))
        yield self.report(y=answers.word.sum() > 0)

    def learner(self, me: Party) -> Rounds:
        reports = yield self.report.receive()
        CLOCK[0] += 4.0
        return reports.columns()


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.thread_time", lambda: CLOCK[0])


def three() -> Population:
    return Population.from_arrays(y=[True, False, True])


def ring(**how: Any) -> p2p_sim.Run:
    return p2p_sim.run(Ring(), three(), costs=True, **{"seed": 0, **how})


@pytest.mark.parametrize("blocks", [1, 3])
def test_every_figure_by_hand(blocks: int) -> None:
    run_costs = ring(blocks=blocks).costs(**SLOW)
    user, learner = run_costs.roles["user"], run_costs.roles["learner"]
    assert (user.messages_up, user.messages_down) == (4 + 4 + 3, 4 + 4)
    assert (user.bytes_up, user.bytes_down) == (4 * 16 + 4 * 24 + 3 * 17, 4 * 16 + 4 * 24)
    assert (learner.messages_up, learner.messages_down, learner.bytes_down) == (0, 3, 3 * 17)
    assert (user.compute_seconds, learner.compute_seconds) == (3 * 1.5, 4.0)
    assert user.operations == learner.operations == {}
    assert run_costs.parties == {"user": 3, "learner": 1}
    assert run_costs.rates is None
    one, two, three, four = run_costs.path
    # round 1: user 1 sends two asks, user 2 takes both in
    assert (one.computing, one.sending, one.receiving) == pytest.approx((0.5, 0.032 + 0.02, 0.032))
    # round 2: user 2 sends two answers, user 1 takes both in
    assert (two.computing, two.sending, two.receiving) == pytest.approx((1.0, 0.048 + 0.02, 0.048))
    # round 3: a report each
    assert (three.computing, three.sending) == pytest.approx((0.0, 0.017 + 0.02))
    assert (three.recipient, three.receiving) == ("learner", pytest.approx(51 / 10_000))
    assert (four.sender, four.computing, four.sending, four.recipient) == ("learner", 4.0, 0.0, None)
    assert run_costs.seconds == pytest.approx(0.584 + 1.116 + 0.0421 + 4.0)


def test_lost_messages_cost_their_sender_and_second_copies_their_recipient() -> None:
    """4 asks and 3 reports are lost.  Doubled: 11 are sent, 22 come.  Late: no ask is read, so none is answered."""
    lost = ring(faults=["loss=1"]).costs(**SLOW)
    assert (lost.roles["user"].messages_up, lost.roles["user"].bytes_up) == (7, 64 + 51)
    assert (lost.roles["user"].messages_down, lost.roles["learner"].messages_down) == (0, 0)
    assert lost.path[0].receiving == 0
    assert lost.path[0].sending == pytest.approx(0.032 + 0.02)
    doubled = ring(faults=["duplicate=1"]).costs(**SLOW)
    assert (doubled.roles["user"].messages_up, doubled.roles["user"].messages_down) == (11, 16)
    assert (doubled.roles["learner"].messages_down, doubled.roles["learner"].bytes_down) == (6, 6 * 17)
    assert doubled.path[0].receiving == pytest.approx(2 * 0.032)
    late = ring(faults=["late=1"]).costs(**SLOW)
    assert (late.roles["user"].messages_up, late.roles["user"].messages_down) == (7, 4)
    away = ring(faults=["stop=learner:0"]).costs(**SLOW)
    assert (away.roles["user"].messages_up, away.roles["learner"].messages_down) == (11, 0)


def test_operations_take_the_time_of_their_rates() -> None:
    run = ring()
    run.work = {
        ("user", 1, "seal"): 6,
        ("user", 2, "open"): 3,
        ("user", 2, "mask"): 3,
        ("learner", 4, "key"): 2,
    }
    run_costs = run.costs(**SLOW, rates=RATES)
    assert run_costs.roles["user"].operations == {"seal": 6, "open": 3, "mask": 3}
    assert run_costs.roles["learner"].operations == {"key": 2}
    assert run_costs.roles["user"].compute_seconds == 4.5 + 6 * 2 + 3 * 3 + 3 * 13
    assert run_costs.roles["learner"].compute_seconds == 4 + 2
    assert [leg.computing for leg in run_costs.path] == [0.5 + 4, 1 + 3 + 13, 0, 6]
    assert run_costs.rates is RATES
    measured = run.costs(**SLOW)
    assert measured.rates is not None
    assert measured.rates != RATES


def test_users_with_links_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The slowest link counts, drawn from the run's seed."""
    from p2p_sim.network import channels

    text = "10-50ms,8-16kbit"
    links = channels.parse(text).links(9, 3)
    leg = p2p_sim.run(Ring(), three(), seed=9, costs=True).costs(text).path[2]
    assert leg.sending == max(17 / links.bandwidth + links.latency)


def test_what_is_not_known_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"did not count user by user how many messages of kind 'ask'.*costs=True"
    ):
        p2p_sim.run(Ring(), three(), seed=0).costs()
    for words in ({"channel": "20ms"}, {"servers": "20ms"}):
        with pytest.raises(InputError, match=r"channel = '20ms': give a latency and a bandwidth"):
            ring().costs(**words)
    with pytest.raises(InputError, match="no rate for sing"):
        replace(ring(), work={("user", 1, "sing"): 1}).costs(rates=RATES)


def test_saved_and_loaded(tmp_path: Path) -> None:
    run = ring(seed=2**63)
    again = p2p_sim.load(run.save(tmp_path / "whole"))
    assert (again.compute, again.most, again.work) == (run.compute, run.most, run.work)
    with pytest.raises(InputError, match=r"not a shipped protocol: give it, costs\(protocol=...\)"):
        again.costs()
    assert again.costs(**SLOW, protocol=Ring()) == run.costs(**SLOW)
    apart = p2p_sim.load(run.save(tmp_path / "apart", population=False))
    assert apart.costs(**SLOW, protocol=Ring()) == run.costs(**SLOW)
    with pytest.raises(InputError, match=r"'exp:20ms,10Mbit' draws links from the run's seed"):
        apart.costs("exp:20ms,10Mbit", protocol=Ring())


def test_what_was_not_counted_is_asked_for(tmp_path: Path) -> None:
    path = ring().save(tmp_path / "old")
    told = document_in(path) | {"compute": [], "most": None, "work": []}
    (path / "run.json").write_text(json.dumps(told))
    old = p2p_sim.load(path)
    assert (old.compute, old.most, old.work) == ({}, None, {})
    with pytest.raises(InputError, match="costs=True"):
        old.costs(protocol=Ring())


@pytest.mark.parametrize("faults", [None, ["loss=0.2", "drop=0.1", "duplicate=0.3"]])
def test_equal_for_any_blocks(faults: list[str] | None) -> None:
    protocol, people = PROTOCOLS["peer-to-peer"], POPULATIONS["scattered"](101)
    runs = [p2p_sim.run(protocol, people, seed=3, blocks=n, faults=faults, costs=True) for n in (1, 7, 101)]
    first, *others = (run.costs() for run in runs)
    assert all(other == first for other in others)
    assert first.roles["user"].bytes_up > first.roles["user"].bytes_down > 0
