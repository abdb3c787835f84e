"""The differences of two runs: settings, population, counts, outputs and single messages, in bounded memory."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.core.groups import Members
from p2p_sim.core.kernels_numpy import as_words
from p2p_sim.core.ledger import Count
from p2p_sim.core.message import USER, Message
from p2p_sim.core.protocol import Protocol
from p2p_sim.core.trace_level import TraceLevel
from p2p_sim.rundir.manifest import declared
from p2p_sim.rundir.parquet_columns import joined
from p2p_sim.rundir.run_directory import opened
from p2p_sim.rundir.run_record import RunRecord
from p2p_sim.rundir.trace_reader import Source
from p2p_sim.trace import query
from p2p_sim.trace.replay import UserHistory
from p2p_sim.trace.slices import message_id, party

Array = npt.NDArray[Any]
Columns = dict[str, Array]

_ADDRESS = ("round", "recipient", "sender", "seq")


def differing(one: Columns, other: Columns, fields: list[str]) -> Columns:
    """Return the messages of one kind that differ.

    Columns: round, sender, recipient, seq; ``first`` and ``second``, whether the message is in that run; and for each
    field NAME ``NAME_first`` and ``NAME_second``.
    """
    places = _joined(one, other)
    there = [place >= 0 for place in places]
    changed = ~(there[0] & there[1])
    both = np.flatnonzero(~changed)
    for name in fields:
        unequal = one[name][places[0][both]] != other[name][places[1][both]]
        changed[both] |= unequal if unequal.ndim == 1 else unequal.any(axis=1)
    places, there = [place[changed] for place in places], [mask[changed] for mask in there]
    result: Columns = {}
    for name in ("round", "sender", "recipient", "seq"):
        result[name] = _taken(one[name], places[0])
        result[name][there[1]] = other[name][places[1][there[1]]]
    result |= {"first": there[0], "second": there[1]}
    for name in fields:
        result[f"{name}_first"] = _taken(one[name], places[0])
        result[f"{name}_second"] = _taken(other[name], places[1])
    return result


def _joined(one: Columns, other: Columns) -> list[Array]:
    """Return, for every address of either run in order, its row in each run, -1 where a run lacks it."""
    sizes = [len(columns["round"]) for columns in (one, other)]
    if sizes[0] == sizes[1] and all(np.array_equal(one[name], other[name]) for name in _ADDRESS):
        return [np.arange(sizes[0]), np.arange(sizes[0])]
    keys = [np.concatenate([one[name], other[name]]) for name in _ADDRESS]
    order = np.lexsort(keys[::-1])  # stable: of two equal addresses the first run's comes first
    new = np.ones(len(order), np.bool_)
    if len(order):
        new[1:] = np.any([key[order][1:] != key[order][:-1] for key in keys], axis=0)
    group = np.cumsum(new) - 1
    places = [np.full(int(new.sum()), -1) for _ in sizes]
    mine = order < sizes[0]
    places[0][group[mine]] = order[mine]
    places[1][group[~mine]] = order[~mine] - sizes[0]
    return places


def _taken(column: Array, places: Array) -> Array:
    """Return a column's values at some rows, 0 where a row is -1."""
    taken = np.zeros((len(places), *column.shape[1:]), column.dtype)
    taken[places >= 0] = column[places[places >= 0]]
    return taken


def first_of(found: Mapping[str, Columns]) -> tuple[str, int] | None:
    """Return kind and row of the first message in causal order; None if there are no messages.

    ``found``: by kind, in the order of declaration, which is their order within a round.
    """
    firsts = []
    for place, (kind, columns) in enumerate(found.items()):
        if len(columns["round"]):
            row = int(np.lexsort([columns[name] for name in _ADDRESS[::-1]])[0])
            firsts.append((int(columns["round"][row]), place, kind, row))
    return min(firsts)[2:] if firsts else None


def as_value(
    kind: str, roles: tuple[str, str], columns: Mapping[str, Array], row: int, fields: list[str]
) -> dict[str, Any]:
    """Return one difference as JSON values; ``first``, ``second``: its fields, None if that run lacks the message."""
    round, sender, recipient, seq = (
        int(columns[name][row]) for name in ("round", "sender", "recipient", "seq")
    )
    result: dict[str, Any] = {
        "id": message_id(kind, round, sender, recipient, seq), "kind": kind, "round": round,
        "sender": party(roles[0], sender), "recipient": party(roles[1], recipient),
    }  # fmt: skip
    for end in ("first", "second"):
        there = bool(columns[end][row])
        result[end] = {name: columns[f"{name}_{end}"][row].tolist() for name in fields} if there else None
    return result


