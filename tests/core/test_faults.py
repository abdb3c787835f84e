"""Faults: how they are written, how often they happen, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

import p2p_sim
from p2p_sim import InputError, Population, ProtocolError
from p2p_sim.core import Faults, Inbox, Message, Vector, beside, kernels_numpy
from p2p_sim.core.columns import Layout, Rows
from p2p_sim.core.fault_injection import KeyedFaultDraws, first_of_each
from protocols import PeerToPeer, RandomizedResponse

FALSE_ALARM = 1e-9


def people(users=100_000, cluster=100):
    return Population.synthetic(users=users, cluster_size=cluster, positive=0.3, seed=1)


def close(hits, trials, p):
    """Whether a count fits a binomial law, by Bernstein's inequality at the stated false alarm rate."""
    log = math.log(2 / FALSE_ALARM)
    return abs(hits - trials * p) <= math.sqrt(2 * trials * p * (1 - p) * log) + log


def test_texts_are_read_and_written_back():
    texts = ["drop=0.05", "loss=0.01", "late=0.01", "duplicate=0.02", "stop=learner:1", "lie=constant1:0.1"]
    faults = Faults.of(texts)
    assert faults == Faults(0.05, 0.01, 0.01, 0.02, ("learner", 1), ("constant1", 0.1))
    assert faults.texts() == texts
    assert Faults.of(faults) is faults
    assert Faults.of("loss=1e-3") == Faults(loss=0.001)
    assert [Faults.of(given) for given in (None, [], "drop=0", Faults(), ["lie=flip:0"])] == [None] * 5


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["drop=1.5"], ["drop = 1.5", "[0, 1]"]),
        (["loss=nan"], ["loss = 'nan'", "[0, 1]"]),
        (["late=often"], ["late = 'often'", "[0, 1]"]),
        (["duplicate=-0.1"], ["duplicate = -0.1", "[0, 1]"]),
        (["drop"], ["fault 'drop'", "drop=0.05"]),
        (["crash=0.1"], ["fault 'crash=0.1'", "loss=0.01"]),
        ([5], ["fault 5"]),
        (["drop=0.1", "drop=0.2"], ["drop is given twice"]),
        (["stop=learner"], ["stop = 'learner'", "learner:1"]),
        (["stop=learner:-1"], ["learner:-1", "from 0 on"]),
        (["stop=shuffler:1"], ["shuffler:1", "no server here", "servers: learner"]),
        (["stop=user:1"], ["user:1", "no server here"]),
        (["stop=learner:7"], ["stop = learner:7", "fewer steps"]),
        (["lie=flip"], ["share of lie", "'flip'"]),
        (["lie=shout:0.1"], ["lie = ('shout', 0.1)", "random:0.1"]),
        (["lie=flip:1.1"], ["share of lie", "1.1"]),
        (["lie=constant2:0.1"], ["lie = constant2", "0 to 1"]),
        (7, ["faults = 7", "drop=0.05"]),
    ],
)
def test_bad_faults_are_named(given, words):
    with pytest.raises(InputError) as caught:
        p2p_sim.run(PeerToPeer(0.1), people(20, 5), faults=given, seed=0)
    assert all(word in str(caught.value) for word in words), caught.value


