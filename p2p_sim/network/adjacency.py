"""Graphs as adjacency columns, and what must hold of them: nobody alone, one component.

A graph is a ``Members``: the neighbours of user u are ``order[starts[codes[u]] .. starts[codes[u] + 1] - 1]``,
ascending.  A sparse graph has a group a user (``codes`` are 0 .. n - 1).  A complete graph is never written out: all
users of it share one group, **themselves included**, so that a neighbour draw is a draw among everybody (or
everybody of the cluster), as in Algorithm 2 of Clustering 2022; whoever draws herself keeps what she has.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.core.groups import Ids, Members
from p2p_sim.network.blocks import Blocks

Array = npt.NDArray[Any]
_NAMED = 5  # users or components that an error names


def complete(users: int, clusters: Members | None = None) -> Members:
    """Return the complete graph over everyone, or within each cluster, loops included: one shared group each."""
    if clusters is None:
        nobody = np.zeros(users, np.int32)
        return Members(nobody, np.array([0, users]), np.arange(users, dtype=np.int32))
    return Members(clusters.codes, clusters.starts, rows(clusters))


def rows(clusters: Members) -> Ids:
    """Return the users cluster by cluster, ascending in each."""
    return np.arange(len(clusters.codes), dtype=np.int32) if clusters.order is None else clusters.order


def matrix(graph: Members) -> Any:
    """Return the scipy CSR matrix of ones that maps a value a user to sums over each group, (groups, users)."""
    from scipy.sparse import csr_array

    ones = np.ones(len(rows(graph)))
    return csr_array((ones, rows(graph), graph.starts), shape=(len(graph.starts) - 1, len(graph.codes)))


def split(labels: Ids, codes: Ids) -> npt.NDArray[np.bool_]:
    """Return which clusters hold more than one component, for components that stay within clusters."""
    return np.bincount(_clusters_of(labels, codes), minlength=int(codes.max()) + 1) > 1


def _clusters_of(labels: Ids, codes: Ids) -> Ids:
    """Return the cluster of one user of each component."""
    found = np.zeros(int(labels.max()) + 1, np.int32)
    found[labels] = codes
    return found


def require(graph: Members, clusters: Members | None = None) -> None:
    """Check what walks and peers need: nobody alone, and all connected; with clusters, each of them, by its own edges.

    Cheap after the first time, and for a graph that was built here: its components are known.
    """
    if not graph.complete:
        require_nobody_alone(graph)
    if clusters is not None:
        require_within(graph, clusters)
    require_connected(graph, clusters)


def require_within(graph: Members, clusters: Members) -> None:
    """Check that no edge joins two clusters; raises InputError naming the first users of two."""
    labels, codes = graph.components, clusters.codes
    away = np.flatnonzero(_clusters_of(labels, codes)[labels] != codes)
    if len(away):
        part = np.flatnonzero(labels == labels[away[0]])
        one, other = int(part[0]), int(part[codes[part] != codes[part[0]]][0])
        name = clusters.label[[one, other]]
        raise InputError(
            f"the graph links users of different clusters (user {one} of cluster {name[0]} and user {other} of cluster "
            f"{name[1]}): here peers are of one cluster; join(..., within_clusters=True) leaves such edges out"
        )


def require_nobody_alone(graph: Members) -> None:
    """Check that every user has a neighbour; raises InputError naming the first who have none."""
    alone = np.flatnonzero(graph.size == 0)
    if len(alone):
        raise InputError(
            f"{_users(alone)} no neighbour: {len(alone):,} in all; give every user one, or leave these out"
        )


def require_connected(graph: Members, clusters: Members | None = None) -> None:
    """Check that the graph, or its part in each cluster, is connected.

    Raises InputError naming each component, by its smallest id, with its size (the first five).
    """
    if graph.complete and len(graph.starts) == 2:
        return  # everybody is everybody's neighbour
    labels = graph.components
    codes = np.zeros(len(labels), np.int32) if clusters is None else clusters.codes
    broken = np.flatnonzero(split(labels, codes))
    if not len(broken):
        return
    code = int(broken[0])
    of = np.flatnonzero(codes == code)
    _, first, sizes = np.unique(labels[of], return_index=True, return_counts=True)
    named = sorted(zip(of[first].tolist(), sizes.tolist(), strict=True))
    where = "the graph"
    if clusters is not None:
        name = code if clusters.labels is None else clusters.labels[code]
        where = f"the graph within cluster {name} (one of {len(broken):,} such clusters)"
    parts = ", ".join(f"{size:,} users (from user {user})" for user, size in named[:_NAMED])
    more = f" and {len(named) - _NAMED:,} more" if len(named) > _NAMED else ""
    raise InputError(
        f"{where} is not connected: it has {len(named):,} components: {parts}{more}; "
        "add edges between them, or choose a graph of higher degree"
    )


def induced(graph: Members, users: Array) -> Members:
    """Return the graph among some users (ascending ids), numbered from 0 in that order: a cluster's own graph."""
    new = np.full(len(graph.codes), -1, np.int32)
    new[users] = np.arange(len(users), dtype=np.int32)
    if graph.complete:
        codes, renumbered = graph.codes[users], new[rows(graph)]
        groups = np.repeat(np.arange(len(graph.starts) - 1), np.diff(graph.starts))[renumbered >= 0]
        sizes = np.bincount(groups, minlength=len(graph.starts) - 1)
        used = sizes > 0
        codes = (np.cumsum(used, dtype=np.int32) - np.int32(1))[codes]
        return Members(codes, Blocks(sizes[used]).starts, renumbered[renumbered >= 0])
    sizes = graph.size[users]
    local = Blocks(sizes)
    near = new[rows(graph)[graph.starts[:-1][users][local.group] + local.rank]]
    owner = local.group[near >= 0]
    kept_sizes = np.bincount(owner, minlength=len(users))
    return Members(np.arange(len(users), dtype=np.int32), Blocks(kept_sizes).starts, near[near >= 0])


def _users(ids: Array) -> str:
    names = ", ".join(map(str, ids[:_NAMED].tolist())) + (", ..." if len(ids) > _NAMED else "")
    return f"user {names} has" if len(ids) == 1 else f"users {names} have"
