"""The size, graph and number of users of an audit's worlds, taken from a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from p2p_sim.coalition import Coalition
from p2p_sim.core.errors import InputError
from p2p_sim.core.faults import Faults
from p2p_sim.core.groups import Members
from p2p_sim.core.protocol import Protocol
from p2p_sim.network import bags
from p2p_sim.privacy.auditing.worlds import around
from p2p_sim.privacy.registry import known
from p2p_sim.run import Run


@dataclass(frozen=True)
class RunWorlds:
    """What an audit of a run is of.  ``graph``: "complete", edges of shape (m, 2), the victim being 0, or None.

    ``about``: in words, who the users of a world are.
    """

    protocol: Protocol
    cluster_size: int
    graph: Any
    faults: Faults | None
    crypto: str
    about: str

    def check(self, **given: Any) -> None:
        """Check arguments, of which the run has its own, by name; None was not given.  Raises InputError."""
        for name, value in given.items():
            own = getattr(self, name)
            if value is not None and (name == "graph" or value != own):
                has = "its own" if name == "graph" else own.texts() if isinstance(own, Faults) else repr(own)
                raise InputError(f"{name} contradicts the run, which has {has}: leave {name} out")


def world_of(
    run: Run,
    view: str | Sequence[str] = (),
    cluster_size: int | None = None,
    *,
    protocol: Protocol | None = None,
) -> RunWorlds:
    """Return the world of a run in which the fewest others hide the victim, with room for the colluders of the views.

    That is a user by herself where others change nothing, the smallest bag, the smallest cluster, everybody where
    everybody is mixed; with a graph, whom the user with the fewest neighbours can reach.  ``cluster_size``: another of
    the run's sizes.  ``protocol``: of a loaded run, if it is not a shipped one.  Raises InputError for a size that the
    run does not have, and where it is not known, for it was saved without its population.
    """
    program: Protocol = run._program(protocol, "privacy.audit(protocol, ...), or name it beside --run")
    views = [view] if isinstance(view, str) else view
    colluders = max((Coalition.parse(each, program.roles()).user_count for each in views), default=0)
    if program.graph_over() is not None:
        return _on_graph(run, program, colluders, cluster_size)
    about_it = known(program)
    if not about_it.others_matter:
        size, about = colluders + 1, "others change nothing"
    elif about_it.among_clusters is not None and program.mixes_everybody():
        program = about_it.among_clusters(program)  # worlds are not mixed with each other
        size, about = _users(run), "everybody, who are mixed"
    else:
        size, about = _in_cluster(run, program, colluders, cluster_size)
    if cluster_size is not None and cluster_size != size:
        raise InputError(
            f"cluster_size = {cluster_size}: contradicts the run, whose worlds are of {size:,} ({about}): leave it out"
        )
    return RunWorlds(program, size, None, run.faults, run.crypto, about)


def _users(run: Run) -> int:
    if run.users is None:
        raise InputError(
            "an earlier version saved this run, and did not say how many users it has: run it again"
        )
    return run.users


def _in_cluster(run: Run, program: Protocol, colluders: int, wanted: int | None) -> tuple[int, str]:
    """Return how many users hide each other, and who they are: a cluster, or a bag of one."""
    sizes, count = _sizes(run)
    if not sizes:
        if wanted is None:
            raise InputError(
                "this run was saved without its population, and not how many users its clusters have: give "
                "--cluster-size N (cluster_size=N)"
            )
        return wanted, "a cluster, of a size that the run did not keep"
    what, several = "cluster", f"the {count:,} clusters have" if count > 1 else "everybody is in it:"
    cut_into = program.bag_sums()
    if cut_into is not None:
        cut = [bags.smallest(size, cut_into.size) for size in sizes]
        sizes, what, several = sorted(set(cut)), "bag", "the smallest bags of clusters have"
    span = f"{sizes[0]:,}" + (f" to {sizes[-1]:,}" if len(sizes) > 1 else "")
    if wanted is not None:
        among = wanted in sizes if run.population is not None else sizes[0] <= wanted <= sizes[-1]
        if not among:
            raise InputError(
                f"cluster_size = {wanted}: contradicts the run, no {what} has so many users; {several} {span}"
            )
        return wanted, f"a {what} of {wanted:,} users; {several} {span}"
    size = next((size for size in sizes if size > colluders), sizes[-1])
    room = "" if size == sizes[0] else f" with room for {colluders} colluders"
    one = f"a {what}" if len(sizes) == 1 else f"the smallest {what}"
    return size, f"{one}{room}; {several} {span} users"


def _sizes(run: Run) -> tuple[list[int], int]:
    """Return the distinct sizes of clusters, ascending, as far as known, and how many clusters there are."""
    if run.population is not None:
        return np.unique(run.population.sizes).tolist(), len(run.population.sizes)
    if "clusters" not in run.notes:
        return [], 0
    clusters = run.notes["clusters"]
    return (
        ([_users(run)], 1)
        if clusters is None
        else (sorted({clusters["minimum"], clusters["maximum"]}), clusters["count"])
    )


def _on_graph(run: Run, program: Protocol, colluders: int, wanted: int | None) -> RunWorlds:
    """Return the world of the user with the fewest neighbours, in the smallest part of the graph."""
    if run.population is None or run.population.graph is None:
        raise InputError(
            "this run was saved without its population, so who is joined to whom is not known: audit the protocol, "
            "with --graph and --cluster-size (graph=, cluster_size=), instead of the run"
        )
    graph = run.population.graph
    part = graph.components
    sizes = np.bincount(part)
    room = np.where(sizes > colluders, sizes, np.iinfo(np.int64).max)
    if wanted is not None:
        room = np.where(sizes == wanted, sizes, np.iinfo(np.int64).max)
        if wanted not in sizes:
            raise InputError(
                f"cluster_size = {wanted}: contradicts the run, whose graph joins {sizes.min():,} to "
                f"{sizes.max():,} users; leave it out"
            )
    inside = np.flatnonzero(part == room.argmin())
    edges, about = _joins(graph, inside)
    return RunWorlds(program, len(inside), edges, run.faults, run.crypto, about)


def _joins(graph: Members, inside: Any) -> tuple[Any, str]:
    """Return the graph of a part, and who is the victim in it."""
    if graph.complete:
        return "complete", "all of them neighbours of each other"
    victim = int(inside[graph.size[inside].argmin()])
    fewest = f"none of them has fewer neighbours than her {graph.size[victim]}"
    return around(graph, victim), f"joined as in the run; the victim is user {victim}, {fewest}"
