"""Worlds: many independent copies of a small situation, joined by a graph or not, as disjoint clusters of one run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim import backends
from p2p_sim.backends import layout, local
from p2p_sim.coalition import Coalition
from p2p_sim.core.errors import InputError, MissingColumnError
from p2p_sim.core.faults import Faults
from p2p_sim.core.groups import Members, joined
from p2p_sim.core.message import USER, Message
from p2p_sim.core.population import MAX_USERS, Population
from p2p_sim.core.protocol import Protocol
from p2p_sim.core.random_words import stream, words
from p2p_sim.core.synthetic import placeholders
from p2p_sim.core.trace_level import TraceLevel, Watch
from p2p_sim.network import topologies
from p2p_sim.network.adjacency import matrix
from p2p_sim.network.edges import SUFFIXES
from p2p_sim.privacy.auditing import numbering
from p2p_sim.privacy.auditing.seen import Seen, SeenMessages
from p2p_sim.privacy.registered import known
from p2p_sim.trace.replay import Draws, Recorder

Array = npt.NDArray[Any]

MOST = 8
"""Of so many colluders, and of so many values that one of them draws at a time, each gives a number."""


def drawn(
    protocol: Protocol, population: Population, coalition: Coalition, seed: int, faults: Faults | None
) -> Draws:
    """Return what the users of a coalition draw in a run, by running it again here: draws depend on nothing else."""
    members = np.array(sorted(coalition.users), np.int64)
    if not len(members):
        return {}
    recorder = Recorder({USER: members})
    local.run(protocol, population, seed, digest=False, watch=recorder.watch, faults=faults)
    return recorder.columns()


def numbers(draws: Draws, size: int, worlds: int) -> tuple[Array, list[str]]:
    """Return a table (worlds, f) of drawn values, and names; a user of the world is named by her place in it."""
    names: list[str] = []
    columns: list[Array] = []
    for drawn_from, drawn in sorted(draws.items()):
        if drawn["value"].ndim > 1:
            continue
        world, place = np.divmod(drawn["party"], size)
        value = drawn["value"].astype(np.float64)
        value = value - world * numbering.a_world(drawn["value"], world, size, worlds)
        recorded = (place <= MOST) & (drawn["slot"] < MOST)
        for who in np.unique(place[recorded]).tolist():
            for slot in np.unique(drawn["slot"][recorded & (place == who)]).tolist():
                mine = recorded & (place == who) & (drawn["slot"] == slot)
                column = np.zeros(worlds)
                column[world[mine]] = value[mine]
                names.append(f"{drawn_from} drawn by colluder {who}, number {slot}")
                columns.append(column)
    return (np.stack(columns, axis=1) if columns else np.zeros((worlds, 0))), names


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
    order = met_from(graph, first)
    place = np.full(len(graph.codes), -1)
    place[order] = np.arange(len(order))
    near, starts = graph.pick(order).everybody()
    ends = np.stack([np.repeat(np.arange(len(order)), np.diff(starts)), place[near]], axis=1)
    return ends[ends[:, 0] < ends[:, 1]]


def met_from(graph: Members, first: int) -> Array:
    """Return all whom a search from one user meets, in that order; she is the first.  ``graph``: not a complete one."""
    from scipy.sparse.csgraph import breadth_first_order

    order: Array = breadth_first_order(matrix(graph), first, return_predecessors=False)
    return order


def copies(graph: Members, worlds: int) -> Members:
    """Return so many copies of the graph of a world, side by side."""
    groups, users = len(graph.starts) - 1, len(graph.codes)
    assert graph.order is not None
    number, ends = np.arange(worlds)[:, None], len(graph.order)
    codes = (graph.codes + number * groups).ravel().astype(np.int32)
    order = (graph.order + number * users).ravel().astype(np.int32)
    starts = np.append((graph.starts[:-1] + number * ends).ravel(), worlds * ends)
    return Members(codes, starts, order)


def report_weights(protocol: Protocol, graph: Members) -> Floats | None:
    """Return how likely a report of each user is the label of the first, the victim; None if nobody knows."""
    found = known(protocol).reports_of_victim
    return None if found is None else found(protocol, graph)


LABELS = (0, 1)
"""The victim's two labels, unless others are compared."""

_BATCH = 1_000_000
"""Users of one run, on every backend, so that all draw the same."""

_MOST_OCTETS = 1 << 28
"""Octets of the public columns and features of one run, which are the same in all of its worlds."""


