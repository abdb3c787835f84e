"""What is planned of a run against what it takes."""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
import sys
from collections import namedtuple
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim import InputError, Population
from p2p_sim.backends import layout
from p2p_sim.backends.local import LocalSite
from p2p_sim.backends.settings import Settings
from p2p_sim.core import kernels_numpy
from p2p_sim.core.engine import Engine
from p2p_sim.core.message import USER
from p2p_sim.core.site import Directory, Site
from p2p_sim.core.trace_level import TraceLevel
from p2p_sim.plan import Crowd, Machine, Saved, is_in_doubt, machines, pilot, plan_of
from p2p_sim.plan.run_plan import FACTOR, _divided, size
from protocols import PeerToPeer
from tests.contract.cases import PROTOCOLS, people_of

HERE = [Machine("this machine", 2, 8 << 30)]


def planned(protocol: Any, crowd: Crowd, out: Path, trace: str = "none", **how: Any) -> Any:
    return plan_of(protocol, crowd, Settings(**how), HERE, Saved(out), trace)


def within(planned: float, measured: float) -> bool:
    return 1 / FACTOR < planned / measured < FACTOR


@pytest.mark.parametrize(
    "name", ["peer-to-peer", "randomized response", "secure aggregation", "network shuffle"]
)
@pytest.mark.parametrize("lie", ["contiguous", "scattered"])
def test_messages_and_disk_are_planned_within_the_stated_factor(name: str, lie: str, tmp_path: Path) -> None:
    protocol, people = PROTOCOLS[name], people_of(PROTOCOLS[name], lie, 3000)
    plan = planned(protocol, Crowd.of(people, protocol), tmp_path, "full")
    run = p2p_sim.run(protocol, people, seed=3, trace="full", out=tmp_path / "run")
    assert within(plan.messages, sum(count.messages for count in run.counts.values()))
    assert within(plan.message_bytes, sum(count.nbytes for count in run.counts.values()))
    places = {
        "trace": ["messages/**/*"],
        "outputs": ["outputs/*"],
        "population": ["population.parquet", "graph.parquet"],
    }
    for part, patterns in places.items():
        files = [file for each in patterns for file in (tmp_path / "run").glob(each) if file.is_file()]
        assert within(plan.disk.get(part, 1), max(1, sum(file.stat().st_size for file in files))), part


@pytest.mark.parametrize(("users", "cluster"), [(6000, 6000), (6000, 50)])
def test_messages_that_grow_with_pairs_are_extrapolated(users: int, cluster: int, tmp_path: Path) -> None:
    """Everybody writes to everybody of a cluster: the pilots are smaller than the cluster, or many clusters."""
    protocol = PROTOCOLS["peer permutation"]
    plan = planned(protocol, Crowd.synthetic(users, cluster, {"seed": 0}), tmp_path)
    assert plan.messages == pytest.approx(users * cluster, rel=0.2)


