"""Writing a trace while a run goes on: each site writes files of its own, whole ones that are renamed into place.

``messages/KIND/round=R/part-SITE-NUMBER.parquet``: a file holds messages of one kind and round, what one site received
of one issue from one site, in the order in which it came, up to 2^24 rows.  Address columns that follow from a row's
place are left out, see ``compact``; each file says of itself, in its metadata, what was left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.trace import manifest, notes, tables
from p2p_sim.trace.compact import ADDRESSES, STORED, Address, Known, Order, narrowed, rule_of, spelled
from p2p_sim.trace.sums import sha256

Array = npt.NDArray[Any]

MOST_ROWS = 1 << 24
"""Rows from which a file is ended: what a killed run loses at most of what it was writing."""

_GROUP = 1 << 17
_MOST_GROUP = 1 << 18
KEY = "p2p_sim"
PARTS, UNFINISHED = "*/round=*/*.parquet", "*/round=*/.*.parquet.tmp"
"""The files of a trace, and those that are being written: other programs pass over a name with a dot before it."""


def unfinished(path: Path) -> Path:
    """Return what a file of a trace is called while it is being written."""
    return path.with_name(f".{path.name}.tmp")


@dataclass(frozen=True)
class Folder:
    """The folder ``messages`` of a run that goes on; ``token`` tells it from others of its name on other machines."""

    path: str
    token: str

    def check(self) -> None:
        """Raise InputError if this process does not see the folder."""
        try:
            found = manifest.read(Path(self.path)).get("token")
        except InputError:
            found = None
        if found != self.token:
            raise InputError(
                f"a shard does not see the folder {self.path!r} to which the messages go: give a folder that all "
                "machines of the cluster share, or trace='none'"
            )

    def open(self, site: int) -> Writer:
        """Return what takes the messages of one site."""
        return Writer(Path(self.path), site)


class Writer:
    """Writes the messages of one site."""

    def __init__(self, root: Path, site: int):
        self._root, self._site, self._number = root, site, 0
        self._part: Part | None = None
        self._done: list[dict[str, Any]] = []
        self._spelled: set[str] = set()
        self._known = Known()

    def take(self, kind: str, round: int, addresses: dict[str, Address], fields: dict[str, Array]) -> None:
        """Take a batch of at least one message."""
        try:
            self._take(kind, round, addresses, fields)
        except OSError as error:
            raise self._failed(error) from error

    def cut(self) -> list[dict[str, Any]]:
        """End the file; describe those ended since the last cut."""
        try:
            self._end()
        except OSError as error:
            raise self._failed(error) from error
        done, self._done, self._spelled = self._done, [], set()
        return done

    def _take(self, kind: str, round: int, addresses: dict[str, Address], fields: dict[str, Array]) -> None:
        rules = self._rules(addresses, 0 if self._part is None else self._part.rows)
        if self._part is not None and not self._part.fits(rules):
            self._spelled |= {
                name for name in ADDRESSES if self._part.rules[name] not in (STORED, rules[name])
            }
            self._end()
            rules = self._rules(addresses, 0)
        if self._part is None:
            if all(rule != STORED for rule in rules.values()) and not any(
                map(tables.stores, fields.values())
            ):
                rules["sender"] = STORED  # a file needs a column to have rows
            self._part = Part(self._root, self._site, self._number, kind, round, rules)
            self._number += 1
        for name, column in addresses.items():
            if self._part.rules[name] == STORED and isinstance(column, np.ndarray):
                self._known.remember(column, self._part.file, name, self._part.rows)
        self._part.add(addresses, fields)
        if self._part.rows >= MOST_ROWS:
            self._end()

    def _rules(self, addresses: dict[str, Address], row: int) -> dict[str, Any]:
        return {
            name: STORED if name in self._spelled else rule_of(column, row, self._known)
            for name, column in addresses.items()
        }

    def _end(self) -> None:
        if self._part is not None:
            self._done.append(self._part.close())
            self._part = None

    def _failed(self, error: OSError) -> InputError:
        return InputError(
            f"the trace cannot be written to {str(self._root)!r}: {error.strerror or error}; make room, or choose "
            "another folder or a lower trace level"
        )


class Part:
    """One file that is being written.  ``rules``: by address column, see ``compact``."""

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
        """Whether a batch that keeps these rules can follow."""
        return all(self.rules[name] in (STORED, rule) for name, rule in rules.items())

    def add(self, addresses: Mapping[str, Address], fields: Mapping[str, Array]) -> None:
        """Add a batch."""
        sized = (column for column in (*addresses.values(), *fields.values()) if not isinstance(column, int))
        size = len(next(sized, [0]))  # no column at all: one message, since addresses tell messages apart
        self._order.follow(addresses["sender"], addresses["recipient"], addresses["seq"], size)
        columns = {
            k: spelled(c, size).astype(np.int32, copy=False)
            for k, c in addresses.items()
            if self.rules[k] == STORED
        }
        self._waiting.append(columns | {k: c for k, c in fields.items() if tables.stores(c)})
        self.rows += size
        if sum(len(next(iter(batch.values()))) for batch in self._waiting) >= _GROUP:
            self._flush()

    def close(self) -> dict[str, Any]:
        """End the file and put it in its place; describe it."""
        self._flush()
        self._writer.close()
        checksum = sha256(self._unfinished)
        size = self._unfinished.stat().st_size
        span = [self._order.first, self._order.last] if self._order.holds else None
        about = {"file": self.file, **self._about, "rows": self.rows, "bytes": size, "sha256": checksum}
        about["ordered"] = span
        notes.add(self._root, self._site, about)
        self._unfinished.rename(self._path)
        return about

    def _flush(self) -> None:
        if not self._waiting:
            return
        first = self._waiting[0]
        columns = first if len(self._waiting) == 1 else tables.joined(self._waiting)
        if self._writer is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._writer = tables.Stream(self._unfinished, columns, ADDRESSES, {KEY: json.dumps(self._about)})
        rows = len(next(iter(columns.values())))
        for low in range(0, rows, _MOST_GROUP):
            self._writer.write({name: column[low : low + _MOST_GROUP] for name, column in columns.items()})
        self._waiting = []


def write_columns(root: Path, messages: Mapping[str, Mapping[str, Array]]) -> list[dict[str, Any]]:
    """Write messages that are in memory, columns as ``Run.messages`` gives them; describe the files."""
    writer, done = Writer(root, 0), []
    for kind, columns in messages.items():
        fields = [name for name in columns if name not in ("round", *ADDRESSES, "nbytes")]
        for round in np.unique(columns["round"]).tolist():
            low, high = (int(np.searchsorted(columns["round"], round, side)) for side in ("left", "right"))
            for start in range(low, high, MOST_ROWS):
                rows = slice(start, min(start + MOST_ROWS, high))
                addresses = {name: narrowed(columns[name][rows]) for name in ADDRESSES}
                writer.take(kind, round, addresses, {name: columns[name][rows] for name in fields})
                done += writer.cut()
    return done
