"""Protocols on graphs: every view's law against the program itself, enumerated, and what is refused."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from p2p_sim import InputError, Population, privacy
from p2p_sim.network import topologies
from p2p_sim.privacy.profile import PrivacyProfile, RefusedError
from protocols import EncryptedShuffle, NetworkShuffle, PeerToPeer
from tests.privacy import walking

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("ways_once")]

RATIOS = (Fraction(1), Fraction(5, 4), Fraction(2))
EDGES = {"triangle": [(0, 1), (1, 2), (0, 2)], "path": [(0, 1), (1, 2)], "pair": [(0, 1)]}
ASKING = PeerToPeer(0.25, 0.5, over="neighbours")
TELLING = PeerToPeer(0.25, over="neighbours")
WALKING = NetworkShuffle(math.log(3), 1)


def people(graph: str, y: Any = None) -> Population:
    edges = EDGES[graph]
    users = 1 + max(map(max, edges))
    labels = np.zeros(users, bool) if y is None else np.array(y, bool)
    return Population.from_arrays(y=labels).with_graph(np.array(edges))


def truths(protocol: Any, graph: str, view: str, **how: Any) -> list[float]:
    """The largest delta at each ratio over victims outside the view, all others having one label or the other."""
    users, found = people(graph).users, [0.0] * len(RATIOS)
    for victim, label in itertools.product(range(users), (0, 1)):
        if f"user:{victim}" not in view:
            y = [label] * users
            y[victim] = 0
            seen = privacy.enumerate_view(protocol, people(graph, y), view=view, change=victim, **how)
            found = [max(old, float(seen.delta_at(r))) for old, r in zip(found, RATIOS, strict=True)]
    return found


def agree(found: PrivacyProfile, truth: list[float]) -> None:
    for value, ratio in zip(truth, RATIOS, strict=True):
        low, middle, high = found.delta_bracket(math.log(ratio))
        assert value <= high + 1e-15
        if found.basis == "exact":
            assert middle == pytest.approx(value, rel=1e-11, abs=1e-15)
            assert low <= value + 1e-15
        else:
            assert found.basis == "upper"


CASES = [  # protocol, graph, view, channels, basis
    (ASKING, "path", "learner", "plain", "upper"),
    (TELLING, "triangle", "learner", "plain", "upper"),
    (ASKING, "path", "user:2", "plain", "exact"), (ASKING, "path", "user:1", "plain", "exact"),
    (TELLING, "triangle", "user:1+user:2", "plain", "exact"),
    (TELLING, "triangle", "learner+user:1", "plain", "upper"), (ASKING, "path", "learner+user:2", "plain", "upper"),
    (ASKING, "path", "wire", "plain", "exact"), (ASKING, "path", "wire", "encrypted", "exact"),
    (ASKING, "path", "learner+wire", "encrypted", "exact"), (ASKING, "path", "wire+user:1", "encrypted", "exact"),
    (TELLING, "triangle", "learner+wire+user:2", "encrypted", "exact"),
    (WALKING, "triangle", "learner", "plain", "upper"), (WALKING, "path", "learner", "plain", "upper"),
    (WALKING, "path", "user:1", "plain", "exact"), (WALKING, "path", "wire+user:1", "plain", "exact"),
    (WALKING, "path", "learner+user:1", "plain", "upper"), (WALKING, "path", "learner+wire", "plain", "exact"),
    (WALKING, "path", "learner+wire", "encrypted", "upper"),
    (NetworkShuffle(1.0, 2), "pair", "learner", "plain", "upper"),
    (NetworkShuffle(1.0, 0), "path", "learner", "plain", "exact"),
    (NetworkShuffle(1.0, 0), "path", "learner+user:1", "plain", "exact"),
    (NetworkShuffle(0.0, 1), "path", "learner", "plain", "exact"),
]  # fmt: skip


@pytest.mark.parametrize(("protocol", "graph", "view", "channels", "basis"), CASES)
def test_views_on_graphs(protocol: Any, graph: str, view: str, channels: str, basis: str) -> None:
    found = privacy.profile(protocol, view, population=people(graph), channels=channels)
    assert found.basis == basis
    agree(found, truths(protocol, graph, view, channels=channels))


def test_unnamed_users_are_the_worst_ones() -> None:
    for view in ("user", "learner+user", "2*user"):
        found = privacy.profile(ASKING, view, population=people("path"))
        size = 2 if "2" in view else 1
        named = [
            view.replace(f"{'2*' if size == 2 else ''}user", "+".join(f"user:{i}" for i in chosen))
            for chosen in itertools.combinations(range(3), size)
        ]
        laws = [privacy.profile(ASKING, name, population=people("path")) for name in named]
        assert found.delta(0.3) == pytest.approx(max(law.delta(0.3) for law in laws), rel=1e-12)


def test_named_and_unnamed_users_together() -> None:
    graph = Population.synthetic(users=30, seed=1)
    graph = topologies.join(graph, "scale-free:2", 3)
    together = privacy.profile(ASKING, "learner+user:3+2*user", population=graph).delta(0.1)
    some = [
        privacy.profile(ASKING, f"learner+user:3+user:{a}+user:{b}", population=graph).delta(0.1)
        for a, b in itertools.combinations([i for i in range(30) if i != 3], 2)
    ]
    assert together == pytest.approx(max(some), rel=1e-12)


FIVE = {
    "house": [(0, 1), (1, 2), (2, 3), (3, 0), (0, 4), (1, 4)],
    "star": [(0, 1), (0, 2), (0, 3), (0, 4)],
    "ring": [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)],
    "all pairs": list(itertools.combinations(range(5), 2)),
}


@pytest.mark.parametrize("name", FIVE)
def test_the_learner_alone_learns_no_more_than_the_bound(name: str) -> None:
    flip, theta = Fraction(1, 4), Fraction(3, 4)
    population = Population.from_arrays(y=np.zeros(5, bool)).with_graph(np.array(FIVE[name]))
    bound = privacy.profile(PeerToPeer(0.25, 0.75, over="neighbours"), population=population)
    near = walking.near(FIVE[name], 5)
    for victim, rest in itertools.product((0, 2), [(0, 0, 0, 0), (1, 1, 1, 1), (0, 1, 0, 1)]):
        pair = [walking.reported(near, [*rest[:victim], bit, *rest[victim:]], flip, theta) for bit in (0, 1)]
        for ratio in RATIOS:
            truth = float(walking.delta(*pair, ratio))
            assert truth <= bound.delta_bracket(math.log(ratio)).upper + 1e-15


def test_a_complete_graph_is_the_cluster() -> None:
    everybody = topologies.join(
        Population.synthetic(users=12, cluster_size=6), "complete", 1, within_clusters=True
    )
    cluster = PeerToPeer(0.2, 0.5)
    for view in ("learner", "learner+user", "wire", "user"):
        near = privacy.profile(PeerToPeer(0.2, 0.5, over="neighbours"), view, population=everybody)
        assert near.delta(0.1) == privacy.profile(cluster, view, cluster_size=6).delta(0.1)
    own = privacy.profile(PeerToPeer(0.2, over="neighbours"), population=everybody, composition="population")
    assert own.basis == "exact"


def test_walks_on_a_complete_graph_are_a_shuffle() -> None:
    everybody = topologies.join(Population.synthetic(users=9, seed=4), "complete", 1)
    for labels in (2, 3):
        shuffle = privacy.profile(EncryptedShuffle(1.0, labels), cluster_size=9)
        found = privacy.profile(NetworkShuffle(1.0, 1, labels), population=everybody)
        assert (found.basis, found.delta(0.2)) == (shuffle.basis, shuffle.delta(0.2))
    for ones in (0, 5):
        one = privacy.profile(NetworkShuffle(1.0, 1), population=everybody, composition=ones)
        assert one.delta(0.2) == privacy.profile(
            EncryptedShuffle(1.0), cluster_size=9, composition=ones
        ).delta(0.2)
    real = privacy.profile(NetworkShuffle(1.0, 1), population=everybody, composition="population")
    same = privacy.profile(EncryptedShuffle(1.0), population=everybody, composition="population")
    assert real.delta(0.2) == same.delta(0.2)
    local = privacy.profile(NetworkShuffle(1.0, 0), population=everybody).delta(0.2)
    met = privacy.profile(NetworkShuffle(1.0, 3), "learner+user", population=everybody).delta(0.2)
    assert local / 9 < met < local
    several = privacy.profile(NetworkShuffle(1.0, 3), "learner+user", population=everybody, users="deviating")
    assert several.delta(0.2) == local


def complete(y: Any) -> Population:
    return topologies.join(Population.from_arrays(y=np.asarray(y) > 0), "complete", 0)


@pytest.mark.parametrize(
    ("users", "steps", "view", "faults"),
    [
        (3, 1, "learner+user", []),
        (2, 2, "learner+user", []),
        (2, 1, "learner", ["drop=0.25"]),
        (2, 1, "learner", ["loss=0.25"]),
        (2, 1, "learner", ["late=0.5"]),
        (2, 1, "learner+user", ["late=0.25"]),
        (2, 1, "learner+user", ["drop=0.25"]),
    ],
)
def test_walks_on_a_complete_graph_by_enumeration(
    users: int, steps: int, view: str, faults: list[str]
) -> None:
    """Nowhere below all draws and faults; with colluders and no faults, what they are told they really see."""
    protocol, worst = NetworkShuffle(1.0, steps), dict.fromkeys((1.0, 1.25, 1.5, 2.0, 2.6), 0.0)
    for ones in range(users // 2 + users % 2):  # of more, all labels are turned: the same two worlds
        people = complete(np.arange(users) > users - 1 - ones)
        law = privacy.enumerate_view(protocol, people, view=view, change=0, faults=faults or None)
        p, q = np.array([[float(a), float(b)] for a, b in law.pairs()]).T
        for at in worst:
            worst[at] = max(worst[at], np.maximum(0, p - at * q).sum(), np.maximum(0, q - at * p).sum())
    found = privacy.profile(protocol, view, population=complete(np.zeros(users)), faults=faults or None)
    for at, delta in worst.items():
        assert delta <= found.delta_bracket(math.log(at)).upper * (1 + 1e-9)
        if not faults:
            assert delta == pytest.approx(found.delta(math.log(at)), rel=1e-9)


def test_a_few_steps_amplify_and_more_amplify_more() -> None:
    graph = topologies.join(Population.synthetic(users=400, seed=1), "regular:20", 1)
    found = [privacy.profile(NetworkShuffle(2.0, t), population=graph).epsilon(1e-6) for t in (1, 3, 5, 12)]
    shuffle = privacy.profile(EncryptedShuffle(2.0), cluster_size=400).epsilon(1e-6)
    assert found[0] == pytest.approx(2.0, abs=1e-5)
    assert found[0] >= found[1] > found[2] > found[3] > shuffle
    assert found[3] < 1.05 * shuffle


@pytest.mark.parametrize("protocol", [ASKING, WALKING])
def test_without_a_graph_the_law_is_refused(protocol: Any) -> None:
    for asked in ({"cluster_size": 10}, {"population": Population.synthetic(users=10)}, {}):
        found = privacy.profile(protocol, **asked)
        assert found.basis == "refused"
        with pytest.raises(RefusedError, match=r"depends on who is joined to whom.*topologies.join"):
            found.epsilon(1e-6)
    with pytest.raises(InputError, match="give one of the two"):
        privacy.profile(protocol, cluster_size=3, population=people("path"))
    with pytest.raises(InputError, match="depends on a graph"):
        privacy.by_cluster(protocol, population=people("path"))


def test_graphs_that_a_run_refuses_are_refused() -> None:
    split = Population.from_arrays(y=np.zeros(4, bool)).with_graph(np.array([(0, 1), (2, 3)]))
    with pytest.raises(InputError, match="not connected"):
        privacy.profile(WALKING, population=split)
    across = Population.from_arrays(y=np.zeros(4, bool), cluster=[0, 0, 1, 1])
    with pytest.raises(InputError, match="different clusters"):
        privacy.profile(ASKING, population=across.with_graph(np.array([(0, 1), (1, 2), (2, 3)])))
    with pytest.raises(InputError, match="users 2, 3 have no neighbour"):
        privacy.profile(WALKING, population=across.with_graph(np.array([(0, 1)])))
    with pytest.raises(InputError, match="2 users beside the victim"):
        privacy.profile(ASKING, "3*user", population=people("path"))
    with pytest.raises(InputError, match="give 0 to 2"):
        privacy.profile(WALKING, population=people("path"), composition=3)


def test_deviating_users_ask_the_victim() -> None:
    for protocol in (ASKING, WALKING):
        local = privacy.profile(NetworkShuffle(math.log(3), 0), population=people("path")).delta(0.5)
        found = privacy.profile(protocol, "learner+user", population=people("path"), users="deviating")
        assert found.delta(0.5) == pytest.approx(local)
    assert privacy.profile(WALKING, "user", population=people("path"), users="deviating").delta(0) == 0


@pytest.mark.parametrize("faults", [["loss=0.25"], ["late=0.25"], ["lie=flip:0.5"]])
def test_faults_are_bounded(faults: list[str]) -> None:
    for protocol, view in ((ASKING, "learner"), (ASKING, "user:1"), (NetworkShuffle(1.0, 2), "learner")):
        found = privacy.profile(protocol, view, population=people("pair"), faults=faults)
        assert found.basis == "upper"
        agree(found, truths(protocol, "pair", view, faults=faults))


def test_walks_that_are_lost_hide_nobody() -> None:
    graph = topologies.join(Population.synthetic(users=100, seed=1), "regular:20", 1)
    fine, lost, dropped = (
        privacy.profile(NetworkShuffle(1.0, 8), population=graph, faults=faults)
        for faults in (None, ["loss=0.05"], ["drop=0.01"])
    )
    assert fine.delta(0.3) < lost.delta(0.3) / 0.95**9 < 10 * fine.delta(0.3) < dropped.delta(0.3)
    assert dropped.epsilon(0.0) == 1.0


def test_retries_under_faults_have_the_local_guarantee() -> None:
    again = PeerToPeer(0.25, retries=1, over="neighbours")
    found = privacy.profile(again, population=people("path"), faults=["loss=0.1"])
    assert found.delta(0) == pytest.approx(0.5)


def test_epsilon_is_calibrated_on_a_graph() -> None:
    graph = topologies.join(Population.synthetic(users=300, seed=1), "regular:20", 1)
    found = privacy.calibrate(
        NetworkShuffle, vary="epsilon", steps=8, population=graph, epsilon=0.5, delta=1e-6
    )
    assert 0.5 < found.value < 4
    assert 0 <= found.slack < 1e-6
    assert found.views["learner+user"].basis == "upper"
    near = privacy.calibrate(
        PeerToPeer, vary="alpha", over="neighbours", population=graph, view="user", epsilon=1.0, delta=0.0
    )
    assert near.value == pytest.approx(1 / (1 + math.e), rel=1e-6)


def test_bounds_compose() -> None:
    graph = topologies.join(Population.synthetic(users=40, seed=1), "regular:10", 1)
    one = privacy.profile(NetworkShuffle(1.0, 20), population=graph)
    ten = privacy.composed(one, 3)
    assert ten.basis == "upper"
    assert one.epsilon(1e-6) < ten.epsilon(1e-6) < 3 * one.epsilon(1e-6 / 3)
