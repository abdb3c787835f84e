"""Two noisy entries of which one label raises the one or the other: their law, by the difference of the two.

*Source:* ``docs/laws.md``, "A one-hot label with noise".
"""

from __future__ import annotations

from decimal import Context, Decimal, localcontext
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

_DIGITS = Context(prec=50)


@lru_cache(maxsize=32)
def differences(epsilon: float, grid: int) -> Array:
    """Return P(difference = i - grid) for i = 0 .. 2 grid, of the entry of a user's label less another one.

    The noise of each is discrete Laplace of scale 2 grid / epsilon steps, where a label is ``grid`` steps.
    Both entries, in steps, are first cut to 0 .. grid: what is cut off tells nothing.  To 50 digits, then rounded.
    """
    with localcontext(_DIGITS):
        q = (-Decimal(epsilon) / (2 * grid)).exp()
        inner = (1 - q) / (1 + q)
        low = [1 / (1 + q)]  # noise at most 0
        low += [inner * q**j for j in range(1, grid)]
        low += [q**grid / (1 + q)]  # noise of at least a label
        sums = [Decimal(0)] * (2 * grid + 1)
        # the own entry is grid - cut_off, as likely as noise cut_off in another
        for cut_off, chance in enumerate(low):
            for other, its_chance in enumerate(low):
                sums[2 * grid - cut_off - other] += chance * its_chance
    return np.array([float(value) for value in sums])
