"""Outputs that the sites of a run write into its directory while it goes on, and that are read when asked for."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError, StorageError
from p2p_sim.rundir import parquet_columns
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
        """Make the folder in a draft of the run directory."""
        folder, token = draft.make() / OUTPUTS, secrets.token_hex(8)
        shutil.rmtree(folder, ignore_errors=True)  # of the same run, which was cut off
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

    def outputs(self, names: Mapping[str, Sequence[str]]) -> StoredOutputs:
        """Return what was written, read when asked for."""
        Path(self.path, _TOKEN).unlink()
        with suppress(OSError):  # nobody returns anything
            Path(self.path).rmdir()
        return StoredOutputs(Path(self.path), names)


@dataclass(frozen=True)
class RoleFiles:
    """The files of a role's output at one site, which have their names when they are whole."""

    columns: GrowingColumns
    folder: str

    def add(self, columns: Mapping[str, Array]) -> None:
        """Add what a block returned; raises StorageError where there is no room."""
        with self._room():
            self.columns.add(columns)

    def close(self) -> None:
        """Write what is left, and give the files their names; raises StorageError where there is no room."""
        with self._room():
            self.columns.close()

    def abandon(self) -> None:
        """Remove the files."""
        self.columns.abandon()

    @contextmanager
    def _room(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StorageError(
                f"outputs cannot be written to {self.folder!r}: {error.strerror or error}; make room, or choose "
                "another folder with --out"
            ) from error


class StoredOutputs(Mapping[str, dict[str, Array]]):
    """The outputs of a run by role, read from the folder ``outputs`` when they are asked for.

    ``names``: the columns of each role; ``draft``: of the run directory they wait in.
    """

    def __init__(self, folder: Path, names: Mapping[str, Sequence[str]], draft: Draft | None = None):
        self.folder, self.names, self.draft = folder, names, draft

    def __getitem__(self, role: str) -> dict[str, Array]:
        names = self.names[role]
        found = parquet_columns.read_apart(self.folder.parent, self.folder.name, role).get(role, {})
        if not found.keys() >= {*names}:
            raise parquet_columns.gone(self.folder, role)
        return {name: found[name] for name in names}

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def copy(self, folder: Path) -> None:
        """Copy what is stored to another folder; raises InputError if it is no longer there."""
        returned = [role for role, names in self.names.items() if names]
        if self.folder.is_dir():
            shutil.copytree(self.folder, folder)
        elif returned:
            raise parquet_columns.gone(self.folder, returned[0])

    def rows(self, role: str) -> int:
        """Return how many rows the longest column of a role has."""
        return parquet_columns.rows_of(self.folder, role, self.names[role])

    def counted(self, role: str, name: str) -> tuple[int, int]:
        """Return how many values a column of one number a row has, and how many of them are not 0, read in parts."""
        rows = positive = 0
        for part in parquet_columns.parts_of(self.folder, role, [name]):
            rows, positive = rows + len(part[name]), positive + int(np.count_nonzero(part[name]))
        return rows, positive

    def aligned(self, role: str, names: Sequence[str]) -> bool:
        """Return whether some columns of a role have one number a row, and as many rows, so that they lie together."""
        return parquet_columns.lie_together(self.folder, role, names)

    def parts(self, role: str, names: Sequence[str]) -> Iterator[dict[str, Array]]:
        """Read columns that are aligned, a part of the rows after the other."""
        return parquet_columns.parts_of(self.folder, role, names)


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
