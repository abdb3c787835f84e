"""Small worlds and scale-free graphs beside those of networkx, graph by graph."""

import networkx as nx
import numpy as np
import pytest
from scipy.stats import ttest_ind

from p2p_sim.network.topologies import build
from tests.network.test_topologies import FALSE_ALARM, networkx_of


def alike(ours, theirs):
    """Whether figures of independent graphs may have one mean, by Welch's test: false alarms 1e-9."""
    return bool(ttest_ind(ours, theirs, equal_var=False).pvalue > FALSE_ALARM)


@pytest.mark.slow
@pytest.mark.parametrize("moved", [0.1, 0.5])
def test_small_world_is_as_clustered_as_networkx_s(moved):
    users, degree, graphs = 1000, 10, range(10)
    ours = [
        nx.average_clustering(networkx_of(build(f"small-world:{degree},{moved}", users, s))) for s in graphs
    ]
    same, other = (
        [nx.average_clustering(nx.watts_strogatz_graph(users, degree, p, seed=s)) for s in graphs]
        for p in (moved, moved + 0.05)
    )
    assert alike(ours, same)
    assert not alike(ours, other), "power: a twentieth more is moved"


def test_scale_free_grows_like_networkx():
    users, links, graphs = 600, 3, range(10)
    ours = [networkx_of(build(f"scale-free:{links}", users, s)) for s in graphs]
    there = [nx.barabasi_albert_graph(users, links, seed=s) for s in graphs]
    evenly = [grown_evenly(users, links, s) for s in graphs]
    assert all(nx.is_connected(graph) for graph in ours)
    assert len({graph.number_of_edges() for graph in ours + there + evenly}) == 1
    assert {min(d for _, d in graph.degree) for graph in ours} == {links}
    ours, there, evenly = (
        [np.mean([d > 2 * links for _, d in graph.degree]) for graph in many]
        for many in (ours, there, evenly)
    )
    assert alike(ours, there)
    assert not alike(ours, evenly), "power: joining uniformly"


def grown_evenly(users, links, seed):
    """A graph that grows as the scale-free one, but whose newcomers join anybody."""
    rng, graph = np.random.default_rng(seed), nx.star_graph(links)
    for new in range(links + 1, users):
        graph.add_edges_from((new, int(old)) for old in rng.choice(new, links, replace=False))
    return graph
