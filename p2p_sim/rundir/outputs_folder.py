"""Outputs that the sites of a run write into its directory while it goes on, and that are read when asked for."""

from __future__ import annotations

import copy
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core import write_errors
from p2p_sim.core.errors import InputError
from p2p_sim.rundir import integrity, parquet_columns, regular_files
from p2p_sim.rundir.growing_columns import GrowingColumns
from p2p_sim.rundir.trace_writer import Draft

Array = npt.NDArray[Any]

OUTPUTS = "outputs"
_TOKEN = ".token"


@dataclass(frozen=True)
class OutputsFolder:
    """The folder ``outputs`` of a live run; ``token`` tells it from a folder of the same name on another machine."""

    path: str
    token: str

    @classmethod
    def begin(cls, draft: Draft) -> OutputsFolder:
        """Make the folder in a draft of the run directory; raises StorageError where that fails."""
        folder, token = draft.make() / OUTPUTS, secrets.token_hex(8)
        shutil.rmtree(folder, ignore_errors=True)  # of the same run, which was cut off
        with write_errors.translated("outputs", folder):
            folder.mkdir()
            (folder / _TOKEN).write_text(token)
        return cls(str(folder.resolve()), token)

    def check(self) -> None:
        """Raise InputError if this process does not see the folder."""
        try:
            found = Path(self.path, _TOKEN).read_text()
        except OSError:
            found = None
        if found != self.token:
            raise InputError(
                f"a shard does not see the folder {self.path!r}, where outputs are written: give --out a folder that "
                "all machines of the cluster share"
            )

    def open(self, role: str, site: int | None) -> RoleFiles:
        """Return what writes the output of a role at one site; of several sites, each writes a part."""
        return RoleFiles(GrowingColumns(Path(self.path), role, site), self.path)

    def start_over(self) -> None:
        """Remove what was written: the run begins again, perhaps on other shards."""
        for inner in Path(self.path).iterdir():
            if inner.name != _TOKEN:
                shutil.rmtree(inner) if inner.is_dir() else inner.unlink()

    def outputs(self, rows: Mapping[str, Mapping[str, int]]) -> StoredOutputs:
        """Return what was written, read when asked for; ``rows``: of each column, by role."""
        Path(self.path, _TOKEN).unlink()
        with suppress(OSError):  # nobody returns anything
            Path(self.path).rmdir()
        return StoredOutputs(Path(self.path), rows)


@dataclass(frozen=True)
class RoleFiles:
    """The files of a role's output at one site, which have their names when they are whole."""

    columns: GrowingColumns
    folder: str

    def add(self, columns: Mapping[str, Array]) -> None:
        """Add what a block returned; raises StorageError where that fails."""
        with write_errors.translated("outputs", self.folder):
            self.columns.add(columns)

    def close(self) -> None:
        """Write what is left, and give the files their names; raises StorageError where that fails."""
        with write_errors.translated("outputs", self.folder):
            self.columns.close()

    def abandon(self) -> None:
        """Remove the files."""
        self.columns.abandon()


