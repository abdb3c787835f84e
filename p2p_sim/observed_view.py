"""``View``: what one coalition saw of a run (see ``coalition``): messages, readable fields, own inputs and draws.

Which messages and fields a coalition sees is decided in ``coalition.Coalition.sees``.
"""

from __future__ import annotations

import functools
import typing
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.coalition import CHANNELS, Coalition
from p2p_sim.core.errors import InputError, near
from p2p_sim.core.groups import Members
from p2p_sim.core.message import USER, Message
from p2p_sim.core.population import Population
from p2p_sim.core.protocol import Protocol
from p2p_sim.result_summary import Rows, Summary, counted
from p2p_sim.rundir import code_versions, parquet_columns
from p2p_sim.rundir.population_file import part_with
from p2p_sim.rundir.run_record import RunRecord
from p2p_sim.rundir.trace_reader import check_kind, kept_by
from p2p_sim.trace import recompute
from p2p_sim.trace.query import census
from p2p_sim.trace.recompute import ids_of, population_of
from p2p_sim.trace.replay import Draws, Rerun
from p2p_sim.trace.slices import cut

Array = npt.NDArray[Any]
Columns = dict[str, Array]


class LazyColumns(Mapping[str, Columns]):
    """What a coalition sees of each kind, computed on first access, since a kind may be large."""

    def __init__(self, kinds: Mapping[str, Message], cut_of: Callable[[str], Columns]):
        self._kinds, self._cut_of = kinds, functools.cache(cut_of)

    def __getitem__(self, kind: str) -> Columns:
        if kind not in self._kinds:
            raise KeyError(kind)
        return self._cut_of(kind)

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)


