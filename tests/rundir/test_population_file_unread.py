"""A population in a run directory: whatever is asked of a run, no more of it is read than that takes."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim import InputError
from p2p_sim.render import sequence
from p2p_sim.run import Run
from p2p_sim.rundir import population_file, run_directory, run_json
from p2p_sim.rundir.population_file import UnreadPopulation, near, unread
from p2p_sim.rundir.run_directory import LazyRun
from p2p_sim.trace import neighbourhood, query
from p2p_sim.trace.causality import cone
from protocols import PeerToPeer
from tests.contract.cases import POPULATIONS, PROTOCOLS, people_of
from tests.trace.test_recompute_history import GROUPS, USERS, forbid, same

DIVIDED = [name for name in POPULATIONS if people_of(PeerToPeer(0.1), name, USERS).clusters is not None]


@pytest.fixture(autouse=True)
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every population be a large one, in small row groups."""
    monkeypatch.setattr(population_file, "_ROWS", 7)
    monkeypatch.setattr(run_directory, "_AT_ONCE", 0)


def saved(program: Any, name: str, path: Path) -> Run:
    run = p2p_sim.run(program, people_of(program, name, USERS), seed=3)
    run.save(path)
    return run


def told(part: Any) -> Any:
    return [(event.id, event.fields) for event in part.events()]


@pytest.mark.parametrize("name", DIVIDED)
@pytest.mark.parametrize("protocol", GROUPS)
def test_the_clusters_of_several_users(protocol: str, name: str, tmp_path: Path) -> None:
    program = PROTOCOLS[protocol]
    whole = saved(program, name, tmp_path / "run").population
    assert whole is not None
    clusters = whole.clusters
    assert clusters is not None
    for users in ([0, USERS - 1], [5, 6, 7, 21], list(range(USERS))):
        part = near(tmp_path / "run", program, np.array(users))
        assert part is not None
        cut = whole.part(np.flatnonzero(np.isin(clusters.codes, clusters.codes[users])))
        assert part.hash == cut.hash
        assert part.clusters is not None
        assert cut.clusters is not None
        assert part.clusters.codes.tolist() == cut.clusters.codes.tolist()
        assert part.clusters.everybody()[0].tolist() == cut.clusters.everybody()[0].tolist()


@pytest.mark.parametrize("name", DIVIDED)
@pytest.mark.parametrize("protocol", GROUPS)
def test_questions_about_a_few_users_read_their_clusters(
    protocol: str, name: str, tmp_path: Path, monkeypatch: Any
) -> None:
    program = PROTOCOLS[protocol]
    run = saved(program, name, tmp_path / "run")
    some = np.array([3, 17])
    expected = {
        "user": told(query.messages(run, user=17)),
        "view": run.view("user:3+user:17"),
        "around": told(neighbourhood.around(run, some)),
        "cluster": neighbourhood.cluster(run, int(neighbourhood.clusters_of(run, some)[0])).tolist(),
        "clusters": neighbourhood.clusters_of(run, some).tolist(),
        "drawn": sequence.draw(run, [3, 17], name="x"),
    }
    monkeypatch.setattr(population_file, "read", forbid)
    loaded = p2p_sim.load(tmp_path / "run")
    same(loaded.replay(17), run.replay(17))
    for looked in (loaded, LazyRun(tmp_path / "run")):
        assert told(query.messages(looked, user=17)) == expected["user"]
        assert told(neighbourhood.around(looked, some)) == expected["around"]
        assert neighbourhood.clusters_of(looked, some).tolist() == expected["clusters"]
        assert neighbourhood.cluster(looked, expected["clusters"][0]).tolist() == expected["cluster"]
        assert unread(looked) is not None
    assert sequence.draw(loaded, [3, 17], name="x") == expected["drawn"]
    view, seen = loaded.view("user:3+user:17"), expected["view"]
    for mine, whole in (
        (view.inputs, seen.inputs),
        *((view.draws[key], seen.draws[key]) for key in seen.draws),
    ):
        assert {key: column.tolist() for key, column in mine.items()} == {
            key: column.tolist() for key, column in whole.items()
        }
    assert view.messages.keys() == seen.messages.keys()
    for kind in seen.messages:
        assert view.table(kind).equals(seen.table(kind))


