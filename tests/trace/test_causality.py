"""Cones against following every message of small runs by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim import InputError, Population
from p2p_sim.rundir import trace_reader
from p2p_sim.trace import query, recompute
from p2p_sim.trace.causality import ConeSide, cone
from p2p_sim.trace.slices import Event
from tests.backends.programs import Gossip
from tests.contract.cases import PROTOCOLS, people_of

USERS = 24
NAMES = [
    "peer-to-peer",
    "encrypted shuffle by three",
    "secure aggregation",
    "network shuffle",
    "peer permutation",
]


def run_of(name: str, trace: str = "full") -> Any:
    protocol = PROTOCOLS[name]
    return p2p_sim.run(protocol, people_of(protocol, "scattered", USERS), seed=3, trace=trace)


def followed(events: list[Event], start: Event, way: str) -> list[Event]:
    """All that a message may have depended on, or led to, one message after the other."""
    found: dict[str, Event] = {}
    todo = [start]
    while todo:
        at = todo.pop()
        for other in events:
            if way == "before":
                linked = other.ends[1] == at.ends[0] and other.round < at.round
            else:
                linked = other.ends[0] == at.ends[1] and other.round > at.round
            if linked and other.id not in found:
                found[other.id] = other
                todo.append(other)
    return list(found.values())


def check(half: ConeSide, wanted: list[Event], way: str) -> None:
    assert sorted(event.id for event in half.nearest.events()) == sorted(event.id for event in wanted)
    counts: dict[tuple[str, int], int] = {}
    for event in wanted:
        counts[event.kind, event.round] = counts.get((event.kind, event.round), 0) + 1
    assert half.counts == counts
    assert half.messages == len(wanted)
    ends = {event.ends[0 if way == "before" else 1] for event in wanted}
    assert half.users == len({end for end in ends if end.startswith("user:")})


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_cones_are_those_followed_by_hand(name: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(trace_reader, "BATCH", 7)
    run = run_of(name)
    events = list(query.messages(run).events())
    by_kind: dict[tuple[str, int], Event] = {}
    for event in events[::-1]:
        by_kind[event.kind, event.round] = event
    for start in by_kind.values():
        found = cone(run, start.id)
        assert [event.id for event in found.message.events()] == [start.id]
        assert found.notes == ()
        for way, half in (("before", found.before), ("after", found.after)):
            check(half, followed(events, start, way), way)


def test_rounds_of_one_kind() -> None:
    edges = np.array([[i, (i + 1) % 12] for i in range(12)])
    people = Population.from_arrays(y=np.arange(12) % 2 == 0).with_graph(edges)
    run = p2p_sim.run(Gossip(), people, seed=3, trace="full")
    events = list(query.messages(run).events())
    for start in events[:40:3]:
        found = cone(run, start.id)
        check(found.before, followed(events, start, "before"), "before")
        check(found.after, followed(events, start, "after"), "after")


def test_a_limit_keeps_the_nearest_and_says_what_it_cut() -> None:
    run = run_of("network shuffle")
    events = list(query.messages(run).events())
    start = events[-1]
    wanted = followed(events, start, "before")
    found = cone(run, start.id, limit=3)
    assert found.before.counts == cone(run, start.id).before.counts
    for kind, columns in found.before.nearest.kinds.items():
        rounds = sorted((event.round for event in wanted if event.kind == kind), reverse=True)
        assert sorted(columns["round"].tolist(), reverse=True) == rounds[:3]
    cut = {kind: number - 3 for kind, number in found.before.nearest.total.items() if number > 3}
    assert found.before.nearest.cut == cut != {}


def test_a_server_may_be_named() -> None:
    run = run_of("encrypted shuffle by three")
    one, other = (cone(run, name) for name in ("mixed:4:0:0:5", "mixed:4:shuffler:learner:5"))
    assert one.before.counts == other.before.counts


def test_what_was_not_kept_is_recomputed(monkeypatch: Any, tmp_path: Any) -> None:
    whole, bare = run_of("peer-to-peer"), run_of("peer-to-peer", "none")
    user = int(whole.messages("report")["sender"][3])
    name = f"report:3:{user}:0:0"
    wanted = cone(whole, name)
    for run in (bare, bare.save(tmp_path / "r")):
        found = cone(run, name)
        assert found.before.counts == wanted.before.counts
        assert "recomputed" in found.notes[0]
    monkeypatch.setattr(recompute, "MAX_USERS", 5)
    found = cone(bare, name)
    assert [event.id for event in found.before.nearest.events()] == [
        event.id for event in wanted.before.nearest.events()
    ]
    assert found.hidden == wanted.hidden
    assert "led to is known only among the users" in found.notes[-1]
    with pytest.raises(InputError, match=f"user {USERS}: not in this run"):
        cone(bare, f"report:3:{USERS}:0:0")
    with pytest.raises(InputError, match="up to 5 users"):
        cone(run_of("encrypted shuffle by three", "none"), "mixed:4:0:0:5")


BAD = {
    "short": ("report:3:17", "is no id: write it as KIND:ROUND:SENDER:RECIPIENT:SEQ"),
    "kind": ("vote:3:17:0:0", "kind 'vote': this protocol's kinds are ask, label, report"),
    "words": ("report:3:x:0:0", "is no id"),
    "negative": ("report:3:-1:0:0", "is no id"),
    "huge": ("report:3:17:0:" + "9" * 30, "is no id"),
    "server": ("report:3:17:1:0", "goes from user to learner; write the server learner as 0"),
    "nowhere": ("report:2:3:0:0", "there is none in this run"),
    "nobody": ("report:3:99:0:0", "there is none in this run"),
    "number": (17, "is no id"),
}


@pytest.mark.parametrize(("name", "words"), BAD.values(), ids=BAD.keys())
def test_bad_ids(name: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        cone(run_of("peer-to-peer"), name)
