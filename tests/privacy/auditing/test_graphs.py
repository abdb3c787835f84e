"""Audits of protocols on graphs: honest ones within their bounds, broken twins found, worlds as they should be."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from p2p_sim import InputError, Population, privacy
from p2p_sim.coalition import Coalition
from p2p_sim.core import Party, Rounds
from p2p_sim.core.groups import Members
from p2p_sim.network import topologies
from p2p_sim.privacy.auditing import worlds
from p2p_sim.privacy.auditing.worlds import Situation
from protocols import NetworkShuffle, PeerToPeer, RandomizedResponse
from tests.privacy import walking

pytestmark = pytest.mark.slow

WALKING = NetworkShuffle(2.0, 5)
ASKING = PeerToPeer(0.1, over="neighbours")


@dataclass(frozen=True)
class Still(NetworkShuffle):
    """Forgets to walk: every hop goes to the neighbour and comes back as if nothing had been passed on."""

    def user(self, me: Party) -> Rounds:
        y = self.randomizer.noisy(me)
        for _ in range(self.steps):
            yield self.hop(to=me.draw.member("next", me.neighbours), y=y)
        yield self.report(y=y)


@dataclass(frozen=True)
class Lowest(PeerToPeer):
    """Asks the neighbour of the lowest number instead of a random one."""

    def user(self, me: Party) -> Rounds:
        y_hat = me.y ^ me.draw.bernoulli("flip", self.alpha)
        asks = yield self.ask(to=me.all_of(me.neighbours).first(0))
        labels = yield self.label.reply(asks, y_hat=y_hat)
        yield self.report(y=labels.y_hat, when=me.draw.bernoulli("subsample", self.theta))


HONEST = [  # protocol, view, graph, users a world, epsilon at which delta is measured
    (WALKING, "learner", "regular:3", 6, 0.5), (WALKING, "learner", "regular:4", 30, 0.2),
    (WALKING, "learner", "ring:2", 7, 0.5), (WALKING, "learner", "complete", 5, 0.2),
    (WALKING, "learner+wire", "regular:4", 10, 0.5), (WALKING, "learner+2*user", "regular:4", 10, 0.5),
    (ASKING, "learner", "regular:4", 12, 0.2), (ASKING, "learner", "scale-free:2", 20, 0.2),
    (ASKING, "user", "regular:4", 12, 0.2), (ASKING, "learner+2*user", "regular:4", 12, 0.2),
    (ASKING, "wire", "regular:4", 12, 0.2), (ASKING, "learner", "complete", 6, 0.2),
]  # fmt: skip


@pytest.mark.parametrize(("protocol", "view", "graph", "size", "epsilon"), HONEST)
def test_honest_programs_stay_within_their_bounds(
    protocol: Any, view: str, graph: str, size: int, epsilon: float
) -> None:
    found = privacy.audit(
        protocol, view, cluster_size=size, graph=graph, epsilon=epsilon, trials=8000, confidence=1 - 1e-9
    )
    assert not found.failed
    assert 0 < found.lower <= (found.exact or 0)


TWINS = [
    (Still(2.0, 5), WALKING, "learner", 30), (NetworkShuffle(6.0, 5), WALKING, "learner", 10),
    (Lowest(0.1, over="neighbours"), ASKING, "user", 12),
]  # fmt: skip


@pytest.mark.parametrize(("twin", "claimed", "view", "size"), TWINS)
def test_broken_twins_are_found(twin: Any, claimed: Any, view: str, size: int) -> None:
    for program, wrong in ((twin, True), (claimed, False)):
        found = privacy.audit(
            program, view, cluster_size=size, graph="regular:4", epsilon=0.2, trials=4000, against=claimed,
            confidence=1 - 1e-9,
        )  # fmt: skip
        assert (found.verdict == "violated") is wrong, (program, found)


def test_large_worlds_are_weighed_by_where_the_victim_s_report_may_be() -> None:
    """Beyond 16 users a world no number tells one holder from another but this one."""
    found = privacy.audit(
        NetworkShuffle(4.0, 2), cluster_size=60, graph="regular:4", epsilon=0.5, trials=4000, composition=0
    )
    assert 0.1 < found.lower <= (found.exact or 0)


def test_worlds_are_copies_of_one_graph() -> None:
    world = worlds.world(WALKING, "regular:3", 8, 5)
    assert world is not None
    assert world.graph is not None
    people = Situation(WALKING, Coalition.parse("learner", ("learner",)), 8, 3, graph=world.graph).population(
        3
    )
    assert people.graph is not None
    for number, user in itertools.product(range(3), range(8)):
        near = people.graph.rows_of(int(people.graph.codes[8 * number + user]))
        assert near.tolist() == (world.graph.rows_of(user) + 8 * number).tolist()
    assert world.graph.rows_of(0).tolist() == [1, 2, 3]  # colluders come first
    same = topologies.join(Population(np.zeros(8, bool)), "regular:3", 5).graph
    assert same is not None
    assert triangles(same) == triangles(world.graph)
    whole = worlds.copies(topologies.join(Population(np.zeros(4, bool)), "complete", 1).graph, 2)  # type: ignore[arg-type]
    assert whole.complete
    assert whole.rows_of(1).tolist() == [4, 5, 6, 7]


def triangles(graph: Members) -> int:
    near = [set(graph.rows_of(i).tolist()) for i in range(len(graph.codes))]
    return sum(k in near[j] for i, of in enumerate(near) for j in of for k in of)


def test_weights_are_how_likely_a_report_is_the_victim_s() -> None:
    edges = [(0, 1), (1, 2), (0, 2), (2, 3)]
    graph = Population(np.zeros(4, bool)).with_graph(np.array(edges)).graph
    assert graph is not None
    places = walking.walked(walking.near(edges, 4), 3)
    expected = [
        float(place * 8 / (4 * degree)) for place, degree in zip(places[0], (2, 2, 3, 1), strict=True)
    ]
    assert worlds.report_weights(NetworkShuffle(1.0, 3), graph) == pytest.approx(expected)
    assert worlds.report_weights(ASKING, graph) == pytest.approx([0, 1 / 2, 1 / 3, 0])
    assert worlds.report_weights(RandomizedResponse(1.0), graph) is None


def test_batches_on_a_graph_take_users_of_every_world() -> None:
    small = privacy.audit(ASKING, cluster_size=5, graph="complete", epsilon=0.1, trials=2000, composition=2)
    plain = privacy.audit(PeerToPeer(0.1), cluster_size=5, epsilon=0.1, trials=2000, composition=2)
    assert small.exact == plain.exact


def test_an_audit_names_what_is_wrong_with_its_graph() -> None:
    with pytest.raises(InputError, match="needs a graph that joins everybody"):
        privacy.audit(WALKING, cluster_size=6, epsilon=0.1)
    with pytest.raises(InputError, match="uses no graph"):
        privacy.audit(PeerToPeer(0.1), cluster_size=6, epsilon=0.1, graph="grid")
    with pytest.raises(InputError, match="degree must be below"):
        privacy.audit(WALKING, cluster_size=4, epsilon=0.1, graph="regular:4")
    with pytest.raises(InputError, match="not connected"):
        privacy.audit(WALKING, cluster_size=4, epsilon=0.1, graph=np.array([(0, 1), (2, 3)]))


def test_faults_are_audited_on_graphs() -> None:
    found = privacy.audit(
        WALKING, cluster_size=8, graph="regular:3", epsilon=0.2, trials=2000, faults=["loss=0.05"]
    )
    assert not found.failed
    assert found.lower <= (found.exact or 1)