@pytest.mark.parametrize("name", DIVIDED)
def test_a_cone_reads_the_cluster_of_its_sender(name: str, tmp_path: Path, monkeypatch: Any) -> None:
    run = saved(PeerToPeer(0.1), name, tmp_path / "run")
    labels = run.view("wire").messages["label"]
    message = f"label:2:{labels['sender'][5]}:{labels['recipient'][5]}:0"
    monkeypatch.setattr(query.recompute, "MAX_USERS", USERS - 1)
    expected = cone(run, message)
    monkeypatch.setattr(population_file, "read", forbid)
    found = cone(tmp_path / "run", message)
    assert found.hidden == expected.hidden
    assert (found.before.counts, found.after.counts) == (expected.before.counts, expected.after.counts)
    assert found.notes == expected.notes
    with pytest.raises(InputError, match="only runs of up to 39 users are run again"):
        query.messages(tmp_path / "run", kind="report")


def test_all_of_it_is_read_when_it_is_asked_for(tmp_path: Path) -> None:
    run = saved(PeerToPeer(0.1), "scattered", tmp_path / "run")
    loaded = p2p_sim.load(tmp_path / "run")
    left = unread(loaded)
    assert left is not None
    assert left.users == USERS
    assert query.census(loaded).users == USERS
    again = pickle.loads(pickle.dumps(loaded))
    for held in (loaded, again):
        assert held.population is held.population
        assert held.population.hash == run.population.hash
        assert unread(held) is None
    assert run.population is not None
    assert loaded.replay(3).drawn == run.replay(3).drawn
    assert Run.population is None


def test_a_small_one_is_read_at_once(tmp_path: Path, monkeypatch: Any) -> None:
    run = saved(PeerToPeer(0.1), "scattered", tmp_path / "run")
    monkeypatch.setattr(run_directory, "_AT_ONCE", USERS)
    loaded = p2p_sim.load(tmp_path / "run")
    (tmp_path / "run" / population_file.FILE).unlink()
    assert loaded.population.hash == run.population.hash


def test_one_that_was_replaced_since(tmp_path: Path) -> None:
    path = tmp_path / "run"
    saved(PeerToPeer(0.1), "scattered", path)
    loaded, opened = p2p_sim.load(path), LazyRun(path)
    p2p_sim.run(PeerToPeer(0.1), people_of(PeerToPeer(0.1), "contiguous", USERS), seed=3).save(
        path, force=True
    )
    for ask in (lambda: opened.population, lambda: query.messages(opened, user=3), lambda: loaded.replay(3)):
        with pytest.raises(InputError, match=r"population.parquet' is damaged: its SHA-256 is"):
            ask()
    with pytest.raises(InputError, match=r"population.parquet' is damaged"):
        _ = loaded.population


def test_without_checksums_everybody_is_read(tmp_path: Path) -> None:
    path = tmp_path / "run"
    run = saved(PeerToPeer(0.1), "scattered", path)
    left = UnreadPopulation(path, run_json.read_run_json(path) | {"sha256": {}})
    assert left.near(PeerToPeer(0.1), np.array([3])) is None
    assert left.whole().hash == run.population.hash


@pytest.mark.parametrize("user", [-1, USERS, 10**12])
def test_a_user_who_is_not_there(user: int, tmp_path: Path) -> None:
    saved(PeerToPeer(0.1), "scattered", tmp_path / "run")
    loaded = p2p_sim.load(tmp_path / "run")
    for ask in (
        lambda: loaded.replay(user),
        lambda: p2p_sim.load(tmp_path / "run").view(f"user:{abs(user) + USERS}"),
    ):
        with pytest.raises(InputError, match=r"users are 0 to 39$"):
            ask()
    with pytest.raises(InputError, match="cluster 77: not in this run"):
        neighbourhood.cluster(loaded, 77)
