"""Where walks end, and that no order tells where they came from; a twin of each that must fail.

Labels tell users apart: nobody lies, and user u has label u.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import stats

import p2p_sim
from p2p_sim import Population
from p2p_sim.network import topologies, walks
from protocols import NetworkShuffle
from tests.statistical.chi import FALSE_ALARM, follows

USERS, STEPS, COPIES = 9, 3, 20_000
CROWD = topologies.join(Population.from_arrays(y=np.arange(250)), "small-world:6,0.3", 1)


@dataclass(frozen=True)
class Lazy(NetworkShuffle):
    """Twin: whoever draws her first neighbour keeps the report."""

    def user(self, me):
        y = me.y
        held = None
        for _ in range(self.steps):
            to = me.draw.member("next", me.neighbours, each=held)
            holder = me.id if held is None else held.layout.spread(me.id)
            data = to if held is None else to.data
            first = me.neighbours.order[me.neighbours.starts[holder]]
            there = np.where(data == first, holder, data)
            held = yield self.hop(to=there if held is None else type(to)(there, to.layout), y=y)
            y = held.y
        yield self.report(y=y)


@dataclass(frozen=True)
class Hasty(NetworkShuffle):
    """Twin: one step too few."""

    def user(self, me):
        yield from NetworkShuffle(self.epsilon, self.steps - 1, self.labels).user(me)


@dataclass(frozen=True)
class Orderly(NetworkShuffle):
    """Twin: what is held stays in the order in which it came."""

    def user(self, me):
        held, y = None, me.y
        for _ in range(self.steps):
            held = yield self.hop(to=me.draw.member("next", me.neighbours, each=held), y=y)
            y = held.y
        yield self.report(y=y)


def copied(people: Population, copies: int) -> Population:
    """As many copies of a small graph, each a cluster of its own: one run is as many walks of every user."""
    graph, users = people.graph, people.users
    assert graph is not None
    assert graph.order is not None
    pairs = [
        (one, int(other))
        for one, group in enumerate(graph.codes)
        for other in graph.order[graph.starts[group] : graph.starts[group + 1]]
        if one < other
    ]
    edges = (np.array(pairs) + users * np.arange(copies)[:, None, None]).reshape(-1, 2)
    everybody = np.arange(users * copies)
    many = Population.from_arrays(y=everybody % users, cluster=everybody // users)
    return topologies.join(many, edges, 0, within_clusters=True)


def ends(protocol: Any, people: Population) -> np.ndarray:
    """How often the report of each user (row) was held last by each user (column)."""
    told = p2p_sim.run(protocol, copied(people, COPIES), seed=0, digest=False).output("learner")
    counts = np.zeros((people.users, people.users), np.int64)
    np.add.at(counts, (told["y"], told["sender"] % people.users), 1)
    return counts


@pytest.mark.parametrize(
    ("make", "right"), [(NetworkShuffle, True), (Lazy, False), (Hasty, False)], ids=["walk", "lazy", "hasty"]
)
def test_walks_end_where_the_chain_says(make: Any, right: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NetworkShuffle, "graph_over", lambda self: "cluster")
    people = topologies.join(Population.from_arrays(y=np.arange(USERS)), "scale-free:2", 3)
    assert people.graph is not None
    counts = ends(make(float("inf"), STEPS, USERS), people)
    assert (counts.sum(axis=1) == COPIES).all()
    laws = [walks.distribution(people.graph, user, STEPS) for user in range(USERS)]
    assert all(follows(row, law) for row, law in zip(counts, laws, strict=True)) is right


def ascending(protocol: Any, kind: str, round: int) -> tuple[int, int]:
    """Of pairs of reports that one user sends one after the other in a round: how many are in the order of those who
    sent them to her, and how many there are.
    """
    good = pairs = 0
    for seed in range(12):
        run = p2p_sim.run(protocol, CROWD, seed=seed, trace="full")
        hops, sent = run.messages("hop"), run.messages(kind)
        before = hops["round"] == round - 1
        came = np.zeros(CROWD.users, np.int64)
        came[hops["y"][before]] = hops["sender"][before]  # from whom each user's report came
        now = sent["round"] == round
        order = np.lexsort((sent["seq"][now], sent["sender"][now]))
        holder, previous = sent["sender"][now][order], came[sent["y"][now][order]]
        apart = (holder[1:] == holder[:-1]) & (previous[1:] != previous[:-1])
        good += int((previous[1:] > previous[:-1])[apart].sum())
        pairs += int(apart.sum())
    return good, pairs


@pytest.mark.parametrize(("kind", "round"), [("hop", 2), ("hop", 4), ("report", 5)])
@pytest.mark.parametrize(
    ("make", "right"), [(NetworkShuffle, True), (Orderly, False)], ids=["mixed", "orderly"]
)
def test_the_numbers_of_messages_do_not_tell_where_reports_came_from(
    make: Any, right: bool, kind: str, round: int
) -> None:
    good, pairs = ascending(make(float("inf"), 4, 250), kind, round)
    assert pairs > 500
    assert bool(stats.binomtest(good, pairs).pvalue > FALSE_ALARM) is right
