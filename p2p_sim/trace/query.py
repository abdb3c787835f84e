"""Queries: some messages of a run, stored or recomputed, as somebody sees them, in bounded memory."""

from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.deliveries import Count
from p2p_sim.core.errors import InputError, near
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
from p2p_sim.trace.slices import Eyes, Slice, blind, cut, sees_all

Array = npt.NDArray[Any]
Columns = dict[str, Array]

_SPARE = 1 << 16  # rows that are held beside those asked for, so that they are not sorted at every batch


@dataclass(frozen=True)
class Pick:
    """What is asked for.  ``user``: that she sent or received; ``eyes``: who looks, None for all-seeing."""

    user: int | None
    round: int | None
    eyes: Eyes | None
    channels: str
    limit: int | None
    offset: int

    def of(self, source: Source, message: Message) -> tuple[Columns, int]:
        """Return messages of a kind in the order (round, recipient, sender, seq), and how many there are in all."""
        kind, round, eyes = message.kind, self.round, self.eyes
        if eyes is None:
            return source.rows(kind, round=round, user=self.user, limit=self.limit, offset=self.offset)
        if blind(eyes, message):
            nothing, _ = source.rows(kind, limit=0)
            return cut(eyes, message, nothing, self.channels), 0
        if self.user is None and sees_all(eyes, message):
            columns, total = source.rows(kind, round=round, limit=self.limit, offset=self.offset)
            return cut(eyes, message, columns, self.channels), total
        one = self._one(eyes)
        if one is None:
            return self._streamed(source, message, eyes)
        columns, _ = source.rows(kind, round=round, user=one)
        seen = cut(eyes, message, columns, self.channels)
        return _part(seen, slice(self.offset, self._end)), len(seen["round"])

    @property
    def _end(self) -> int | None:
        return None if self.limit is None else self.offset + self.limit

    def _one(self, eyes: Eyes) -> int | None:
        """Return a user who sent or received all that is asked for, of a kind that no server handles."""
        alone = self.user is None and not eyes.wire and len(eyes.users) == 1
        return next(iter(eyes.users)) if alone else self.user

    def _streamed(self, source: Source, message: Message, eyes: Eyes) -> tuple[Columns, int]:
        """Look at every message; of those that are seen keep the first, so that memory stays bounded."""
        total, held = 0, 0
        kept: list[Columns] = []
        for columns in self._cuts(source, message, eyes):
            total += len(columns["round"])
            if self._end is not None and kept and len(kept[0]["round"]) == self._end > 0:
                columns = _may_precede(columns, kept[0])
            kept.append(columns)
            held += len(columns["round"])
            if self._end is not None and held > self._end + _SPARE:
                kept = [self._first(kept)]
                held = len(kept[0]["round"])
        return _part(self._first(kept), slice(self.offset, None)), total

    def _first(self, parts: list[Columns]) -> Columns:
        """Return the rows that come first, in order."""
        joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        order = np.lexsort([joined[name] for name in ("seq", "sender", "recipient", "round")])
        return {name: column[order[: self._end]] for name, column in joined.items()}

    def _cuts(self, source: Source, message: Message, eyes: Eyes) -> Iterator[Columns]:
        nothing, _ = source.rows(message.kind, limit=0)
        yield cut(eyes, message, nothing, self.channels)
        for columns in source.batches(message.kind, self.round):
            yield cut(eyes, message, columns, self.channels)


def _may_precede(columns: Columns, kept: Columns) -> Columns:
    """Return the rows whose round and recipient do not come after those of the last row kept."""
    round, recipient = (kept[name][-1] for name in ("round", "recipient"))
    same = columns["round"] == round
    before = (columns["round"] < round) | (same & (columns["recipient"] <= recipient))
    return {name: column[before] for name, column in columns.items()}


def _part(columns: Columns, which: slice) -> Columns:
    return {name: column[which] for name, column in columns.items()}


_UNHEARD = ("lost", "undelivered", "tampered", "misdirected")
"""Faults that keep a message from its recipient."""


