"""Parts of a trace, files or columns in memory: reading rows, finding users, and sorting rows in bounded memory."""

from __future__ import annotations

import hashlib
import itertools
import typing
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.core.message import USER
from p2p_sim.rundir import manifest, parquet_columns, parquet_schema, regular_files
from p2p_sim.rundir.address_columns import ADDRESSES, STORED, by_rule

Array = npt.NDArray[Any]
Columns = dict[str, Array]

_CHUNK = 1 << 20


class Part(typing.Protocol):
    """Some messages of one kind and round; ``lends``: ``columns`` returns views of what the part holds, no copies."""

    lends: typing.ClassVar[bool]
    kind: str
    round: int
    rows: int

    @property
    def ordered(self) -> list[Any] | None:
        """The addresses of the first and the last row, if rows are in the order (recipient, sender, seq)."""

    def columns(self, low: int, high: int) -> Columns:
        """Return rows ``low .. high - 1`` as ``Source.rows`` does."""

    def at(self, places: Array) -> Columns:
        """Return some rows (numbers, ascending)."""

    def column(self, name: str, low: int, high: int) -> Array:
        """Return rows ``low .. high - 1`` of an address column, in any integer type."""

    def places(self, users: Sequence[int]) -> Array:
        """Return the rows in which one of some users is sender or recipient, ascending."""


class InMemory:
    """A part of a trace in memory, in order; see ``Part``.  ``about``: the manifest's entry of its kind."""

    lends: typing.ClassVar[bool] = True

    def __init__(self, kind: str, round: int, about: Mapping[str, Any], columns: Columns):
        self.kind, self.round, self.rows = kind, round, len(columns["round"])
        self._columns = columns
        self._ends = [end for end in ("sender", "recipient") if about[end] == USER]

    @property
    def ordered(self) -> list[Any]:
        """See ``Part.ordered``."""
        return [[int(self._columns[name][row]) for name in ("recipient", "sender", "seq")] for row in (0, -1)]

    def columns(self, low: int, high: int) -> Columns:
        """See ``Part.columns``."""
        return {name: column[low:high] for name, column in self._columns.items()}

    def at(self, places: Array) -> Columns:
        """See ``Part.at``."""
        return {name: column[places] for name, column in self._columns.items()}

    def column(self, name: str, low: int, high: int) -> Array:
        """See ``Part.column``."""
        return self._columns[name][low:high]

    def places(self, users: Sequence[int]) -> Array:
        """See ``Part.places``."""
        if not self._ends:
            return np.zeros(0, np.int64)
        return np.flatnonzero(
            np.logical_or.reduce([_is_one_of(self._columns[end], users) for end in self._ends])
        )


def memory_parts(kind: str, about: Mapping[str, Any], columns: Columns | None) -> Iterator[InMemory]:
    """Yield the messages of a kind by round, from columns in the order (round, recipient, sender, seq)."""
    if columns is None or not len(columns["round"]):
        return
    rounds = columns["round"]
    cuts = [0, *(np.flatnonzero(rounds[1:] != rounds[:-1]) + 1).tolist(), len(rounds)]
    for low, high in itertools.pairwise(cuts):
        part = {name: column[low:high] for name, column in columns.items()}
        yield InMemory(kind, int(rounds[low]), about, part)


def _is_one_of(column: Array, users: Sequence[int]) -> Array:
    return column == users[0] if len(users) == 1 else np.isin(column, users)


class ReplacedError(InputError):
    """A file of a trace was replaced after the run was opened."""