@dataclass(frozen=True)
class ReplayComparison:
    """How a replayed history compares with a trace.

    ``held``: how many of her messages the trace has; ``replayed``: how many the replay has; ``different``: how many
    differ; ``first``: the first of these in causal order, with its fields in the replay (``first``) and in the trace
    (``second``).
    """

    held: int
    replayed: int
    different: int
    first: dict[str, Any] | None


def compared(
    history: UserHistory, trace: Source, kinds: Mapping[str, Message], whole: bool
) -> ReplayComparison:
    """Compare a history with a trace.  ``whole``: whether the trace should hold all her messages."""
    mine, held, found = history.messages(), 0, {}
    for kind, message in kinds.items():
        if kind not in mine:
            continue
        stored, number = trace.rows(kind, user=history.user)
        held += number
        changed = differing(mine[kind], stored, list(message.fields))
        counts = changed["second"] if not whole else changed["first"] | changed["second"]
        found[kind] = {name: column[counts] for name, column in changed.items()}
    place = first_of(found)
    first = None
    if place is not None:
        kind, row = place
        roles = kinds[kind].sender, kinds[kind].recipient
        first = as_value(kind, roles, found[kind], row, list(kinds[kind].fields))
    replayed = sum(len(columns["round"]) for columns in mine.values())
    return ReplayComparison(held, replayed, sum(len(columns["round"]) for columns in found.values()), first)


_MULTIPLIER, _SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)
_PIECE = 1 << 20
_ROW_KEYS = ("recipient", "sender", "seq")


@dataclass(frozen=True)
class MessageDifference:
    """The messages of a kind and round that differ: only in one run, or in both with other fields (``changed``).

    ``least``: the first of them by recipient, sender and sequence number, as ``as_value`` returns it.
    """

    kind: str
    round: int
    only_first: int
    only_second: int
    changed: int
    least: dict[str, Any]


def differing_messages(
    first: Source, second: Source, kinds: Mapping[str, Message]
) -> Iterator[MessageDifference]:
    """Yield the differences in causal order: by round, then by kind in the order of declaration."""
    order = {kind: place for place, kind in enumerate(kinds)}
    issues = {key for trace in (first, second) for key in trace.counts if key[1] and key[0] in order}
    for kind, round in sorted(issues, key=lambda key: (key[1], order[key[0]])):
        traces = [first, second]
        if _in_step(traces, kind, round):
            continue
        found = _differing(traces, kinds[kind], round)
        if found is not None:
            yield found


def _in_step(traces: list[Source], kind: str, round: int) -> bool:
    """Return whether two traces hold the same rows, in the same order and in batches of the same size."""
    one, other = (_batches(trace, kind, round) for trace in traces)
    for first in one:
        second = next(other, None)
        if second is None or any(
            not np.array_equal(first[name], second[name]) for name in first if name != "nbytes"
        ):
            return False
    return next(other, None) is None


def _differing(traces: list[Source], message: Message, round: int) -> MessageDifference | None:
    """Find the rows that are in only one of two traces."""
    names = [*_ROW_KEYS, *message.fields]
    hashes = [_hashes(trace, message.kind, round, names) for trace in traces]
    alone = [_not_among(*pair) for pair in (hashes, hashes[::-1])]
    del hashes
    if not alone[0].any() and not alone[1].any():
        return None
    found = [_alone(trace, message.kind, round, mine) for trace, mine in zip(traces, alone, strict=True)]
    places, least = [addresses for addresses, _ in found], [first for _, first in found]
    only = [int(np.count_nonzero(_not_among(*pair))) for pair in (places, places[::-1])]
    rows = differing(least[0], least[1], list(message.fields))
    difference = as_value(
        message.kind, (message.sender, message.recipient), rows, _first(rows), list(message.fields)
    )
    return MessageDifference(message.kind, round, only[0], only[1], len(places[0]) - only[0], difference)


def _hashes(trace: Source, kind: str, round: int, names: list[str]) -> Array:
    """Return a hash of every row."""
    parts = [_hash(columns, names) for columns in _batches(trace, kind, round)]
    return np.concatenate([np.zeros(0, np.uint64), *parts])


