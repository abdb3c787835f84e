"""Reading traces: one interface over messages in memory and messages in a run directory."""

from __future__ import annotations

import abc
import itertools
import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.core.ledger import Count
from p2p_sim.core.message import Message, field_dtype, field_shape, fixed_point
from p2p_sim.core.protocol import Protocol
from p2p_sim.core.trace_level import TraceLevel
from p2p_sim.rundir import integrity, manifest, parquet_columns, parquet_schema, regular_files
from p2p_sim.rundir.manifest import kinds_of
from p2p_sim.rundir.run_json import on_command_line, recomputing
from p2p_sim.rundir.run_record import RunRecord
from p2p_sim.rundir.trace_file import File, Part, memory_parts, order_of, places_of, sources_of
from p2p_sim.rundir.trace_writer import MESSAGES, PARTS, UNFINISHED, uneven, unfinished

Array = npt.NDArray[Any]
Columns = dict[str, Array]

BATCH = 1 << 20
"""Most rows that ``batches`` gives at once."""


def check_kind(kind: str, kinds: tuple[str, ...], level: str) -> None:
    """Check that messages of a kind can be asked for; raises InputError."""
    if kind not in kinds:
        raise InputError(f"no message kind {kind!r} in this run; it has {sorted(kinds)}")
    if level in ("none", "counts"):
        raise InputError(
            f"this run kept no messages (trace={level!r}): run it with trace='full' or 'sample=N'"
        )


def check_number(name: str, value: Any) -> None:
    """Check that a number, if there is one, is whole; raises InputError."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, (int, np.integer))):
        raise InputError(f"{name} = {value!r}: must be a whole number, or None")


def check_span(limit: int | None, offset: int) -> None:
    """Check which of the rows are asked for; raises InputError."""
    for name, value in (("limit", limit), ("offset", offset)):
        check_number(name, value)
        if value is not None and value < 0:
            raise InputError(f"{name} = {value!r}: must be at least 0")


def missing_of(level: str, kept: int, counts: Mapping[tuple[str, int], Count]) -> str | None:
    """Say what of a run's messages a whole trace of some level lacks."""
    whole = sum(count.messages for count in counts.values())
    if kept == whole:
        return None
    return f"the trace ({level}) holds {kept:,} of the {whole:,} messages of the run"


