"""Queries: messages of a run, stored or recomputed, as a viewer sees them, in bounded memory."""

from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError, near
from p2p_sim.core.ledger import Count
from p2p_sim.core.message import USER, Message
from p2p_sim.core.protocol import Protocol
from p2p_sim.rundir import code_versions, run_directory
from p2p_sim.rundir.manifest import declared
from p2p_sim.rundir.population_file import unread
from p2p_sim.rundir.run_directory import LazyRun, opened
from p2p_sim.rundir.run_json import recomputing
from p2p_sim.rundir.run_record import RunRecord
from p2p_sim.rundir.trace_reader import Source, check_number
from p2p_sim.trace import recompute
from p2p_sim.trace.slices import Slice, Viewer, blind, cut, in_order, sees_every

Array = npt.NDArray[Any]
Columns = dict[str, Array]

_SPARE = 1 << 16  # rows that are held beside those asked for, so that they are not sorted at every batch


@dataclass(frozen=True)
class Query:
    """Which messages are wanted.  ``user``: that she sent or received; ``viewer``: None sees everything."""

    user: int | None
    round: int | None
    viewer: Viewer | None
    channels: str
    limit: int | None
    offset: int

    def of(self, source: Source, message: Message) -> tuple[Columns, int]:
        """Return messages of a kind in the order (round, recipient, sender, seq), and how many there are in all."""
        kind, round, viewer = message.kind, self.round, self.viewer
        if viewer is None:
            return source.rows(kind, round=round, user=self.user, limit=self.limit, offset=self.offset)
        if blind(viewer, message):
            nothing, _ = source.rows(kind, limit=0)
            return cut(viewer, message, nothing, self.channels), 0
        if self.user is None and sees_every(viewer, message):
            columns, total = source.rows(kind, round=round, limit=self.limit, offset=self.offset)
            return cut(viewer, message, columns, self.channels), total
        one = self._one(viewer)
        if one is None:
            return self._streamed(source, message, viewer)
        columns, _ = source.rows(kind, round=round, user=one)
        seen = cut(viewer, message, columns, self.channels)
        return _part(seen, slice(self.offset, self._end)), len(seen["round"])

    @property
    def _end(self) -> int | None:
        return None if self.limit is None else self.offset + self.limit

    def _one(self, viewer: Viewer) -> int | None:
        """Return a user who sent or received every wanted message of a kind that no server handles; None if none."""
        alone = self.user is None and not viewer.wire and len(viewer.users) == 1
        return next(iter(viewer.users)) if alone else self.user

    def _streamed(self, source: Source, message: Message, viewer: Viewer) -> tuple[Columns, int]:
        """Read every message, but hold only the first of those that are seen, so that memory stays bounded."""
        total, buffered = 0, 0
        rows: list[Columns] = []
        for columns in self._cuts(source, message, viewer):
            total += len(columns["round"])
            if self._end is not None and rows and len(rows[0]["round"]) == self._end > 0:
                columns = _may_precede(columns, rows[0])
            rows.append(columns)
            buffered += len(columns["round"])
            if self._end is not None and buffered > self._end + _SPARE:
                rows = [in_order(rows, self._end)]
                buffered = len(rows[0]["round"])
        return _part(in_order(rows, self._end), slice(self.offset, None)), total

    def _cuts(self, source: Source, message: Message, viewer: Viewer) -> Iterator[Columns]:
        nothing, _ = source.rows(message.kind, limit=0)
        yield cut(viewer, message, nothing, self.channels)
        for columns in source.batches(message.kind, self.round):
            yield cut(viewer, message, columns, self.channels)


def _may_precede(columns: Columns, kept: Columns) -> Columns:
    """Return the rows whose round and recipient do not come after those of the last row kept."""
    round, recipient = (kept[name][-1] for name in ("round", "recipient"))
    same = columns["round"] == round
    before = (columns["round"] < round) | (same & (columns["recipient"] <= recipient))
    return {name: column[before] for name, column in columns.items()}


def _part(columns: Columns, which: slice) -> Columns:
    return {name: column[which] for name, column in columns.items()}


_NOT_RECEIVED = ("lost", "undelivered", "tampered", "misdirected")
"""Faults that keep a message from its recipient."""


class HasCounts(typing.Protocol):
    """A trace, or anything else with message counts by (kind, round)."""

    @property
    def counts(self) -> Mapping[tuple[str, int], Count]:
        """By (kind, round)."""


