"""What sealing costs, by own arithmetic: three users, one shuffler, rates of 2 s to seal and 3 s to open."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import p2p_sim
from p2p_sim import Population
from protocols import EncryptedShuffle, SecureAggregation
from tests.test_costing import RATES, SLOW

REPORT = 16 + 9 + 2 * 48
"""Bytes: addresses, fields, two layers."""

MIXED = 16 + 9 + 48


def shuffle(**how: Any) -> p2p_sim.Run:
    return p2p_sim.run(
        EncryptedShuffle(1.0), Population.from_arrays(y=[True, False, True]), seed=0, costs=True, **how
    )


@pytest.fixture(autouse=True)
def no_time_of_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.thread_time", lambda: 0.0)


@pytest.mark.parametrize("crypto", ["modelled", "real"])
def test_a_shuffle_by_hand(crypto: str) -> None:
    bill = shuffle(crypto=crypto).costs(**SLOW, rates=RATES)
    user, shuffler, learner = (bill.roles[role] for role in ("user", "shuffler", "learner"))
    assert (user.bytes_up, shuffler.bytes_down, shuffler.bytes_up, learner.bytes_down) == (
        3 * REPORT, 3 * REPORT, 3 * MIXED, 3 * MIXED,
    )  # fmt: skip
    assert (user.operations, shuffler.operations) == ({"seal": 6}, {"open": 3})
    assert learner.operations == {"open": 3}
    assert (user.compute_seconds, shuffler.compute_seconds, learner.compute_seconds) == (12, 9, 9)
    first, second, last = bill.path
    # each user seals twice, beside the others; the shuffler opens three
    assert (first.computing, first.sending) == pytest.approx((4, REPORT / 1000 + 0.02))
    assert (first.recipient, first.receiving) == ("shuffler", pytest.approx(3 * REPORT / 10_000))
    assert (second.sender, second.computing, second.sending) == (
        "shuffler", 9, pytest.approx(3 * MIXED / 10_000 + 0.005),
    )  # fmt: skip
    assert (second.recipient, second.receiving) == ("learner", pytest.approx(3 * MIXED / 10_000))
    assert (last.sender, last.computing, last.sending, last.receiving) == ("learner", 9, 0, 0)
    assert set(bill.roles) == set(bill.parties) == {"user", "shuffler", "learner"}


@pytest.mark.parametrize("crypto", ["modelled", "real"])
@pytest.mark.parametrize(("fault", "down"), [("tamper=1", 3), ("misdirect=1", 3), ("replay=1", 6)])
def test_what_does_not_open_came_all_the_same(fault: str, down: int, crypto: str) -> None:
    """It costs sender and recipient, and the opening; copies made by others cost the recipient alone."""
    bill = shuffle(crypto=crypto, faults=[fault]).costs(**SLOW, rates=RATES)
    user, shuffler = bill.roles["user"], bill.roles["shuffler"]
    assert (user.messages_up, user.bytes_up) == (3, 3 * REPORT)
    assert (shuffler.messages_down, shuffler.bytes_down) == (down, down * REPORT)
    assert shuffler.operations == {"open": 3}
    assert bill.roles["learner"].messages_down == (6 if fault == "replay=1" else 0)


def test_both_modes_of_cryptography_cost_the_same() -> None:
    people = Population.synthetic(users=24, cluster_size=12, positive=0.5, seed=1)
    bills = [
        p2p_sim.run(SecureAggregation(6), people, costs=True, crypto=crypto, seed=0).costs(rates=RATES)
        for crypto in ("modelled", "real")
    ]
    assert bills[0] == bills[1]


def test_operations_are_those_of_the_run() -> None:
    people = Population.synthetic(users=24, cluster_size=12, positive=0.5, seed=1)
    run = p2p_sim.run(SecureAggregation(6), people, costs=True, faults=["drop=0.05"], seed=0)
    bill = run.costs(rates=RATES)
    for role, costs in bill.roles.items():
        wanted: Counter[str] = Counter()
        for (whose, _, operation), times in run.work.items():
            wanted[operation] += times if whose == role else 0
        assert costs.operations == +wanted
        assert costs.compute_seconds == pytest.approx(RATES.seconds(costs.operations))