class Source(abc.ABC):
    """What can be asked of a trace: of messages in a folder, ``Stored``, and in memory, ``Kept``.

    ``manifest``: JSON values; ``manifest["kinds"]`` says of each kind its sender and recipient role, text, sealed_for,
    fields (dtype, length) and nbytes.  ``counts``: of the whole run, by (kind, round), whatever the trace holds; empty
    if they are not known.  ``complete``: whether the trace holds all that its level keeps; ``missing``: what of the run
    it lacks, in words, None if nothing; ``kept``: how many messages it holds.
    """

    def __init__(
        self,
        listing: Mapping[str, Any],
        counts: Mapping[tuple[str, int], Count],
        parts: Sequence[Part],
        cut_off: str | None = None,
    ):
        self.manifest, self.kinds, self.counts = listing, tuple(listing["kinds"]), counts
        self.kept = sum(part.rows for part in parts)
        self.complete = cut_off is None
        self.missing = missing_of(listing["level"], self.kept, counts) if cut_off is None else cut_off
        self._parts = sorted(parts, key=lambda part: part.round)

    def rows(
        self,
        kind: str,
        *,
        round: int | None = None,
        user: int | None = None,
        limit: int | None = None,
        offset: int = 0,
    ) -> tuple[Columns, int]:
        """Return messages of a kind, and how many match in all.

        ``user``: only those that she sent or received.  Raises InputError for an unknown kind, a negative limit or
        offset, a trace that keeps no messages, and a file that was altered.
        """
        check_span(limit, offset)
        if user is not None:
            return self._of_user(kind, user, round, offset, limit)
        rounds = self._of(kind, round)
        total = sum(part.rows for parts in rounds.values() for part in parts)
        end = total if limit is None else min(offset + limit, total)
        self._check_memory(kind, end - offset)
        found, before = [self._nothing(kind)], 0
        for parts in rounds.values():
            size = sum(part.rows for part in parts)
            low, high = max(offset - before, 0), min(end - before, size)
            if low < high:
                found.append(_ordered(parts, low, high))
            before += size
        lent = any(part.lends for parts in rounds.values() for part in parts)  # the run must stay as it is
        return (found[1] if len(found) == 2 and not lent else parquet_columns.joined(found)), total

    def of_users(self, kind: str, users: Sequence[int], round: int | None = None) -> Columns:
        """Return the messages of one kind that any of some users sent or received, each once, by part and place.

        A part is read once, for all of them.
        """
        found = [self._nothing(kind)]
        for parts in self._of(kind, round).values():
            found += [part.at(part.places(users)) for part in parts]
        return parquet_columns.joined(found)

    def batches(self, kind: str, round: int | None = None) -> Iterator[Columns]:
        """Return all messages of a kind, to be read only, at most 2^20 at a time.  Raises InputError as ``rows``."""
        parts = [part for group in self._of(kind, round).values() for part in group]
        return (
            part.columns(low, min(low + BATCH, part.rows))
            for part in parts
            for low in range(0, part.rows, BATCH)
        )

    def _of_user(
        self, kind: str, user: int, round: int | None, offset: int, limit: int | None
    ) -> tuple[Columns, int]:
        found = self.of_users(kind, [user], round)
        order = order_of(found["recipient"], found["sender"], found["seq"], found["round"])
        chosen = order[offset : None if limit is None else offset + limit]
        return {name: column[chosen] for name, column in found.items()}, len(order)

    def _of(self, kind: str, round: int | None) -> dict[int, list[Part]]:
        """Return the parts of a kind by round, ascending."""
        check_kind(kind, self.kinds, self.manifest["level"])
        rounds: dict[int, list[Part]] = {}
        for part in self._parts:
            if part.kind == kind and round in (None, part.round):
                rounds.setdefault(part.round, []).append(part)
        return rounds

    def _nothing(self, kind: str) -> Columns:
        """Return columns without rows."""
        columns: Columns = {"round": np.zeros(0, np.int32)}
        columns |= {"sender": np.zeros(0, np.int64), "recipient": np.zeros(0, np.int64)}
        columns["seq"] = np.zeros(0, np.int32)
        for name, field in self.manifest["kinds"][kind]["fields"].items():
            width = [] if field["length"] is None else [field["length"]]
            fixed = manifest.fixed_point_of(field)
            columns[name] = np.zeros((0, *width), field["dtype"] if fixed is None else np.float64)
        return columns | {"nbytes": np.zeros(0, np.int64)}

    @abc.abstractmethod
    def _check_memory(self, kind: str, rows: int) -> None:
        """Check that so many messages fit into memory; raises InputError."""


