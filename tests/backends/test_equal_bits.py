"""Ray backends give the bits of the local one: digests, counts, outputs and every message."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim import Population
from tests.contract.cases import POPULATIONS, PROTOCOLS, people_of
from tests.contract.test_battery import equal

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("ray_session")]


def check_equal(protocol: Any, population: Population, faults: Any = None, **options: Any) -> None:
    how: dict[str, Any] = {"seed": 7, "trace": "full", "faults": faults, "costs": True}
    here = p2p_sim.run(protocol, population, **how)
    there = p2p_sim.run(protocol, population, **how, **options)
    assert there.faults_seen == here.faults_seen
    assert there.most == here.most
    assert there.work == here.work
    assert there.compute.keys() == here.compute.keys()
    assert all(np.array_equal(there.faulty[name], users) for name, users in here.faulty.items())
    assert there.digest == here.digest
    assert there.counts == here.counts
    assert equal(there.output("learner"), here.output("learner"))
    assert all(equal(there.messages(kind), here.messages(kind)) for kind in protocol.messages())


@pytest.mark.parametrize(("name", "shards"), [("contiguous", 2), ("scattered", 3), ("unclustered", 2)])
def test_shards(name: str, shards: int) -> None:
    for protocol in PROTOCOLS.values():
        check_equal(protocol, people_of(protocol, name, 101), backend="shards", shards=shards, blocks=2)


WRONG = ["drop=0.1", "loss=0.1", "late=0.1", "duplicate=0.2", "lie=random:0.2"]


KINDS = list({type(protocol): protocol for protocol in PROTOCOLS.values()}.values())
"""One protocol of each kind."""


@pytest.mark.parametrize("protocol", KINDS, ids=lambda p: type(p).__name__)
def test_faults_of_every_protocol(protocol: Any) -> None:
    sealed = any(message.opener == message.recipient for message in protocol.messages().values())
    faults = ["drop=0.05", *WRONG[1:], *(["tamper=0.1", "misdirect=0.1", "replay=0.2"] if sealed else [])]
    check_equal(protocol, people_of(protocol, "scattered", 61), faults, backend="shards", shards=2, blocks=2)


SERVED = [WRONG, ["stop=learner:0", "loss=0.1"]]


@pytest.mark.parametrize("faults", SERVED)
def test_faults(faults: list[str]) -> None:
    people = POPULATIONS["scattered"](101)
    check_equal(PROTOCOLS["peer-to-peer"], people, faults, backend="shards", shards=3, blocks=2)


def test_shards_with_compiled_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("P2P_SIM_NUMBA", "1")
    check_equal(PROTOCOLS["peer-to-peer"], POPULATIONS["scattered"](5_000), backend="shards", shards=2)


def test_more_shards_than_users() -> None:
    check_equal(PROTOCOLS["peer-to-peer"], POPULATIONS["unclustered"](2), backend="shards", shards=3)


def test_a_graph_reaches_the_shards() -> None:
    from tests.backends.programs import Gossip

    ring = np.array([(i, (i + 1) % 30) for i in range(30)])
    people = Population.from_arrays(y=np.arange(30) % 3 == 0).with_graph(ring)
    check_equal(Gossip(), people, backend="shards", shards=3)


@pytest.mark.parametrize("crypto", ["modelled", "real"])
def test_fixed_point_numbers(crypto: str) -> None:
    from tests.backends.programs import Features

    x = np.random.default_rng(5).normal(size=(40, 3))
    people = Population.from_arrays(y=np.arange(40) % 2 == 0, x=x, cluster=np.arange(40) % 3)
    check_equal(Features(), people, ["loss=0.1"], backend="shards", shards=3, crypto=crypto)
    few = Population.from_arrays(y=people.y[:5], x=x[:5])
    check_equal(Features(), few, backend="actors", crypto=crypto)


def test_blocks_that_answer_with_and_without_a_look_meet() -> None:
    """One site looks at the questions, another does not: their answers must mix."""
    from tests.backends.programs import HalfLooking

    people = Population.from_arrays(y=np.arange(40) % 2 == 0)
    check_equal(HalfLooking(), people, backend="shards", shards=3)


FEW = 12
"""Users, a process each; they stay for the next test, so those on this backend follow one another."""


@pytest.mark.parametrize("protocol", KINDS, ids=lambda p: type(p).__name__)
def test_one_actor_a_user_of_every_protocol(protocol: Any) -> None:
    check_equal(protocol, people_of(protocol, "scattered", 6), backend="actors")


def test_real_cryptography_with_one_actor_a_user() -> None:
    protocol, how = PROTOCOLS["secure aggregation"], {"seed": 7, "crypto": "real", "faults": ["tamper=0.1"]}
    here, there = (
        p2p_sim.run(protocol, POPULATIONS["contiguous"](6), backend=b, **how) for b in ("local", "actors")
    )
    assert (here.digest, here.work, here.faults_seen) == (there.digest, there.work, there.faults_seen)


def test_one_actor_a_user() -> None:
    check_equal(PROTOCOLS["peer-to-peer"], POPULATIONS["scattered"](FEW), backend="actors")


@pytest.mark.parametrize("faults", SERVED)
def test_faults_with_one_actor_a_user(faults: list[str]) -> None:
    protocol, people = PROTOCOLS["peer-to-peer"], POPULATIONS["scattered"](FEW)
    run = p2p_sim.run(protocol, people, seed=7, faults=faults)
    assert run.faults_seen or any(len(users) for users in run.faulty.values())
    check_equal(protocol, people, faults, backend="actors")


def test_one_actor_a_user_without_clusters() -> None:
    check_equal(PROTOCOLS["randomized response, 5 labels"], POPULATIONS["unclustered"](FEW), backend="actors")


def test_too_many_actors_are_refused() -> None:
    with pytest.raises(p2p_sim.InputError, match=r"129 users are too many.*at most 128.*'shards'"):
        p2p_sim.run(PROTOCOLS["peer-to-peer"], POPULATIONS["contiguous"](129), backend="actors", seed=0)


@pytest.mark.parametrize("backend", ["shards", "actors"])
def test_an_error_of_a_program_arrives_as_it_was_raised(backend: str) -> None:
    from tests.backends.programs import Stranger

    with pytest.raises(
        p2p_sim.ProtocolError, match=r"role 'user', step 0, message 'note'.*users are|they are 0 to 3"
    ):
        p2p_sim.run(Stranger(), POPULATIONS["unclustered"](4), backend=backend, seed=0)


def test_a_running_ray_is_left_running() -> None:
    import ray

    p2p_sim.run(
        PROTOCOLS["randomized response"], POPULATIONS["unclustered"](4), backend="shards", shards=2, seed=0
    )
    assert ray.is_initialized()