def messages(
    run: RunRecord | str | Path,
    *,
    user: int | None = None,
    kind: str | None = None,
    round: int | None = None,
    as_: Viewer | str | None = None,
    channels: str = "plain",
    limit: int | None = None,
    offset: int = 0,
    protocol: Protocol | None = None,
) -> Slice:
    """Return messages of a run.

    ``run``: a ``Run`` or the path of a run directory.  ``user``, ``kind``, ``round``: only messages that she sent or
    received, of this kind, of this round.  ``as_``: as a coalition sees them, from ``Run.coalition``; with a ``Run``
    also as text, such as "learner+user:17".  ``channels``: what the wire reads, "plain" or "encrypted".  ``limit``: at
    most so many messages of each kind, from number ``offset`` on.  ``protocol``: needed if the run's protocol is not
    shipped.  What the run did not keep is recomputed, and ``notes`` says so: for one user, or for what users see, in
    runs of any size; otherwise in runs of up to 1,000,000 users.  Raises InputError for an unknown user, kind, round or
    coalition, and for messages that are neither kept nor recomputed.
    """
    for name, value in (("user", user), ("round", round)):
        check_number(name, value)
    record = opened(run)
    program = record.source if protocol is None else protocol
    viewer = _viewer(run, as_, program)
    check_user(census(record), user)
    source, kinds, notes = trace_for(record, program, user, viewer)
    check_kind(kinds, kind)
    check_round(source, round)
    query = Query(user, round, viewer, channels, limit, offset)
    found = {name: query.of(source, message) for name, message in kinds.items() if kind in (None, name)}
    total = {name: number for name, (_, number) in found.items()}
    if user is not None and census(record) is None and not any(total.values()):
        notes += (f"user {user} is in none of these messages; whether she exists is not known",)
    notes += not_received(record, kind, round)
    return Slice.of(kinds, {name: columns for name, (columns, _) in found.items()}, total, notes)


def not_received(run: RunRecord, kind: str | None = None, round: int | None = None) -> tuple[str, ...]:
    """Return a note on the messages that nobody received, which no trace holds; ``kind``, ``round``: only of these."""
    found: dict[str, int] = {}
    for (what, of, at), number in run.faults_seen.items():
        if what in _NOT_RECEIVED and kind in (None, of) and round in (None, at):
            found[what] = found.get(what, 0) + number
    listed = ", ".join(f"{number:,} {what}" for what, number in found.items())
    return (f"not listed, for nobody received them: {listed}, of all users' messages",) if listed else ()


def trace_for(
    run: RunRecord,
    program: Protocol | None,
    user: int | None = None,
    viewer: Viewer | None = None,
    *,
    whole: bool = False,
) -> tuple[run_directory.Source, dict[str, Message], tuple[str, ...]]:
    """Return a trace of what a user or a coalition (by default everybody) sent and received, its kinds, and notes.

    ``run``: as ``opened`` returns it.  ``program``: its protocol, None if unknown.  ``whole``: where messages are
    recomputed, all those of the closed world.  Raises InputError if messages are neither kept nor recomputed.
    """
    kept, kinds = recorded_trace(run, program)
    if cut_off(run) or run.trace == "full" or (run.trace not in ("none", "counts") and kept.missing is None):
        lacks = missing_note(run, kept)
        return kept, kinds, () if lacks is None else (lacks,)
    try:
        if program is None:
            raise InputError(recomputing(run))
        rerun = recompute.rerun_parties(run, program, _members(program, user, viewer), whole=whole)
    except InputError as error:
        if run.trace in ("none", "counts"):
            raise InputError(f"this run kept no messages (trace={run.trace!r}), and {error}") from error
        return kept, kinds, (f"{kept.missing}, and the others were not recomputed: {error}",)
    again = run_directory.Kept(program, "full", run.counts, rerun.messages)
    how = f"recomputed from the seed, by running {rerun.world:,} users again"
    notes = [f"{how}: the trace ({run.trace}) does not hold all of it"]
    notes += [f"recomputed by other code: {what}" for what in code_versions.other_code(run, program)]
    return again, kinds, tuple(notes)


def cut_off(run: RunRecord) -> bool:
    """Return whether a run was cut off, so that only its messages are known."""
    return isinstance(run, LazyRun) and run.cut_off


def missing_note(run: RunRecord, kept: run_directory.Source) -> str | None:
    """Return a note on what a run did not keep; None if it kept everything."""
    if not (cut_off(run) and kept.complete):
        return kept.missing
    text = "the run was cut off after its messages: parameters, seed, labels and outputs are not known"
    return text if kept.missing is None else f"{text}; {kept.missing}"