def _alone(trace: Source, kind: str, round: int, mine: Array) -> tuple[Array, Columns]:
    """Return hashes of the addresses of some rows (a mask), and the first of these rows."""
    addresses = [np.zeros(0, np.uint64)]
    least, low = [trace.rows(kind, limit=0)[0]], 0
    for columns in _batches(trace, kind, round):
        high = low + len(columns["round"])
        some = {name: column[mine[low:high]] for name, column in columns.items()}
        addresses.append(_hash(some, list(_ROW_KEYS)))
        if len(some["round"]):
            first = _first(some)
            least.append({name: column[first : first + 1] for name, column in some.items()})
        low = high
    candidates = joined(least)
    if not len(candidates["round"]):
        return addresses[0], candidates
    first = _first(candidates)
    return np.concatenate(addresses), {name: column[first : first + 1] for name, column in candidates.items()}


def _first(columns: Mapping[str, Array]) -> int:
    """Return the first of some rows by recipient, sender and sequence number."""
    rows = np.arange(len(columns["recipient"]))
    for name in _ROW_KEYS:
        rows = rows[columns[name][rows] == columns[name][rows].min()]
    return int(rows[0])


def _not_among(hashes: Array, others: Array) -> Array:
    """Return a mask of the hashes that are not among ``others``; both are sorted, since a sorted search is fast."""
    order, known = np.argsort(hashes), np.sort(others)
    mask = np.ones(len(hashes), np.bool_)
    for low in range(0, len(order) if len(known) else 0, _PIECE):
        rows = order[low : low + _PIECE]
        wanted = hashes[rows]
        place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        mask[rows] = known[place] != wanted
    return mask


def _batches(trace: Source, kind: str, round: int) -> Iterator[Columns]:
    return trace.batches(kind, round) if (kind, round) in trace.counts else iter(())


def _hash(columns: Mapping[str, Array], names: list[str]) -> Array:
    """Return a hash of 64 bits for each row, over some columns."""
    state = np.zeros(len(columns["round"]), np.uint64)
    for name in names:
        for column in [columns[name]] if columns[name].ndim == 1 else list(columns[name].T):
            state ^= as_words(column)
            state *= _MULTIPLIER
            state ^= state >> _SHIFT
            state += _MULTIPLIER  # so that leading zeros count too
    return state


_WITHOUT_EFFECT = ("backend", "trace", "crypto")
"""Settings that do not change the results."""


@dataclass(frozen=True)
class ValueDifference:
    """A difference: the value in either run, how many values differ, and the party of the first that does."""

    what: str
    first: Any
    second: Any
    differ: int = 1
    party: str | None = None


@dataclass(frozen=True)
class RunComparison:
    """How two runs differ.

    ``settings``: differences in protocol, parameters, seed and faults; ``population``, ``counts``, ``outputs`` and
    ``digest`` likewise.  ``messages``: by kind and round in causal order, None if messages were not compared;
    ``compared``: how many messages of either run were.  ``notes``: how messages were compared, and what was not.
    """

    settings: tuple[ValueDifference, ...]
    population: tuple[ValueDifference, ...]
    counts: tuple[ValueDifference, ...]
    messages: tuple[MessageDifference, ...] | None
    outputs: tuple[ValueDifference, ...]
    digest: tuple[ValueDifference, ...]
    compared: tuple[int, int]
    notes: tuple[str, ...]

    @property
    def equal(self) -> bool:
        """Whether everything that was compared is equal."""
        return not (
            self.settings or self.population or self.counts or self.messages or self.outputs or self.digest
        )


def compare(
    first: RunRecord | str | Path, second: RunRecord | str | Path, *, protocol: Protocol | None = None
) -> RunComparison:
    """Compare two runs, each a ``Run`` or the path of a run directory, in bounded memory.

    Messages are compared if both runs kept all of them, or those of the same sample.  Otherwise, if the digests differ
    or are missing, both runs are recomputed, up to 1,000,000 users.  Otherwise only counts, outputs and digests are
    compared, and ``notes`` says so.  Backend, trace level and kind of cryptography do not change the results and are
    not compared.  Of a run that was cut off only the messages are compared; messages that it lacks count as different.
    ``protocol``: needed if the runs' protocol is not shipped.  Raises InputError for a folder that is no run directory.
    """
    runs = [opened(run) for run in (first, second)]
    digest = [run.digest for run in runs]
    known = None not in digest
    messages, compared, notes = _messages(runs, protocol, known and digest[0] == digest[1])
    notes = [*_notes(runs), *notes]
    return RunComparison(
        _settings(runs),
        _population(runs),
        _counts(runs),
        messages,
        _outputs(runs),
        (ValueDifference("digest", digest[0], digest[1]),) if known and digest[0] != digest[1] else (),
        compared,
        tuple(notes),
    )


