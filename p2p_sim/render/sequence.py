"""Sequence diagrams and exports of runs: selects the messages, applies the view, and makes the title."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.coalition import CHANNELS, Coalition
from p2p_sim.core.errors import InputError, near
from p2p_sim.core.protocol import Protocol
from p2p_sim.observed_view import coalition_of
from p2p_sim.render.graphml import graphml
from p2p_sim.render.known_run import KnownRun
from p2p_sim.render.lanes import MOST_ARROWS
from p2p_sim.render.message_table import sight_of
from p2p_sim.render.perfetto import perfetto
from p2p_sim.render.scene import Scene, overview, scene
from p2p_sim.rundir.run_record import RunRecord
from p2p_sim.trace import query
from p2p_sim.trace.neighbourhood import MAX_MESSAGES, around, cluster, clusters_of
from p2p_sim.trace.slices import Slice

Array = npt.NDArray[Any]

MAX_MESSAGES_DRAWN = 1_000_000
"""A whole run with more messages is drawn from its counts."""

MAX_ID = 2**63 - 1
"""The largest possible id of a user."""

EXPORTS: dict[str, Callable[[Slice, str, tuple[str, ...]], Iterator[str]]] = {
    "graphml": graphml,
    "perfetto": perfetto,
}
"""Functions that yield a slice with its title and notes as a document in pieces, by format."""


def draw(
    run: RunRecord,
    users: Sequence[int] = (),
    *,
    cluster_number: int | None = None,
    round: int | None = None,
    view: str | None = None,
    channels: str = "plain",
    limit: int = MOST_ARROWS,
    name: str | None = None,
    protocol: Protocol | None = None,
) -> Scene:
    """Lay out a sequence diagram of a run: of some users (ids), of a cluster, or of everybody.

    ``view``: strike out what this coalition cannot read; ``channels``: what the wire can read; ``limit``: at most so
    many arrows; ``name``: the path of the run, for the title and the command that opens lanes of many users.  A whole
    run of more than 1,000,000 messages is drawn by role, from its counts.  Raises InputError for an unknown user,
    cluster, round or view, and for messages that are neither kept nor recomputed.
    """
    if channels not in CHANNELS:
        raise InputError(
            f"channels = {channels!r}: must be one of {', '.join(CHANNELS)}{near(str(channels), CHANNELS)}"
        )
    chosen, title = select(run, users, cluster_number), _title(run, name, users, cluster_number, round)
    command = None if name is None else _command(name, round, view, channels, limit)
    total = sum(count.messages for (_, number), count in run.counts.items() if round in (None, number))
    if chosen is None and total > MAX_MESSAGES_DRAWN:
        return _from_counts(run, round, view, title, total, protocol, command)
    coalition = None if view is None else viewer_of(run, view, protocol)
    part = around(run, chosen, round=round, protocol=protocol)
    sight = None if coalition is None else sight_of(part, coalition, channels)
    divided = clusters_of(run, np.zeros(0, np.int64)) is not None
    return scene(
        part, title, requested=users, clusters=(lambda ids: _clusters(run, ids)) if divided else None,
        viewpoint=None if coalition is None else str(coalition), sight=sight, most=limit,
        command=command,
    )  # fmt: skip


def viewer_of(run: RunRecord, view: str, protocol: Protocol | None = None) -> Coalition:
    """Return the coalition of a view, also for a run that was cut off or whose protocol is not known."""
    return coalition_of(run, view, KnownRun.of(run) if protocol is None else protocol)


def select(run: RunRecord, users: Sequence[int], cluster_number: int | None) -> Array | None:
    """Return the ids of the selected users, ascending; None for all.  Raises InputError for an unknown one."""
    if not users and cluster_number is None:
        return None
    for user in users:
        query.check_user(query.census(run), user)
        if not 0 <= user <= MAX_ID:  # of a run whose users are not known
            raise InputError(f"user {user}: must be from 0 to {MAX_ID}")
    inside = np.zeros(0, np.int64) if cluster_number is None else cluster(run, cluster_number)
    return np.unique(np.concatenate([np.array(users, np.int64), inside]))


def export(
    run: RunRecord,
    form: str,
    part: Slice,
    users: Sequence[int],
    cluster_number: int | None,
    round: int | None,
    name: str,
    view: str | None = None,
) -> Iterator[str]:
    """Yield a slice of a run in another program's format, in pieces; ``view``: the view that it was made for."""
    title = _title(run, name, users, cluster_number, round) + (f", as {view}" if view else "")
    return EXPORTS[form](part, title, (*part.notes, *left_out(part, view)))