@dataclass(frozen=True)
class Situation:
    """What every world is: a protocol among ``size`` users, and who looks.

    ``coalition``: its users are the colluders, whatever they are called.  ``composition``: honest others with the
    second of ``labels``; everybody else but the victim has the first.  ``labels``: those of the victim that are
    compared, at least two.  ``graph``: that joins the users of a world.  ``public``: columns of them by name, ``size``
    rows each, the victim's first, then the colluders'; they are the same in all worlds, whatever the victim's label.
    So are features, which are made up for a protocol that needs some (``Protocol.feature_count``).
    """

    protocol: Protocol
    coalition: Coalition
    size: int
    composition: int
    channels: str = "plain"
    graph: Members | None = None
    public: Mapping[str, Array] = field(default_factory=dict)
    labels: tuple[int, ...] = LABELS

    @property
    def colluders(self) -> int:
        """Users of the victim's cluster in the coalition."""
        return self.coalition.user_count

    def population(self, worlds: int) -> Population:
        """Return ``worlds`` worlds, in which the victim has the first label."""
        first, second = self.labels[:2]
        world = np.full(self.size, first, np.min_scalar_type(self.protocol.label_count() - 1))
        world[1 + self.colluders : 1 + self.colluders + self.composition] = second
        y = np.tile(world, worlds)
        labels: Array = y.view(np.bool_) if self.protocol.label_count() == 2 else y
        names = np.arange(worlds, dtype=np.int32)
        starts = np.arange(worlds + 1, dtype=np.int64) * self.size
        clusters = Members(np.repeat(names, self.size), starts, None, names)
        public = {
            name: np.tile(column, (worlds, *([1] * (column.ndim - 1))))
            for name, column in self.public.items()
        }
        width = self.protocol.feature_count()
        x = None if width is None else np.tile(placeholders(self.size, width), (worlds, 1))
        if self.graph is None:
            return Population(labels, clusters, x, public)
        # ids: parts of a population, whose graph was checked, for all copies together are not connected
        graph = copies(self.graph, worlds)
        return Population(labels, clusters, x, public, graph=graph, ids=np.arange(len(labels)))

    def everybody(self, worlds: int) -> Coalition:
        """Return the coalitions of all worlds as one, its users by their ids."""
        places = np.arange(1, 1 + self.colluders)
        ids = (np.arange(worlds)[:, None] * self.size + places).ravel().tolist()
        return Coalition(self.coalition.servers, frozenset(ids), 0, self.coalition.wire)


def batches(
    situation: Situation, trials: int, seed: int, settings: backends.Settings, *, draws: bool = False
) -> Iterator[Seen]:
    """Run ``trials`` worlds a label, in batches; yield what was seen.

    Which worlds have which label is drawn at random over all batches: where a world stands, and what others of its
    batch show, tells nothing of its label.  ``draws``: also what the colluders drew, which takes each batch once more.
    """
    kinds = len(situation.labels)
    parts = _parts(batch_seed(seed, 0), kinds * trials, kinds)
    each = _each(situation.protocol, situation.size, situation.public, kinds)
    population, coalition = None, situation.coalition
    for number, first in enumerate(range(0, trials, each)):
        worlds = kinds * min(each, trials - first)
        if worlds * situation.size > MAX_USERS:
            raise InputError(
                f"cluster_size = {situation.size:,}: two worlds have more than {MAX_USERS:,} users"
            )
        if population is None or len(population.sizes) != worlds:
            population, coalition = situation.population(worlds), situation.everybody(worlds)
        chance = batch_seed(seed, number)
        which = parts[kinds * first : kinds * first + worlds]
        people = _labelled(population, np.array(situation.labels)[which])
        seen = observe(situation, people, coalition, chance, settings)
        own = drawn(situation.protocol, people, coalition, chance, settings.faults) if draws else {}
        yield replace(seen, ones=which == 1, draws=own, which=which)


def users_a_batch(
    protocol: Protocol, size: int, trials: int, public: Mapping[str, Array] | None = None
) -> int:
    """Return the most users of one run of an audit; ``public``: columns of the users of a world."""
    return 2 * size * min(trials, _each(protocol, size, public or {}))