def _messages(
    runs: list[RunRecord], protocol: Protocol | None, alike: bool
) -> tuple[tuple[MessageDifference, ...] | None, tuple[int, int], list[str]]:
    """Compare messages where possible.  ``alike``: whether the digests are equal."""
    programs = [run.source if protocol is None else protocol for run in runs]
    levels = [TraceLevel.parse(run.trace) for run in runs]
    if levels[0].keeps and levels[0] == levels[1] and runs[0].users == runs[1].users:
        traces = [query.recorded_trace(run, program)[0] for run, program in zip(runs, programs, strict=True)]
        notes = [trace.missing for trace in traces if trace.missing is not None]
    else:
        try:
            traces, notes = _whole(runs, programs, alike)
        except InputError as error:
            return None, (0, 0), [f"messages were not compared, only counts, outputs and digests: {error}"]
    if traces[0].manifest["kinds"] != traces[1].manifest["kinds"]:
        return None, (0, 0), ["messages were not compared: the runs declare different kinds of them"]
    held = traces[0].kept, traces[1].kept
    kinds = declared(traces[0].manifest["kinds"])
    return tuple(differing_messages(traces[0], traces[1], kinds)), held, list(dict.fromkeys(notes))


def _whole(
    runs: list[RunRecord], programs: list[Protocol | None], alike: bool
) -> tuple[list[Source], list[str]]:
    """Return all messages of two runs, recomputed where they were not kept, and notes."""
    if alike and any(run.trace != "full" for run in runs):
        raise InputError("the digests are equal, so nothing was recomputed")
    traces: list[Source] = []
    notes: list[str] = []
    for run, program in zip(runs, programs, strict=True):
        trace, _, more = query.trace_for(run, program)
        if trace.missing is not None:
            raise InputError(trace.missing)
        traces.append(trace)
        notes += more
    return traces, notes


def _settings(runs: list[RunRecord]) -> tuple[ValueDifference, ...]:
    values = [
        {"protocol": run.protocol} | {f"parameter {name}": value for name, value in run.parameters.items()}
        | {"seed": run.seed, "faults": [] if run.faults is None else run.faults.texts()}
        for run in runs
    ]  # fmt: skip
    if any(map(query.cut_off, runs)):
        values = [{"protocol": run.protocol} for run in runs]
    elif None in (runs[0].seed, runs[1].seed):  # saved without
        for settings in values:
            del settings["seed"]
    names = dict.fromkeys([*values[0], *values[1]])
    pairs = [(name, values[0].get(name), values[1].get(name)) for name in names]
    return tuple(ValueDifference(name, one, other) for name, one, other in pairs if one != other)


def _population(runs: list[RunRecord]) -> tuple[ValueDifference, ...]:
    users = [run.users for run in runs]
    if users[0] != users[1]:
        return (ValueDifference("users", users[0], users[1]),)
    one, other = (run.population for run in runs)
    if one is None or other is None:
        return ()
    found = [_columns("label", one.y, other.y, None, USER)]
    clusters = [np.zeros(0) if p.clusters is None else p.clusters.label for p in (one, other)]
    found.append(_columns("cluster", clusters[0], clusters[1], None, USER))
    for name in dict.fromkeys([*one.public, *other.public]):
        found.append(_public(name, one.public.get(name), other.public.get(name)))
    if not _same_graph(one.graph, other.graph):
        graphs = ["none" if p.graph is None else "edges" for p in (one, other)]
        found.append(ValueDifference("graph", graphs[0], graphs[1]))
    return tuple(unlike for unlike in found if unlike is not None)