def test_bad_objects_are_named():
    for wrong in ({"stop": "learner"}, {"stop": ("learner", True)}, {"lie": "flip"}, {"lie": ("flip", "x")}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            Faults(**wrong)


def test_rates():
    n, p = 100_000, 0.07
    run = p2p_sim.run(RandomizedResponse(1.0), people(), seed=3, faults=[f"loss={p}", f"duplicate={p}"])
    seen = run.faults_seen
    assert close(seen["lost", "report", 1], n, p)
    assert close(seen["duplicate", "report", 1], n - seen["lost", "report", 1], p)
    run = p2p_sim.run(PeerToPeer(0.1), people(), seed=4, faults=[f"drop={p}", f"lie=random:{p}"])
    assert close(len(run.faulty["dropped"]), n, 1 - (1 - p) ** 3)
    assert close(len(run.faulty["lied"]), n, p)
    asks = run.counts["ask", 1]
    assert close(n - run.faults_seen["unsent", "ask", 1], n, 1 - p)
    assert asks.messages == n - run.faults_seen["unsent", "ask", 1] - run.faults_seen["undelivered", "ask", 1]
    run = p2p_sim.run(PeerToPeer(0.1), people(), seed=5, faults=[f"loss={p}"])
    others = (1 - 1 / 100) * (1 - p) ** 2 + 1 / 100  # asks to oneself are not lost
    assert close(len(run.output("learner")["y"]), n, others * (1 - p))


def test_decisions_do_not_follow_each_other():
    """Twin of the rates: the same messages are not lost, late and doubled together, nor those of two kinds."""
    chance, n = KeyedFaultDraws(1, kernels_numpy), 50_000
    ids = (np.arange(n), np.zeros(n, np.int64), np.zeros(n, np.int64))
    columns = [chance.messages(name, 1, 0.5, ids) for name in ("loss:ask", "late:ask", "loss:label")]
    columns += [chance.messages("loss:ask", 2, 0.5, ids), chance.users("drop", 1, 0.5, range(n))]
    for i, one in enumerate(columns):
        assert all(close(int((one & other).sum()), n, 0.25) for other in columns[:i])


def test_other_recipients_and_numbers_are_other_messages():
    chance, n = KeyedFaultDraws(1, kernels_numpy), 50_000
    zeros, count = np.zeros(n, np.int64), np.arange(n)
    by_recipient = chance.messages("loss:ask", 1, 0.5, (zeros, count, zeros))
    by_number = chance.messages("loss:ask", 1, 0.5, (zeros, zeros, count))
    assert close(int(by_recipient.sum()), n, 0.5)
    assert close(int((by_recipient & by_number).sum()), n, 0.25)


def test_retries_lead_to_more_reports():
    counts = [
        len(
            p2p_sim.run(PeerToPeer(0.1, retries=k), people(), faults=["loss=0.3"], seed=0).output("learner")[
                "y"
            ]
        )
        for k in (0, 1, 4)
    ]
    assert counts[0] < counts[1] < counts[2]


@pytest.mark.parametrize("retries", [-1, 1.5, True, "1", 101])
def test_bad_retries_are_named(retries):
    with pytest.raises(InputError, match=r"retries = .*from 0 to 100"):
        PeerToPeer(0.1, retries=retries)


def test_the_first_of_each_row_is_found():
    a, b = np.array([3, 1, 3, 3, 1]), np.array([0, 2, 0, 1, 2])
    assert first_of_each(a, b).tolist() == [True, True, False, True, False]
    assert first_of_each(a[:0], b[:0]).tolist() == []


def test_inboxes_are_put_beside_each_other():
    kind = Message("user", "user", "says a number", n=np.int64, v=Vector(np.uint8, 2))
    other_kind = Message("user", "user", "says another", n=np.int64)

    def inbox(starts, n, message=kind):
        n = np.array(n)
        fields = {"n": n, "v": np.column_stack([n, n]).astype(np.uint8)}
        return Inbox(message, lambda: Rows(Layout(np.array(starts)), n + 100, None, fields), "user")

    one, other = inbox([0, 2, 2, 3], [1, 2, 3]), inbox([0, 1, 2, 2], [7, 8])
    both = beside(one, other)
    assert both.n.data.tolist() == [1, 2, 7, 8, 3]
    assert both.sender.data.tolist() == [101, 102, 107, 108, 103]
    assert both.v.data.tolist() == [[n, n] for n in both.n.data.tolist()]
    assert both.count.tolist() == [3, 1, 1]
    assert beside(other, one).n.data.tolist() == [7, 1, 2, 8, 3]
    assert not both.distinct
    for wrong in (inbox([0, 1], [7]), inbox([0, 1, 2, 2], [7, 8], other_kind)):
        with pytest.raises(ProtocolError, match=r"beside: .* meet"):
            beside(one, wrong)
