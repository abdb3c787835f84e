"""The graph of a run: whether its protocol takes one, joined to its users, and told in numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.backends.layout import no_graph
from p2p_sim.core.engine import Progress
from p2p_sim.core.errors import InputError
from p2p_sim.core.population import Population
from p2p_sim.network import edges, topologies

Array = npt.NDArray[Any]


def check(protocol: Any, source: Any) -> None:
    """Check, before any work, that there is a graph if and only if the protocol uses one; raises InputError.

    ``source``: None, a word such as "regular:20", or what else ``network.topologies.graph_of`` takes.
    """
    over = protocol.graph_over()
    if source is None:
        if over is not None:
            raise no_graph(protocol)
        return
    if over is None:
        raise InputError(
            f"{type(protocol).__name__} uses no graph: leave out --graph {source} (PeerToPeer uses one with over = "
            "neighbours; one of your own says that it does in `def graph_over(self)`)"
        )
    if isinstance(source, str) and not source.endswith(edges.SUFFIXES):
        topologies.parse(source)


def join(
    protocol: Any,
    people: Population,
    source: Any,
    seed: int,
    progress: Progress | None = None,
    *,
    rows: Array | None = None,
    total: int = 0,
) -> tuple[Population, dict[str, Any] | None]:
    """Return the users joined by a graph, over everybody or in each cluster as the protocol says, and its numbers.

    ``rows``: the row of each user in a data set of ``total`` rows.  The edges of a file then name rows of the data set;
    those of rows that test are left out.  Without a source, the users as they are and None.  Raises InputError for a
    graph that cannot be, that leaves a user alone or that is not connected.
    """
    if source is None:
        return people, None
    if progress is not None:
        progress(f"joining users: {source}", 0, 0)
    within, given = protocol.graph_over() == "cluster", source
    if rows is not None and isinstance(source, (str, Path)) and str(source).endswith(edges.SUFFIXES):
        given = _of_users(edges.checked(edges.read(source), total), rows, total)
    joined = topologies.join(people, given, seed, within_clusters=within)
    return joined, describe(str(source), joined, within)


def describe(source: str, people: Population, within: bool) -> dict[str, Any]:
    """Return where a graph comes from, over whom it is, and how many neighbours users have."""
    graph = people.graph
    assert graph is not None
    sizes = graph.size
    return {
        "source": source, "over": "cluster" if within and people.clusters is not None else "everybody",
        "complete": graph.complete, "minimum": int(sizes.min()), "median": float(np.median(sizes)),
        "maximum": int(sizes.max()),
    }  # fmt: skip


def _of_users(pairs: Array, rows: Array, total: int) -> Array:
    """Turn pairs of rows of a data set into pairs of users, without those of rows that are no user."""
    user = np.full(total, -1, np.int64)
    user[rows] = np.arange(len(rows))
    ends = user[pairs]
    return ends[(ends >= 0).all(axis=1)]
