"""Two noisy entries of which one label raises the one or the other: their law, by the difference of the two.

*Source:* ``docs/laws.md``, "A one-hot label with noise".
"""

from __future__ import annotations

from decimal import Context, Decimal
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
    q = _DIGITS.exp(-Decimal(epsilon) / (2 * grid))
    whole = _DIGITS.add(1, q)
    inner = _DIGITS.divide(1 - q, whole)
    low = [_DIGITS.divide(1, whole)]  # noise at most 0
    low += [_DIGITS.multiply(inner, _DIGITS.power(q, j)) for j in range(1, grid)]
    low += [_DIGITS.divide(_DIGITS.power(q, grid), whole)]  # noise of at least a label
    sums = [Decimal(0)] * (2 * grid + 1)
    for cut_off, chance in enumerate(low):  # own entry grid - cut_off: as likely as cut_off in another
        for other, its_chance in enumerate(low):
            place = 2 * grid - cut_off - other
            sums[place] = _DIGITS.add(sums[place], _DIGITS.multiply(chance, its_chance))
    return np.array([float(value) for value in sums])