def test_memory_and_disk_of_millions_of_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that runs them, from its start; and the twin: a plan for an eighth of them is not true of all."""
    monkeypatch.setenv("P2P_SIM_NUMBA", "0")  # compiling takes longer than this
    words = ("peer-to-peer", "--users", "3e6", "--seed", "4", "--json", "--out", str(tmp_path / "run"))
    command = [sys.executable, "-m", "p2p_sim.cli", "run", *words]
    told = json.loads(subprocess.run(command, capture_output=True, check=True, cwd=tmp_path).stdout)
    measured = told["peak_memory"]["bytes"]
    command[-2:] = ["--plan"]
    plan = json.loads(subprocess.run(command, capture_output=True, check=True, cwd=tmp_path).stdout)
    assert within(plan["machines"][0]["memory"], measured), (plan, measured)
    assert plan["messages"] == pytest.approx(sum(kind["messages"] for kind in told["messages"]), rel=0.01)
    for part, place in (("outputs", "outputs/learner.parquet"), ("population", "population.parquet")):
        assert within(plan["disk"][part], (tmp_path / "run" / place).stat().st_size), part
    small = planned(PeerToPeer(0.1), Crowd.synthetic(375_000, 1000, {"seed": 0}), tmp_path)
    assert not within(sum(small.disk.values()), sum(plan["disk"].values()))


class Counting(LocalSite):
    """A site that weighs what it hands to other sites."""

    def __init__(self, site: Site):
        super().__init__(site)
        self.nbytes = 0

    def start(self, role: str, clock: int, wanted: Any, bundles: Any) -> Any:
        report, out = super().start(role, clock, wanted, bundles)
        for batch in (b for bundle in out for parcel in bundle for b in parcel.batches):
            columns = [batch.sender, batch.to, batch.seq, *batch.fields.values()]
            self.nbytes += sum(column.nbytes for column in columns if isinstance(column, np.ndarray))
            self.nbytes += sum(4 * len(column) for column in columns if isinstance(column, range))
        return report, out


def exchanged(protocol: Any, people: Population, shards: int) -> int:
    """The bytes that shards hand to each other and to the servers, as `backends/shards.py` divides them."""
    world = layout.world_of(protocol, people)
    bounds = layout.edges(people.users, shards)
    servers = [role for role in protocol.roles() if role != USER]
    directory = Directory(tuple(bounds), tuple(range(shards)), dict.fromkeys(servers, shards))
    parties = []
    for low, high in itertools.pairwise(bounds):
        columns = layout.slice_of(people, low, high, protocol.label_count() == 2)
        parties.append({USER: layout.user_parties(columns, world, low, [0, high - low], 0, kernels_numpy)})
    parties.append({role: [layout.server_party(role, 0, kernels_numpy)] for role in servers})
    flags = kernels_numpy, False, TraceLevel("none")
    places = [Counting(Site(protocol, world, directory, i, each, *flags)) for i, each in enumerate(parties)]
    Engine(protocol, directory, places, people.users).run(False, kernels_numpy)
    return sum(place.nbytes for place in places)


@pytest.mark.parametrize("lie", ["contiguous", "one cluster", "scattered"])
@pytest.mark.parametrize("shards", [2, 5])
def test_bytes_between_processes_are_planned_within_the_stated_factor(
    lie: str, shards: int, tmp_path: Path
) -> None:
    users, protocol = 20_000, PeerToPeer(0.1, 0.5)
    cluster = {
        "contiguous": np.arange(users) // 500,
        "one cluster": np.zeros(users, np.int64),
        "scattered": np.random.default_rng(2).integers(0, 40, users),
    }[lie]
    people = Population.from_arrays(y=np.arange(users) % 3 == 0, cluster=cluster)
    plan = planned(protocol, Crowd.of(people, protocol), tmp_path, backend="shards", shards=shards)
    assert within(plan.exchanged, exchanged(protocol, people, shards))
    assert (plan.shards, plan.network) == (shards, 0)  # one machine


def test_seconds_do_not_count_what_only_a_first_run_takes(tmp_path: Path, monkeypatch: Any) -> None:
    """Imports and caches, which would be taken for what users cost, so many times as there are more of them."""
    first = iter([0.4])
    whole = pilot._timed

    def timed(*given: Any) -> Any:
        found = whole(*given)
        return replace(found, seconds=found.users * 1e-4 + next(first, 0.0))

    monkeypatch.setattr(pilot, "_timed", timed)
    crowd = Crowd.synthetic(90_000, 1000, {"seed": 0})
    growth = pilot.grown(PeerToPeer(0.1), crowd, {}, saved=False)
    assert growth.of("seconds") == pytest.approx(9.0)


@pytest.mark.parametrize(("backend", "fits"), [("actors", True), ("shards", False)])
def test_an_actor_takes_less_memory_than_a_shard_with_compiled_loops(
    backend: str, fits: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It loads none, whatever others do: 50 of them fit where 50 shards are in doubt and refused."""
    monkeypatch.setenv("P2P_SIM_NUMBA", "1")
    settings = Settings(backend, shards=None if fits else 50)
    crowd, saved = Crowd.synthetic(50, 50, {"seed": 0}), Saved(tmp_path)
    here = [Machine("this machine", 2, 7 << 30)]
    assert is_in_doubt(PeerToPeer(0.1), crowd, settings, here, saved) != fits
    assert plan_of(PeerToPeer(0.1), crowd, settings, here, saved).document()["fits"] == fits


