"""Graphs over users from a word: complete, regular:20, small-world:10,0.1, scale-free:3, grid, ring:2.

Every kind is built here as columns, at any size, from keyed words: a graph is a function of seed, users and
clusters, the same on every machine and in every release, which a library's own generator is not.  networkx
is the reference in the tests, and its graphs can be given.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core import exact
from p2p_sim.core.engine import Progress
from p2p_sim.core.errors import InputError, near
from p2p_sim.core.groups import Members, joined
from p2p_sim.core.number_texts import read_number
from p2p_sim.core.population import Population, check_seed
from p2p_sim.network import edges, room, shapes
from p2p_sim.network.adjacency import complete, require_connected, rows, split
from p2p_sim.network.blocks import Blocks, Draws, Ints, all_pairs
from p2p_sim.network.regular import regular

TRIES = 20
"""How often a graph is drawn anew where it is not connected: its law is conditional on being so."""

_FORMS = {
    "complete": r"complete",
    "regular": r"regular:(?P<degree>[0-9]{1,9})",
    "small-world": r"small-world:(?P<degree>[0-9]{1,9}),(?P<moved>[^,]+)",
    "scale-free": r"scale-free:(?P<degree>[0-9]{1,9})",
    "grid": r"grid",
    "ring": r"ring:(?P<degree>[0-9]{1,9})",
}
KINDS = tuple(form.partition("(")[0] for form in _FORMS.values())
"""What the texts of topologies begin with."""

_ALLOWED = (
    "complete, regular:DEGREE, small-world:DEGREE,PROBABILITY, scale-free:LINKS, grid, ring:DEGREE, "
    "or the path of a .csv or .parquet edge list"
)


@dataclass(frozen=True)
class Topology:
    """A kind of graph.

    ``degree``: neighbours of a user; for scale-free, those whom a new user joins; 0 for complete and grid.
    ``moved``: for small-world, the probability that an edge of the ring is moved.
    Raises InputError for numbers out of range.
    """

    kind: str
    degree: int = 0
    moved: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in _FORMS:
            raise InputError(
                f"graph {self.kind!r} is not known: allowed are {_ALLOWED}{near(str(self.kind), _FORMS)}"
            )
        if self.kind not in ("complete", "grid") and self.degree < 1:
            raise InputError(f"graph = {str(self)!r}: {self.number} must be 1 or more")
        if self.kind in ("small-world", "ring") and self.degree % 2:
            raise InputError(
                f"graph = {str(self)!r}: the degree must be even, half of it on each side of a ring"
            )
        if not 0 <= self.moved <= 1:
            raise InputError(f"graph = {str(self)!r}: the probability must lie from 0 to 1")

    @property
    def number(self) -> str:
        """What its number is called."""
        return "the links of a new user" if self.kind == "scale-free" else "the degree"

    def __str__(self) -> str:
        degree = "" if self.kind in ("complete", "grid") else f":{self.degree}"
        return f"{self.kind}{degree}" + (f",{self.moved!r}" if self.kind == "small-world" else "")


def parse(text: str) -> Topology:
    """Read a topology such as ``regular:20``; raises InputError for other text and for numbers out of range."""
    for kind, form in _FORMS.items():
        found = re.fullmatch(form, text) if isinstance(text, str) else None
        if found:
            parts = found.groupdict()
            return Topology(
                kind, int(parts.get("degree") or 0), _probability(text, parts.get("moved") or "0")
            )
    raise InputError(f"graph = {text!r}: allowed are {_ALLOWED}{near(str(text).partition(':')[0], _FORMS)}")


def _probability(graph: str, text: str) -> float:
    try:
        return read_number(text)
    except ValueError as error:
        raise InputError(f"graph = {graph!r}: its probability {text!r} {error}") from None


def build(
    topology: str | Topology,
    users: int,
    seed: int,
    *,
    clusters: Members | None = None,
    progress: Progress | None = None,
) -> Members:
    """Return a connected graph over users 0 .. users - 1, or one within each cluster.

    Within clusters, one of degree + 1 users or fewer gets all its pairs.  A graph that is not connected is drawn anew,
    cluster by cluster.  Raises InputError where no such graph exists, this machine's memory cannot hold it, or 20 tries
    found none.
    """
    kind = parse(topology) if isinstance(topology, str) else topology
    check_seed(seed)
    sizes = np.array([users]) if clusters is None else np.diff(clusters.starts)
    _check_sizes(kind, sizes, clusters)
    room.require(kind.kind, kind.degree, sizes, str(kind))
    if kind.kind == "complete":
        return complete(users, clusters)
    blocks, todo = Blocks(sizes), np.ones(len(sizes), np.bool_)
    pairs = np.zeros((0, 2), np.int64)
    row = None if clusters is None else clusters.order
    codes = blocks.group.astype(np.int32) if clusters is None else clusters.codes
    for attempt in range(TRIES):
        step = _steps(kind, attempt, progress)
        settled = pairs[~todo[blocks.group[pairs[:, 0]]]]
        step("drawing edges", 0)
        fresh = _draw(kind, blocks, todo, Draws(seed, str(kind), attempt), progress)
        pairs = np.concatenate([settled, fresh]) if len(settled) else fresh
        step("sorting neighbours", 1)
        graph = joined(pairs if row is None else row[pairs], users)
        step("looking whether it is connected", 2)
        todo = split(graph.components, codes)
        if not todo.any():
            return graph
    require_connected(graph, clusters)
    raise AssertionError("a graph that was split is connected")


def _steps(kind: Topology, attempt: int, progress: Progress | None) -> Callable[[str, int], None]:
    """Return what tells a step of one attempt, and how many of all are done."""
    again = f" (try {attempt + 1} of {TRIES})" if attempt else ""

    def step(what: str, done: int) -> None:
        if progress is not None:
            progress(f"joining users: {kind}{again}, {what}, steps done", done, 3)

    return step


def graph_of(
    source: Any, users: int, seed: int, *, clusters: Members | None = None, progress: Progress | None = None
) -> Members:
    """Return the graph that a word, a file, an edge array of shape (m, 2) or a networkx graph describes."""
    if isinstance(source, Path) or (isinstance(source, str) and source.endswith(edges.SUFFIXES)):
        return edges.from_edges(edges.read(source), users, clusters)
    if isinstance(source, (str, Topology)):
        return build(source, users, seed, clusters=clusters, progress=progress)
    if hasattr(source, "nodes") and hasattr(source, "edges"):
        source = edges.of_networkx(source)
    return edges.from_edges(source, users, clusters)


def join(
    population: Population,
    source: Any,
    seed: int,
    *,
    within_clusters: bool = False,
    progress: Progress | None = None,
) -> Population:
    """Return the same users joined by a graph (see ``graph_of``): gives ``me.neighbours``."""
    if population.ids is not None:
        raise InputError("give the whole population its graph: a part's users keep the ids of the whole")
    clusters = population.clusters if within_clusters else None
    graph = graph_of(source, population.users, seed, clusters=clusters, progress=progress)
    return replace(population, graph=graph)


def _draw(
    kind: Topology,
    blocks: Blocks,
    todo: npt.NDArray[np.bool_],
    draws: Draws,
    progress: Progress | None = None,
) -> Ints:
    """Return the pairs of the groups to do, in places of all the blocks."""
    small = todo & (blocks.sizes <= kind.degree + 1)
    large = todo & ~small
    parts = []
    for chosen, whole in ((small, True), (large, False)):
        if chosen.any():
            part = blocks if chosen.all() else Blocks(blocks.sizes[chosen])
            pairs = all_pairs(part) if whole else _draw_large(kind, part, draws, progress)
            parts.append(pairs if part is blocks else np.flatnonzero(chosen[blocks.group])[pairs])
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _draw_large(kind: Topology, blocks: Blocks, draws: Draws, progress: Progress | None) -> Ints:
    if kind.kind == "regular":
        return regular(blocks, kind.degree, draws)
    if kind.kind == "small-world":
        return shapes.small_world(blocks, kind.degree, exact.threshold("moved", kind.moved), draws)
    if kind.kind == "scale-free":
        label = f"joining users: {kind}, users joined"
        tell = None if progress is None else lambda done, total: progress(label, done, total)
        return shapes.scale_free(blocks, kind.degree, draws, tell)
    return shapes.ring(blocks, kind.degree) if kind.kind == "ring" else shapes.grid(blocks)


def _check_sizes(kind: Topology, sizes: Ints, clusters: Members | None) -> None:
    """Check that a graph of this kind exists for every group: with more than one user, and the numbers right."""
    if kind.kind == "complete":
        return

    def where(code: int) -> str:
        if clusters is None:
            return f"{sizes[0]:,} users"
        name = code if clusters.labels is None else clusters.labels[code]
        return f"cluster {name} of {sizes[code]:,} users"

    alone = np.flatnonzero(sizes == 1)
    if len(alone) and clusters is None:
        raise InputError(
            f"graph = {str(kind)!r}: one user alone has no neighbour: give more users, or complete"
        )
    if len(alone) and clusters is not None:
        names = rows(clusters)[clusters.starts[alone[:5]]].tolist()
        raise InputError(
            f"graph = {str(kind)!r}: {len(alone):,} users would have no neighbour, alone in their clusters "
            f"(user {', '.join(map(str, names))}{', ...' if len(alone) > 5 else ''}): merge these clusters"
        )
    if clusters is None and kind.degree >= sizes[0]:
        raise InputError(
            f"graph = {str(kind)!r}: {kind.number} must be below the number of users, {sizes[0]:,}"
        )
    if kind.kind != "regular":
        return
    odd = np.flatnonzero((sizes * kind.degree % 2 == 1) & (sizes > kind.degree + 1))
    if len(odd):
        raise InputError(
            f"graph = {str(kind)!r}: no such graph has {where(int(odd[0]))}, degree times users is odd: "
            "choose an even degree"
        )
    thin = np.flatnonzero(sizes > (2 if kind.degree == 1 else 5))  # five users with two each are a circle
    if kind.degree < 3 and len(thin):
        raise InputError(
            f"graph = {str(kind)!r}: with {where(int(thin[0]))} it falls into pieces: "
            "choose a degree of 3 or more, or ring:2"
        )