class HasCounts(typing.Protocol):
    """A trace, or whatever else knows how many messages there were by (kind, round)."""

    @property
    def counts(self) -> Mapping[tuple[str, int], Count]:
        """By (kind, round)."""


def messages(
    run: RunRecord | str | Path,
    *,
    user: int | None = None,
    kind: str | None = None,
    round: int | None = None,
    as_: Eyes | str | None = None,
    channels: str = "plain",
    limit: int | None = None,
    offset: int = 0,
    protocol: Protocol | None = None,
) -> Slice:
    """Return messages of a run, a ``Run`` or the path of a run directory.

    ``user``: that she sent or received; ``kind``; ``round``; ``as_``: as a coalition sees them, as ``Run.coalition``
    returns it, or to a ``Run`` as text, such as "learner+user:17"; ``channels``: what the wire reads, "plain" or
    "encrypted".  ``limit``: most messages of each kind, from number ``offset`` on.  ``protocol``: for a run of one that
    is not shipped.  What a run did not keep is recomputed, and ``notes`` says so: of one user, or as users see it, in
    their closed world, for any run; all else in runs of up to 1,000,000 users.  Raises InputError for a user, kind,
    round or coalition that there is not, and for messages that are neither kept nor recomputed.
    """
    for name, value in (("user", user), ("round", round)):
        check_number(name, value)
    looked = opened(run)
    program = looked.source if protocol is None else protocol
    eyes = _eyes(run, as_, program)
    check_user(census(looked), user)
    source, kinds, notes = trace_of(looked, program, user, eyes)
    check_kind(kinds, kind)
    check_round(source, round)
    pick = Pick(user, round, eyes, channels, limit, offset)
    found = {name: pick.of(source, message) for name, message in kinds.items() if kind in (None, name)}
    total = {name: number for name, (_, number) in found.items()}
    if user is not None and census(looked) is None and not any(total.values()):
        notes += (f"user {user} occurs in none of these messages; whether she exists was not kept",)
    notes += unheard(looked, kind, round)
    return Slice.of(kinds, {name: columns for name, (columns, _) in found.items()}, total, notes)


def unheard(run: RunRecord, kind: str | None = None, round: int | None = None) -> tuple[str, ...]:
    """Say how many messages of a kind and round, or of all, nobody received: no trace holds them."""
    found: dict[str, int] = {}
    for (what, of, at), number in run.faults_seen.items():
        if what in _UNHEARD and kind in (None, of) and round in (None, at):
            found[what] = found.get(what, 0) + number
    told = ", ".join(f"{number:,} {what}" for what, number in found.items())
    return (f"not listed, for nobody received them: {told}, of all users' messages",) if told else ()


def trace_of(
    run: RunRecord,
    program: Protocol | None,
    user: int | None = None,
    eyes: Eyes | None = None,
    *,
    whole: bool = False,
) -> tuple[run_directory.Source, dict[str, Message], tuple[str, ...]]:
    """Return a trace that holds what a user or a coalition, by default everybody, sent and received.

    ``run``: as ``opened`` returns it; ``program``: its protocol, if it is known; ``whole``: if it is recomputed, all
    messages of their closed world.  Returns the trace, its kinds, and what is to be said of it.  Raises InputError if
    there is none.
    """
    kept, kinds = kept_of(run, program)
    if cut_off(run) or run.trace == "full" or (run.trace not in ("none", "counts") and kept.missing is None):
        lacks = lacking(run, kept)
        return kept, kinds, () if lacks is None else (lacks,)
    try:
        if program is None:
            raise InputError(recomputing(run))
        past = recompute.again(run, program, _members(program, user, eyes), whole=whole)
    except InputError as error:
        if run.trace in ("none", "counts"):
            raise InputError(f"this run kept no messages (trace={run.trace!r}), and {error}") from error
        return kept, kinds, (f"{kept.missing}, and the others were not recomputed: {error}",)
    again = run_directory.Kept(program, "full", run.counts, past.messages)
    how = f"recomputed from the seed, by running {past.world:,} users again"
    notes = [f"{how}: the trace ({run.trace}) does not hold all of it"]
    notes += [f"recomputed by other code: {what}" for what in code_versions.other_code(run, program)]
    return again, kinds, tuple(notes)