def left_out(part: Slice, view: str | None = None) -> tuple[str, ...]:
    """Return notes on what a slice lacks: what ``view`` does not see or cannot read, and messages beyond the limit."""
    whole, cut = sum(part.total.values()), sum(part.cut.values())
    notes = []
    if view is not None:
        unreadable = sum(int((~columns["readable"]).sum()) for columns in part.kinds.values())
        notes.append(
            f"as {view} saw it: messages that it does not see are left out, fields that it cannot read are struck out "
            f"(in {unreadable:,} messages here)"
        )
    if cut:
        more = f"--limit {whole} shows all"
        if whole > MAX_MESSAGES:
            more = f"at most {MAX_MESSAGES:,} are written, so choose users, a cluster or a round"
        notes.append(f"the first {whole - cut:,} of {whole:,} messages; {more}")
    return tuple(notes)


def _title(
    run: RunRecord, name: str | None, users: Sequence[int], cluster_number: int | None, round: int | None
) -> str:
    """Return a title: the protocol with its parameters, and the selection."""
    given = ", ".join(f"{key}={value}" for key, value in run.parameters.items() if value is not None)
    parts = [f"{run.protocol.partition(':')[2]}({given})", *([name] if name else [])]
    parts += [f"cluster {cluster_number}"] if cluster_number is not None else []
    parts += [f"user {user}" for user in users[:5]] + (["…"] if len(users) > 5 else [])
    return ", ".join([*parts, *([f"round {round}"] if round is not None else [])])


def _command(name: str, round: int | None, view: str | None, channels: str, limit: int) -> str:
    """Return the command that draws a run in the same way, without the selected users."""
    words = ["p2p-sim", "trace", "diagram", name]
    words += [] if round is None else ["--round", str(round)]
    words += [] if view is None else ["--as", view]
    words += [] if channels == CHANNELS[0] else ["--channels", channels]
    words += [] if limit == MOST_ARROWS else ["--limit", str(limit)]
    return shlex.join(words)


def _clusters(run: RunRecord, ids: Array) -> Array:
    found = clusters_of(run, ids)
    assert found is not None  # asked before
    return found


def _from_counts(
    run: RunRecord,
    round: int | None,
    view: str | None,
    title: str,
    total: int,
    protocol: Protocol | None,
    command: str | None,
) -> Scene:
    options = "--cluster or --user" if clusters_of(run, np.zeros(0, np.int64)) is not None else "--user"
    if view is not None:
        raise InputError(
            f"--as {view!r}: this run has {total:,} messages, too many to draw what a view sees of them: also give "
            f"{options}"
        )
    source, kinds = query.recorded_trace(run, run.source if protocol is None else protocol)
    query.check_round(source, round)
    people = query.census(run)
    users = None if people is None else people.users
    note = f"drawn by role from the counts of {total:,} messages; {options} draws single ones"
    return overview(
        kinds, run.counts, users, title, round=round, notes=[note], opens=_first(run), command=command
    )


def _first(run: RunRecord) -> str:
    """Return the options that choose the first cluster of a run, or its first user, if they are known."""
    people = query.census(run)
    if people is None:
        return ""
    first = np.zeros(1, np.int64) if people.ids is None else people.ids[:1]
    label = clusters_of(run, first)
    return f"--user {first[0]}" if label is None else f"--cluster {label[0]}"
