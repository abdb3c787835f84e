"""A run that loses a shard in any phase is computed again by those that are left, and gives the same bits."""

from __future__ import annotations

import contextlib
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import p2p_sim
from p2p_sim import Population
from p2p_sim.backends import ray_lost_actors, ray_session, ray_site, ray_workers, reexecution, shards
from p2p_sim.core import code_fingerprint
from p2p_sim.core.population_in_parts import PopulationInParts, SyntheticUsers
from p2p_sim.rundir.outputs_folder import OutputsFolder
from tests.backends.programs import Dying, DyingOnce
from tests.contract.cases import POPULATIONS
from tests.contract.test_battery import equal

pytestmark = pytest.mark.ray


def program(tmp_path: Path, step: int, victim: int = 0) -> DyingOnce:
    return DyingOnce(str(tmp_path / "died"), step, victim, os.getpid())


def undisturbed(people: p2p_sim.Population, **how: object) -> p2p_sim.Run:
    return p2p_sim.run(DyingOnce("", 9), people, seed=5, **how)  # type: ignore[arg-type]


def end(actor) -> None:
    """Kill an actor, and wait until it is dead."""
    ray_site.ray.kill(actor)
    with contextlib.suppress(ray_site.ray.exceptions.RayActorError):
        while True:
            ray_site.ray.get(actor.__ray_ready__.remote())


@pytest.mark.usefixtures("ray_session")
@pytest.mark.parametrize(("step", "victim"), [(0, 0), (1, 0), (2, 100), (3, 0)])
def test_a_shard_that_is_killed_in_a_phase(tmp_path: Path, step: int, victim: int) -> None:
    people = POPULATIONS["scattered"](101)
    with pytest.warns(
        UserWarning, match=r"shard \d.*lost.*computed again from its start.*repeat 1 of at most 3"
    ):
        run = p2p_sim.run(program(tmp_path, step, victim), people, seed=5, backend="shards", shards=2)
    assert (tmp_path / "died").exists()
    whole = undisturbed(people)
    assert run.digest == whole.digest
    assert run.timings["lost"] > 0
    np.testing.assert_array_equal(run.output("learner")["y"], whole.output("learner")["y"])


@pytest.mark.usefixtures("ray_session")
def test_a_shard_that_is_killed_while_results_are_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    people, honest, killed = POPULATIONS["scattered"](101), ray_site.RaySite.finish, []

    def finish(self, bundles):
        if not killed:
            killed.append(self)
            end(self.actor)
        return honest(self, bundles)

    monkeypatch.setattr(ray_site.RaySite, "finish", finish)
    with pytest.warns(
        UserWarning, match=r"collecting results, shard 0 .*\(lost: shard 0 \(users 0 to 49\)\)"
    ):
        run = undisturbed(people, backend="shards", shards=2)
    assert run.digest == undisturbed(people).digest


def files(folder: Path) -> list[str]:
    return sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*.parquet"))