class StoredOutputs(Mapping[str, dict[str, Array]]):
    """The outputs of a run by role, read from the folder ``outputs`` when they are asked for.

    ``rows``: of each column, by role; ``draft``: of the run directory they wait in.  The files are those that lie in
    the folder now: whatever reads others later raises InputError.
    """

    def __init__(self, folder: Path, rows: Mapping[str, Mapping[str, int]], draft: Draft | None = None):
        self.folder, self.draft = folder, draft
        self.names = {role: list(columns) for role, columns in rows.items()}
        self._rows = rows
        self._stamps = {name: _stamp(folder.parent / name) for name in _files_in(folder)}
        self._sums: Mapping[str, str] = {}

    def moved(self, folder: Path, sums: Mapping[str, str]) -> StoredOutputs:
        """Return them where they were put; ``sums``: SHA-256 of the files of the run directory, by path."""
        there = copy.copy(self)
        there.folder, there.draft, there._sums = folder, None, sums
        there._stamps = dict(self._stamps)
        return there

    def __getitem__(self, role: str) -> dict[str, Array]:
        names = self.names[role]
        if not names:
            return {}
        self._check(role)
        found = parquet_columns.read_apart(self.folder.parent, self.folder.name, role).get(role, {})
        self._check(role)
        if not found.keys() >= {*names}:
            raise parquet_columns.gone(self.folder, role)
        return {name: found[name] for name in names}

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def copy(self, folder: Path) -> None:
        """Copy what the run wrote to another folder; raises InputError if any of it is gone, or was altered."""
        for again in (False, True):
            for role in self.names:
                self._check(role)
            for name in () if again else self._stamps:
                there = folder.parent / name
                there.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(self.folder.parent / name, there)

    def rows(self, role: str) -> int:
        """Return how many rows the longest column of a role has; nothing is read."""
        return max(self._rows[role].values())

    def counted(self, role: str, name: str) -> tuple[int, int] | None:
        """Return how many values a column of one number a row has, and how many of them are not 0, read in parts.

        None for a column of several numbers a row.
        """
        if not self.aligned(role, [name]):
            return None
        rows = positive = 0
        for part in self.parts(role, [name]):
            rows, positive = rows + len(part[name]), positive + int(np.count_nonzero(part[name]))
        return rows, positive

    def aligned(self, role: str, names: Sequence[str]) -> bool:
        """Return whether some columns of a role have one number a row, and as many rows, so that they lie together."""
        self._check(role)
        return parquet_columns.lie_together(self.folder, role, names)

    def parts(self, role: str, names: Sequence[str]) -> Iterator[dict[str, Array]]:
        """Read columns that are aligned, a part of the rows after the other."""
        self._check(role)
        for part in parquet_columns.parts_of(self.folder, role, names):
            self._check(role)
            yield part

    def _check(self, role: str) -> None:
        """Raise InputError unless the files of a role are those that were written.

        A file that is no longer the same, by inode, time and size, is hashed once: it may have been restored.
        """
        known = {name for name in self._stamps if _role_of(name) == role}
        if {name for name in _files_in(self.folder) if _role_of(name) == role} != known:
            raise parquet_columns.gone(self.folder, role)
        for name in sorted(known):
            file = regular_files.find(self.folder.parent, name)
            if file is None:  # it went just now
                raise parquet_columns.gone(self.folder, role)
            stamp = _stamp(file)
            if stamp == self._stamps[name]:
                continue
            found, expected = integrity.sha256(file), self._sums.get(name)
            if found != expected:
                why = "" if expected is None else f": its SHA-256 is {found}, not {expected}"
                raise InputError(
                    f"{str(file)!r} was replaced or altered after the run wrote it{why}; {regular_files.RESTORE}"
                )
            self._stamps[name] = stamp


def _files_in(folder: Path) -> list[str]:
    """Return the files of columns in a folder, by their path below the one it is in."""
    return sorted(file.relative_to(folder.parent).as_posix() for file in folder.rglob("*.parquet"))


def _role_of(name: str) -> str:
    """Return whose columns a file holds: ``outputs/ROLE.parquet``, or below ``outputs/ROLE``."""
    return name.split("/")[1].removesuffix(".parquet")


def _stamp(file: Path) -> tuple[int, int, int]:
    """Return what tells a file from one that replaced it: inode, time and size."""
    about = file.stat()
    return about.st_ino, about.st_mtime_ns, about.st_size


def rows_of(outputs: Mapping[str, Mapping[str, Array]], role: str) -> int:
    """Return how many rows the longest column of a role has, without reading what is stored."""
    if isinstance(outputs, StoredOutputs):
        return outputs.rows(role)
    return max(map(len, outputs[role].values()))


def names_of(outputs: Mapping[str, Mapping[str, Array]]) -> dict[str, list[str]]:
    """Return the names of the columns of each role, without reading what is stored."""
    if isinstance(outputs, StoredOutputs):
        return {role: list(names) for role, names in outputs.names.items()}
    return {role: list(columns) for role, columns in outputs.items()}