def test_shards_go_where_processors_are_free() -> None:
    three = [Machine("a", 4, 1), Machine("b", 2, 1), Machine("c", 2, 1)]
    assert _divided(8, three) == [4, 2, 2]
    assert _divided(3, three) == [1, 1, 1]
    assert _divided(10, three) == [4, 3, 3]
    for cpus in ((4, 2, 2), (1,), (0, 3), (2, 5, 1, 2)):
        machines_ = [Machine(str(place), cpu, 1) for place, cpu in enumerate(cpus)]
        found = [0] * len(cpus)
        for shards in range(20):
            assert _divided(shards, machines_) == found, (cpus, shards)
            free = [place for place, cpu in enumerate(cpus) if found[place] < cpu]
            found[min(free or range(len(cpus)), key=lambda place: (found[place], place))] += 1
    assert _divided(10**15 + 1, three) == [
        333333333333334,
        333333333333334,
        333333333333333,
    ]  # not one by one


def test_too_many_users_for_actors_are_refused_before_anything_is_looked_at(tmp_path: Path) -> None:
    crowd = Crowd.synthetic(10**8, 1000, {"seed": 0})
    with pytest.raises(InputError, match="100,000,000 users are too many for backend 'actors'"):
        is_in_doubt(PeerToPeer(0.1), crowd, Settings("actors"), [], Saved(tmp_path))


def test_the_network_is_between_machines(tmp_path: Path) -> None:
    crowd, settings = Crowd.synthetic(10_000, 100, {"seed": 0}), Settings("shards", address="10.0.0.5:6379")
    two = [Machine("10.0.0.5", 4, 8 << 30), Machine("10.0.0.6", 4, 8 << 30, here=False)]
    plan = plan_of(PeerToPeer(0.1), crowd, settings, two, Saved(tmp_path))
    assert plan.network == pytest.approx(plan.exchanged / 2, abs=1)
    assert [share.shards for share in plan.shares] == [4, 4]  # one a processor
    assert plan.shares[0].memory > plan.shares[1].memory  # the servers' machine
    assert plan.document()["fits"]


def test_what_cannot_fit_is_refused_with_the_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crowd, little = Crowd.synthetic(10**8, 1000, {"seed": 0}), [Machine("this machine", 2, 1 << 30)]
    plan = plan_of(PeerToPeer(0.1), crowd, Settings(), little, Saved(tmp_path))
    needed = size(plan.shares[0].memory)
    with pytest.raises(
        InputError, match=rf"cannot fit: this machine needs {needed} of memory and has 1.07 GB"
    ):
        plan.check()
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**9, 10**9, 10**6))
    plan = plan_of(PeerToPeer(0.1), crowd, Settings(), [Machine("this machine", 2, 1 << 40)], Saved(tmp_path))
    with pytest.raises(InputError, match=r"needs .* of disk and has 1 MB free"):
        plan.check()
    assert not plan.document()["fits"]


@pytest.mark.parametrize(
    ("shards", "memory", "free", "advice"),
    [
        (5000, 24, 10**12, "take fewer --shards or more machines (--backend shards --address)"),
        (140, 24, 10**12, "take fewer --shards, fewer users or more machines (--backend shards --address)"),
        (2, 1, 10**12, "take fewer users or more machines (--backend shards --address)"),
        (2, 64, 10**6, "take fewer users, --no-population or another --out"),
    ],
)
def test_what_helps_is_advised_and_nothing_else(
    shards: int, memory: int, free: int, advice: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What takes the most memory first: no number of users makes room for 5,000 shards."""
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**12, 0, free))
    crowd, here = Crowd.synthetic(10**8, 1000, {"seed": 0}), [Machine("this machine", 2, memory << 30)]
    plan = plan_of(PeerToPeer(0.1), crowd, Settings("shards", shards=shards), here, Saved(tmp_path))
    with pytest.raises(InputError) as told:
        plan.check()
    assert str(told.value).endswith(f"): {advice}")
    of_shards = f"{shards:,} shards take " in str(told.value)
    assert of_shards == ("--shards," in advice or "--shards or" in advice)


def test_who_is_in_doubt(tmp_path: Path) -> None:
    """Most runs are seen to fit in milliseconds; so is not a cluster in which everybody writes to everybody."""
    here, saved = machines(Settings()), Saved(tmp_path)
    peers = PROTOCOLS["peer permutation"]
    for protocol, users, size_, doubt in (
        (PeerToPeer(0.1), 1000, 1000, False),
        (PeerToPeer(0.1), 1_000_000, 1000, False),
        (PeerToPeer(0.1), 10**9, 1000, True),
        (peers, 100_000, 100, False),
        (peers, 100_000, 100_000, True),
    ):
        crowd = Crowd.synthetic(users, size_, {"seed": 0})
        assert is_in_doubt(protocol, crowd, Settings(), here, saved) == doubt, (protocol, users)
