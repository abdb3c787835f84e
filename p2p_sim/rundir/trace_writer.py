"""Writes a trace while a run goes on: each site writes its own files into a draft of the run directory."""

from __future__ import annotations

import contextlib
import os
import secrets
import shlex
import shutil
import tempfile
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core import write_errors
from p2p_sim.core.errors import InputError, ProtocolError, RunLostError, StorageError
from p2p_sim.core.population import Population
from p2p_sim.core.protocol import Protocol
from p2p_sim.rundir import integrity, manifest, parquet_columns, regular_files, under_way
from p2p_sim.rundir.address_columns import (
    ADDRESSES,
    STORED,
    Address,
    Order,
    StoredArrays,
    as_column,
    narrowed,
    narrowest_rule,
)
from p2p_sim.rundir.integrity import sha256
from p2p_sim.rundir.parquet_schema import MOST_GROUP


def alike(folder: Path, files: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rewrite the files that lack an address column which another file of their kind stores; there it becomes null.

    Returns the files' entries for the manifest.  Kinds whose files all have the same columns, as in most runs on one
    machine, are not rewritten: a million nulls take Parquet 4 ms.
    """
    stored = {kind: set[str]().union(*forms) for kind, forms in _forms(files).items()}
    return [_with_nulls(folder, entry, stored[entry["kind"]] - _stored(entry)) for entry in files]


def uneven(files: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the kinds whose files do not all have the same columns; ``files``: entries of the manifest."""
    return [kind for kind, forms in _forms(files).items() if any(form != forms[0] for form in forms)]


def _forms(files: Iterable[Mapping[str, Any]]) -> dict[str, list[set[str]]]:
    """Return the address columns of each file, by kind."""
    forms: dict[str, list[set[str]]] = {}
    for entry in files:
        forms.setdefault(entry["kind"], []).append(_stored(entry))
    return forms


def _stored(entry: Mapping[str, Any]) -> set[str]:
    return {name for name in ADDRESSES if entry[name] == STORED}


def _with_nulls(folder: Path, entry: dict[str, Any], absent: Iterable[str]) -> dict[str, Any]:
    """Add columns of nulls to a file, if any are absent; return its entry."""
    from pyarrow import parquet

    if not absent:
        return entry
    path = folder / entry["file"]
    half_done = unfinished(path)
    with parquet.ParquetFile(path) as old:
        new: Any = None
        for group in range(old.num_row_groups):
            table = old.read_row_group(group)
            columns = {
                name: parquet_columns.column(table[name].combine_chunks()) for name in table.column_names
            }
            if new is None:
                new = parquet_columns.Stream(half_done, columns, ADDRESSES, frozenset(absent))
            new.write(columns)
        new.close()
    fresh = entry | {"bytes": half_done.stat().st_size, "sha256": sha256(half_done)}
    integrity.add(folder, 0, fresh)
    half_done.rename(path)
    return fresh


Array = npt.NDArray[Any]

MOST_ROWS = 1 << 24
"""A file is closed at so many rows: a killed run loses at most the files that are still open."""

_GROUP = 1 << 17
_MAX_GROUP = MOST_GROUP
PARTS, UNFINISHED = "*/round=*/*.parquet", "*/round=*/.*.parquet.tmp"
"""The files of a trace, and those being written: other programs ignore names that begin with a dot."""


def unfinished(path: Path) -> Path:
    """Return the path of a file of a trace while it is being written."""
    return path.with_name(f".{path.name}.tmp")


@dataclass(frozen=True)
class Folder:
    """The folder ``messages`` of a live run; ``token`` tells it from a folder of the same name on another machine."""

    path: str
    token: str

    def check(self) -> None:
        """Raise InputError if this process does not see the folder."""
        try:
            found = (regular_files.json_of(Path(self.path), manifest.NAME) or {}).get("token")
        except InputError:
            found = None
        if found != self.token:
            raise InputError(
                f"a shard does not see the folder {self.path!r}, where messages are written: give a folder that all "
                "machines of the cluster share, or trace='none'"
            )

    def open(self, site: int) -> Writer:
        """Return the writer for the messages of one site."""
        return Writer(Path(self.path), site)

    def start_over(self) -> None:
        """Remove all files of messages, and what was noted of them: the run begins again."""
        for left in Path(self.path).iterdir():
            if left.name != manifest.NAME:
                shutil.rmtree(left) if left.is_dir() else left.unlink()


class Writer:
    """Writes the messages of one site."""

    def __init__(self, root: Path, site: int):
        self._root, self._site, self._number = root, site, 0
        self._part: Part | None = None
        self._done: list[dict[str, Any]] = []
        self._written_out: set[str] = set()
        self._stored_arrays = StoredArrays()

    def take(self, kind: str, round: int, addresses: dict[str, Address], fields: dict[str, Array]) -> None:
        """Write a batch of at least one message."""
        with self._translated():
            self._take(kind, round, addresses, fields)

    def cut(self) -> list[dict[str, Any]]:
        """Close the open file; return the entries of the files closed since the last call."""
        with self._translated():
            self._end()
        done, self._done, self._written_out = self._done, [], set()
        return done

    def _take(self, kind: str, round: int, addresses: dict[str, Address], fields: dict[str, Array]) -> None:
        rules = self._rules(addresses, 0 if self._part is None else self._part.rows)
        if self._part is not None and not self._part.fits(rules):
            self._written_out |= {
                name for name in ADDRESSES if self._part.rules[name] not in (STORED, rules[name])
            }
            self._end()
            rules = self._rules(addresses, 0)
        if self._part is None:
            if all(rule != STORED for rule in rules.values()) and not any(
                map(parquet_columns.stores, fields.values())
            ):
                rules["sender"] = STORED  # a file needs a column to have rows
            self._part = Part(self._root, self._site, self._number, kind, round, rules)
            self._number += 1
        for name, column in addresses.items():
            if self._part.rules[name] == STORED and isinstance(column, np.ndarray):
                self._stored_arrays.remember(column, self._part.file, name, self._part.rows)
        self._part.add(addresses, fields)
        if self._part.rows >= MOST_ROWS:
            self._end()

    def _rules(self, addresses: dict[str, Address], row: int) -> dict[str, Any]:
        return {
            name: STORED if name in self._written_out else narrowest_rule(column, row, self._stored_arrays)
            for name, column in addresses.items()
        }

    def _end(self) -> None:
        if self._part is not None:
            self._done.append(self._part.close())
            self._part = None

    def _translated(self) -> contextlib.AbstractContextManager[None]:
        return write_errors.translated("the trace", self._root, "another folder or a lower trace level")


class Part:
    """One file that is being written.  ``rules``: by address column, see ``address_columns.narrowest_rule``."""

    def __init__(self, root: Path, site: int, number: int, kind: str, round: int, rules: dict[str, Any]):
        self.file = f"{kind}/round={round}/part-{site:05d}-{number:05d}.parquet"
        self.rules, self.rows = rules, 0
        self._root, self._site = root, site
        self._path = root / self.file
        self._unfinished = unfinished(self._path)
        self._about = {"kind": kind, "round": round, **rules}
        self._order = Order()
        self._waiting: list[dict[str, Array]] = []
        self._columns: dict[str, Any] = {}
        self._writer: Any = None

    def fits(self, rules: Mapping[str, Any]) -> bool:
        """Return whether a batch with these rules can be added."""
        return all(self.rules[name] in (STORED, rule) for name, rule in rules.items())

    def add(self, addresses: Mapping[str, Address], fields: Mapping[str, Array]) -> None:
        """Add a batch."""
        sized = (column for column in (*addresses.values(), *fields.values()) if not isinstance(column, int))
        size = len(next(sized, [0]))  # no column at all: one message, since addresses tell messages apart
        self._order.follow(addresses["sender"], addresses["recipient"], addresses["seq"], size)
        columns = {
            k: as_column(c, size).astype(np.int32, copy=False)
            for k, c in addresses.items()
            if self.rules[k] == STORED
        }
        self._waiting.append(columns | {k: c for k, c in fields.items() if parquet_columns.stores(c)})
        self.rows += size
        if sum(len(next(iter(batch.values()))) for batch in self._waiting) >= _GROUP:
            self._flush()

    def close(self) -> dict[str, Any]:
        """Close the file, give it its final name, and return its entry."""
        self._flush()
        self._writer.close()
        checksum = sha256(self._unfinished)
        size = self._unfinished.stat().st_size
        span = [self._order.first, self._order.last] if self._order.holds else None
        about = {"file": self.file, **self._about, "rows": self.rows, "bytes": size, "sha256": checksum}
        about["ordered"] = span
        integrity.add(self._root, self._site, about)
        self._unfinished.rename(self._path)
        return about

    def _flush(self) -> None:
        if not self._waiting:
            return
        first = self._waiting[0]
        columns = first if len(self._waiting) == 1 else parquet_columns.joined(self._waiting)
        if self._writer is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._writer = parquet_columns.Stream(self._unfinished, columns, ADDRESSES)
        rows = len(next(iter(columns.values())))
        for low in range(0, rows, _MAX_GROUP):
            self._writer.write({name: column[low : low + _MAX_GROUP] for name, column in columns.items()})
        self._waiting = []


def write_columns(
    root: Path, messages: Mapping[str, Mapping[str, Array]], kinds: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Write messages from memory, columns as ``Run.messages`` returns them; return the entries of the files.

    ``kinds``: of the manifest.
    """
    writer, done = Writer(root, 0), []
    for kind, values in messages.items():
        columns = _as_stored(kind, values, kinds[kind]["fields"])
        fields = [name for name in columns if name not in ("round", *ADDRESSES, "nbytes")]
        for round in np.unique(columns["round"]).tolist():
            low, high = (int(np.searchsorted(columns["round"], round, side)) for side in ("left", "right"))
            for start in range(low, high, MOST_ROWS):
                rows = slice(start, min(start + MOST_ROWS, high))
                addresses = {name: narrowed(columns[name][rows]) for name in ADDRESSES}
                writer.take(kind, round, addresses, {name: columns[name][rows] for name in fields})
                done += writer.cut()
    return done


def _as_stored(
    kind: str, columns: Mapping[str, Array], fields: Mapping[str, Any]
) -> Mapping[str, Array]:  # fmt: skip
    """Return columns with fixed-point numbers as the multiples that they are."""
    kinds = {name: manifest.fixed_point_of(about) for name, about in fields.items()}
    return {
        name: column
        if (fixed := kinds.get(name)) is None
        else fixed.encoded(column, f"{kind}, field {name!r}")
        for name, column in columns.items()
    }


MESSAGES = "messages"


class Draft:
    """An unfinished run directory, ``NAME.partial-XXXXXXXX`` beside its final place; made when first needed.

    In a ``with`` block it is locked against other processes, which so know that it is being written.
    ``announce``: called with protocol, trace level and population before a run.  The end of a
    ``with`` block removes the directory, unless it was renamed; if the run failed, its messages stay, and a warning
    says where.  If the run can go on, so does what was asked of it; see ``under_way``.
    """

    def __init__(self, path: Path, announce: Callable[[Protocol, str, Population], None] | None = None):
        self._path, self._folder, self._announce = path, Path(), announce
        self._made: list[Path] = []
        self._asked: dict[str, Any] | None = None
        self._goes_on = False
        self._ends = False
        self._lock: int | None = None
        self._check: Callable[[], None] | None = None

    def make(self) -> Path:
        """Return the folder.  Only the owner may read it: with the seed, anybody could undo the noise.

        Raises StorageError where it cannot be made.
        """
        if not self._made:
            parents = [*reversed(self._path.parent.parents), self._path.parent]
            new = [parent for parent in parents if not parent.exists()]
            with write_errors.translated("the run", self._path.parent):
                self._path.parent.mkdir(parents=True, exist_ok=True)
                made = tempfile.mkdtemp(prefix=f"{self._path.name}{under_way.PARTIAL}", dir=self._path.parent)
            self._folder = self._path.parent / Path(made).name  # from 3.12 on mkdtemp makes it absolute
            self._made = [*new, self._folder]
            self._lock = under_way.locked(self._folder) if self._ends else None
        return self._folder

    def ask(self, asked: dict[str, Any]) -> None:
        """Note what is asked of the run, so that it can go on if it is cut off; raises StorageError."""
        self.make()
        under_way.write(self._folder, asked)
        self._asked = asked

    def go_on(self, folder: Path, asked: dict[str, Any]) -> None:
        """Take the place of a draft that was cut off, and remove all that it left but what was asked.

        Raises InputError, and touches nothing, if another process still computes it.
        """
        self._lock = under_way.locked(folder)
        self._folder, self._made, self._asked, self._goes_on = folder, [folder], asked, True
        self.clear(messages=True)

    def check_at_the_end(self, check: Callable[[], None]) -> None:
        """Call ``check`` when all is written, before the folder gets its name; what it raises ends the run."""
        self._check = check

    def whole(self) -> None:
        """Remove what was asked: the folder is whole, and about to get its name."""
        if self._check is not None:
            self._check()
        if self._asked is not None:
            (self._folder / under_way.ASKED).unlink(missing_ok=True)

    def announce(self, protocol: Protocol, level: str, population: Population) -> None:
        """Announce a run and its trace, before it starts."""
        if self._announce is not None:
            self._announce(protocol, level, population)

    def begin(
        self, protocol: Protocol, level: str, population: Population, origin: str | None = None
    ) -> Folder:
        """Make an empty trace; return the folder that the sites of a run write to.

        ``origin``: where the seed came from.
        """
        folder = self.make() / MESSAGES
        token = secrets.token_hex(8)
        with write_errors.translated("the trace", folder):
            folder.mkdir()
            manifest.write(folder, manifest.begun(protocol, level, population.users, token, origin))
        return Folder(str(folder.resolve()), token)

    def end(self, counts: manifest.Counts, files: list[dict[str, Any]]) -> Path:
        """Mark the trace as complete; return its folder."""
        folder = self.make() / MESSAGES
        with write_errors.translated("the trace", folder):
            manifest.write(folder, manifest.ended(manifest.read(folder), counts, alike(folder, files)))
        integrity.forget(folder)
        return folder

    def beside(self, path: Path) -> bool:
        """Return whether the folder can be renamed to a path."""
        return self._path.parent.resolve() == path.parent.resolve()

    def clear(self, messages: bool = False, but: Collection[str] = ()) -> None:
        """Remove everything but the messages, or these too, and what was asked, which is put back if it was removed.

        ``but``: the names of what else stays.
        """
        kept = {*but} | (set() if messages else {MESSAGES})
        kept |= {under_way.ASKED} if self._asked is not None else set()
        for other in self._folder.iterdir() if self._made else ():
            if other.name not in kept:
                shutil.rmtree(other) if other.is_dir() else other.unlink()
        if self._asked is not None and not (self._folder / under_way.ASKED).exists():
            with contextlib.suppress(StorageError):  # the first error is the one to be reported
                under_way.write(self._folder, self._asked)

    def __enter__(self) -> Draft:
        self._ends = True  # so that a lock is given back
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._made and self._folder.exists():
            self._end(error)
        if self._lock is not None:
            os.close(self._lock)

    def _end(self, error: BaseException | None) -> None:
        if not (_passes(error) or (self._goes_on and _of_the_place(error))):
            self._asked = None
        messages = error is not None and next((self._folder / MESSAGES).glob(PARTS), None) is not None
        if messages or self._asked is not None:
            self.clear(messages=not messages)
        if not (self._folder / under_way.ASKED).exists():
            self._asked = None  # there was no room to put it back
        if messages:
            what = "messages so far"
            with contextlib.suppress(InputError):  # the first error is the one to be reported
                what = "messages" if manifest.read(self._folder / MESSAGES)["complete"] else what
            warnings.warn(f"the {what} of the run that failed are in {str(self._folder)!r}", stacklevel=3)
        elif self._asked is None:
            shutil.rmtree(self._folder, ignore_errors=True)
            for parent in reversed(self._made[:-1]):
                with contextlib.suppress(OSError):
                    parent.rmdir()
            self._made = []
        if self._asked is not None:
            words = shlex.join(["p2p-sim", "run", "--resume", str(self._folder)])
            warnings.warn(f"the run was cut off; it goes on, with the same bits, by: {words}", stacklevel=3)


def _of_the_place(error: BaseException | None) -> bool:
    """Whether what ended a run that goes on may be due to where it does, such as a cluster that is too small.

    Its input was taken when it began.
    """
    return isinstance(error, Exception) and not isinstance(error, ProtocolError)


def _passes(error: BaseException | None) -> bool:
    """Whether what ended a run need not end it again, as its input or its program would."""
    if isinstance(error, (InputError, ProtocolError)):
        return isinstance(error, StorageError)
    return isinstance(error, (KeyboardInterrupt, RunLostError, MemoryError, OSError))
