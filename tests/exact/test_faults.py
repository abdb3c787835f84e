"""Runs under faults against runs by hand: messages, outputs, digest, and every count of what went wrong."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import p2p_sim
from p2p_sim import Population
from p2p_sim.core import Faults
from protocols import PeerToPeer, RandomizedResponse
from tests.exact import faulty
from tests.exact.test_protocols import CLUSTERS, LABELS

WRONG = {
    "drop": {"drop": 0.25},
    "loss": {"loss": 0.3},
    "late": {"late": 0.3},
    "duplicate": {"duplicate": 0.5},
    "flip": {"lie": ("flip", 0.4)},
    "random": {"lie": ("random", 0.6)},
    "constant": {"lie": ("constant1", 0.5)},
    "stop before": {"stop": ("learner", 0)},
    "stop after": {"stop": ("learner", 1)},
    "all": {"drop": 0.1, "loss": 0.15, "late": 0.15, "duplicate": 0.3, "lie": ("flip", 0.2)},
    "certain loss": {"loss": 1.0},
    "certain drop": {"drop": 1.0},
}


def compare(run, hand):
    for kind, rows in hand.messages.items():
        columns = run.messages(kind)
        names = [name for name in columns if name != "nbytes"]
        found = sorted(zip(*(columns[name].tolist() for name in names), strict=True))
        assert [tuple(map(int, row)) for row in found] == sorted(rows), kind
    for role, columns in hand.outputs.items():
        assert {name: [int(v) for v in column] for name, column in run.output(role).items()} == columns
    assert run.faults_seen == dict(hand.wire.seen)
    assert run.digest == hand.digest
    assert run.faulty.get("dropped", np.zeros(0)).tolist() == sorted(hand.wire.gone)


@pytest.mark.slow
@pytest.mark.parametrize("numba", ["0", "1"])
@pytest.mark.parametrize("retries", [0, 2])
@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
def test_algorithm_2(wrong, retries, numba, monkeypatch):
    monkeypatch.setenv("P2P_SIM_NUMBA", numba)
    cluster = CLUSTERS["scattered, gaps, users alone"]
    people = Population.from_arrays(y=np.array(LABELS, np.bool_), cluster=cluster)
    protocol = PeerToPeer(alpha=0.3, theta=0.6, retries=retries)
    for seed in (3, (1 << 64) - 1):
        hand = faulty.algorithm_2(LABELS, cluster, 0.3, 0.6, retries, seed, wrong)
        for blocks in (1, 4, 11):
            faults = Faults(**wrong)
            compare(
                p2p_sim.run(protocol, people, seed=seed, blocks=blocks, trace="full", faults=faults), hand
            )


@pytest.mark.parametrize("wrong", [w for n, w in WRONG.items() if "stop" not in n])
def test_randomized_response(wrong):
    y = [(u * 7 + u // 3) % 5 for u in range(30)]
    hand = faulty.randomized_response(y, RandomizedResponse(0.7, 5).lying(), 5, 9, wrong)
    for blocks in (1, 7, 30):
        people, faults = Population.from_arrays(y=y), Faults(**wrong)
        compare(
            p2p_sim.run(
                RandomizedResponse(0.7, 5), people, seed=9, blocks=blocks, trace="full", faults=faults
            ),
            hand,
        )


def test_bytes_are_those_of_all_that_travelled():
    people = Population.from_arrays(y=np.array(LABELS, np.bool_))
    wrong = {"loss": 0.3, "duplicate": 0.4}
    hand = faulty.algorithm_2(LABELS, [0] * 11, 0.3, 0.6, 0, 5, wrong)
    run = p2p_sim.run(PeerToPeer(0.3, 0.6), people, seed=5, faults=Faults(**wrong))
    for kind, payload, round in (("ask", 0, 1), ("label", 1, 2), ("report", 1, 3)):
        there = [m for m in hand.messages[kind] if kind == "report" or m[1] != m[2]]
        extra = hand.wire.seen["lost", kind, round] + hand.wire.seen["duplicate", kind, round]
        count = run.counts[kind, round]
        assert count.messages == len(hand.messages[kind])
        assert count.travelled == len(there) + extra
        assert count.nbytes == count.travelled * (16 + payload)


def test_a_share_may_be_exact():
    assert Faults(lie=("flip", Fraction(1, 3))).lie == ("flip", Fraction(1, 3))