def kill_while_outputs_are_written(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Kill shard 1 once, when all others have written their outputs; the repeat has a shard less, as on a cluster.

    Returns the files that were there when all had been removed.
    """
    write, start_over, set_up = ray_site.RaySite.write, OutputsFolder.start_over, shards._set_up
    written: list[str] = []
    less = 0

    def once(site, *given):
        if "shard 1" in site.name and not written:
            end(site.actor)
            return write(site, *given)
        handle = write(site, *given)
        ray_site.ray.wait([handle])
        return handle

    def noted(target):
        nonlocal less
        found = files(Path(target.path))
        written.extend(found)
        less = bool(found)
        start_over(target)

    def fewer(protocol, population, seed, number, *rest):
        return set_up(protocol, population, seed, number - less, *rest)

    monkeypatch.setattr(ray_site.RaySite, "write", once)
    monkeypatch.setattr(OutputsFolder, "start_over", noted)
    monkeypatch.setattr(shards, "_set_up", fewer)
    return written


@pytest.mark.usefixtures("ray_session")
def test_what_lost_attempts_wrote_is_taken_for_no_message_and_no_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first attempt loses a shard in a round, and the second one while shards write their outputs."""
    out = tmp_path / "run"
    people = Population.synthetic(users=101, cluster_size=20, seed=5)
    apart = PopulationInParts(SyntheticUsers(101, 20, seed=5))
    written = kill_while_outputs_are_written(monkeypatch)
    with (
        pytest.warns(UserWarning, match=r"role 'user', round 3.*repeat 1 of"),
        pytest.warns(UserWarning, match=r"writing outputs, shard 1.*repeat 2 of"),
    ):
        run = p2p_sim.run(
            program(tmp_path, 3), apart, seed=5, backend="shards", shards=3, trace="full", out=out
        )
    assert written == ["learner.parquet", "user/parts/00000.parquet", "user/parts/00002.parquet"]
    whole = undisturbed(people, trace="full")
    assert run.digest == whole.digest
    for found in (run, p2p_sim.load(out)):
        assert set(found.outputs) == {"learner", "user"}
        for role, columns in whole.outputs.items():
            assert equal(found.output(role), columns)
    assert files(out / "outputs") == [
        "learner.parquet",
        "user/parts/00000.parquet",
        "user/parts/00001.parquet",
    ]
    for kind in ("ask", "label", "report"):
        for name, column in whole.messages(kind).items():
            np.testing.assert_array_equal(run.messages(kind)[name], column)
    listed = {entry["file"] for entry in p2p_sim.rundir.manifest.read(out / "messages")["files"]}
    there = {file.relative_to(out / "messages").as_posix() for file in (out / "messages").rglob("*")}
    assert {name for name in there if "parquet" in name} == listed


@pytest.mark.usefixtures("ray_session")
def test_an_actor_of_one_user_that_is_killed(tmp_path: Path) -> None:
    people = POPULATIONS["unclustered"](2)
    with pytest.warns(UserWarning, match="actor of user 1.*computed again"):
        run = p2p_sim.run(program(tmp_path, 2, victim=1), people, seed=5, backend="actors")
    assert run.digest == undisturbed(people).digest


@pytest.mark.usefixtures("ray_session")
def test_actors_that_are_left_stay() -> None:
    people = POPULATIONS["scattered"](101)
    assert ray_session._idle is not None
    ray_session.kill(ray_session._idle)
    ray_session._idle.clear()
    undisturbed(people, backend="shards", shards=2)
    before = [each.actor._actor_id for each in ray_session._idle]
    ray_site.ray.kill(ray_session._idle[0].actor)
    with pytest.warns(UserWarning, match=r"start of shard .*\(lost: shard"):
        assert undisturbed(people, backend="shards", shards=2).digest == undisturbed(people).digest
    after = [each.actor._actor_id for each in ray_session._idle]
    assert len(set(before) & set(after)) == len(before) - 1


@pytest.mark.usefixtures("ray_session")
def test_a_program_that_always_kills_its_process_is_not_repeated_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reexecution, "REPEATS", 1)
    with (
        pytest.warns(UserWarning, match="repeat 1 of at most 1"),
        pytest.raises(p2p_sim.RunLostError, match=r"role 'user', round 1, shard \d.*the last of 1 repeats"),
    ):
        p2p_sim.run(Dying(), POPULATIONS["unclustered"](4), backend="shards", shards=1, seed=0)


def test_who_was_killed_for_memory_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    said = "killed due to the node running low on memory. Memory on the node (IP: 192.0.2.2) was 3.01GB used / 23.54GB"
    error = ray_site.ray.exceptions.OutOfMemoryError(f"{said} limit (0.127671) OOM kill reason: ...")
    text = "memory ran out on its machine (3.01GB of 23.54GB were used), and Ray ended it: use fewer users or more"
    assert text in ray_lost_actors.why(error)
    monkeypatch.setattr(reexecution, "_starved", lambda: 7)
    assert reexecution._kernel(7) == ""
    assert "the kernel of this machine ended 2 processes for lack of memory" in reexecution._kernel(5)


