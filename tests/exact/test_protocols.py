"""Both protocols against runs by hand: every delivered message, every output, and the digest."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from p2p_sim.backends import local
from p2p_sim.core import Population
from p2p_sim.core.trace_level import TraceLevel
from protocols import PeerToPeer, RandomizedResponse
from tests.exact import interpreter

CLUSTERS = {
    "one for everyone": [0] * 11,
    "contiguous": [0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2],
    "gaps in the numbers": [7, 7, 7, 20, 20, 20, 20, 5000, 5000, 5000, 5000],
    "scattered": [2, 0, 1, 2, 0, 2, 1, 1, 0, 2, 2],
    "scattered, gaps, users alone": [9, 4, 10**9, 0, 4, 9, 77, 4, 0, 5, 9],
    "everybody alone": list(range(11)),
}
LABELS = [1, 0, 0, 1, 1, 0, 1, 0, 0, 0, 1]
SEEDS = (0, 7, (1 << 63) + 11, (1 << 64) - 1)


@pytest.fixture(params=("0", "1"), ids=("numpy", "numba"))
def numba(request, monkeypatch):
    monkeypatch.setenv("P2P_SIM_NUMBA", request.param)
    return request.param


def traced(protocol, population, seed, **how):
    return local.run(protocol, population, seed, trace=TraceLevel("full"), **how)


def messages(finished, kind):
    """The traced messages of one kind as sorted tuples (round, sender, recipient, seq, fields ...)."""
    rows = []
    for part in finished.totals.trace.get(kind, []):
        rows += zip(*(column.tolist() for column in part.values()), strict=True)
    return sorted(tuple(int(value) for value in row) for row in rows)


def compare(finished, hand):
    for kind, rows in hand.messages.items():
        assert messages(finished, kind) == sorted(rows)
    assert set(finished.totals.trace) <= set(hand.messages)
    for role, columns in hand.outputs.items():
        assert {name: [int(v) for v in column] for name, column in finished.outputs[role].items()} == columns
    assert finished.totals.digest == hand.digest


def count_bytes(finished, hand, payload):
    """Counts by kind and round: a message to oneself does not travel; 16 bytes of addresses and the payload do."""
    for kind, rows in hand.messages.items():
        counts = {}
        for round, sender, recipient, *_ in rows:
            total = counts.setdefault((kind, round), [0, 0])
            total[0] += 1
            total[1] += kind == "report" or sender != recipient
        for key, (delivered, travelled) in counts.items():
            count = finished.totals.counts[key]
            assert (count.messages, count.travelled) == (delivered, travelled)
            assert count.nbytes == travelled * (16 + payload[kind])


@pytest.mark.parametrize("name", CLUSTERS)
@pytest.mark.parametrize("seed", SEEDS)
def test_algorithm_2(numba, name, seed):
    population = Population.from_arrays(y=np.array(LABELS, np.bool_), cluster=CLUSTERS[name])
    hand = interpreter.algorithm_2(LABELS, CLUSTERS[name], 0.3, 0.6, seed)
    for blocks in (1, 4, 11):
        compare(traced(PeerToPeer(alpha=0.3, theta=0.6), population, seed, blocks=blocks), hand)


@pytest.mark.parametrize(
    ("alpha", "theta"), [(0.0, 1.0), (0.5, 1.0), (0.1, 0.05), (0.25, 1e-300), (0.5, 0.5)]
)
def test_algorithm_2_at_other_parameters(numba, alpha, theta):
    cluster = CLUSTERS["scattered"]
    finished = traced(PeerToPeer(alpha, theta), Population.from_arrays(y=LABELS, cluster=cluster), 3)
    hand = interpreter.algorithm_2(LABELS, cluster, Fraction(alpha), Fraction(theta), 3)
    compare(finished, hand)
    count_bytes(finished, hand, {"ask": 0, "label": 1, "report": 1})


def test_algorithm_2_without_clusters(numba):
    finished = traced(PeerToPeer(0.2), Population.from_arrays(y=LABELS), 5)
    compare(finished, interpreter.algorithm_2(LABELS, [0] * 11, 0.2, 1.0, 5))


def test_a_user_alone_always_asks_herself(numba):
    population = Population.from_arrays(y=LABELS, cluster=CLUSTERS["everybody alone"])
    finished = traced(PeerToPeer(0.0), population, 5)
    assert [(s, r) for _, s, r, _ in messages(finished, "ask")] == [(u, u) for u in range(11)]
    assert [int(y) for y in finished.outputs["learner"]["y"]] == LABELS
    assert finished.totals.counts["ask", 1].travelled == 0


@pytest.mark.parametrize("size", [1, 2, 3, 40])
def test_algorithm_2_for_any_number_of_users(numba, size):
    y = [u % 3 == 0 for u in range(size)]
    cluster = [(u * u) % 5 for u in range(size)]
    finished = traced(PeerToPeer(0.1, 0.9), Population.from_arrays(y=y, cluster=cluster), 8)
    compare(finished, interpreter.algorithm_2([int(v) for v in y], cluster, 0.1, 0.9, 8))


@pytest.mark.parametrize(
    ("labels", "epsilon"), [(2, 0.0), (2, 1.0), (3, 0.5), (10, 2.0), (256, 1.0), (4, math.inf), (5, 40.0)]
)
@pytest.mark.parametrize("seed", [1, (1 << 64) - 1])
def test_randomized_response(numba, labels, epsilon, seed):
    y = [(u * 7 + u // 3) % labels for u in range(30)]
    y[0] = labels - 1
    lie = interpreter.lie_probability(epsilon, labels)
    hand = interpreter.randomized_response(y, lie, labels, seed)
    for blocks in (1, 7, 30):
        finished = traced(
            RandomizedResponse(epsilon, labels), Population.from_arrays(y=y), seed, blocks=blocks
        )
        compare(finished, hand)
    count_bytes(finished, hand, {"report": 1})


@pytest.mark.parametrize("p", [0.0, 0.1, 1e-10, 0.5])
def test_flipping_flips_with_exactly_p(numba, p):
    protocol = RandomizedResponse.flipping(p)
    assert protocol.lying() == Fraction(p)
    finished = traced(protocol, Population.from_arrays(y=LABELS * 5), 2)
    compare(finished, interpreter.randomized_response(LABELS * 5, Fraction(p), 2, 2))


def test_the_lie_probability_is_exact_to_the_threshold():
    for labels in (2, 3, 10, 256):
        for epsilon in (0.0, 1e-9, 0.5, 1.0, 2.5, 30.0):
            true = interpreter.lie_probability(epsilon, labels)
            assert math.floor(RandomizedResponse(epsilon, labels).lying() * 2**64) == math.floor(true * 2**64)


def test_the_digest_does_not_depend_on_the_trace(numba):
    population = Population.from_arrays(y=LABELS, cluster=CLUSTERS["scattered"])
    protocol = PeerToPeer(0.3, 0.6)
    hand = interpreter.algorithm_2(LABELS, CLUSTERS["scattered"], 0.3, 0.6, 1)
    for level in ("none", "counts", "sample=3", "full"):
        assert local.run(protocol, population, 1, trace=TraceLevel.parse(level)).totals.digest == hand.digest


def test_the_digest_changes_with_seed_labels_and_parameter():
    population = Population.from_arrays(y=LABELS)
    other = Population.from_arrays(y=[1 - y for y in LABELS])
    runs = [(0.0, population, 1), (0.5, population, 1), (0.0, other, 1), (0.0, population, 2)]
    digests = {local.run(PeerToPeer(alpha), who, seed).totals.digest for alpha, who, seed in runs}
    assert len(digests) == 4


def test_a_part_of_a_population_repeats_the_run_of_its_closed_world(numba):
    cluster = CLUSTERS["scattered, gaps, users alone"]
    population = Population.from_arrays(y=LABELS, cluster=cluster)
    rows = [u for u in range(11) if cluster[u] in (4, 9)]
    whole = interpreter.algorithm_2(LABELS, cluster, 0.3, 0.6, 6)
    part = traced(PeerToPeer(0.3, 0.6), population.part(np.array(rows)), 6, blocks=2)
    for kind, all_rows in whole.messages.items():
        assert messages(part, kind) == sorted(row for row in all_rows if row[1] in rows)
