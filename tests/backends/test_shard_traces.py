"""Shards write their own files, which together are the trace of the local run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim import InputError
from p2p_sim.rundir import run_directory
from tests.contract.cases import POPULATIONS, PROTOCOLS, people_of
from tests.contract.test_battery import equal

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("ray_session")]

NAMES = ["peer-to-peer", "encrypted shuffle by three", "secure aggregation", "network shuffle"]


def check(protocol: Any, population: Any, out: Path, **how: Any) -> p2p_sim.Run:
    here = p2p_sim.run(protocol, population, seed=7, trace="full", faults=how.get("faults"))
    there = p2p_sim.run(protocol, population, seed=7, trace="full", out=out, **how)
    found = run_directory.open_trace(out)
    assert there.digest == here.digest
    assert (found.complete, found.missing, dict(found.counts)) == (True, None, here.counts)
    for kind, message in protocol.messages().items():
        whole = here.messages(kind)
        assert equal(there.messages(kind), whole)
        assert equal(found.rows(kind, limit=9, offset=2)[0], {name: c[2:11] for name, c in whole.items()})
        ends = [whole[end] == 5 for end in ("sender", "recipient") if getattr(message, end) == "user"]
        mine = np.logical_or.reduce(ends) if ends else np.zeros(len(whole["round"]), np.bool_)
        assert equal(found.rows(kind, user=5)[0], {name: column[mine] for name, column in whole.items()})
    return there


@pytest.mark.parametrize("name", NAMES)
def test_shards(name: str, tmp_path: Path) -> None:
    population = people_of(PROTOCOLS[name], "contiguous", 101)
    check(PROTOCOLS[name], population, tmp_path / "run", backend="shards", shards=3, blocks=2)
    sites = {int(path.name[5:10]) for path in (tmp_path / "run/messages").rglob("*.parquet")}
    servers = 3  # they are in this process
    assert servers in sites
    assert sites == {0, 1, 2, servers} or not any(map(to_users, PROTOCOLS[name].messages().values()))


def to_users(message: Any) -> bool:
    return bool(message.recipient == "user")


def test_shards_with_faults(tmp_path: Path) -> None:
    faults = ["drop=0.1", "loss=0.1", "late=0.1", "duplicate=0.2"]
    population = POPULATIONS["scattered"](101)
    check(PROTOCOLS["peer-to-peer"], population, tmp_path / "run", backend="shards", shards=2, faults=faults)


def test_one_actor_a_user(tmp_path: Path) -> None:
    check(PROTOCOLS["peer-to-peer"], POPULATIONS["scattered"](12), tmp_path / "run", backend="actors")


def test_a_sample(tmp_path: Path) -> None:
    given = PROTOCOLS["peer-to-peer"], POPULATIONS["scattered"](101)
    here = p2p_sim.run(*given, trace="sample=4", seed=0)
    there = p2p_sim.run(*given, trace="sample=4", backend="shards", shards=2, out=tmp_path / "run", seed=0)
    assert there.kept() == here.kept()
    assert all(equal(there.messages(kind), here.messages(kind)) for kind in given[0].messages())


def test_a_shard_that_does_not_see_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # as if the shard ran on a machine that mounts other disks
    given = PROTOCOLS["peer-to-peer"], POPULATIONS["scattered"](20)
    monkeypatch.setattr(
        "p2p_sim.rundir.trace_writer.Folder.__reduce__", lambda self: (type(self), ("/elsewhere", "1"))
    )
    with pytest.raises(InputError, match="a shard does not see the folder '/elsewhere'"):
        p2p_sim.run(*given, trace="full", backend="shards", shards=2, out=tmp_path / "run", seed=0)
    assert list(tmp_path.iterdir()) == []
