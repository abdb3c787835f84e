"""The messages around some users, against every message of the run looked at one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim import InputError
from p2p_sim.rundir import trace_reader
from p2p_sim.trace import neighbourhood as module
from p2p_sim.trace import recompute
from p2p_sim.trace.neighbourhood import around, cluster, clusters_of, first
from protocols import PeerToPeer
from tests.render.material import PROTOCOLS
from tests.tiny import CLUSTERS, people


@pytest.fixture(params=PROTOCOLS.values(), ids=PROTOCOLS.keys())
def protocol(request: pytest.FixtureRequest) -> Any:
    return request.param


def run_of(protocol: Any, trace: str = "full") -> Any:
    return p2p_sim.run(protocol, people(), seed=2**63 + 3, trace=trace)


def touched(run: Any, users: set[int] | None, round: int | None = None) -> list[str]:
    """Ids of the messages that users sent or received, in causal order."""
    names = None if users is None else {f"user:{user}" for user in users}
    return [
        event.id
        for event in around(run).events()
        if (names is None or names & set(event.ends)) and round in (None, event.round)
    ]


def told(part: Any) -> list[tuple[str, Any]]:
    return [(event.id, event.fields) for event in part.events()]


def test_all_messages_are_those_of_the_run(protocol):
    run = run_of(protocol)
    part = around(run)
    for kind, columns in part.kinds.items():
        for name, column in run.messages(kind).items():
            np.testing.assert_array_equal(columns[name], column)


@pytest.mark.slow
@pytest.mark.parametrize("trace", ["full", "none", "sample=2"])
@pytest.mark.parametrize("users", [{4}, {4, 7}, {0, 2, 4, 7}, set(range(12))], ids=len)
def test_some_users_by_looking_up_and_by_scanning(protocol, users, trace, monkeypatch):
    monkeypatch.setattr(trace_reader, "BATCH", 5)
    run, whole = run_of(protocol, trace), run_of(protocol)
    parts = []
    for few in (50, 0):
        monkeypatch.setattr(module, "_FEW", few)
        for round in (None, 2):
            part = around(run, np.array(sorted(users)), round=round)
            assert [event.id for event in part.events()] == touched(whole, users, round)
            assert part.cut == {}
            assert ("recomputed" in " ".join(part.notes)) == (trace != "full")
            parts.append(told(part))
    assert parts[:2] == parts[2:]
    wanted = {event.id: event.fields for event in around(whole).events()}
    assert all(wanted[name] == fields for name, fields in parts[0])


def test_a_limit_takes_the_first_in_causal_order(protocol):
    run = run_of(protocol)
    for users in (None, {4, 7}):
        ids = touched(run, users)
        for limit in (1, 2, 5, len(ids), len(ids) + 1):
            part = around(run, None if users is None else np.array(sorted(users)), limit=limit)
            assert [event.id for event in part.events()] == ids[:limit]
            assert sum(part.total.values()) == len(ids)
            assert sum(part.cut.values()) == max(0, len(ids) - limit)
    assert first(part, 10**6) is part


def test_the_first_are_of_the_first_rounds_whatever_the_kind():
    """Users ask again after the first answers."""
    run = p2p_sim.run(PeerToPeer(0.1, retries=2), people(), seed=3, trace="full", faults=["loss=0.5"])
    kinds = {event.kind: event.round for event in around(run).events()}
    assert kinds["ask"] > min(run.messages("label")["round"])
    ids = touched(run, None)
    for limit in range(1, len(ids)):
        assert [event.id for event in around(run, limit=limit).events()] == ids[:limit]


def test_clusters_are_named_by_their_numbers():
    run = run_of(PROTOCOLS["peer to peer"])
    for number in set(CLUSTERS):
        assert cluster(run, number).tolist() == [u for u, c in enumerate(CLUSTERS) if c == number]
    assert clusters_of(run, np.array([0, 10])).tolist() == [4, 30]
    with pytest.raises(InputError, match="cluster 5: not in this run; it has 4, numbered from 0 to 30"):
        cluster(run, 5)
    alone = p2p_sim.run(PROTOCOLS["peer to peer"], p2p_sim.Population.from_arrays(y=[True, False]), seed=1)
    assert (cluster(alone, 0).tolist(), clusters_of(alone, np.array([0]))) == ([0, 1], None)


def test_what_is_not_there_and_what_is_too_much(monkeypatch, tmp_path):
    protocol = PROTOCOLS["peer to peer"]
    run = run_of(protocol)
    with pytest.raises(InputError, match="user 12: not in this run; its users are 0 to 11"):
        around(run, np.array([4, 12]))
    with pytest.raises(InputError, match="round 9: this run has messages in rounds"):
        around(run, np.array([4]), round=9)
    bare = p2p_sim.load(run.save(tmp_path / "bare", population=False))
    with pytest.raises(InputError, match="without its population"):
        cluster(bare, 4)
    assert len(around(bare, np.array([4]))) == len(around(run, np.array([4])))
    monkeypatch.setattr(module, "MAX_MESSAGES", 20)
    for users in (None, np.arange(12)):
        with pytest.raises(InputError, match="too many, at most 20 are read at once: ask for fewer"):
            around(run, users)
    monkeypatch.setattr(module, "_FEW", 0)
    with pytest.raises(InputError, match="at most 20"):
        around(run, np.arange(12))
    assert len(around(run, limit=20)) == 20
    monkeypatch.setattr(recompute, "MAX_USERS", 5)
    with pytest.raises(InputError, match="kept no messages"):
        around(run_of(protocol, "none"))
    assert len(around(run_of(protocol, "none"), np.array([4]))) > 2