def recorded_trace(
    run: RunRecord, program: Protocol | None
) -> tuple[run_directory.Source, dict[str, Message]]:
    """Return the trace that a run kept, which may be empty, and its message kinds."""
    kept = run.messages_source(program)
    kinds: dict[str, Message] = declared(kept.manifest["kinds"]) if program is None else program.messages()
    if not kept.complete and not kept.counts:  # of a run that was cut off: what there is
        kept.counts = {key: count for kind in kinds for key, count in _counted(kept, kind).items()}
    return kept, kinds


def _counted(trace: run_directory.Source, kind: str) -> dict[tuple[str, int], Count]:
    """Count the messages of a trace that does not know."""
    found: dict[tuple[str, int], Count] = {}
    for columns in trace.batches(kind):
        for round in np.unique(columns["round"]).tolist():
            sizes = columns["nbytes"][columns["round"] == round]
            here = Count(len(sizes), int(np.count_nonzero(sizes)), int(sizes.sum()))
            found.setdefault((kind, round), Count()).add(here)
    return found


@dataclass(frozen=True, eq=False)
class Census:
    """How many users a population has, and their ids, ascending; None: 0 to ``users`` - 1."""

    users: int
    ids: Array | None


def census(run: RunRecord) -> Census | None:
    """Return the census of a run's population, None if it was not kept.  A population on disk is not read."""
    unread_part = unread(run)
    if unread_part is not None and unread_part.users is not None:
        return Census(unread_part.users, None)
    people = run.population
    return None if people is None else Census(people.users, people.ids)


def size_of(run: RunRecord) -> int:
    """Return the largest user id plus one; 0 if unknown."""
    people = census(run)
    if people is None or people.ids is None:
        return int((run.users if people is None else people.users) or 0)
    return int(people.ids[-1]) + 1


def check_user(people: Census | None, user: int | None) -> None:
    """Raise InputError unless a run has this user; ``people``: from ``census``, None (unknown) allows every user."""
    if user is None or people is None:
        return
    ids = people.ids
    if not (0 <= user < people.users if ids is None else bool(np.isin(user, ids))):
        span = (
            f"0 to {people.users - 1}" if ids is None else f"{ids[0]} to {ids[-1]}, {people.users:,} of them"
        )
        raise InputError(f"user {user}: not in this run; its users are {span}")


def check_kind(kinds: dict[str, Message], kind: str | None) -> None:
    """Raise InputError unless a run has this message kind."""
    if kind not in (None, *kinds):
        raise InputError(
            f"kind {kind!r}: this protocol's kinds are {', '.join(kinds)}{near(str(kind), kinds)}"
        )


def check_round(source: HasCounts, round: int | None) -> None:
    """Raise InputError unless messages were sent in this round."""
    rounds = sorted({number for (_, number), count in source.counts.items() if count.messages})
    if round is not None and round not in rounds:
        raise InputError(f"round {round}: this run has messages in rounds {rounds}")


@typing.runtime_checkable
class _NamesCoalitions(typing.Protocol):
    """A ``Run``: it turns the text of a coalition into the coalition."""

    def coalition(self, name: str, *, protocol: Protocol | None = None) -> Viewer:
        """Return the coalition that a text names."""


def _viewer(run: RunRecord | str | Path, as_: Viewer | str | None, program: Protocol | None) -> Viewer | None:
    if not isinstance(as_, str):
        if as_ is not None and not all(hasattr(as_, part) for part in ("servers", "users", "wire")):
            raise InputError(
                f"as_ = {as_!r}: must be a coalition, its text, such as 'learner+user:17', or None"
            )
        return as_
    if not isinstance(run, _NamesCoalitions):
        raise InputError(f"as_ = {as_!r}: only a run can resolve this name: give p2p_sim.load({str(run)!r})")
    return run.coalition(as_, protocol=program)


def _members(program: Protocol, user: int | None, viewer: Viewer | None) -> dict[str, Array]:
    """Return whose messages must be recomputed; nobody's draws are needed."""
    nobody = np.zeros(0, np.int64)
    if user is not None:
        return {USER: np.array([user])}
    if viewer is not None and not viewer.servers and not viewer.wire:
        return {USER: np.array(sorted(viewer.users))}
    servers = [role for role in program.roles() if role != USER] or ["everybody"]
    return {USER: nobody, **dict.fromkeys(servers, nobody)}
