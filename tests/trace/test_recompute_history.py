"""One user's history from a run directory: no more of the population is read than it takes, and that is proven."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim import InputError, Population, catalogue
from p2p_sim.core import Message, Party, Protocol, Rounds
from p2p_sim.rundir import parquet_columns, population_file
from p2p_sim.rundir.population_file import near
from p2p_sim.trace.recompute import history
from protocols import PeerToPeer, RandomizedResponse
from tests.contract.cases import IN_TURN, POPULATIONS, PROTOCOLS, people_of
from tests.run_json_files import document_in

pytestmark = pytest.mark.slow

USERS = 40
GROUPS = (
    "peer-to-peer",
    "peer permutation",
    "label proportions",
    "randomized response, 5 labels",
    "encrypted shuffle",
)
"""Protocols in which nobody outside her cluster reaches a user, and no graph is needed."""


@pytest.fixture(autouse=True)
def small_row_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(population_file, "_ROWS", 7)


def forbid(*_: Any) -> None:
    raise AssertionError("the whole population was read")


def same(one: Any, other: Any) -> None:
    assert (one.user, one.world) == (other.user, other.world)
    assert [(d.name, d.step, np.asarray(d.value).tolist()) for d in one.drawn] == [
        (d.name, d.step, np.asarray(d.value).tolist()) for d in other.drawn
    ]
    for mine, told in ((one.sent, other.sent), (one.received, other.received)):
        assert mine.keys() == told.keys()
        for kind, columns in mine.items():
            for name, column in columns.items():
                np.testing.assert_array_equal(column, told[kind][name], err_msg=f"{kind} {name}")


@pytest.mark.parametrize(("protocol", "name"), IN_TURN)
def test_a_history_is_the_replay_of_the_whole_run(protocol: str, name: str, tmp_path: Path) -> None:
    program = PROTOCOLS[protocol]
    run = p2p_sim.run(program, people_of(program, name, USERS), seed=3, faults=["loss=0.1"])
    run.save(tmp_path / "run")
    for user in (0, 17, USERS - 1):
        _, some, life = history(tmp_path / "run", user)
        same(life, run.replay(user))
        assert some.y[some.row(user, "user")] == run.population.y[user]


@pytest.mark.parametrize("name", POPULATIONS)
@pytest.mark.parametrize("protocol", GROUPS)
def test_only_her_cluster_is_read(protocol: str, name: str, tmp_path: Path, monkeypatch: Any) -> None:
    program = PROTOCOLS[protocol]
    whole = people_of(program, name, USERS)
    p2p_sim.run(program, whole, seed=3).save(tmp_path / "run")
    alone = protocol in ("label proportions", "randomized response, 5 labels", "encrypted shuffle")
    for user in range(USERS):
        part = near(tmp_path / "run", program, np.array([user]))
        if whole.clusters is None and not alone:
            assert part is None  # everybody is in one cluster
            continue
        assert part is not None
        mine = np.array([user])
        if whole.clusters is not None:
            mine = np.flatnonzero(whole.clusters.codes == whole.clusters.codes[user])
        cut = whole.part(mine)
        for one, other in ((part.ids, cut.ids), (part.y, cut.y)):
            assert one.tolist() == other.tolist()
        hers, told_of_her = part.clusters, cut.clusters
        assert hers.codes.tolist() == told_of_her.codes.tolist()
        assert hers.starts.tolist() == told_of_her.starts.tolist()
        assert (hers.order is None) == (told_of_her.order is None)
        assert hers.everybody()[0].tolist() == told_of_her.everybody()[0].tolist()
        if whole.clusters is not None:
            assert hers.label.tolist() == told_of_her.label.tolist()
    if whole.clusters is not None or alone:
        monkeypatch.setattr(population_file, "read", forbid)
        assert history(tmp_path / "run", 5)[2].world <= len(mine) + USERS // 2


def test_cluster_numbers_with_large_gaps(tmp_path: Path) -> None:
    cluster = np.array([2**40, 3, 2**62, 3, 2**40, 7, 2**62, 7, 2**40, 3])
    whole = Population.from_arrays(y=np.arange(10) % 2 == 0, cluster=cluster)
    run = p2p_sim.run(PROTOCOLS["label proportions"], whole, seed=3)
    run.save(tmp_path / "run")
    for user in range(10):
        same(history(tmp_path / "run", user)[2], run.replay(user))


@dataclass(frozen=True)
class Astray(Protocol):
    """Users write to somebody who is neither a drawn member nor an asker."""

    word = Message("user", "user", "a word", a=np.int64)

    def user(self, me: Party) -> Rounds:
        """Send a word to the next user, whoever she is."""
        words = yield self.word(to=(me.id + 1) % USERS, a=me.id)
        return {"heard": words.count}


def test_where_anybody_may_have_written_everybody_is_read(tmp_path: Path, monkeypatch: Any) -> None:
    run = p2p_sim.run(Astray(), POPULATIONS["contiguous"](USERS), seed=3)
    run.save(tmp_path / "run")
    with pytest.raises(
        InputError, match=r"Astray is not a shipped protocol: in Python, .*; p2p_sim.load\('.*run'\)"
    ):
        history(tmp_path / "run", 22)
    monkeypatch.setattr(catalogue, "of_run", lambda *_: Astray)
    _, some, life = history(tmp_path / "run", 22)
    assert some.users == life.world == USERS
    assert life.received["word"]["sender"].tolist() == [21]


def test_an_altered_population_is_named(tmp_path: Path) -> None:
    path = p2p_sim.run(PeerToPeer(0.1), POPULATIONS["scattered"](USERS), seed=0).save(tmp_path / "run")
    file = path / population_file.FILE
    octets = file.read_bytes()
    columns = parquet_columns.read(file)
    for changed in (octets[:-1], octets[:100] + bytes([octets[100] ^ 1]) + octets[101:], b""):
        file.write_bytes(changed)
        with pytest.raises(InputError, match=r"population.parquet' is damaged: its SHA-256 is"):
            history(path, 3)
    parquet_columns.write(file, columns | {"y": ~columns["y"]})
    with pytest.raises(InputError, match=r"population.parquet' is damaged: its SHA-256 is"):
        history(path, 3)
    file.unlink()
    with pytest.raises(InputError, match=r"population.parquet' is missing; restore it"):
        history(path, 3)


def test_a_run_that_tells_no_checksum_of_its_population(tmp_path: Path) -> None:
    """Earlier versions told none: everybody is read, and their hash proves them."""
    run = p2p_sim.run(RandomizedResponse(1.0), POPULATIONS["scattered"](USERS), seed=3)
    path = run.save(tmp_path / "run")
    told = document_in(path)
    assert told["sha256"].pop(population_file.FILE)
    (path / "run.json").write_text(json.dumps(told))
    _, some, life = history(path, 3)
    assert some.users == USERS
    same(life, run.replay(3))
    columns = parquet_columns.read(path / population_file.FILE)
    parquet_columns.write(path / population_file.FILE, columns | {"y": ~columns["y"]})
    with pytest.raises(InputError, match="is not the population of this run"):
        history(path, 3)


@pytest.mark.parametrize("user", [-1, USERS, 10**12])
@pytest.mark.parametrize("name", POPULATIONS)
@pytest.mark.parametrize("protocol", ["peer-to-peer", "randomized response"])
def test_a_user_who_is_not_there(protocol: str, name: str, user: int, tmp_path: Path) -> None:
    path = p2p_sim.run(PROTOCOLS[protocol], POPULATIONS[name](USERS), seed=0).save(tmp_path / "run")
    with pytest.raises(InputError, match=f"^user {user}: users are 0 to 39$"):
        history(path, user)
