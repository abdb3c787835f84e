"""The graph of a run's users: whether its protocol needs one, and users joined by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.backends.layout import no_graph
from p2p_sim.core.engine import Progress
from p2p_sim.core.errors import InputError
from p2p_sim.core.population import Population
from p2p_sim.core.protocol import Protocol
from p2p_sim.network import edges, topologies

Array = npt.NDArray[Any]


def check(protocol: Protocol, source: Any) -> None:
    """Check, before any work, that there is a graph if and only if the protocol uses one; raises InputError.

    ``source``: None, text such as "regular:20", or anything else that ``network.topologies.graph_of`` accepts.
    """
    over = protocol.graph_over()
    if source is None:
        if over is not None:
            raise no_graph(protocol)
        return
    if over is None:
        raise InputError(
            f"{type(protocol).__name__} uses no graph: leave out --graph {source}, in Python graph= (PeerToPeer uses "
            "one with over = neighbours; one of your own says that it does in `def graph_over(self)`)"
        )
    if isinstance(source, str) and not source.endswith(edges.SUFFIXES):
        topologies.parse(source)


def join(
    protocol: Protocol,
    people: Population,
    source: Any,
    seed: int,
    progress: Progress | None = None,
    *,
    rows: Array | None = None,
    total: int = 0,
) -> tuple[Population, dict[str, Any] | None]:
    """Return the users joined by a graph, over all users or in each cluster as the protocol needs, and its figures.

    ``rows``: the row of each user in a data set of ``total`` rows; edges in a file then name rows of the data set, and
    edges of test rows are left out.  Without a source, returns the users unchanged and None.  Raises InputError for an
    impossible graph, an isolated user, or a graph that is not connected.
    """
    if source is None:
        return people, None
    if progress is not None:
        progress(f"joining users: {source}", 0, 0)
    within, given = protocol.graph_over() == "cluster", source
    if rows is not None and isinstance(source, (str, Path)) and str(source).endswith(edges.SUFFIXES):
        given = _of_users(edges.checked(edges.read(source), total), rows, total)
    joined = topologies.join(people, given, seed, within_clusters=within, progress=progress)
    return joined, _figures(str(source), joined, within)


def _figures(source: str, people: Population, within: bool) -> dict[str, Any]:
    """Return the source of a graph, whether it is over everybody or in clusters, and the numbers of neighbours."""
    graph = people.graph
    assert graph is not None
    sizes = np.diff(graph.starts) if len(graph.starts) == 2 else graph.size  # of one group all are alike
    return {
        "source": source, "over": "cluster" if within and people.clusters is not None else "everybody",
        "complete": graph.complete, "minimum": int(sizes.min()), "median": float(np.median(sizes)),
        "maximum": int(sizes.max()),
    }  # fmt: skip


def _of_users(pairs: Array, rows: Array, total: int) -> Array:
    """Turn pairs of data set rows into pairs of users; pairs with a row that is no user are dropped."""
    user = np.full(total, -1, np.int64)
    user[rows] = np.arange(len(rows))
    ends = user[pairs]
    return ends[(ends >= 0).all(axis=1)]
