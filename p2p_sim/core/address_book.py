"""``World``: who can be addressed in a run, and by which row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import ProtocolError
from p2p_sim.core.kernels_numpy import as_array
from p2p_sim.core.lazy_attribute import lazy

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class World:
    """Who can be addressed: ``users`` rows; their ids (ascending), None where row is id.  Lengths of vectors.

    ``real``: what is sealed is really sealed, and forwarded as the bytes that came.
    """

    users: int
    ids: Array | None
    sizes: dict[str, int]
    real: bool = False

    @lazy
    def first(self) -> int | None:
        """The first id if ids follow one another, as in a replayed cluster: then nothing is looked up."""
        ids = self.ids
        together = ids is not None and len(ids) and int(ids[-1]) - int(ids[0]) + 1 == len(ids)
        return int(ids[0]) if ids is not None and together else None

    def rows(self, ids: Array, where: str, what: str = "to=") -> Array:
        """Return the rows of the addressed users, int32; raises ProtocolError for anybody who is not there."""
        if ids.dtype.kind not in "ui":
            raise ProtocolError(f"{where}: {what} has type {ids.dtype}; give users' ids")
        if self.ids is None:
            if len(ids) and (int(ids.min()) < 0 or int(ids.max()) >= self.users):
                raise ProtocolError(
                    f"{where}: {what} names users {ids.min()} to {ids.max()}; they are 0 to {self.users - 1}"
                )
            return ids.astype(np.int32, copy=False)
        place = _places(self.ids, ids) if self.first is None else ids.astype(np.int64) - self.first
        rows = np.clip(place, 0, self.users - 1)
        if not bool((self.ids[rows] == ids).all()):
            stranger = int(ids[self.ids[rows] != ids][0])
            raise ProtocolError(f"{where}: user {stranger} is outside the closed world of this replay")
        return rows.astype(np.int32)

    def names(self, rows: range | Array) -> range | Array:
        """Return the ids of some rows."""
        if self.ids is None:
            return rows
        if self.first is None:
            return np.asarray(self.ids[as_array(rows)])
        if isinstance(rows, range):
            return range(rows.start + self.first, rows.stop + self.first)
        return rows + np.int64(self.first)


def _places(ids: Array, wanted: Array) -> Array:
    """Return where the wanted ids stand among some (ascending); anywhere for one that is not among them.

    Looked up in ascending order they cost a third of what they cost in any order.
    """
    packed = (wanted.astype(np.int64) << 32) | np.arange(len(wanted))
    packed.sort()
    places = np.empty(len(wanted), np.int64)
    places[packed & 0xFFFFFFFF] = np.searchsorted(ids, packed >> 32)
    return places