class File:
    """A file of a trace; see ``Part``.

    ``entry``: the manifest's entry of the file; ``about``: the manifest's entry of its kind; ``others``: all files of
    the trace by name, to which ``{"as": ...}`` refers.
    """

    lends: typing.ClassVar[bool] = False

    def __init__(
        self, root: Path, entry: Mapping[str, Any], about: Mapping[str, Any], others: dict[str, File]
    ):
        self.entry, self.rows = entry, int(entry["rows"])
        self.kind, self.round = str(entry["kind"]), int(entry["round"])
        self._root, self._path, self._about, self._others = root, root / entry["file"], about, others
        self._places = lru_cache(maxsize=64)(self._search)

    @property
    def ordered(self) -> list[Any] | None:
        """See ``Part.ordered``."""
        return self.entry.get("ordered")

    def columns(self, low: int, high: int) -> Columns:
        """See ``Part.columns``."""
        stored = self._stored([*ADDRESSES, *self._about["fields"]], low, high)
        return self._complete(stored, low, high)

    def at(self, places: Array) -> Columns:
        """See ``Part.at``."""
        spans = _spans(places, self._starts)
        parts = [
            {name: column[places[mine] - low] for name, column in self.columns(low, high).items()}
            for low, high, mine in spans
        ]
        return parquet_columns.joined(parts) if parts else self.columns(0, 0)

    def column(self, name: str, low: int, high: int) -> Array:
        """See ``Part.column``."""
        rule = self.entry[name]
        if rule == STORED:
            return self._stored([name], low, high)[name]
        return (
            self._others[rule["as"][0]].column(rule["as"][1], low, high)
            if "as" in rule
            else by_rule(rule, low, high)
        )

    def places(self, users: Sequence[int]) -> Array:
        """See ``Part.places``."""
        ends = [self.where(end, users) for end in ("sender", "recipient") if self._about[end] == USER]
        return np.unique(np.concatenate(ends)) if ends else np.zeros(0, np.int64)

    def where(self, end: str, users: Sequence[int]) -> Array:
        """Return the rows in which an address column holds one of some ids, ascending."""
        rule = self.entry[end]
        if rule == STORED:
            return self._places(end, tuple(users))
        if "as" in rule:
            found = self._others[rule["as"][0]].where(rule["as"][1], users)
            return found[found < self.rows]
        if "all" in rule:
            every: int = rule["all"]
            return np.arange(self.rows if every in users else 0)
        places = np.array(sorted(users), np.int64) - int(rule["from"])
        inside: Array = places[(places >= 0) & (places < self.rows)]
        return inside

    def _search(self, end: str, users: tuple[int, ...]) -> Array:
        """Search the row groups whose statistics allow for one of some ids."""
        index = self._index[end]
        found = [np.zeros(0, np.int64)]
        for group in range(self._meta.num_row_groups):
            known = self._meta.row_group(group).column(index).statistics
            some = known is None or not known.has_min_max
            wanted = [user for user in users if some or known.min <= user <= known.max]
            if wanted:
                low, high = int(self._starts[group]), int(self._starts[group + 1])
                column = self.column(end, low, high)
                found.append(np.flatnonzero(_is_one_of(column, wanted)) + low)
        return np.concatenate(found)

    def _stored(self, names: list[str], low: int, high: int) -> Columns:
        """Read rows of those columns that are stored."""
        chosen = [name for name in names if name in self._index]
        if not chosen:
            return {}
        first = int(np.searchsorted(self._starts, low, side="right")) - 1
        last = int(np.searchsorted(self._starts, high, side="left"))
        groups = list(range(min(first, last), last))
        table = self._read(groups, chosen)
        start = low - int(self._starts[groups[0]]) if groups else 0
        return {
            name: self._checked(name, column[start : start + high - low])
            for name, column in parquet_columns.columns(table, self._path).items()
        }

    def _checked(self, name: str, column: Array) -> Array:
        """Check addresses: ids and sequence numbers are 0 or more."""
        if name in ADDRESSES and len(column) and int(column.min()) < 0:
            raise parquet_schema.damaged(self._path, f"its column {name!r} holds {int(column.min())}")
        return column

    def _complete(self, stored: Columns, low: int, high: int) -> Columns:
        size = high - low
        columns: Columns = {"round": np.full(size, self.round, np.int32)}
        for name in ADDRESSES:
            column = stored[name] if name in stored else self.column(name, low, high)
            columns[name] = column.astype(np.int32 if name == "seq" else np.int64, copy=False)
        for name, field in self._about["fields"].items():
            empty = np.zeros((size, *([] if field["length"] is None else [field["length"]])), field["dtype"])
            fixed, column = manifest.fixed_point_of(field), stored.get(name, empty)
            columns[name] = column if fixed is None else fixed.decoded(column)
        travels = np.ones(size, np.bool_)
        if self._about["sender"] == self._about["recipient"]:
            travels = columns["sender"] != columns["recipient"]
        return columns | {"nbytes": np.where(travels, self._about["nbytes"], 0)}

    @cached_property
    def _meta(self) -> Any:
        self.verify()
        return self.check_footer()

    @cached_property
    def _starts(self) -> Array:
        """First row of each row group, and the end."""
        sizes = [self._meta.row_group(group).num_rows for group in range(self._meta.num_row_groups)]
        return np.cumsum([0, *sizes])

    @cached_property
    def _index(self) -> dict[str, int]:
        """Number of the first Parquet column of each stored column."""
        group = self._meta.schema
        paths = [group.column(i).path.partition(".")[0] for i in range(len(group))]
        places = {name: place for place, name in reversed(list(enumerate(paths)))}
        return {name: place for name, place in places.items() if self.entry.get(name, STORED) == STORED}

    def _read(self, groups: list[int], names: list[str]) -> Any:
        from pyarrow import ArrowException, parquet

        try:
            file = parquet.ParquetFile(self._path, metadata=self._meta)
            found = file.read_row_groups(groups, columns=names, use_threads=False)
            same = self._stamp() == self._verified
        except MemoryError as error:
            raise InputError(
                f"{str(self._path)!r}: the rows that are asked for do not fit into memory ({error}): ask for fewer at "
                "once, by limit= and offset="
            ) from error
        except (ArrowException, OSError) as error:
            raise InputError(
                f"the trace is damaged: {str(self._path)!r} cannot be read ({error}); restore it, or run the protocol "
                "again"
            ) from error

        if not same:
            raise ReplacedError(f"{str(self._path)!r} was replaced after the run was loaded: load it again")
        return found

    def _stamp(self) -> tuple[int, int, int]:
        """Return what tells a file from one that replaced it: inode, time and size."""
        about = self._path.stat()
        return about.st_ino, about.st_mtime_ns, about.st_size

    def check(self) -> None:
        """Raise InputError if the file has another size, or if it or a file it refers to is missing."""
        name, expected = str(self._path), self.entry.get("bytes")
        if not all(map(self._holds, _copied(self.entry))):
            raise InputError(
                f"the trace is damaged: its manifest says that {name!r} refers to a column that is not in the "
                "trace, or has fewer rows; restore it, or run the protocol again"
            )
        if regular_files.find(self._root, self.entry["file"]) is None:
            raise InputError(
                f"the trace is damaged: {name!r} is missing; restore it, or run the protocol again"
            )
        size = self._path.stat().st_size
        if expected not in (None, size):
            raise InputError(
                f"the trace is damaged: {name!r} has {size:,} bytes instead of {expected:,}; restore it, or run the "
                "protocol again"
            )

    def _holds(self, place: tuple[str, str]) -> bool:
        """Return whether a column that this file refers to is stored, row for row."""
        other = self._others.get(place[0])
        return other is not None and other.entry.get(place[1]) == STORED and other.rows >= self.rows

    def check_footer_or_sum(self) -> None:
        """Check columns and rows; where they do not fit, raise InputError for the checksum, if that does not either."""
        try:
            self.check_footer()
        except InputError:
            self.verify()
            raise

    def check_footer(self) -> Any:
        """Return the file's metadata, after checking columns and rows against the manifest; raises InputError."""
        meta = parquet_schema.footer(self._path)
        schema = meta.schema.to_arrow_schema()
        wanted = {
            name: parquet_schema.exactly(field["dtype"], field["length"])
            for name, field in self._about["fields"].items()
            if field["length"] != 0  # of which there is nothing to store
        }
        address = parquet_schema.exactly(np.int32)
        wanted |= {name: address for name in ADDRESSES if self.entry[name] == STORED or name in schema.names}
        parquet_schema.check_types(self._path, schema, wanted)
        parquet_schema.check_rows(self._path, meta, self.rows, "the manifest")
        most = max((meta.row_group(group).num_rows for group in range(meta.num_row_groups)), default=0)
        if most > parquet_schema.MOST_GROUP:
            raise parquet_schema.damaged(
                self._path,
                f"a row group has {most:,} rows, and at most {parquet_schema.MOST_GROUP:,} are read",
            )
        return meta

    def verify(self) -> None:
        """Raise InputError unless the file matches its checksum."""
        self.check()
        expected, self._verified = self.entry.get("sha256"), self._stamp()
        with self._path.open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest() if expected is not None else None
        if found != expected:
            raise InputError(
                f"the trace is damaged: {str(self._path)!r} was altered, its SHA-256 is {found}, not {expected}; "
                "restore it, or run the protocol again"
            )


