"""The messages that some users sent or received, stored or recomputed: what diagrams and exports show."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.core.message import USER, Message
from p2p_sim.core.population import Population
from p2p_sim.core.protocol import Protocol
from p2p_sim.rundir.population_file import rows_of, unread
from p2p_sim.rundir.run_record import RunRecord
from p2p_sim.rundir.trace_reader import Source
from p2p_sim.trace import query
from p2p_sim.trace.recompute import ids_of, population_of
from p2p_sim.trace.slices import ADDRESS, Columns, Slice, Viewer, cut, in_order

Array = npt.NDArray[Any]

MAX_MESSAGES = 5_000_000
"""The largest number of messages that one call returns."""

_FEW, _SMALL = 50, 1 << 20
"""Up to ``_FEW`` users are looked up, in kinds with more than ``_SMALL`` messages."""


@dataclass(frozen=True)
class _Users:
    """Users whose closed world is recomputed where messages were not kept; see ``query.trace_for``."""

    users: frozenset[int]
    servers: frozenset[str] = frozenset()
    wire: bool = False

    def sees(self, message: Message, columns: Columns, _channels: str) -> tuple[Array, Array]:
        """Return, twice, a mask of the messages that one of them sent or received."""
        ids = np.fromiter(self.users, np.int64, len(self.users))
        ends = [np.isin(columns[end], ids) for end in _user_ends(message)]
        involved = np.logical_or.reduce([np.zeros(len(columns["round"]), np.bool_), *ends])
        return involved, involved


def around(
    run: RunRecord,
    users: Array | None = None,
    *,
    kind: str | None = None,
    round: int | None = None,
    as_: Viewer | None = None,
    channels: str = "plain",
    limit: int | None = None,
    protocol: Protocol | None = None,
) -> Slice:
    """Return the messages of a ``Run`` that some users (ids) sent or received, by default all.

    ``kind``, ``round``: only these.  ``as_``, ``channels``: as a coalition sees them, see ``query.messages``.
    ``limit``: only the first so many, in causal order; ``total`` still counts all.  Raises InputError for an unknown
    user, kind or round, for messages that are neither kept nor recomputed, and for more than 5,000,000 messages.
    """
    if users is None:
        most = MAX_MESSAGES if limit is None else limit
        part = query.messages(
            run, kind=kind, round=round, as_=as_, channels=channels, limit=most, protocol=protocol
        )
        _check(sum(part.total.values()) if limit is None else 0)
        return part if limit is None else first(part, limit)
    for user in users.tolist():
        query.check_user(query.census(run), user)
    program = run.source if protocol is None else protocol
    wanted = _Users(frozenset(users.tolist()))
    source, kinds, notes = query.trace_for(run, program, viewer=wanted)
    query.check_kind(kinds, kind)
    query.check_round(source, round)
    selected = {name: message for name, message in kinds.items() if kind in (None, name)}
    found = {name: _gathered(source, message, wanted, round) for name, message in selected.items()}
    _check(sum(len(columns["round"]) for columns in found.values()))
    if as_ is not None:
        found = {name: cut(as_, selected[name], columns, channels) for name, columns in found.items()}
    part = Slice.of(selected, found, notes=notes)
    return part if limit is None else first(part, limit)


def first(part: Slice, limit: int) -> Slice:
    """Return the first messages of a slice in causal order: round, kind, recipient, sender, seq."""
    if len(part) <= limit:
        return part
    sizes = [len(columns["round"]) for columns in part.kinds.values()]
    kind = np.repeat(np.arange(len(sizes)), sizes)
    rounds = np.concatenate([columns["round"] for columns in part.kinds.values()])
    kept = np.lexsort((kind, rounds))[:limit]  # stable: within a kind the order is right already
    counts = np.bincount(kind[kept], minlength=len(sizes)).tolist()
    kinds = {
        name: {key: column[:count] for key, column in columns.items()}
        for (name, columns), count in zip(part.kinds.items(), counts, strict=True)
    }
    return replace(part, kinds=kinds)


def page(part: Slice, limit: int, offset: int) -> Slice:
    """Return messages ``offset .. offset + limit - 1`` of each kind of a slice."""
    shown = slice(offset, offset + limit)
    kinds = {
        kind: {name: column[shown] for name, column in columns.items()}
        for kind, columns in part.kinds.items()
    }
    return replace(part, kinds=kinds)


def cluster(run: RunRecord, number: int) -> Array:
    """Return the ids of a cluster's users; without clusters, cluster 0 is everybody.

    Raises InputError for an unknown cluster, and for a run saved without its population.
    """
    unread_part = unread(run)
    if unread_part is not None and unread_part.proven and len(found := unread_part.members(number)):
        return found
    if run.population is None:
        raise InputError(
            f"cluster {number}: this run was saved without its population, so its clusters are not known: choose "
            "users instead"
        )
    people: Population = population_of(run)
    groups = people.clusters
    if groups is None:
        if number:
            raise InputError(
                f"cluster {number}: this run has no clusters; all its {people.users:,} users count as cluster 0: "
                "choose users instead"
            )
        found, known = ids_of(people), np.zeros(1, np.int64)
    else:
        known = np.arange(len(groups.starts) - 1) if groups.labels is None else groups.labels
        code = int(np.searchsorted(known, number))
        there = code < len(known) and int(known[code]) == number
        found = groups.rows_of(code) if there else np.zeros(0, np.int64)  # rows of the whole population: ids
        if people.ids is not None:
            found, known = found[np.isin(found, people.ids)], known[np.unique(groups.codes)]
    if not len(found):
        raise InputError(
            f"cluster {number}: not in this run; it has {len(known):,}, numbered from {known[0]} to {known[-1]}"
        )
    return np.asarray(found)


def clusters_of(run: RunRecord, ids: Array) -> Array | None:
    """Return the cluster numbers of users; None if there are no clusters or the population was not kept."""
    unread_part = unread(run)
    if unread_part is not None and unread_part.proven:
        return unread_part.clusters(ids)
    people = run.population
    if people is None or people.clusters is None:
        return None
    return np.asarray(people.clusters.pick(rows_of(people, ids)).label)


def sizes_of(run: RunRecord) -> Array | None:
    """Return how many users each cluster has; None if there are no clusters or the population was not kept."""
    unread_part = unread(run)
    if unread_part is not None and unread_part.proven:
        return unread_part.sizes
    people = run.population
    return None if people is None or people.clusters is None else np.asarray(people.sizes)


def _check(messages: int) -> None:
    if messages > MAX_MESSAGES:
        raise InputError(
            f"{messages:,} messages are too many, at most {MAX_MESSAGES:,} are read at once: ask for fewer users or "
            "one round, or set a limit"
        )


def _user_ends(message: Message) -> list[str]:
    return [end for end in ("sender", "recipient") if getattr(message, end) == USER]


def _gathered(source: Source, message: Message, wanted: _Users, round: int | None) -> Columns:
    """Return the messages of some users in the faster of two ways."""
    users, size = len(wanted.users), source.rows(message.kind, limit=0)[1]
    one_by_one = users == 1 or (users <= _FEW and size > _SMALL)
    return (_one_by_one if one_by_one else _scanned)(source, message, wanted, round)


def _one_by_one(source: Source, message: Message, wanted: _Users, round: int | None) -> Columns:
    """Look up the users' messages; one between two of them once."""
    return _ordered([source.of_users(message.kind, sorted(wanted.users), round)])


def _scanned(source: Source, message: Message, wanted: _Users, round: int | None) -> Columns:
    """Read every message and keep those of the users."""
    parts = [source.rows(message.kind, limit=0)[0]]
    held = 0
    for columns in source.batches(message.kind, round):
        mine, _ = wanted.sees(message, columns, "plain")
        parts.append({name: column[mine] for name, column in columns.items()})
        held += int(mine.sum())
        _check(held)
    return _ordered(parts)


def _ordered(parts: list[Columns]) -> Columns:
    """Join messages in the order (round, recipient, sender, seq), each once."""
    together = in_order(parts)
    address = np.column_stack([together[name] for name in ADDRESS])
    new = np.concatenate([np.ones(min(len(address), 1), np.bool_), (address[1:] != address[:-1]).any(axis=1)])
    return {name: column[new] for name, column in together.items()}