def test_a_worker_that_cannot_load_p2p_sim_is_named() -> None:
    """As Ray 2.60 says it of a machine without p2p-sim."""
    said = (
        "The actor died because of an error raised in its creation task, \x1b[36mray::SiteActor.__init__()\x1b[39m "
        "(pid=1100, ip=10.87.0.3, actor_id=c8da, repr=<...>)\nRuntimeError: The actor with name SiteActor failed to "
        "import on the worker.\n    ^^^^^\nModuleNotFoundError: No module named 'p2p_sim'"
    )
    assert ray_lost_actors.unloadable(RuntimeError(said)) == (
        "the Ray worker in process 1100 on 10.87.0.3 cannot load p2p-sim "
        "(ModuleNotFoundError: No module named 'p2p_sim')"
    )
    elsewhere = ray_lost_actors.unloadable(ImportError("ImportError: x"))
    assert elsewhere == "a Ray worker cannot load p2p-sim (ImportError: x)"
    assert ray_lost_actors.unloadable(RuntimeError("the process was killed by signal 9")) is None
    assert ray_lost_actors.unloadable(None) is None


def test_the_version_of_p2p_sim_explains_other_files_and_is_no_difference_alone() -> None:
    here = {"python": "3.11.7", "p2p-sim": "0.2.0", "p2p_sim/core/draw.py": "a"}
    there = here | {"p2p-sim": "0.1.0", "p2p_sim/core/draw.py": "b"}
    told = ["p2p-sim 0.1.0 there, 0.2.0 here", "p2p_sim/core/draw.py differs"]
    assert code_fingerprint.differences(there, here) == told
    assert code_fingerprint.differences(here | {"p2p-sim": "0.1.0"}, here) == []
    del there["p2p-sim"]  # a checkout
    assert code_fingerprint.differences(there, here) == told[1:]


@pytest.mark.parametrize("ready", [True, False])
def test_a_worker_of_a_sweep_that_was_killed_for_memory_is_lost_and_no_error(
    ready: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray's error for it is of no kind that its other losses are."""

    def killed(_handle: object) -> None:
        raise ray_site.ray.exceptions.OutOfMemoryError("memory usage threshold")

    monkeypatch.setattr(ray_site.ray, "wait", lambda handles, timeout: (handles, []))
    monkeypatch.setattr(ray_site.ray, "get", killed)
    workers = object.__new__(ray_workers.RayWorkers)
    workers._busy = {"handle": (5, ray_workers._Actor("actor", ready=ready))}
    index, answer, how = workers.take()
    assert (index, answer) == (5, None)
    assert "memory ran out on its machine, and Ray ended it: use fewer users" in how


def test_on_a_cluster_a_repeat_takes_the_processors_that_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = replace(p2p_sim.backends.Settings("shards", shards=3), address="10.0.0.5:6379")
    monkeypatch.setattr(shards.ray, "cluster_resources", lambda: {"CPU": 2.0})
    assert shards._fitting(3, 100, settings, repeat=True) == 2
    with pytest.raises(p2p_sim.InputError, match="has 2 CPUs"):
        shards._fitting(3, 100, settings, repeat=False)


def test_a_machine_that_is_lost_before_its_shard_was_placed_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ray would keep the shard waiting for a processor that is gone."""
    cpus = [3, 3, 2]
    actors = ray_site.SiteActors([], (), {}, {"num_cpus": 1}, {"asked": ("shard 2", None, None)}, 3)  # type: ignore[dict-item]
    monkeypatch.setattr(ray_site.ray, "wait", lambda *_, **__: ([], ["asked"]))
    monkeypatch.setattr(ray_site.ray, "cluster_resources", lambda: {"CPU": float(cpus.pop(0))})
    monkeypatch.setattr(ray_session, "lost", lambda: None)
    with pytest.raises(ray_session.ActorLostError, match="they need 3 CPUs, and the cluster has 2 left"):
        actors.check()
    assert not cpus
