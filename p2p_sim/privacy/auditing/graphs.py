"""Worlds whose users are joined by a graph: one copy of it each, and which reports are likely to be the victim's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.backends import layout
from p2p_sim.core.errors import InputError
from p2p_sim.core.groups import Members, joined
from p2p_sim.core.population import Population
from p2p_sim.core.protocol import Protocol
from p2p_sim.network import topologies
from p2p_sim.network.adjacency import matrix
from p2p_sim.network.edges import SUFFIXES
from p2p_sim.privacy.registry import known

Floats = npt.NDArray[np.float64]


def world(protocol: Protocol, graph: Any, size: int, seed: int) -> Population | None:
    """Return the users of one world, joined by a graph; None for a protocol without one.

    ``graph``: what ``network.topologies.graph_of`` takes; users of one that a word describes are numbered by their
    distance from the first, so that colluders stand next to the victim.  Raises InputError where there is a graph and
    the protocol uses none or the other way round, and for graphs that cannot be.
    """
    if graph is None:
        if protocol.graph_over() is not None:
            raise layout.no_graph(protocol)
        return None
    if protocol.graph_over() is None:
        raise InputError(f"{type(protocol).__name__} uses no graph: leave graph = {graph!r} out")
    users = topologies.join(Population(np.zeros(size, np.bool_)), graph, seed)
    assert users.graph is not None
    named = not isinstance(graph, str) or graph.endswith(SUFFIXES) or users.graph.complete
    return users if named else replace(users, graph=joined(around(users.graph, 0), size))


def around(graph: Members, first: int) -> npt.NDArray[np.int64]:
    """Return the edges among all whom a search from one user meets, numbered as they are met: she is 0; shape (m, 2).

    ``graph``: not a complete one.
    """
    from scipy.sparse.csgraph import breadth_first_order

    met = breadth_first_order(matrix(graph), first, return_predecessors=False)
    place = np.full(len(graph.codes), -1)
    place[met] = np.arange(len(met))
    near, starts = graph.pick(met).everybody()
    ends = np.stack([np.repeat(np.arange(len(met)), np.diff(starts)), place[near]], axis=1)
    return ends[ends[:, 0] < ends[:, 1]]


def copies(graph: Members, worlds: int) -> Members:
    """Return so many copies of the graph of a world, side by side."""
    groups, users = len(graph.starts) - 1, len(graph.codes)
    assert graph.order is not None
    number, ends = np.arange(worlds)[:, None], len(graph.order)
    codes = (graph.codes + number * groups).ravel().astype(np.int32)
    order = (graph.order + number * users).ravel().astype(np.int32)
    starts = np.append((graph.starts[:-1] + number * ends).ravel(), worlds * ends)
    return Members(codes, starts, order)


def weights(protocol: Protocol, graph: Members) -> Floats | None:
    """Return how likely a report of each user is the label of the first, the victim; None if nobody knows."""
    found = known(protocol).reports_of_victim
    return None if found is None else found(protocol, graph)
