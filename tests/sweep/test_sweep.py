"""A sweep gives the same table whatever ends it, whoever makes its runs, and in whatever order."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pandas
import pytest

import p2p_sim
from p2p_sim import InputError, privacy
from p2p_sim.sweep import folder, sweeping
from protocols import PeerToPeer, RandomizedResponse
from tests.sweep.here import USERS, Here

ROOT = Path(__file__).parents[2]


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let sweeps be made in this process, by the workers that are returned."""

    def use(**how: Any) -> Here:
        hands = Here(**how)
        monkeypatch.setattr(sweeping, "_workers", hands.workers)
        return hands

    return use


def same(one: pandas.DataFrame, other: pandas.DataFrame) -> None:
    pandas.testing.assert_frame_equal(one, other, check_exact=True)


def test_a_table_has_a_row_for_each_run_whatever_their_order(here: Any, tmp_path: Path) -> None:
    here()
    table = p2p_sim.sweep(USERS, out=tmp_path / "a")
    assert table["run"].tolist() == list(range(12))
    assert table["setting"].nunique() == 4
    assert set(table["status"]) == {"made"}
    assert table.groupby("setting")["seed"].apply(list).tolist() == [[0, 1, 2]] * 4
    exact = [privacy.profile(RandomizedResponse(value)).epsilon(1e-6) for value in (0.5, 1.0)]
    found = table.drop_duplicates("setting")["epsilon_nats[learner]"].tolist()
    assert found[:2] == exact
    here(at_once=5, order=-1)
    same(p2p_sim.sweep(USERS, out=tmp_path / "b"), table)
    for name in ("table.parquet", "table.csv"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
        assert (tmp_path / "a" / name).stat().st_mode & 0o077 == 0  # it tells seeds
    same(pandas.read_parquet(tmp_path / "a" / "table.parquet"), table)


def test_a_row_is_that_of_evaluate(here: Any, tmp_path: Path) -> None:
    here()
    grid = {
        "protocol": PeerToPeer(alpha=0.1),
        "data": "breast-cancer",
        "clusters": 4,
        "seed": 3,
        "split_seed": 0,
    }
    row = p2p_sim.sweep(grid, out=tmp_path / "a").iloc[0]
    told = p2p_sim.evaluate(PeerToPeer(alpha=0.1), "breast-cancer", clusters=4, seed=3, split_seed=0).iloc[0]
    for name, value in told.items():
        assert row[name] == value or (pandas.isna(row[name]) and pandas.isna(value)), name


class Stopped(Exception):
    """The end of a process, at a place that a test chooses."""


@pytest.mark.parametrize("after", [0, 1, 7, 11])
def test_a_sweep_that_ended_goes_on_and_makes_no_run_twice(after: int, here: Any, tmp_path: Path) -> None:
    whole = p2p_sim_table(here, tmp_path)
    hands = here(at_once=3, order=-1)
    take = hands.take

    def stopping() -> Any:
        if len(hands.made) == after:
            raise Stopped
        return take()

    hands.take = stopping
    with pytest.raises(Stopped):
        p2p_sim.sweep(USERS, out=tmp_path / "b")
    with (tmp_path / "b" / folder.RUNS).open("ab") as lines:
        lines.write(b'{"run": 5, "row": {"pro')  # what a process that is killed may leave
    first = hands.made
    again = here(at_once=2)
    same(p2p_sim.sweep(USERS, out=tmp_path / "b"), whole)
    assert sorted(first + again.made) == list(range(12))
    same(p2p_sim.sweep(USERS, out=tmp_path / "b"), whole)  # and nothing is left to make
    assert len(again.made) == 12 - after


def p2p_sim_table(here: Any, tmp_path: Path) -> pandas.DataFrame:
    here()
    return p2p_sim.sweep(USERS, out=tmp_path / "whole")


def test_a_full_disk_keeps_what_there_is(here: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = p2p_sim_table(here, tmp_path)
    here()
    write, lines = os.write, []

    def full(descriptor: int, data: Any) -> int:
        if bytes(data[:7]) == b'{"run":':
            lines.append(data)
            if len(lines) == 6:
                write(descriptor, bytes(data[:40]))
                raise OSError(28, "No space left on device")
        return write(descriptor, data)

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(InputError, match=r"No space left.*the 5 runs in it are kept; make room"):
            p2p_sim.sweep(USERS, out=tmp_path / "b")
    assert len((tmp_path / "b" / folder.RUNS).read_bytes().splitlines()) == 5
    hands = here()
    same(p2p_sim.sweep(USERS, out=tmp_path / "b"), whole)
    assert hands.made == list(range(5, 12))


def test_a_lost_worker_s_run_is_made_by_another_one(here: Any, tmp_path: Path) -> None:
    whole = p2p_sim_table(here, tmp_path)
    seen: set[int] = set()
    hands = here(at_once=2, dies=lambda index: index in (3, 4) and not (index in seen or seen.add(index)))
    same(p2p_sim.sweep(USERS, out=tmp_path / "b"), whole)
    assert sorted(hands.made) == sorted([*range(12), 3, 4])


def test_a_run_that_kills_its_workers_is_named_and_tried_when_the_sweep_goes_on(
    here: Any, tmp_path: Path
) -> None:
    whole = p2p_sim_table(here, tmp_path)
    here(dies=lambda index: index == 7)
    table = p2p_sim.sweep(USERS, out=tmp_path / "b")
    assert table["status"].tolist() == ["failed" if run == 7 else "made" for run in range(12)]
    assert table["error"][7] == "the process that made it was killed by signal 9 (2 times)"
    assert table["parameter[alpha]"][7] == whole["parameter[alpha]"][7]
    same(table.drop(index=7)[list(whole)], whole.drop(index=7).astype(table[list(whole)].dtypes))
    hands = here()
    same(p2p_sim.sweep(USERS, out=tmp_path / "b"), whole)
    assert hands.made == [7]


def test_a_run_that_fails_is_named_once_and_the_rest_is_made(here: Any, tmp_path: Path) -> None:
    grid = {
        **USERS,
        "users": [15, 60],
        "seed": 0,
        "grid": {"protocol": "network-shuffle", "graph": "regular:20"},
    }
    here()
    table = p2p_sim.sweep(grid, out=tmp_path / "a")
    assert table["status"].tolist() == ["failed", "made"]
    assert "regular:20" in table["error"][0]
    hands = here()
    same(p2p_sim.sweep(grid, out=tmp_path / "a"), table)
    assert hands.made == []  # it would fail again


def test_a_promise_is_kept_by_each_protocol(here: Any, tmp_path: Path) -> None:
    here()
    promise = {"epsilon": [0.5, 1.0], "delta": 1e-5, "view": "learner"}
    grid = {
        "protocol": ["peer-to-peer", "randomized-response"], "users": 60, "cluster_size": 20, "seed": [0, 1],
        "promise": promise,
    }  # fmt: skip
    table = p2p_sim.sweep(grid, out=tmp_path / "a")
    for promised, runs in table.groupby("promise[epsilon_nats]"):
        assert (runs["epsilon_nats[learner]"] <= promised + 1e-9).all()
        assert (runs["epsilon_nats[learner]"] > promised - 1e-3).all()
    assert set(table["delta"]) == {1e-5}
    asked = {"vary": "alpha", "view": "learner", "epsilon": 0.5, "delta": 1e-5, "cluster_size": 20}
    alpha = privacy.calibrate(PeerToPeer, **asked).value
    assert table["parameter[alpha]"][0] == pytest.approx(alpha, rel=1e-9)
    assert set(table["promise[vary]"]) == {"alpha", "epsilon"}


def test_another_sweep_in_the_folder_is_refused_and_what_changed_is_named(
    here: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here()
    place = tmp_path / "a"
    p2p_sim.sweep(USERS, out=place)
    with pytest.raises(InputError, match=r"seed = \[0, 1, 2\] then, \[0, 1\] now"):
        p2p_sim.sweep({**USERS, "seed": [0, 1]}, out=place)
    with monkeypatch.context() as patch:
        code = sweeping._code([])
        patch.setattr(sweeping, "_code", lambda _: code | {"p2p_sim/core/draw.py": "0", "scipy": "0.1"})
        with pytest.raises(InputError, match=r"p2p_sim/core/draw.py differs; and|scipy .* then, 0.1 now"):
            p2p_sim.sweep(USERS, out=place)
    (place / folder.RUNS).write_text('{"run": 0, "row": {}}\nno line\n')
    with pytest.raises(InputError, match="is damaged in line 2"):
        p2p_sim.sweep(USERS, out=place)


DAMAGED = [
    "no line", "null", "[]", "{}", '{"run": 0}', '{"run": -1, "row": {}}', '{"run": 99, "row": {}}',
    '{"run": true, "row": {}}',
    '{"run": 0.5, "row": {}}', '{"run": "0", "row": {}}', '{"run": 1e400, "row": {}}', '{"run": 0, "row": 5}',
    '{"run": 0, "error": 5}', '{"run": 0, "row": {}, "error": ""}', '{"run": 0, "error": "", "again": []}',
    f'{{"run": {"9" * 5000}, "row": {{}}}}', "[" * 200_000 + "]" * 200_000,
]  # fmt: skip


def test_whatever_else_a_line_holds_it_is_damaged_and_no_run_is_taken_for_made(
    here: Any, tmp_path: Path
) -> None:
    here()
    place = tmp_path / "a"
    p2p_sim.sweep(USERS, out=place)
    for line in DAMAGED:
        (place / folder.RUNS).write_text(f"{line}\n")
        with pytest.raises(InputError, match=r"is damaged in line 1 .*p2p-sim rm"), folder.opened(place):
            pass
        assert folder.is_sweep(place)  # so p2p-sim rm removes it


@pytest.mark.parametrize("name", ["a\0b", "a" * 300])
def test_a_folder_with_an_impossible_name_is_refused(name: str, here: Any) -> None:
    here()
    with pytest.raises(InputError, match="is no usable path"):
        p2p_sim.sweep(USERS, out=name)


def test_examples_that_changed_are_named(here: Any, tmp_path: Path) -> None:
    here()
    file = tmp_path / "people.csv"
    rows = "\n".join(f"{i % 7},{'sick' if i % 2 else 'well'}" for i in range(40))
    file.write_text(f"age,ill\n{rows}\n")
    grid = {
        "protocol": "randomized-response",
        "data": str(file),
        "label": "ill",
        "model": "none",
        "views": [],
    }
    with pytest.warns(UserWarning, match="run 0: .*which classes there are"):
        p2p_sim.sweep(grid, out=tmp_path / "a")
    file.write_text(f"age,ill\n{rows}\n3,sick\n")
    with pytest.raises(InputError, match=r"the examples of .*people.csv' are others than then"):
        p2p_sim.sweep(grid, out=tmp_path / "a")


def test_a_folder_that_holds_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(InputError, match=r"holds something else, such as 'thesis.tex'"):
        p2p_sim.sweep(USERS, out=tmp_path)
    with pytest.raises(InputError, match="no-such-set"):
        p2p_sim.sweep({"protocol": "randomized-response", "data": "no-such-set"}, out=tmp_path / "a")
    assert not (tmp_path / "a").exists()


def test_two_sweeps_in_one_folder_are_refused_while_one_goes_on(here: Any, tmp_path: Path) -> None:
    here()
    with folder.held(tmp_path / "a"), pytest.raises(InputError, match="is being written by another sweep"):
        p2p_sim.sweep(USERS, out=tmp_path / "a")
    assert not (tmp_path / "a").exists()  # nothing was begun
    assert len(p2p_sim.sweep(USERS, out=tmp_path / "a")) == 12


PROGRAM = """
import sys, p2p_sim
from tests.sweep.here import USERS
p2p_sim.sweep(USERS, out=sys.argv[1], workers=2)
"""


@pytest.mark.slow
def test_processes_that_are_killed_leave_no_lock_and_no_half_a_table(here: Any, tmp_path: Path) -> None:
    whole = p2p_sim_table(here, tmp_path)
    place = tmp_path / "b"
    words = [sys.executable, "-c", PROGRAM, str(place)]
    killed = subprocess.Popen(words, env=os.environ | {"PYTHONPATH": str(ROOT)})
    try:
        until = time.monotonic() + 60
        while lines(place) < 2 and time.monotonic() < until:
            time.sleep(0.005)
    finally:
        os.kill(killed.pid, signal.SIGKILL)
        killed.wait()
    before = lines(place)
    assert 2 <= before <= 12
    subprocess.run(words, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=True, timeout=120)
    assert lines(place) == 12
    same(pandas.read_parquet(place / "table.parquet"), whole)


def lines(place: Path) -> int:
    file = place / folder.RUNS
    return file.read_bytes().count(b"\n") if file.exists() else 0


@pytest.mark.usefixtures("ray_session")
def test_a_ray_cluster_makes_the_same_table_also_where_an_actor_is_lost(
    here: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray

    from p2p_sim.backends import ray_workers

    whole = p2p_sim_table(here, tmp_path)
    monkeypatch.undo()
    address = ray.get_runtime_context().gcs_address
    give, lost = ray_workers.RayWorkers.give, []

    def kill_one(self: Any, index: int, text: str) -> None:
        give(self, index, text)
        actor = next(actor for number, actor in self._busy.values() if number == index)
        if actor.ready and not lost:
            lost.append(index)
            ray.kill(actor.handle)

    monkeypatch.setattr(ray_workers.RayWorkers, "give", kill_one)
    same(p2p_sim.sweep(USERS, out=tmp_path / "b", address=address), whole)
    assert len(lost) == 1