def sources_of(entry: Mapping[str, Any]) -> list[str]:
    """Return the names of the files whose columns a file refers to."""
    return [file for file, _ in _copied(entry)]


def _copied(entry: Mapping[str, Any]) -> list[tuple[str, str]]:
    rules = [entry[name] for name in ADDRESSES]
    return [tuple(rule["as"]) for rule in rules if rule != STORED and "as" in rule]


def _spans(places: Array, starts: Array) -> list[tuple[int, int, slice]]:
    """Divide sorted row numbers by row group: (first row, end, slice of the numbers), without empty groups."""
    cuts = np.searchsorted(places, starts)
    return [
        (int(starts[i]), int(starts[i + 1]), slice(int(cuts[i]), int(cuts[i + 1])))
        for i in range(len(starts) - 1)
        if cuts[i] < cuts[i + 1]
    ]


_FEW = 1 << 18
_SHIFT, _BINS = 15, 1 << 16
_HALF = np.int64(1) << np.int64(31)


def order_of(recipient: Array, sender: Array, seq: Array, round: Array | None = None) -> Array:
    """Return the permutation that sorts rows by round (if given), recipient, sender, seq."""
    if not len(recipient):
        return np.zeros(0, np.int64)
    narrow = all(bool(column.min() >= 0 and column.max() < _HALF) for column in (recipient, sender))
    if round is None and narrow and not seq.any():  # then one sort of single words does
        return np.argsort((recipient.astype(np.int64) << np.int64(32)) | sender)
    return np.lexsort((seq, sender, recipient) if round is None else (seq, sender, recipient, round))