@dataclass(frozen=True, eq=False, repr=False)
class View(Summary):
    """What a coalition saw.  ``name``: as requested; ``coalition``: the same with the ids of all users.

    ``messages``: by kind: columns round, sender, recipient, seq, the fields, nbytes, and ``readable``: where it is
    false the fields are 0.  Order: (round, recipient, sender, seq).  ``missing``: what a sampled trace leaves out, in
    words; None if nothing is missing.
    """

    name: str
    coalition: Coalition
    channels: str
    messages: Mapping[str, Columns]
    missing: str | None
    kinds: Mapping[str, Message]
    _population: Callable[[], Population] = field(repr=False)
    _members_population: Callable[[], Population] = field(repr=False)
    _past: Callable[[], Rerun] = field(repr=False)
    _cluster: int | None = None

    def __repr__(self) -> str:
        counts = [f"{len(columns['round']):,} {kind}" for kind, columns in self.messages.items()]
        part = "" if self._cluster is None else f", cluster {self._cluster}"
        return f"<View of {self.name}{part}: {', '.join(counts)}>"

    def summary(self) -> tuple[str, Rows]:
        """Return what printing the view and notebooks show: of each kind, how many messages it can read."""
        rows = []
        for kind, columns in self.messages.items():
            seen, readable = len(columns["round"]), int(np.count_nonzero(columns["readable"]))
            part = "all" if readable == seen else "none" if not readable else f"{readable:,}"
            fields = self.kinds[kind].fields
            read = f", {part} readable: {', '.join(fields)}" if fields and seen else ""
            rows.append((kind, counted(seen, "message") + read))
        rows += [] if self.missing is None else [("missing", self.missing)]
        part = "" if self._cluster is None else f", cluster {self._cluster}"
        return f"View of {self.name}{part}, {self.channels} channels", rows

    def table(self, kind: str) -> Any:
        """Return the messages of one kind as an Arrow table, with null for unreadable fields.

        Raises InputError for an unknown kind.
        """
        if kind not in self.messages:
            raise InputError(f"no message kind {kind!r} in this view; it has {list(self.messages)}")
        columns = self.messages[kind]
        hidden = dict.fromkeys(self.kinds[kind].fields, ~columns["readable"])
        return parquet_columns.arrow(columns, hidden)

    @functools.cached_property
    def public(self) -> Columns:
        """The public columns, one row a user: user, cluster and x if the population has them, ``public/NAME``."""
        people, rows = self._population(), self._rows()
        columns = {"user": ids_of(people)}
        columns |= {} if people.clusters is None else {"cluster": people.clusters.label}
        columns |= {} if people.x is None else {"x": people.x}
        columns |= {f"public/{name}": column for name, column in people.public.items()}
        return columns if rows is None else {name: column[rows] for name, column in columns.items()}

    @property
    def of_a_part(self) -> bool:
        """Whether only a part of a population took part in the run, in the clusters and bags of all of it."""
        return self._population().ids is not None

    @property
    def graph(self) -> Members | None:
        """The public graph of all users, by row; None if there is none."""
        return self._population().graph

    @functools.cached_property
    def inputs(self) -> Columns:
        """The inputs of its users, one row each: user, y, ``secret/NAME``."""
        rows = self._rows()
        people = self._members_population() if rows is None else self._population()
        mine = np.isin(ids_of(people), _users(self.coalition))
        own = np.flatnonzero(mine if rows is None else mine & rows)
        columns = {"user": ids_of(people), "y": people.y}
        columns |= {f"secret/{name}": column for name, column in people.secret.items()}
        return {name: column[own] for name, column in columns.items()}

    @functools.cached_property
    def draws(self) -> Draws:
        """The draws of its members, by stream ``role/name/step``: columns party (id), slot, value.

        Recomputed from the seed on first access.  Raises InputError if that is impossible.
        """
        drawn, rows = self._past().draws, self._rows()
        if rows is None:
            return drawn
        users = ids_of(self._population())[rows]
        cut = {}
        for stream, columns in drawn.items():
            mine = np.isin(columns["party"], users) | (not stream.startswith(f"{USER}/"))
            cut[stream] = {name: column[mine] for name, column in columns.items()}
        return cut

    def cluster_of(self, kind: str) -> Array:
        """Return the cluster number of each message of a kind: the sender's, or the recipient's if a server sent it.

        Without clusters, all users are in cluster 0; messages between servers have -1.
        """
        columns, message, people = self.messages[kind], self.kinds[kind], self._population()
        if USER not in (message.sender, message.recipient):
            return np.full(len(columns["round"]), -1)
        users = columns["sender" if message.sender == USER else "recipient"]
        rows = users if people.ids is None else np.searchsorted(people.ids, users)
        return np.zeros(len(rows), np.int64) if people.clusters is None else people.clusters.label[rows]

    def world(self, cluster: int) -> View:
        """Return the part of the view that concerns one cluster; raises InputError for an unknown cluster."""
        people = self._population()
        known = np.zeros(1, np.int64) if people.clusters is None else people.clusters.label
        if not bool((known == cluster).any()):
            raise InputError(f"no cluster {cluster!r}: this run has {len(people.sizes):,}, see view.public")
        cut = {}
        for kind, columns in self.messages.items():
            mine = self.cluster_of(kind) == cluster
            cut[kind] = {name: column[mine] for name, column in columns.items()}
        return replace(self, messages=cut, _cluster=cluster)

    def _rows(self) -> Array | None:
        """Return a mask of the users whom the view concerns; None for all."""
        if self._cluster is None or (people := self._population()).clusters is None:
            return None
        return np.asarray(people.clusters.label == self._cluster)


class HasKinds(typing.Protocol):
    """Anything with message kinds and roles, such as a protocol."""

    def messages(self) -> dict[str, Message]:
        """Return the message kinds by name."""

    def roles(self) -> tuple[str, ...]:
        """Return the roles."""


