"""Audits of runs: what is audited is what ran, in a world that the run has."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from scipy import stats

import p2p_sim
from p2p_sim import InputError, Population, privacy
from p2p_sim.network import topologies
from p2p_sim.privacy.auditing.worlds import around
from p2p_sim.privacy.auditing.worlds_of_run import world_of
from protocols import (
    EncryptedShuffle,
    LaplaceLabelProportions,
    NetworkShuffle,
    PeerToPeer,
    RandomizedResponse,
)

SIZES = (9, 5, 12)
PEOPLE = Population.from_arrays(y=np.arange(26) % 2 == 0, cluster=np.repeat([3, 4, 8], SIZES))
PEERS = PeerToPeer(0.2)
HOW = {"delta": 0.02, "trials": 2000, "seed": 4}


def ran(protocol, people=PEOPLE, **how):
    return p2p_sim.run(protocol, people, seed=2**63 + 5, **how)


@pytest.mark.slow
@pytest.mark.parametrize(("view", "size"), [("learner", 5), ("learner+3*user", 5), ("user:2+4*user", 9)])
def test_the_smallest_cluster_with_room_is_audited(view, size):
    wrong = ["drop=0.1", "lie=flip:0.2"]
    found = privacy.audit(ran(PEERS, faults=wrong), view, **HOW)
    same = privacy.audit(PEERS, view, cluster_size=size, faults=wrong, **HOW)
    assert found == replace(same, not_varied=found.not_varied)
    assert found.cluster_size == size


def test_another_size_and_a_loaded_run(tmp_path):
    run = p2p_sim.load(ran(PEERS).save(tmp_path / "run"))
    found = privacy.audit(run, cluster_size=12, **HOW)
    same = privacy.audit(PEERS, cluster_size=12, **HOW)
    assert found == replace(same, not_varied=found.not_varied)


def test_a_program_that_is_not_what_it_says_is_found():
    """The run of a twin that lies half as often, held to the law of what it should be."""
    how = {"delta": 0.02, "trials": 20_000}
    assert privacy.audit(ran(PeerToPeer(0.1)), against=PEERS, **how).failed
    assert not privacy.audit(ran(PEERS), against=PEERS, **how).failed


def test_who_hides_the_victim_by_protocol():
    worlds = [
        (RandomizedResponse(1.0), "learner+2*user", 3), (LaplaceLabelProportions(1.0, bag_size=4), "learner", 4),
        (LaplaceLabelProportions(1.0, bag_size=40), "learner", 5), (EncryptedShuffle(1.0), "learner", 5),
        (EncryptedShuffle(1.0, over="everybody"), "learner", 26),
    ]  # fmt: skip
    for protocol, view, size in worlds:
        world = world_of(ran(protocol), view)
        assert (world.cluster_size, world.graph, world.faults) == (size, None, None)
    assert world.protocol == EncryptedShuffle(1.0, over="cluster")
    everybody = replace(PEOPLE, clusters=None)
    assert world_of(ran(PEERS, everybody), "learner").cluster_size == 26


@pytest.mark.parametrize("over", ["cluster", "everybody"])
def test_the_graph_of_the_run_around_the_user_with_the_fewest_neighbours(over):
    people = Population.from_arrays(y=np.arange(60) % 2 == 0, cluster=np.repeat([0, 1], [40, 20]))
    joined = topologies.join(people, "scale-free:2", 3, within_clusters=over == "cluster")
    protocol = PeerToPeer(0.2, over="neighbours") if over == "cluster" else NetworkShuffle(2.0, steps=2)
    world = world_of(ran(protocol, joined))
    near, starts = joined.graph.everybody()
    whole = nx.Graph([(u, int(v)) for u in range(60) for v in near[starts[u] : starts[u + 1]]])
    inside = range(40, 60) if over == "cluster" else range(60)
    found = nx.Graph(world.graph.tolist())
    victim = min(inside, key=lambda user: (whole.degree(user), user))
    assert world.description.endswith(
        f"the victim is user {victim}, none of them has fewer neighbours than her 2"
    )
    assert world.cluster_size == len(found) == len(inside)
    same = nx.vf2pp_isomorphism(found, whole.subgraph(inside))
    assert same is not None
    assert sorted(d for _, d in found.degree()) == sorted(whole.degree(user) for user in inside)
    distance = nx.single_source_shortest_path_length(found, 0)
    assert [distance[user] for user in range(len(found))] == sorted(distance.values())
    assert sorted(distance.values()) == sorted(nx.single_source_shortest_path_length(whole, victim).values())
    assert around(joined.graph, victim).tolist() == world.graph.tolist()


def test_a_complete_graph_is_one_word():
    joined = topologies.join(PEOPLE, "complete", 3, within_clusters=True)
    world = world_of(ran(PeerToPeer(0.2, over="neighbours"), joined))
    assert (world.graph, world.cluster_size) == ("complete", 5)


CONTRADICTIONS = [
    ({"cluster_size": 10}, r"cluster_size = 10: contradicts the run.* 5 to 12"),
    ({"faults": ["drop=0.2"]}, r"faults contradicts the run, which has \['drop=0.1'\]"),
    ({"crypto": "real"}, "crypto contradicts the run, which has 'modelled'"),
    ({"graph": "ring:2"}, "graph contradicts the run"),
]


@pytest.mark.parametrize(("given", "text"), CONTRADICTIONS)
def test_what_contradicts_a_run_is_refused(given, text):
    with pytest.raises(InputError, match=text):
        privacy.audit(ran(PEERS, faults=["drop=0.1"]), **HOW, **given)


def test_without_a_population_only_what_is_known(tmp_path):
    bare = p2p_sim.load(ran(PEERS).save(tmp_path / "bare", population=False))
    with pytest.raises(InputError, match=r"saved without its population.*give --cluster-size N"):
        world_of(bare)
    assert world_of(bare, cluster_size=7).cluster_size == 7
    bare.notes["clusters"] = {"minimum": 5, "maximum": 12, "count": 3}
    assert world_of(bare, "learner+6*user").cluster_size == 12
    bare.notes["clusters"] = None
    assert world_of(bare).cluster_size == 26
    walk = topologies.join(PEOPLE, "regular:4", 3)
    saved = ran(NetworkShuffle(2.0, steps=2), walk).save(tmp_path / "walk", population=False)
    with pytest.raises(InputError, match="who is joined to whom is not known"):
        world_of(p2p_sim.load(saved))


def bound(hits, against, trials, delta, error):
    """The bound that follows from two shares, by scipy's beta quantiles; ``error``: of each of its two ends."""
    low = stats.beta.ppf(error, hits, trials - hits + 1)
    high = stats.beta.isf(error, against + 1, trials - against)
    return np.log((low - delta) / high)


def test_rates_are_those_of_the_event_behind_the_bound():
    """Two events, two ends each: 0.05 in four parts.  Shares of honest reports follow their binomial law."""
    trials, delta, lie = 20_000, 0.01, 1 / (1 + np.e)
    found = privacy.audit(RandomizedResponse(1.0), delta=delta, trials=trials, statistic="exact")
    hits, against = (round(rate * trials) for rate in (found.true_positive, found.false_positive))
    assert (hits / trials, against / trials) == (found.true_positive, found.false_positive)
    assert found.lower == pytest.approx(
        bound(hits, against, trials, delta, 0.05 / 4), rel=1e-11
    )  # HAIR = 1e-12
    for other in ((against, hits), (hits - 1, against), (hits, against + 1)):
        assert found.lower != pytest.approx(bound(*other, trials, delta, 0.05 / 4), rel=1e-11)
    for count, chance, twin in ((hits, 1 - lie, lie), (against, lie, 1 - lie)):
        low, high = stats.binom.ppf([5e-10, 1 - 5e-10], trials, chance)
        assert low <= count <= high
        low, high = stats.binom.ppf([5e-10, 1 - 5e-10], trials, twin)
        assert not low <= count <= high
