"""Statistics against counting every message of small runs in plain Python."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim import InputError, Population
from p2p_sim.core.message import USER
from p2p_sim.rundir import trace_reader
from p2p_sim.trace import recompute
from p2p_sim.trace.stats import QUANTILES, Tally, stats
from tests.backends.programs import Gossip
from tests.contract.cases import PROTOCOLS, people_of

USERS = 24
ENDS = (("sent", "sender"), ("received", "recipient"))


def run_of(name: str, trace: str = "full") -> Any:
    protocol = PROTOCOLS[name]
    return p2p_sim.run(protocol, people_of(protocol, "scattered", USERS), seed=2**63 + 3, trace=trace)


def spread_of(numbers: list[int]) -> dict[str, Any]:
    """The same, from the list of everybody's number."""
    ranked = sorted(numbers)
    places = [math.ceil(Fraction(str(q)) * len(ranked)) - 1 for q in QUANTILES]
    return {
        "users": len(numbers), "none": numbers.count(0), "least": ranked[0], "most": ranked[-1],
        "quantiles": tuple(ranked[place] for place in places), "mean": sum(numbers) / len(numbers),
        "busiest": numbers.index(ranked[-1]),
    }  # fmt: skip


def degrees_of(run: Any, users: list[int]) -> dict[Any, dict[str, Any]]:
    """By (way, kind, round): the spread over some users, every message counted."""
    counts: dict[Any, Counter[int]] = {(way, None, None): Counter() for way, _ in ENDS}
    for kind, message in run.source.messages().items():
        columns = run.messages(kind)
        rounds = {number for name, number in run.counts if name == kind and number}
        for way, end in ENDS:
            if getattr(message, end) != USER:
                continue
            for key in rounds | ({None} if len(rounds) > 1 else set()):
                counts[way, kind, key] = Counter()
            for who, round in zip(columns[end].tolist(), columns["round"].tolist(), strict=True):
                counts[way, None, None][who] += 1
                counts[way, kind, round][who] += 1
                if len(rounds) > 1:
                    counts[way, kind, None][who] += 1
    found = {key: spread_of([count[user] for user in users]) for key, count in counts.items()}
    for spread in found.values():
        spread["busiest"] = users[spread["busiest"]]
    return found


def told(found: Any) -> dict[Any, dict[str, Any]]:
    return {(d.way, d.kind, d.round): vars(d.spread) for d in found.degrees}


@pytest.mark.parametrize("name", PROTOCOLS)
def test_degrees_are_those_counted_one_by_one(name: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(trace_reader, "BATCH", 7)
    run = run_of(name)
    found = stats(run)
    assert told(found) == degrees_of(run, list(range(USERS)))
    assert found.notes == ()


def test_rounds_apart_and_together() -> None:
    edges = np.array([[i, (i + 1) % 12] for i in range(12)])
    people = Population.from_arrays(y=np.arange(12) % 2 == 0).with_graph(edges)
    run = p2p_sim.run(Gossip(), people, seed=3, trace="full")
    found = told(stats(run))
    assert found == degrees_of(run, list(range(12)))
    assert {key[2] for key in found if key[1] == "note"} == {1, 2, 3, None}


@pytest.mark.parametrize("name", ["peer-to-peer", "secure aggregation", "encrypted shuffle by three"])
def test_counts_by_role(name: str) -> None:
    run = run_of(name)
    found = stats(run)
    kinds = run.source.messages()
    assert found.counts == {key: count for key, count in run.counts.items() if key[1]}
    rounds = [(round, list(kinds).index(kind)) for kind, round in found.counts]
    assert rounds == sorted(rounds)
    for role in run.source.roles():
        for way, end in ENDS:
            mine = [kind for kind, message in kinds.items() if getattr(message, end) == role]
            assert found.roles[role, way].messages == sum(len(run.messages(kind)["round"]) for kind in mine)
            assert found.roles[role, way].nbytes == sum(
                int(run.messages(kind)["nbytes"].sum()) for kind in mine
            )
    for kind, message in kinds.items():
        assert found.between[kind, message.sender, message.recipient] == run.by_kind()[kind]


def test_without_a_trace(monkeypatch: Any, tmp_path: Any) -> None:
    whole, bare = run_of("peer-to-peer"), run_of("peer-to-peer", "none")
    assert told(stats(bare)) == told(stats(whole))
    assert "recomputed" in stats(bare).notes[0]
    path = bare.save(tmp_path / "bare")
    assert told(stats(path)) == told(stats(whole))
    monkeypatch.setattr(recompute, "MAX_USERS", 5)
    found = stats(bare)
    assert found.degrees == ()
    assert found.counts == stats(whole).counts
    assert "degrees are not known: this run kept no messages" in found.notes[0]


def test_of_a_sample_the_users_sampled(monkeypatch: Any) -> None:
    monkeypatch.setattr(recompute, "MAX_USERS", 5)
    found = stats(run_of("peer-to-peer", "sample=3"))
    assert "sample=3" in found.notes[0]
    assert told(found) == degrees_of(run_of("peer-to-peer"), [0, 8, 16])


def test_without_a_population(tmp_path: Any) -> None:
    run = run_of("peer-to-peer")
    found = stats(run.save(tmp_path / "r", population=False))
    assert told(found)["sent", "ask", 1] == degrees_of(run, list(range(USERS)))["sent", "ask", 1]


def test_a_tally_grows() -> None:
    tally = Tally(0)
    assert tally.spread(None) is None
    tally.add(np.array([3, 3, 1]))
    other = Tally(7)
    tally.merge(other)
    assert tally.counts.tolist() == [0, 1, 0, 2, 0, 0, 0]
    assert tally.spread(np.array([1, 3])) == tally.spread(np.array([3, 1])).__class__(
        2, 0, 1, (1, 1, 2, 2), 2, 1.5, 3
    )


def test_no_run(tmp_path: Any) -> None:
    with pytest.raises(InputError, match="not a run directory"):
        stats(tmp_path)