def _public(name: str, one: Array | None, other: Array | None) -> ValueDifference | None:
    """Compare a public column, None where a run has none of that name."""
    what = f"public column {name!r}"
    if one is None or other is None:
        first, second = ("none" if column is None else "there" for column in (one, other))
        return ValueDifference(what, first, second)
    if (one.dtype, one.shape) != (other.dtype, other.shape):
        first, second = (f"{column.dtype} of shape {column.shape}" for column in (one, other))
        return ValueDifference(what, first, second)
    flat = [one, other]
    if one.ndim > 2:
        flat = [column.reshape(len(column), math.prod(column.shape[1:])) for column in flat]
    if one.dtype.kind not in "biufU":  # as text: JSON knows no times and no complex numbers
        flat = [column.astype(str) for column in flat]
    return _columns(what, flat[0], flat[1], None, USER)


def _same_graph(one: Members | None, other: Members | None) -> bool:
    if one is None or other is None:
        return one is other
    if one.order is None or other.order is None:  # complete: nothing but sizes
        return one.order is other.order and np.array_equal(one.starts, other.starts)
    return np.array_equal(one.starts, other.starts) and np.array_equal(one.order, other.order)


def _counts(runs: list[RunRecord]) -> tuple[ValueDifference, ...]:
    if any(map(query.cut_off, runs)):
        return ()
    keys = sorted({key for run in runs for key in run.counts}, key=lambda key: (key[1], key[0]))
    found = []
    for kind, round in keys:
        one, other = (run.counts.get((kind, round), Count()).messages for run in runs)
        if one != other:
            found.append(ValueDifference(f"{kind}, round {round}", one, other, abs(one - other)))
    return tuple(found)


def _outputs(runs: list[RunRecord]) -> tuple[ValueDifference, ...]:
    if any(map(query.cut_off, runs)):
        return ()
    found: list[ValueDifference | None] = []
    one, other = (run.outputs for run in runs)
    for role in dict.fromkeys([*one, *other]):
        sides = [outputs.get(role, {}) for outputs in (one, other)]
        for name in dict.fromkeys([*sides[0], *sides[1]]):
            if name in sides[0] and name in sides[1]:
                gone = runs[0].faulty.get("dropped") if role == USER else None
                found.append(_columns(f"{role}/{name}", sides[0][name], sides[1][name], gone, role))
            else:
                found.append(
                    ValueDifference(f"{role}/{name}", name in sides[0], name in sides[1], party=role)
                )
    return tuple(unlike for unlike in found if unlike is not None)


def _columns(what: str, one: Array, other: Array, gone: Array | None, role: str) -> ValueDifference | None:
    """Compare two columns; ``gone``: users who have no value in a column of users."""
    if one.shape != other.shape:
        return ValueDifference(what, f"{len(one):,} values", f"{len(other):,} values", party=role)
    floats = one.dtype.kind == other.dtype.kind == "f"
    same = (one == other) | (np.isnan(one) & np.isnan(other)) if floats else one == other
    places = np.flatnonzero(~same if same.ndim == 1 else ~same.all(axis=1))
    if not len(places):
        return None
    place = int(places[0])
    who = role
    if role == USER:
        here = np.setdiff1d(np.arange(len(one) + len(gone)), gone) if gone is not None else None
        who = party(USER, place if here is None else int(here[place]))
    return ValueDifference(what, one[place].tolist(), other[place].tolist(), len(places), who)


def _notes(runs: list[RunRecord]) -> list[str]:
    """Return notes on how the runs were made, where that differs, and on what cannot be compared."""
    cut = [which for run, which in zip(runs, ("first", "second"), strict=True) if query.cut_off(run)]
    if cut:
        rest = "parameters, seed, labels, counts and outputs are not known: only messages were compared"
        return [f"the {which} run was cut off, and its {rest}" for which in cut]
    notes = []
    for name in _WITHOUT_EFFECT:
        values = [getattr(run, name) for run in runs]
        if values[0] != values[1]:
            what = (
                "which only keys, and what is made of keys, depend on"
                if name == "crypto"
                else "which is no difference"
            )
            notes.append(f"{name}: {values[0]} and {values[1]}, {what}")
    for name in dict.fromkeys([*runs[0].versions, *runs[1].versions]):
        found = [run.versions.get(name, "unknown") for run in runs]
        if found[0] != found[1] and all(run.versions for run in runs):
            notes.append(f"computed by different versions: {name} {found[0]} and {found[1]}")
    if any(run.population is None for run in runs):
        notes.append("a run was saved without its population: labels, clusters and seeds were not compared")
    if any(run.digest is None for run in runs):
        notes.append("a run has no digest")
    return notes