class Stored(Source):
    """The messages of a folder ``messages``.  Raises InputError for a folder without a manifest.

    Files are checked for their size, columns and rows at once, and against their checksum when they are first read.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        listing = manifest.read(folder)
        entries = listing["files"]
        self._broken, self._uneven = 0, list[str]()
        if not listing["complete"]:
            entries, self._broken = _found(folder, listing["kinds"])
            self._uneven = uneven(entries)
        by_name: dict[str, File] = {}
        self._files = [File(folder, entry, listing["kinds"][entry["kind"]], by_name) for entry in entries]
        by_name |= {entry["file"]: file for entry, file in zip(entries, self._files, strict=True)}
        for file in self._files:
            file.check()
            file.check_footer_or_sum()
        cut_off = None if listing["complete"] else self._cut_off(listing)
        super().__init__(listing, manifest.rows_as_counts(listing["counts"]), self._files, cut_off)

    def verify(self) -> None:
        """Read every file and compare it with its checksum; raises InputError for one that was altered."""
        for file in self._files:
            file.verify()

    def _check_memory(self, kind: str, rows: int) -> None:
        width = sum(column.itemsize * math.prod(column.shape[1:]) for column in self._nothing(kind).values())
        parquet_schema.check_memory(self.folder, rows, width, "ask for fewer at once, by limit= and offset=")

    def _cut_off(self, listing: Mapping[str, Any]) -> str:
        """Say what a run left that did not come to its end."""
        held = []
        for kind in listing["kinds"]:
            rounds: dict[int, int] = {}
            for file in self._files:
                if file.kind == kind:
                    rounds[file.round] = rounds.get(file.round, 0) + file.rows
            rounds_held = ", ".join(f"{rows:,} in round {round}" for round, rows in sorted(rounds.items()))
            held.append(f"{kind}: {rounds_held or 'none'}")
        said = f"; {self._broken} unfinished file(s) cannot be read" if self._broken else ""
        for kind in self._uneven:
            rows = sum(file.rows for file in self._files if file.kind == kind)
            said += (
                f"; files of {kind} differ in columns, for other programs p2p-sim trace show "
                f"{shlex.quote(str(self.folder))} --kind {kind} --limit {rows} --format parquet > {kind}.parquet makes "
                "one of them"
            )
        return (
            f"the run was cut off, and its trace ({listing['level']}) is incomplete: it holds {'; '.join(held)}"
            f"{said}; what came after, and the counts of the run, are not known"
        )


class OnDemand(Mapping[str, Columns]):
    """The messages of a stored trace by kind, read when asked for."""

    def __init__(self, stored: Stored):
        self.stored = stored

    def __getitem__(self, kind: str) -> Columns:
        if kind not in self.stored.kinds:
            raise KeyError(kind)
        return self.stored.rows(kind)[0]

    def __iter__(self) -> Iterator[str]:
        return iter(self.stored.kinds)

    def __len__(self) -> int:
        return len(self.stored.kinds)


def folder_of(path: Path) -> Path | None:
    """Return the folder of the messages of a run directory; None if it has none.  Raises InputError for a link."""
    file = regular_files.find(path, f"{MESSAGES}/{manifest.NAME}")
    return None if file is None else file.parent


def of_run(path: Path, run_json: Mapping[str, Any]) -> Stored:
    """Open the messages of a run directory; raises InputError unless they are those of which run.json tells."""
    folder = folder_of(path) or path / MESSAGES
    try:
        integrity.check(path, run_json["sha256"], MESSAGES)
    except InputError:
        manifest.check_format(folder)  # a newer one is refused as such
        raise
    return Stored(folder)


def _found(folder: Path, kinds: Mapping[str, Any]) -> tuple[list[dict[str, Any]], int]:
    """Return the entries of the files of an incomplete trace, and how many cannot be read."""
    paths = sorted(folder.glob(PARTS))
    noted = integrity.read(folder)
    ended = [_of_file(folder / name, found) for name, found in noted.items() if _ended(folder / name)]
    entries = [entry for entry in ended if entry["kind"] in kinds]
    names = {entry["file"] for entry in entries}
    whole = [entry for entry in entries if set(sources_of(entry)) <= names]
    return whole, len(paths) - len(whole) + sum(1 for _ in folder.glob(UNFINISHED))


def _ended(path: Path) -> bool:
    """Whether a file has its name, or had it."""
    return path.exists() or not unfinished(path).exists()


def _of_file(path: Path, noted: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what is noted of a file as it is: one with columns of nulls added was noted twice."""
    size = path.stat().st_size if path.exists() else None
    return next((entry for entry in reversed(noted) if entry.get("bytes") == size), noted[-1])


def _ordered(parts: list[Part], low: int, high: int) -> Columns:
    """Return rows ``low .. high - 1`` of one round, in the order (recipient, sender, seq)."""
    spans = [part.ordered for part in parts]
    if all(spans):
        parts = sorted(parts, key=lambda part: part.ordered or [])
        ends = [part.ordered or [] for part in parts]
        if all(one[1] < next_one[0] for one, next_one in itertools.pairwise(ends)):
            return _span(parts, low, high)
    if high - low == sum(part.rows for part in parts):
        whole = _span(parts, low, high)
        order = order_of(whole["recipient"], whole["sender"], whole["seq"])
        return {name: column[order] for name, column in whole.items()}
    places = places_of(parts, low, high)
    order = np.argsort(places)
    starts = np.cumsum([0, *(part.rows for part in parts)])
    cuts = np.searchsorted(places[order], starts)
    found = [
        part.at(places[order[cuts[i] : cuts[i + 1]]] - starts[i])
        for i, part in enumerate(parts)
        if cuts[i] < cuts[i + 1]
    ]
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return {name: column[back] for name, column in parquet_columns.joined(found).items()}


