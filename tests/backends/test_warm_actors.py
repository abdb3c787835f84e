"""Actors stay for the next run of a session: the same processes, the same bits, and the code checked as ever."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

import p2p_sim
from p2p_sim import privacy
from p2p_sim.backends import ray_session, reexecution
from p2p_sim.core import code_fingerprint
from p2p_sim.privacy.auditing import worlds
from protocols import PeerToPeer
from tests.contract.cases import POPULATIONS, PROTOCOLS

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("ray_session")]


@pytest.fixture(autouse=True)
def _alone() -> Iterator[None]:
    """Leave no actors of other tests idle, and none for them."""
    drop()
    yield
    drop()


def drop() -> None:
    assert ray_session._idle is not None
    ray_session.kill(ray_session._idle)
    ray_session._idle.clear()


def idle() -> list[str]:
    """Ids of the actors that wait for a run."""
    return sorted(each.actor._actor_id.hex() for each in ray_session._idle or ())


def check_run(protocol: str, people: str, users: int, seed: int, **where: object) -> None:
    program, population = PROTOCOLS[protocol], POPULATIONS[people](users)
    here = p2p_sim.run(program, population, seed=seed)
    there = p2p_sim.run(program, population, seed=seed, backend="shards", **where)  # type: ignore[arg-type]
    assert there.digest == here.digest


def test_another_run_takes_the_actors_of_the_one_before() -> None:
    check_run("peer-to-peer", "scattered", 101, 7, shards=2)
    first = idle()
    assert len(first) == 2
    check_run("randomized response", "unclustered", 60, 8, shards=1)
    assert idle() == first
    check_run("peer-to-peer", "contiguous", 101, 9, shards=3)
    assert len(idle()) == 3
    assert set(first) < set(idle())


def test_all_batches_of_an_audit_use_the_same_actors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worlds, "_BATCH", 400)
    seen: set[str] = set()
    keep = ray_session.keep

    def noted(actors: list[ray_session.Hosted]) -> None:
        seen.update(each.actor._actor_id.hex() for each in actors)
        keep(actors)

    monkeypatch.setattr(ray_session, "keep", noted)
    case = {"cluster_size": 10, "delta": 0.01, "trials": 100, "statistic": "exact"}
    here = privacy.audit(PeerToPeer(0.1), **case)  # type: ignore[arg-type]
    there = privacy.audit(PeerToPeer(0.1), backend="shards", shards=2, **case)  # type: ignore[arg-type]
    assert there == here
    assert len(seen) == 2


def test_an_actor_is_not_used_again_after_its_code_was_changed() -> None:
    check_run("peer-to-peer", "scattered", 101, 7, shards=1)
    assert ray_session._idle
    first = idle()
    ray_session._idle[0].code["p2p_sim/run.py"] = "of another version"
    check_run("peer-to-peer", "scattered", 101, 7, shards=1)
    assert not set(first) & set(idle())


def test_a_worker_is_checked_when_it_first_loads_a_protocol(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.backends.programs import HalfLooking

    check_run("peer-to-peer", "scattered", 101, 7, shards=1)
    assert idle()
    found = code_fingerprint.code_of

    def other(modules: tuple[str, ...]) -> dict[str, str]:
        return {name: "changed" if "programs" in name else code for name, code in found(modules).items()}

    monkeypatch.setattr(code_fingerprint, "code_of", other)
    people = POPULATIONS["unclustered"](4)
    with pytest.raises(p2p_sim.InputError, match=r"does not have the code .*tests/backends/programs.py"):
        p2p_sim.run(HalfLooking(), people, backend="shards", shards=1, seed=0)
    assert idle() == []


def test_actors_of_a_run_that_failed_are_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.backends.programs import Dying

    monkeypatch.setattr(reexecution, "REPEATS", 0)
    check_run("peer-to-peer", "scattered", 101, 7, shards=2)
    with pytest.raises(
        p2p_sim.RunLostError, match=r"role 'user', round 1, shard .*actor of this run was lost"
    ):
        p2p_sim.run(Dying(), POPULATIONS["unclustered"](4), backend="shards", shards=2, seed=0)
    assert idle() == []
    check_run("peer-to-peer", "scattered", 101, 7, shards=2)


LEFT = """
import logging, time, ray
from tests.backends.test_ray_session import alive, children_of
from tests.contract.cases import *
from pathlib import Path
import os, p2p_sim
def actors():
    named = [each for each in children_of(os.getpid()) if alive(each)]
    return [each for each in named if b"SiteActor" in Path(f"/proc/{each}/cmdline").read_bytes()]
ray.init("local", num_cpus=2, include_dashboard=False, object_store_memory=100 << 20, logging_level=logging.ERROR)
p2p_sim.run(PROTOCOLS["peer-to-peer"], POPULATIONS["scattered"](101), seed=7, backend="shards", shards=2)
until = time.monotonic() + 30
while actors() and time.monotonic() < until:
    time.sleep(0.2)
print("left", len(actors()), "running", ray.is_initialized())
ray.shutdown()
"""


def test_nothing_is_left_in_a_ray_that_the_program_started_itself() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LEFT], capture_output=True, text=True, check=True, timeout=300
    )
    assert done.stdout.splitlines()[-1] == "left 0 running True"