def _each(protocol: Protocol, size: int, public: Mapping[str, Array], kinds: int = len(LABELS)) -> int:
    """Return how many worlds a label are run at once.

    Fewer where users send more than a few messages each, or have wide public columns.
    """
    most = protocol.users_at_once(size)
    octets = sum(column.nbytes for column in public.values()) + 8 * size * (protocol.feature_count() or 0)
    room = size * _MOST_OCTETS // octets if octets else _BATCH
    return max(1, min(_BATCH, room, _BATCH if most is None else most) // size // kinds)


def _parts(seed: int, worlds: int, kinds: int) -> Array:
    """Return for each world which label the victim has, from 0 up: each in as many worlds, drawn at random."""
    each = worlds // kinds
    order = np.argpartition(
        words(seed, stream("audit", "label", 0), 0, worlds), np.arange(each, worlds, each)
    )
    which = np.empty(worlds, np.min_scalar_type(kinds))
    for part in range(kinds):
        which[order[part * each : (part + 1) * each]] = part
    return which


def _labelled(population: Population, labels: Array) -> Population:
    """Return the worlds with the victims' labels put in."""
    y = population.y.copy()
    y[:: len(y) // len(labels)] = labels
    return replace(population, y=y)


def seed_of(seed: int, what: str) -> int:
    """Return the seed of worlds that share nothing with those of ``seed``, by what they are for."""
    return int.from_bytes(hashlib.sha256(f"{what}/{seed}".encode()).digest()[:8], "little")


def batch_seed(seed: int, number: int) -> int:
    """Return the run seed of a batch; no two batches of any audits share a stream by being neighbours."""
    return int.from_bytes(hashlib.sha256(f"audit/{seed}/{number}".encode()).digest()[:8], "little")


def observe(
    situation: Situation, population: Population, coalition: Coalition, seed: int, settings: backends.Settings
) -> Seen:
    """Run once and return what the coalition, of users of all worlds, saw of the messages."""
    messages = situation.protocol.messages()
    level = TraceLevel("seen", watch=_watch(messages, coalition, population.users))
    kept = backends.Settings(**{**vars(settings), "trace": level, "digest": False})
    try:
        finished, _ = backends.run(situation.protocol, population, seed, kept)
    except MissingColumnError as error:
        raise _without(situation, error) from error
    kinds = {
        kind: _columns(message, finished.totals.trace.pop(kind), coalition, situation.channels)
        for kind, message in messages.items()
        if finished.totals.trace.get(kind)
    }
    graph = situation.graph
    weights = None if graph is None else report_weights(situation.protocol, graph)
    return Seen(situation.size, len(population.sizes), situation.colluders, kinds, weights=weights)


def _without(situation: Situation, error: MissingColumnError) -> Exception:
    """Return what to tell of a column that a program reads and worlds do not have."""
    if error.part == "neighbours":  # its own text says what to do
        return error
    reads = f"a user's program reads {error.what}, which the worlds of an audit do not have"
    if error.part != "public":
        return InputError(
            f"{reads}: they have labels and public columns; let it read me.public['NAME'] instead, and give "
            "privacy.audit(..., public={'NAME': values})"
        )
    has = ", ".join(map(repr, situation.public)) or "none"
    users = "the one user" if situation.size == 1 else f"each of the {situation.size:,} users"
    return InputError(
        f"{reads} (they have: {has}): in Python, privacy.audit(..., public={{{error.name!r}: values}}) with a row for "
        f"{users} of a world, the victim first; or audit a run whose population has it (privacy.audit(run), p2p-sim "
        "audit --run RUN)"
    )


def _watch(messages: dict[str, Message], coalition: Coalition, users: int) -> Watch:
    """Return which messages the coalition can see anything of."""
    whole = {k for k, m in messages.items() if coalition.wire or {m.sender, m.recipient} & coalition.servers}
    mask = np.zeros(users, np.bool_)
    mask[list(coalition.users)] = True
    return Watch(frozenset(whole), mask if coalition.users else None)


def _columns(
    message: Message, parts: list[dict[str, Array]], coalition: Coalition, channels: str
) -> SeenMessages:
    """Return what the coalition sees of some kept messages."""
    joined = {
        name: parts[0][name] if len(parts) == 1 else np.concatenate([part[name] for part in parts])
        for name in parts[0]
    }
    readable: Array | None = None
    inside = bool({message.sender, message.recipient} & coalition.servers)
    if not (inside and coalition.reads(message)):  # otherwise a member handles, and reads, all of them
        seen, reads = coalition.sees(message, joined, channels)
        joined, reads = {name: column[seen] for name, column in joined.items()}, reads[seen]
        readable = None if reads.all() else reads
    fields = {name: joined[name] for name in message.fields}
    cluster = fields.get("cluster") if USER not in (message.sender, message.recipient) else None
    if readable is not None:
        hidden = {name: _hidden(column, readable) for name, column in fields.items()}
        fields = hidden if readable.any() else {}
    return SeenMessages(
        message, joined["round"], joined["sender"], joined["recipient"], fields, readable, cluster
    )


def _hidden(column: Array, readable: Array) -> Array:
    shape = (len(column), *(1 for _ in column.shape[1:]))
    return np.where(readable.reshape(shape), column, np.zeros((), column.dtype))
