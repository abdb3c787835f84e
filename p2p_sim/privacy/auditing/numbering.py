"""Numbers that count through all worlds of a batch, as ids do: they tell which world it is, and must not be read so."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

CLUSTER = "cluster"
"""A field that only says which world it is."""

_USERS, _WORLDS = (
    64,
    8,
)  # of a batch, so many that other values do not look like ids, or like other numbers, by chance
_LAST = 2**62


def a_world(values: Array, world: Array, size: int, worlds: int) -> int:
    """Return how many numbers each world has where values count through all of them; 0 where they do not.

    ``values``, ``world``: of each message or draw, (n,); world w would have the numbers from w times the result on.
    ``size``: users of a world, whose ids are such numbers; those of clusters and of bags are others.
    """
    if values.ndim != 1 or values.dtype.kind not in "iu" or not len(values):
        return 0
    low, high = int(values.min()), int(values.max())
    if low < 0 or high > _LAST:
        return 0
    numbers = values.astype(np.int64)
    tried = [size] if worlds * size >= _USERS else []
    tried += [high // worlds + 1, 1] if worlds >= _WORLDS else []
    return next((each for each in tried if np.array_equal(numbers // each, world)), 0)
