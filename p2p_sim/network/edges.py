"""Graphs from the caller: edge lists from arrays, files and networkx, checked line by line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.core.groups import Members, joined
from p2p_sim.core.population import pandas_index
from p2p_sim.network.adjacency import require_connected, require_nobody_alone
from p2p_sim.network.blocks import keys

Array = npt.NDArray[Any]
_NAMED = 5
SUFFIXES = (".csv", ".parquet")


def read(path: str | Path) -> Array:
    """Return the edges of a CSV or Parquet file of two integer columns, shape (m, 2); a CSV may have a header.

    Raises InputError for other files, columns that are not two, missing values and fractions.
    """
    from pyarrow import ArrowInvalid, csv, parquet, types

    source = Path(path)
    if source.suffix not in SUFFIXES or not source.is_file():
        raise InputError(f"no edge list {str(source)!r}: give the path of a .csv or .parquet file")
    try:
        if source.suffix == ".parquet":
            table = parquet.ParquetFile(source).read()
            table = table.drop_columns(pandas_index(table))  # which are no ends of edges
        else:
            with source.open(encoding="utf-8-sig", errors="replace") as lines:
                head = [part.strip(' "\r\n') for part in lines.readline().split(",")]
            # whatever looks like a number is no name of a column, lest an edge be taken for a header and lost
            bare = any(part[:1] in "+-.0123456789" for part in head if part)
            table = csv.read_csv(source, csv.ReadOptions(autogenerate_column_names=bare))
        names = table.column_names
    except (ArrowInvalid, OSError, UnicodeDecodeError) as error:
        raise InputError(f"edge list {str(source)!r} cannot be read: {error}") from error
    if not table.num_rows:
        raise InputError(f"edge list {str(source)!r} has no edges: give a pair of users a row")
    if table.num_columns != 2:
        raise InputError(
            f"edge list {str(source)!r} has the columns {names}: needed are two, a pair of users a row"
        )
    for name, column in zip(names, table.columns, strict=True):
        if column.null_count or not types.is_integer(column.type):
            raise InputError(
                f"column {name!r} of edge list {str(source)!r} has type {column.type} and {column.null_count:,} "
                "missing values: needed are the ids of users, whole numbers"
            )
    try:  # of one type: numpy would join int64 and uint64 as floats
        return np.column_stack([column.cast("int64").to_numpy() for column in table.columns])
    except ArrowInvalid as error:
        raise InputError(
            f"edge list {str(source)!r} holds ids that no user has: {error}; remove them"
        ) from error


def of_networkx(graph: Any) -> Array:
    """Return the edges of a networkx graph whose nodes are users' ids, shape (m, 2)."""
    if graph.is_directed():
        raise InputError("the networkx graph is directed: give graph.to_undirected()")
    strange = [node for node in graph.nodes if not isinstance(node, (int, np.integer))]
    if strange:
        digits = all(isinstance(node, str) and node.isascii() and node.isdigit() for node in strange)
        mapping = "int" if digits else "users, where users maps every node to her id"
        raise InputError(
            f"nodes of the networkx graph are not ids, first {strange[0]!r}: give "
            f"networkx.relabel_nodes(graph, {mapping}) (numbering nodes as they appear would join other users)"
        )
    try:
        return np.array([edge[:2] for edge in graph.edges], np.int64).reshape(-1, 2)
    except OverflowError:
        raise InputError(
            f"node {max(graph.nodes, key=abs)} of the networkx graph is no user: ids are 0 to the number of users - 1"
        ) from None


def from_edges(edges: Any, users: int, clusters: Members | None = None) -> Members:
    """Return the graph of an own edge list, shape (m, 2), each pair of users once, in either direction.

    With clusters only edges within one count: peers are neighbours of the same cluster.  Raises InputError as
    ``checked`` does, and for users without a neighbour, and a graph that is not connected.
    """
    pairs = checked(edges, users)
    if clusters is not None:
        pairs = pairs[clusters.codes[pairs[:, 0]] == clusters.codes[pairs[:, 1]]]
    graph = joined(pairs, users)
    require_nobody_alone(graph)
    require_connected(graph, clusters)
    return graph


def checked(edges: Any, users: int) -> Array:
    """Return edges as int64, shape (m, 2); raises InputError naming the first of unknown users, loops and doubles."""
    pairs = np.asarray(edges)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "ui":
        raise InputError(
            f"edges of shape {pairs.shape}, type {pairs.dtype}: needed are integers of shape (m, 2)"
        )
    strange: npt.NDArray[np.bool_] = np.asarray((pairs < 0) | (pairs >= users), np.bool_)
    unknown = strange[:, 0] | strange[:, 1]
    _refuse(pairs, unknown, f"name users who are not there (users are 0 to {users - 1:,})", "remove them")
    pairs = pairs.astype(np.int64)
    _refuse(pairs, pairs[:, 0] == pairs[:, 1], "join a user to herself", "remove them")
    key = keys(pairs[:, 0], pairs[:, 1], max(1, users.bit_length()))
    again = np.ones(len(key), np.bool_)
    again[np.unique(key, return_index=True)[1]] = False
    _refuse(pairs, again, "repeat a pair", "list each pair once, in one direction")
    return pairs


def _refuse(pairs: Array, wrong: npt.NDArray[np.bool_], what: str, fix: str) -> None:
    at = np.flatnonzero(wrong)
    if len(at):
        named = ", ".join(f"row {row}: {pairs[row, 0]}, {pairs[row, 1]}" for row in at[:_NAMED].tolist())
        more = ", ..." if len(at) > _NAMED else ""
        raise InputError(f"{len(at):,} edges {what} ({named}{more}): {fix}")