def view_of(run: RunRecord, name: str, channels: str, protocol: Protocol) -> View:
    """Return the view of a coalition in a run; see ``Run.view``."""
    if channels not in CHANNELS:
        raise InputError(
            f"channels = {channels!r}: must be one of {', '.join(CHANNELS)}{near(str(channels), CHANNELS)}"
        )
    coalition = coalition_of(run, name, protocol)
    kinds: dict[str, Message] = protocol.messages()
    past = functools.cache(lambda: _recomputed(run, protocol, coalition))
    messages, missing = _messages(run, past)
    seen = LazyColumns(kinds, lambda kind: cut(coalition, kinds[kind], messages[kind], channels))
    everybody, members_population = lambda: population_of(run), lambda: _holding(run, protocol, coalition)
    return View(name, coalition, channels, seen, missing, kinds, everybody, members_population, past)


def coalition_of(run: RunRecord, name: str, protocol: HasKinds) -> Coalition:
    """Return a coalition of a run with the ids of all its users; raises InputError for an unknown part or user."""
    coalition = Coalition.parse(name, protocol.roles())
    kinds: dict[str, Message] = protocol.messages()
    if census(run) is None and run.trace != "full":
        check_kind(next(iter(kinds)), tuple(kinds), run.trace)  # says so if the run kept none
    return named(coalition, name, users_of(run, kinds))


def named(coalition: Coalition, name: str, ids: Sequence[int] | Array) -> Coalition:
    """Return a coalition whose unnamed users are the first of ``ids`` (ascending) that it does not name.

    Raises InputError for a named user who is not in ``ids``, and if ``ids`` has too few users.
    """
    if coalition.user_count > len(ids):
        raise InputError(
            f"view = {name!r} has {coalition.user_count:,} users, the run has {len(ids):,}: name fewer"
        )
    for user in sorted(coalition.users):
        place = bisect_left(ids, user)
        if place == len(ids) or int(ids[place]) != user:
            span = f"{ids[0]} to {ids[-1]}"
            some = "" if int(ids[-1]) == len(ids) - 1 else f", {len(ids):,} of them"
            raise InputError(f"view = {name!r}: user {user} is not in this run; its users are {span}{some}")
    return coalition.named([int(user) for user in ids[: coalition.user_count]])


def _messages(run: RunRecord, past: Callable[[], Rerun]) -> tuple[Mapping[str, Columns], str | None]:
    """Return messages that include all that a coalition handled, and a note on what is missing."""
    if run.trace == "full":
        return run.kept_messages, None
    try:
        return past().messages, None
    except InputError as error:
        kept = kept_by(run)
        if kept is None:
            raise
        whole = sum(count.messages for count in run.counts.values())
        return run.kept_messages, (
            f"the trace ({run.trace}) holds {kept:,} of the {whole:,} messages of the run, and the others were not "
            f"recomputed: {error}"
        )


def _recomputed(run: RunRecord, protocol: Protocol, coalition: Coalition) -> Rerun:
    servers = [role for role in protocol.roles() if role != USER and (coalition.wire or coalition.has(role))]
    members = {role: np.zeros(int(coalition.has(role)), np.int64) for role in servers}
    code_versions.warn("recomputed", code_versions.other_code(run, protocol))
    return recompute.rerun_parties(run, protocol, members | {USER: _users(coalition)})


def _holding(run: RunRecord, protocol: Protocol, coalition: Coalition) -> Population:
    """Return a part of the population with at least the coalition's users."""
    people = part_with(run, protocol, _users(coalition))
    return population_of(run) if people is None else people


def _users(coalition: Coalition) -> Array:
    return np.array(sorted(coalition.users), np.int64)


def users_of(run: RunRecord, kinds: Mapping[str, Message]) -> Sequence[int] | Array:
    """Return the ids of the run's users, ascending; without its population, of the users in its messages."""
    if (people := census(run)) is not None:
        ids: Sequence[int] | Array = range(people.users) if people.ids is None else people.ids
        return ids
    ends = [np.zeros(0, np.int64)]
    ends += [
        run.kept_messages[kind][end]
        for kind, message in kinds.items()
        for end, role in (("sender", message.sender), ("recipient", message.recipient))
        if role == USER
    ]
    return np.unique(np.concatenate(ends))
