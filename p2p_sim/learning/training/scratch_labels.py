"""Released labels by user, in a scratch file: a model reads those of a batch of users at a time."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core import write_errors

Array = npt.NDArray[Any]

RECORD = np.dtype([("user", "<i4"), ("y", "u1")])
_READ = 1 << 18  # records that are read at a time: 1.25 MiB
_FEW, _MOST = 1 << 20, 256  # users of a part that is sorted in memory, and parts
_ELSEWHERE = "another folder by the variable TMPDIR"


@dataclass(frozen=True)
class ScratchLabels:
    """Labels in the order of users, those of a user in the order in which they came; ``count``: how many."""

    path: Path
    count: int

    @classmethod
    def of(cls, pairs: Iterable[tuple[Array, Array]], users: int, folder: Path) -> ScratchLabels:
        """Write rows of users (m,), from 0 to ``users`` - 1 in any order, and their labels (m,) to a scratch folder.

        A 256th of the users, or a million if that is more, are sorted in memory at a time.  Raises StorageError if
        they cannot be written, as on a full disk.
        """
        width = max(_FEW, -(-users // _MOST))
        parts = [folder / f"{low}" for low in range(0, users, width)]
        path, count = folder / "labels", 0
        what = f"released labels, {RECORD.itemsize} bytes each,"
        for rows, y in pairs:
            records = np.empty(len(rows), RECORD)
            records["user"], records["y"] = rows, y
            count += len(rows)
            with write_errors.translated(what, folder, _ELSEWHERE):
                _divide(records, parts, width)
        with write_errors.translated(what, folder, _ELSEWHERE), path.open("wb") as whole:
            for part in filter(Path.exists, parts):
                records = np.fromfile(part, RECORD)
                part.unlink()  # first: so there are never more than all records on disk
                whole.write(_sorted(records).view(np.uint8).data)
        return cls(path, count)

    def batches(self, edges: Sequence[int]) -> Iterator[tuple[Array, Array]]:
        """Return labels of users between neighbouring ``edges``: their rows, counted from the lower one, and labels."""
        held, more = np.empty(0, RECORD), self.count > 0
        with self.path.open("rb") as file:
            for low, high in itertools.pairwise(edges):
                while more and (not len(held) or held["user"][-1] < high):
                    records = np.fromfile(file, RECORD, _READ)
                    more = len(records) == _READ
                    held = np.concatenate([held, records])
                cut = int(np.searchsorted(held["user"], high))
                yield held["user"][:cut].astype(np.int64) - low, held["y"][:cut].copy()
                held = held[cut:]


def _divide(records: Array, parts: Sequence[Path], width: int) -> None:
    """Append records to the part of their users."""
    part = records["user"] // width
    if (part[1:] < part[:-1]).any():
        order = np.argsort(part, kind="stable")
        records, part = records[order], part[order]
    ends = np.searchsorted(part, np.arange(len(parts) + 1))
    for path, (low, high) in zip(parts, itertools.pairwise(ends.tolist()), strict=True):
        if low < high:
            with path.open("ab") as file:
                file.write(records[low:high].view(np.uint8).data)


def _sorted(records: Array) -> Array:
    user = records["user"]
    return records if (user[1:] >= user[:-1]).all() else records[np.argsort(user, kind="stable")]