def _span(parts: list[Part], low: int, high: int) -> Columns:
    """Return rows ``low .. high - 1`` of parts laid end to end."""
    found, before = [], 0
    for part in parts:
        first, last = max(low - before, 0), min(high - before, part.rows)
        if first < last:
            found.append(part.columns(first, last))
        before += part.rows
    return found[0] if len(found) == 1 else parquet_columns.joined(found)


class Kept(Source):
    """Messages in memory, by kind.  ``level``: the trace level; ``counts``: of the whole run."""

    def __init__(
        self,
        program: Protocol,
        level: str,
        counts: Mapping[tuple[str, int], Count],
        columns: Mapping[str, Columns],
    ):
        kinds = kinds_of(program)
        parts = [
            part for kind, about in kinds.items() for part in memory_parts(kind, about, columns.get(kind))
        ]
        super().__init__({"level": level, "kinds": kinds}, counts, parts)

    @classmethod
    def of(cls, run: RunRecord, protocol: Protocol | None = None) -> Kept:
        """Return what a run holds; ``protocol``: its own, if it is not a shipped one.

        Raises InputError for a run whose protocol is not known.
        """
        program = protocol if protocol is not None else run.source
        if program is None:
            if run.trace in ("none", "counts"):
                raise InputError(f"this run kept no messages (trace={run.trace!r}), and {recomputing(run)}")
            raise InputError(
                f"{run.protocol} is not a shipped protocol: give it, messages_source(protocol){on_command_line(run)}"
            )
        return cls(program, run.trace, run.counts, run.kept_messages)

    def _check_memory(self, kind: str, rows: int) -> None:
        """Check nothing: they are in memory."""


def source_of(run: RunRecord, protocol: Protocol | None = None) -> Source:
    """Return where a run's messages are read from; see ``RunRecord.messages_source``."""
    return stored_of(run) or Kept.of(run, protocol)


def kept_by(run: RunRecord) -> int | None:
    """Return how many messages a run's trace holds; None if none were to be kept."""
    if run.trace in ("none", "counts"):
        return None
    stored = stored_of(run)
    return stored.kept if stored else sum(len(part["round"]) for part in run.kept_messages.values())


def stored_of(run: RunRecord) -> Stored | None:
    """Return the messages of a run that lie in a folder; None if they are in memory."""
    held = run.kept_messages
    return held.stored if isinstance(held, OnDemand) else None


def sorted_trace(
    protocol: Protocol, trace: Mapping[str, list[dict[str, Array]]], level: TraceLevel
) -> dict[str, dict[str, Array]]:
    """Join the traced parts of each kind, in the order (round, recipient, sender, seq), and add ``nbytes``.

    Fixed-point fields become the numbers that their multiples stand for.
    """
    if not level.keeps:
        return {}
    sizes = protocol.vector_lengths()
    return {
        kind: _joined(message, trace.get(kind, []), sizes) for kind, message in protocol.messages().items()
    }


def _joined(message: Message, parts: list[dict[str, Array]], sizes: dict[str, int]) -> dict[str, Array]:
    if not parts:
        parts = [{name: np.zeros(0, np.int32) for name in ("round", "sender", "recipient", "seq")}]
        parts[0] |= {
            k: np.zeros((0, *field_shape(f, sizes)), field_dtype(f)) for k, f in message.fields.items()
        }
    columns = parquet_columns.joined(parts)
    for name in ("sender", "recipient"):
        columns[name] = columns[name].astype(np.int64)
    order = np.lexsort((columns["seq"], columns["sender"], columns["recipient"], columns["round"]))
    columns = {name: column[order] for name, column in columns.items()}
    travels = np.ones(len(order), np.bool_)
    if message.sender == message.recipient:
        travels = columns["sender"] != columns["recipient"]
    for name, field in message.fields.items():
        if (fixed := fixed_point(field)) is not None:
            columns[name] = fixed.decoded(columns[name])
    columns["nbytes"] = np.where(travels, message.nbytes(sizes), 0)
    return columns
