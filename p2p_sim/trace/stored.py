"""A trace on disk: read row by row group, never as a whole unless asked for all of it."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.ledger import Count
from p2p_sim.trace import manifest, notes, shape, source, sums, tables
from p2p_sim.trace.alike import uneven
from p2p_sim.trace.draft import MESSAGES, Draft
from p2p_sim.trace.ordering import order_of, places_of
from p2p_sim.trace.parts import File, entry_of, sources_of
from p2p_sim.trace.source import Columns, check_kind, check_span, missing_of
from p2p_sim.trace.writer import PARTS, UNFINISHED, unfinished

Array = npt.NDArray[Any]


class Stored:
    """The messages of a folder ``messages``; see ``Source``.  Raises InputError for a folder without a manifest.

    Files are checked for their size at once, and against their checksum when they are first read.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        told = manifest.read(folder)
        entries = told["files"]
        self._broken, self._uneven = 0, list[str]()
        if not told["complete"]:
            entries, self._broken = _found(folder, told["kinds"])
            self._uneven = uneven(entries)
        self.manifest: Mapping[str, Any] = told
        self.kinds = tuple(told["kinds"])
        self.counts: Mapping[tuple[str, int], Count] = manifest.rows_as_counts(told["counts"])
        self.complete: bool = told["complete"]
        by_name: dict[str, File] = {}
        self._files = [File(folder, entry, told["kinds"][entry["kind"]], by_name) for entry in entries]
        by_name |= {entry["file"]: file for entry, file in zip(entries, self._files, strict=True)}
        for file in self._files:
            file.check()
        self.kept = sum(file.rows for file in self._files)
        self.missing = missing_of(told["level"], self.kept, self.counts) if self.complete else self._cut_off()

    def rows(
        self,
        kind: str,
        *,
        round: int | None = None,
        user: int | None = None,
        limit: int | None = None,
        offset: int = 0,
    ) -> tuple[Columns, int]:
        """See ``Source.rows``."""
        check_span(limit, offset)
        rounds = self._of(kind, round)
        if user is not None:
            return self._of_user(kind, rounds, user, offset, limit)
        total = sum(file.rows for files in rounds.values() for file in files)
        end = total if limit is None else min(offset + limit, total)
        parts, before = [self._nothing(kind)], 0
        for files in rounds.values():
            size = sum(file.rows for file in files)
            low, high = max(offset - before, 0), min(end - before, size)
            if low < high:
                parts.append(_ordered(files, low, high))
            before += size
        return (parts[1] if len(parts) == 2 else tables.joined(parts)), total

    def of_users(self, kind: str, users: Sequence[int], round: int | None = None) -> Columns:
        """Return the messages of one kind that any of some users sent or received, each once, by file and place.

        A file is read once, for all of them.
        """
        parts = [self._nothing(kind)]
        for files in self._of(kind, round).values():
            parts += [file.at(file.places(users)) for file in files]
        return tables.joined(parts)

    def batches(self, kind: str, round: int | None = None) -> Iterator[Columns]:
        """See ``Source.batches``."""
        files = [file for group in self._of(kind, round).values() for file in group]
        return (
            file.columns(low, min(low + source.BATCH, file.rows))
            for file in files
            for low in range(0, file.rows, source.BATCH)
        )

    def verify(self) -> None:
        """Read every file and compare it with its checksum; raises InputError for one that was altered."""
        for file in self._files:
            file.verify()

    def _of_user(
        self, kind: str, rounds: Mapping[int, list[File]], user: int, offset: int, limit: int | None
    ) -> tuple[Columns, int]:
        parts = [self._nothing(kind)]
        parts += [file.at(file.places([user])) for files in rounds.values() for file in files]
        found = tables.joined(parts)
        order = order_of(found["recipient"], found["sender"], found["seq"], found["round"])
        chosen = order[offset : None if limit is None else offset + limit]
        return {name: column[chosen] for name, column in found.items()}, len(order)

    def _of(self, kind: str, round: int | None) -> dict[int, list[File]]:
        """Return the files of a kind by round, ascending."""
        check_kind(kind, self.kinds, self.manifest["level"])
        rounds: dict[int, list[File]] = {}
        for file in sorted(self._files, key=lambda file: file.round):
            if file.kind == kind and round in (None, file.round):
                rounds.setdefault(file.round, []).append(file)
        return rounds

    def _nothing(self, kind: str) -> Columns:
        """Return columns without rows."""
        columns: Columns = {"round": np.zeros(0, np.int32)}
        columns |= {"sender": np.zeros(0, np.int64), "recipient": np.zeros(0, np.int64)}
        columns["seq"] = np.zeros(0, np.int32)
        for name, field in self.manifest["kinds"][kind]["fields"].items():
            width = [] if field["length"] is None else [field["length"]]
            columns[name] = np.zeros((0, *width), field["dtype"])
        return columns | {"nbytes": np.zeros(0, np.int64)}

    def _cut_off(self) -> str:
        """Say what a run left that did not come to its end."""
        held = []
        for kind in self.kinds:
            rounds: dict[int, int] = {}
            for file in self._files:
                if file.kind == kind:
                    rounds[file.round] = rounds.get(file.round, 0) + file.rows
            told = ", ".join(f"{rows:,} in round {round}" for round, rows in sorted(rounds.items()))
            held.append(f"{kind}: {told or 'none'}")
        said = f"; {self._broken} unfinished file(s) cannot be read" if self._broken else ""
        for kind in self._uneven:
            rows = sum(file.rows for file in self._files if file.kind == kind)
            said += (
                f"; files of {kind} differ in columns, for other programs p2p-sim trace show "
                f"{shlex.quote(str(self.folder))} --kind {kind} --limit {rows} --format parquet > {kind}.parquet makes "
                "one of them"
            )
        return (
            f"the run was cut off, and its trace ({self.manifest['level']}) is incomplete: it holds {'; '.join(held)}"
            f"{said}; what came after, and the counts of the run, are not known"
        )