def cut_off(run: RunRecord) -> bool:
    """Whether nothing but messages is known of a run."""
    return isinstance(run, LazyRun) and run.cut_off


def lacking(run: RunRecord, kept: run_directory.Source) -> str | None:
    """Say what of a run was not kept; None if all was."""
    if not (cut_off(run) and kept.complete):
        return kept.missing
    said = "the run was cut off after its messages: parameters, seed, labels and outputs are not known"
    return said if kept.missing is None else f"{said}; {kept.missing}"


def kept_of(run: RunRecord, program: Protocol | None) -> tuple[run_directory.Source, dict[str, Message]]:
    """Return what a run kept, which may be nothing, and its message kinds."""
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
    """Return the census of a run's population, None if it was not kept; on disk it is not read for that."""
    left = unread(run)
    if left is not None and left.users is not None:
        return Census(left.users, None)
    people = run.population
    return None if people is None else Census(people.users, people.ids)


def size_of(run: RunRecord) -> int:
    """Return the largest id of a user plus one, 0 if that is not known."""
    people = census(run)
    if people is None or people.ids is None:
        return int((run.users if people is None else people.users) or 0)
    return int(people.ids[-1]) + 1


def check_user(people: Census | None, user: int | None) -> None:
    """Check that a run has a user, as far as its population is known (``census``); raises InputError."""
    if user is None or people is None:
        return
    ids = people.ids
    if not (0 <= user < people.users if ids is None else bool(np.isin(user, ids))):
        span = (
            f"0 to {people.users - 1}" if ids is None else f"{ids[0]} to {ids[-1]}, {people.users:,} of them"
        )
        raise InputError(f"user {user}: not in this run; its users are {span}")


def check_kind(kinds: dict[str, Message], kind: str | None) -> None:
    """Check that a run has a message kind; raises InputError."""
    if kind not in (None, *kinds):
        raise InputError(
            f"kind {kind!r}: this protocol's kinds are {', '.join(kinds)}{near(str(kind), kinds)}"
        )


def check_round(source: HasCounts, round: int | None) -> None:
    """Check that something was sent in a round; raises InputError."""
    rounds = sorted({number for (_, number), count in source.counts.items() if count.messages})
    if round is not None and round not in rounds:
        raise InputError(f"round {round}: this run has messages in rounds {rounds}")


@typing.runtime_checkable
class _NamesCoalitions(typing.Protocol):
    """A ``Run``: it can tell who a coalition is."""

    def coalition(self, name: str, *, protocol: Protocol | None = None) -> Eyes:
        """Return the coalition that a text names."""


def _eyes(run: RunRecord | str | Path, as_: Eyes | str | None, program: Protocol | None) -> Eyes | None:
    if not isinstance(as_, str):
        if as_ is not None and not all(hasattr(as_, part) for part in ("servers", "users", "wire")):
            raise InputError(
                f"as_ = {as_!r}: must be a coalition, its text, such as 'learner+user:17', or None"
            )
        return as_
    if not isinstance(run, _NamesCoalitions):
        raise InputError(f"as_ = {as_!r}: who that is, is known to a run: give p2p_sim.load({str(run)!r})")
    return run.coalition(as_, protocol=program)


def _members(program: Protocol, user: int | None, eyes: Eyes | None) -> dict[str, Array]:
    """Return whose messages must be recomputed; nobody's draws are needed."""
    nobody = np.zeros(0, np.int64)
    if user is not None:
        return {USER: np.array([user])}
    if eyes is not None and not eyes.servers and not eyes.wire:
        return {USER: np.array(sorted(eyes.users))}
    servers = [role for role in program.roles() if role != USER] or ["everybody"]
    return {USER: nobody, **dict.fromkeys(servers, nobody)}
