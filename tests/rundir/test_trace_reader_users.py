"""Messages of several users of a trace on disk: one reading of each file gives what all messages hold of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim import Population
from p2p_sim.core.message import USER
from p2p_sim.render.web.answers import Answers
from p2p_sim.report.view_summary import VIEW_FUNCTIONS
from p2p_sim.rundir import population_file, run_directory, trace_file, trace_writer
from p2p_sim.rundir.run_directory import LazyRun
from p2p_sim.trace import neighbourhood
from protocols import EncryptedShuffle, NetworkShuffle, PeerToPeer
from tests.trace.test_recompute_history import forbid

USERS = 60
SCATTERED = np.random.default_rng(5).permutation(USERS) // 20 + 3
PLAIN = Population.from_arrays(y=np.arange(USERS) % 3 == 0, cluster=SCATTERED)
RING = [(user, (user + 1) % USERS) for user in range(USERS)]
RUNS: dict[str, tuple[Any, Population, list[str]]] = {
    "peers": (PeerToPeer(0.1, theta=0.5), PLAIN, []),
    "faults": (PeerToPeer(0.1, retries=1), PLAIN, ["loss=0.2", "duplicate=0.2"]),
    "shuffle": (EncryptedShuffle(1.0, shufflers=2), PLAIN, []),
    "walk": (NetworkShuffle(1.0, steps=3), Population.from_arrays(y=PLAIN.y).with_graph(RING), []),
}


def saved(name: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(trace_writer, "_GROUP", 8)  # many row groups
    monkeypatch.setattr(trace_writer, "_MAX_GROUP", 8)
    protocol, population, faults = RUNS[name]
    p2p_sim.run(protocol, population, seed=3, trace="full", faults=faults or None, out=path, blocks=3)
    return run_directory.open_trace(path)


def rows_of(columns: Any) -> list[tuple[Any, ...]]:
    return sorted(zip(*(column.tolist() for column in columns.values()), strict=True))


@pytest.mark.parametrize("users", [[7], [0, 1, 2], [3, 31, 59], list(range(USERS))], ids=len)
@pytest.mark.parametrize("name", RUNS)
def test_each_message_of_some_users_once(name, users, tmp_path, monkeypatch):
    trace = saved(name, tmp_path / "run", monkeypatch)
    for kind in trace.kinds:
        message = RUNS[name][0].messages()[kind]
        for round in (None, *sorted({round for at, round in trace.counts if at == kind})):
            every, _ = trace.rows(kind, round=round)
            mine = np.zeros(len(every["round"]), np.bool_)
            for end in ("sender", "recipient"):
                if getattr(message, end) == USER:
                    mine |= np.isin(every[end], users)
            wanted = rows_of({field: column[mine] for field, column in every.items()})
            assert rows_of(trace.of_users(kind, users, round)) == wanted, (kind, round)


def test_a_file_is_searched_once_for_all(tmp_path, monkeypatch):
    trace = saved("peers", tmp_path / "run", monkeypatch)
    read: list[int] = []
    real = trace_file.File._read
    monkeypatch.setattr(trace_file.File, "_read", lambda *given: read.append(len(given[1])) or real(*given))
    trace.of_users("ask", list(range(0, USERS, 3)))
    groups = -(-USERS // 8) + 3  # three blocks may end three groups early
    assert 0 < sum(read) <= 2 * groups, "once to find them, once to read them"


def test_the_first_view_reads_a_few_columns_of_the_population(tmp_path, monkeypatch):
    saved("peers", tmp_path / "run", monkeypatch)
    whole = Answers(tmp_path / "run", VIEW_FUNCTIONS).answer("lanes", {})
    monkeypatch.setattr(population_file, "_ROWS", 7)
    monkeypatch.setattr(run_directory, "_AT_ONCE", 0)
    asked: list[dict[str, str]] = [{}, {"cluster": "5"}, {"user": "17"}, {"view": "learner"}, {"round": "2"}]
    told = [Answers(tmp_path / "run", VIEW_FUNCTIONS).answer("lanes", one) for one in asked]
    assert told[0] == whole
    monkeypatch.setattr(population_file, "read", forbid)
    assert [Answers(tmp_path / "run", VIEW_FUNCTIONS).answer("lanes", one) for one in asked] == told
    sizes = np.bincount(SCATTERED)[3:]
    assert whole["clusters"] == {"count": 3, "least": 20, "most": 20}
    assert neighbourhood.sizes_of(LazyRun(tmp_path / "run")).tolist() == sizes.tolist()


def test_crowds_without_clusters_are_all_users(tmp_path, monkeypatch):
    protocol = PeerToPeer(0.1)
    p2p_sim.run(protocol, Population.from_arrays(y=PLAIN.y), seed=3, trace="full", out=tmp_path / "run")
    monkeypatch.setattr(run_directory, "_AT_ONCE", 0)
    monkeypatch.setattr(population_file, "read", forbid)
    told = Answers(tmp_path / "run", VIEW_FUNCTIONS).answer("lanes", {"offset": "24"})
    assert (told["users"], told["cluster"], told["clusters"]) == (USERS, 0, None)
    assert [lane["user"] for lane in told["lanes"] if lane["user"]] == [str(user) for user in range(24, 48)]
    assert neighbourhood.sizes_of(LazyRun(tmp_path / "run")) is None