class OnDemand(Mapping[str, Columns]):
    """The messages of a stored trace by kind, read when asked for.  ``draft``: of the run directory they wait in."""

    def __init__(self, stored: Stored, draft: Draft | None = None):
        self.stored, self.draft = stored, draft

    def __getitem__(self, kind: str) -> Columns:
        if kind not in self.stored.kinds:
            raise KeyError(kind)
        return self.stored.rows(kind)[0]

    def __iter__(self) -> Iterator[str]:
        return iter(self.stored.kinds)

    def __len__(self) -> int:
        return len(self.stored.kinds)


def of_run(path: Path, told: Mapping[str, Any]) -> Stored:
    """Open the messages of a run directory; raises InputError unless they are those of which run.json tells."""
    folder = path / MESSAGES
    manifest.read(folder)  # a newer one is refused as such
    sums.check(path, told.get("sha256", {}), MESSAGES)
    return Stored(folder)


def _found(folder: Path, kinds: Mapping[str, Any]) -> tuple[list[dict[str, Any]], int]:
    """Return the entries of the files of an incomplete trace, and how many cannot be read."""
    paths = sorted(folder.glob(PARTS))
    noted = notes.read(folder)
    if noted is None:  # an earlier version's
        told = [entry for path in paths if (entry := entry_of(folder, path)) is not None]
    else:
        told = [_of_file(folder / name, found) for name, found in noted.items() if _ended(folder / name)]
    entries = [entry for entry in told if shape.fits(entry, kinds)]
    names = {entry["file"] for entry in entries}
    whole = [entry for entry in entries if set(sources_of(entry)) <= names]
    return whole, len(paths) - len(whole) + sum(1 for _ in folder.glob(UNFINISHED))


def _ended(path: Path) -> bool:
    """Whether a file has its name, or had it."""
    return path.exists() or not unfinished(path).exists()


def _of_file(path: Path, noted: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what is noted of a file as it is: one with columns of nulls added was noted twice."""
    size = path.stat().st_size if path.exists() else None
    return next((entry for entry in reversed(noted) if entry["bytes"] == size), noted[-1])


def _ordered(files: list[File], low: int, high: int) -> Columns:
    """Return rows ``low .. high - 1`` of one round, in the order (recipient, sender, seq)."""
    spans = [file.ordered for file in files]
    if all(spans):
        files = sorted(files, key=lambda file: file.ordered or [])
        ends = [file.ordered or [] for file in files]
        if all(one[1] < next_one[0] for one, next_one in itertools.pairwise(ends)):
            return _span(files, low, high)
    if high - low == sum(file.rows for file in files):
        whole = _span(files, low, high)
        order = order_of(whole["recipient"], whole["sender"], whole["seq"])
        return {name: column[order] for name, column in whole.items()}
    places = places_of(files, low, high)
    order = np.argsort(places)
    starts = np.cumsum([0, *(file.rows for file in files)])
    cuts = np.searchsorted(places[order], starts)
    parts = [
        file.at(places[order[cuts[i] : cuts[i + 1]]] - starts[i])
        for i, file in enumerate(files)
        if cuts[i] < cuts[i + 1]
    ]
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return {name: column[back] for name, column in tables.joined(parts).items()}


def _span(files: list[File], low: int, high: int) -> Columns:
    """Return rows ``low .. high - 1`` of files laid end to end."""
    parts, before = [], 0
    for file in files:
        first, last = max(low - before, 0), min(high - before, file.rows)
        if first < last:
            parts.append(file.columns(first, last))
        before += file.rows
    return parts[0] if len(parts) == 1 else tables.joined(parts)