def places_of(parts: list[Part], low: int, high: int) -> Array:
    """Return the positions of the rows ``low .. high - 1`` of that order, in parts of one round laid end to end."""
    rows = sum(part.rows for part in parts)
    places, before = (np.arange(rows), 0) if rows <= _FEW else _candidates(parts, low, high)
    keys = [_at(parts, name, places) for name in ("recipient", "sender", "seq")]
    return places[order_of(keys[0], keys[1], keys[2])[low - before : high - before]]


def _candidates(parts: list[Part], low: int, high: int) -> tuple[Array, int]:
    """Return the positions of rows among which are ``low .. high - 1``, and how many rows come before all of them.

    They are the rows in the same bins by recipient: one pass finds the bins, a second one their rows.
    """
    sizes = np.zeros(_BINS, np.int64)
    for _, recipients in _chunks(parts):
        sizes += np.bincount(_bin(recipients), minlength=_BINS)
    ends = np.cumsum(sizes)
    first, last = np.searchsorted(ends, [low, high - 1], side="right")
    found = []
    for start, recipients in _chunks(parts):
        bins = _bin(recipients)
        found.append(np.flatnonzero((bins >= first) & (bins <= last)) + start)
    return np.concatenate(found), int(ends[first] - sizes[first])


def _chunks(parts: list[Part]) -> Iterator[tuple[int, Array]]:
    """Yield the first position and the recipients of each chunk, in parts laid end to end."""
    before = 0
    for part in parts:
        for low in range(0, part.rows, _CHUNK):
            yield before + low, part.column("recipient", low, min(low + _CHUNK, part.rows))
        before += part.rows


def _bin(recipients: Array) -> Array:
    return np.asarray(np.minimum(recipients >> _SHIFT, _BINS - 1))


def _at(parts: list[Part], name: str, places: Array) -> Array:
    """Return an address column at some positions (ascending), in parts laid end to end."""
    found, before = [], 0
    for part in parts:
        for low in range(0, part.rows, _CHUNK):
            high = min(low + _CHUNK, part.rows)
            cut = slice(*np.searchsorted(places, [before + low, before + high]).tolist())
            if cut.start < cut.stop:
                found.append(part.column(name, low, high)[places[cut] - (before + low)])
        before += part.rows
    return np.concatenate(found)
