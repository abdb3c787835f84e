"""The worlds that an audit of a run simulates: how many users they have, their graph, faults and public columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.coalition import Coalition
from p2p_sim.core.errors import InputError
from p2p_sim.core.faults import Faults
from p2p_sim.core.groups import Members
from p2p_sim.core.population import Population
from p2p_sim.core.protocol import Protocol
from p2p_sim.network import bags
from p2p_sim.privacy.auditing.worlds import around, met_from
from p2p_sim.privacy.registered import known
from p2p_sim.run import Run

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class RunWorlds:
    """The worlds that an audit of a run simulates.

    ``graph``: "complete"; edges of shape (m, 2), in which the victim is user 0; or None.
    ``description``: who the users of a world are, in words.  ``public``: public columns of a world, taken from users of
    the run, a row each, the victim's first; empty if the run has none, or not those of a world.
    """

    protocol: Protocol
    cluster_size: int
    graph: Any
    faults: Faults | None
    crypto: str
    description: str
    public: Mapping[str, Array] = field(default_factory=dict)

    def check(self, **given: Any) -> None:
        """Raise InputError if an argument contradicts the run; ``given``: by the field's name, None if not given."""
        for name, value in given.items():
            own = getattr(self, name)
            if name == "public" and not own:
                continue  # the run does not know them
            columns = name in ("graph", "public")
            if value is not None and (columns or value != own):
                has = "its own" if columns else own.texts() if isinstance(own, Faults) else repr(own)
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
    accounting = known(program)
    if not accounting.others_matter:
        size, description = colluders + 1, "others change nothing"
    elif accounting.among_clusters is not None and program.mixes_everybody():
        program = accounting.among_clusters(program)  # worlds are not mixed with each other
        size, description = _users(run), "everybody, who are mixed"
    else:
        size, description = _in_cluster(run, program, colluders, cluster_size)
    if cluster_size is not None and cluster_size != size:
        raise InputError(
            f"cluster_size = {cluster_size}: contradicts the run, whose worlds are of {size:,} ({description}): "
            "leave it out"
        )
    world = RunWorlds(program, size, None, run.faults, run.crypto, description)
    people = run.population
    return world if people is None else _with_public(world, people, _rows_of_world(people, program, size))


def _rows_of_world(people: Population, program: Protocol, size: int) -> Array | None:
    """Return the rows of users of a run who can be a world of ``size``: the first cluster, or bag, of this size.

    If there is none, a part of the first cluster that is large enough; else the first users of all.  None if the run
    has only a part of a population, and no whole cluster is large enough.
    """
    codes = np.zeros(people.users, np.int32) if people.clusters is None else people.clusters.codes
    here = np.bincount(codes, minlength=len(people.sizes))  # below people.sizes if the population is a part
    sizes, which = np.unique(here, return_inverse=True)
    cut_into = program.bag_sums()
    smallest = (
        sizes.tolist() if cut_into is None else [bags.smallest(n, cut_into.size) for n in sizes.tolist()]
    )
    worlds = np.array(smallest)[which]
    whole = here == people.sizes
    for fits in (worlds == size, here >= size):
        if bool((whole & fits).any()):
            return np.flatnonzero(codes == np.argmax(whole & fits))[:size]
    return np.arange(size) if people.ids is None and people.users >= size else None


def _with_public(world: RunWorlds, people: Population, rows: Array | None) -> RunWorlds:
    """Return a world with the public columns of some rows, the victim's first; unchanged where there are none."""
    if rows is None or not people.public:
        return world
    public = {name: column[rows] for name, column in people.public.items()}
    victim = int(rows[0] if people.ids is None else people.ids[rows[0]])
    clusters = np.zeros(0) if people.clusters is None else people.clusters.label[rows]
    same = len(clusters) and bool((clusters == clusters[0]).all())
    cluster = f" of cluster {int(clusters[0])}" if same else ""
    note = f"; public columns are those of users{cluster} of the run, the victim's those of user {victim}"
    return replace(world, public=public, description=world.description + note)


def _users(run: Run) -> int:
    if run.users is None:
        raise InputError(
            "an earlier version saved this run, and did not say how many users it has: run it again"
        )
    return run.users


def _in_cluster(run: Run, program: Protocol, colluders: int, wanted: int | None) -> tuple[int, str]:
    """Return how many users hide each other, and who they are, in words: a cluster, or a bag of one."""
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
    """Return the distinct sizes of clusters, ascending, and how many clusters there are.

    Of a run without its population only the smallest and the largest size are known, or none.
    """
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
    edges, description, rows = _part_of_graph(graph, inside)
    world = RunWorlds(program, len(inside), edges, run.faults, run.crypto, description)
    return _with_public(world, run.population, rows)


def _part_of_graph(graph: Members, inside: Array) -> tuple[Any, str, Array]:
    """Return the graph of a connected part; who the victim is, in words; and the rows of its users, hers first."""
    if graph.complete:
        return "complete", "all of them neighbours of each other", inside
    victim = int(inside[graph.size[inside].argmin()])
    fewest = f"none of them has fewer neighbours than her {graph.size[victim]}"
    assumption = f"joined as in the run; the victim is user {victim}, {fewest}"
    return around(graph, victim), assumption, met_from(graph, victim)
