"""The contract of design section 5 that every protocol passes, in this process."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim import Population, testing
from p2p_sim.testing import equal
from protocols import (
    ALL,
    ClusterResponse,
    LabelProportions,
    LaplaceLabelProportions,
    PeerPermutation,
    PeerToPeer,
    RandomizedResponse,
)
from tests.contract.cases import IN_TURN, POPULATIONS, PROTOCOLS, contiguous, people_of, scattered

USERS = 101
SILENT = (ClusterResponse, LabelProportions, LaplaceLabelProportions)
"""Protocols whose users draw nothing."""


@pytest.fixture(params=PROTOCOLS.values(), ids=PROTOCOLS.keys())
def protocol(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(params=POPULATIONS.keys())
def population(request: pytest.FixtureRequest, protocol: Any) -> Population:
    return people_of(protocol, request.param, USERS)


@pytest.fixture
def case(request: pytest.FixtureRequest, protocol: Any, population: Population) -> testing.Case:
    """The protocol among these users: its run with a whole trace is made once for all tests that only look at it."""
    return CASES.setdefault(request.node.callspec.id, testing.Case(protocol, population))


@pytest.fixture
def traced(case: testing.Case) -> p2p_sim.Run:
    return case.traced


CASES: dict[str, testing.Case] = {}


in_turn = pytest.mark.parametrize(
    ("protocol", "population"),
    [(PROTOCOLS[name], people) for name, people in IN_TURN],
    ids=[" - ".join(pair) for pair in IN_TURN],
    indirect=True,
)
"""Of a test that asks nothing of how users are divided."""


def test_every_shipped_protocol_is_in_the_battery() -> None:
    assert {type(p) for p in PROTOCOLS.values()} == set(ALL)


@pytest.mark.slow
def test_equal_bits_for_any_number_of_blocks(
    protocol: Any, population: Population, traced: p2p_sim.Run
) -> None:
    whole = traced
    for blocks in (7, USERS):
        parts = p2p_sim.run(protocol, population, seed=7, blocks=blocks, trace="full")
        assert parts.digest == whole.digest
        assert parts.counts == whole.counts
        assert equal(parts.output("learner"), whole.output("learner"))
        assert all(equal(parts.messages(kind), whole.messages(kind)) for kind in protocol.messages())


@in_turn
def test_equal_bits_with_and_without_numba(
    protocol: Any, population: Population, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = []
    for switch in ("0", "1"):
        monkeypatch.setenv("P2P_SIM_NUMBA", switch)
        runs.append(p2p_sim.run(protocol, population, seed=7, blocks=3))
    assert runs[0].digest == runs[1].digest
    assert equal(runs[0].output("learner"), runs[1].output("learner"))


@pytest.mark.slow
@in_turn
def test_a_trace_changes_nothing(case: testing.Case) -> None:
    testing.a_trace_changes_nothing(case)


@pytest.mark.slow
def test_the_digest_is_sensitive(protocol: Any, population: Population, traced: p2p_sim.Run) -> None:
    """Twin of the tests above: another seed or other labels give another digest."""
    other = replace(population, y=population.y ^ True)
    cases = ((population, 8), (other, 7))
    digests = {traced.digest, *(p2p_sim.run(protocol, people, seed=seed).digest for people, seed in cases)}
    drawing = not isinstance(protocol, LabelProportions)  # there the seed decides nothing
    assert len(digests) == (3 if drawing else 2)


@in_turn
def test_without_a_digest_the_output_is_the_same(case: testing.Case) -> None:
    testing.a_digest_changes_nothing(case)


@pytest.mark.slow
def test_replay_of_users_equals_the_run(case: testing.Case) -> None:
    testing.a_replay_is_the_run(case)
    assert case.traced.replay(0).drawn or isinstance(case.protocol, SILENT)


def test_replay_needs_only_the_closed_world() -> None:
    people = scattered(USERS)
    assert p2p_sim.run(PeerToPeer(0.1), people, seed=0).replay(3).world == people.clusters.size[3]  # type: ignore[union-attr]
    assert p2p_sim.run(RandomizedResponse(1.0), people, seed=0).replay(3).world == 1


@in_turn
def test_messages_hold_declared_fields_only(case: testing.Case) -> None:
    testing.messages_hold_declared_fields(case)


@in_turn
def test_global_random_state_is_untouched(case: testing.Case) -> None:
    testing.other_random_state_is_untouched(case)


@in_turn
def test_the_population_is_untouched(case: testing.Case) -> None:
    testing.the_users_are_untouched(case)


@pytest.mark.slow
@in_turn
def test_saved_and_loaded_runs_are_equal(case: testing.Case, tmp_path: Any) -> None:
    testing.a_saved_run_is_the_run(case)
    case.traced.save(tmp_path / "run")
    loaded = p2p_sim.load(tmp_path / "run")
    assert loaded.source == case.protocol
    again = p2p_sim.run(loaded.source, loaded.population, seed=loaded.seed)  # type: ignore[arg-type]
    assert again.digest == case.traced.digest


@pytest.mark.slow
def test_hash_seeds_and_processes_do_not_matter() -> None:
    code = (
        "import p2p_sim; from tests.contract.cases import *\n"
        "for p in PROTOCOLS.values():\n"
        "    for name in POPULATIONS: print(p2p_sim.run(p, people_of(p, name, 101), seed=7).digest)"
    )
    printed = []
    for hash_seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": hash_seed}
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
        )
        printed.append(done.stdout.split())
    here = [
        p2p_sim.run(p, people_of(p, name, 101), seed=7).digest
        for p in PROTOCOLS.values()
        for name in POPULATIONS
    ]
    assert printed[0] == printed[1] == here


@pytest.mark.parametrize("shipped", ALL, ids=lambda p: p.__name__)
def test_docstrings_name_source_and_trust(shipped: Any) -> None:
    assert "*Source:*" in shipped.__doc__
    assert "*Assumes:*" in shipped.__doc__
    assert all(len(message.text) > 20 for message in shipped.messages().values())


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: PeerToPeer(0.6), ["alpha", "0.6", "[0, 0.5]"]),
        (lambda: PeerToPeer(-0.1), ["alpha", "-0.1", "[0, 0.5]"]),
        (lambda: PeerToPeer(float("nan")), ["alpha", "nan", "[0, 0.5]"]),
        (lambda: PeerToPeer("0.1"), ["alpha", "'0.1'", "[0, 0.5]"]),  # type: ignore[arg-type]
        (lambda: PeerToPeer(0.1, 0.0), ["theta", "0.0", "(0, 1]"]),
        (lambda: PeerToPeer(0.1, 1.5), ["theta", "1.5", "(0, 1]"]),
        (lambda: PeerToPeer(0.1, over="everybody"), ["over", "'everybody'", "cluster, neighbours"]),
        (lambda: RandomizedResponse(-1.0), ["epsilon", "-1.0", "[0, inf]"]),
        (lambda: RandomizedResponse(1.0, labels=1), ["labels", "1", "from 2 to 256"]),
        (lambda: RandomizedResponse(1.0, labels=257), ["labels", "257", "from 2 to 256"]),
        (lambda: RandomizedResponse.flipping(0.7), ["p", "0.7", "[0, 0.5]"]),
    ],
)
def test_parameters_out_of_range_are_refused(make: Any, words: list[str]) -> None:
    with pytest.raises(p2p_sim.InputError) as caught:
        make()
    assert all(word in str(caught.value) for word in words), caught.value


@pytest.mark.parametrize("kind", [PeerToPeer, PeerPermutation])
def test_a_flip_too_rare_to_be_drawn_does_not_run(kind: Any) -> None:
    people = Population.synthetic(users=6, cluster_size=3, seed=1)
    assert p2p_sim.run(kind(2.0**-64), people, seed=0).digest
    with pytest.raises(p2p_sim.ProtocolError, match=r"alpha = 1e-20: a chance below 2\^-64 .*give 0"):
        p2p_sim.run(kind(1e-20), people, seed=0)


def test_labels_that_a_protocol_cannot_handle_are_refused() -> None:
    people = Population.from_arrays(y=np.arange(9) % 3)
    with pytest.raises(p2p_sim.InputError, match=r"handles 2 label values.*labels up to 2"):
        p2p_sim.run(PeerToPeer(0.1), people, seed=0)
    assert p2p_sim.run(RandomizedResponse(1.0, labels=3), people, seed=0).digest


def test_many_users_are_the_same_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("P2P_SIM_NUMBA", "1")
    people = Population.synthetic(users=300_000, cluster_size=1_000, positive=0.3, seed=1)
    protocol = PeerToPeer(0.1, 0.1)
    assert len({p2p_sim.run(protocol, people, seed=3, blocks=b).digest for b in (1, 2, 13)}) == 1


def test_one_user_alone() -> None:
    people = contiguous(1)
    run = p2p_sim.run(PeerToPeer(0.0), people, seed=1, trace="full")
    assert run.messages("ask")["recipient"].tolist() == [0]
    assert run.by_kind()["ask"].travelled == 0
    assert run.output("learner")["y"].tolist() == people.y.tolist()
