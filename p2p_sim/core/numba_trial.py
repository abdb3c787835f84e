"""One small loop, compiled and kept as those of a run are: loading this tells whether numba can do both here."""

# mypy: disable-error-code="untyped-decorator"
from __future__ import annotations

from numba import njit, types


@njit(types.int64(types.int64), cache=True, nogil=True)
def squares(count: int) -> int:
    """Return the sum of the squares below ``count``."""
    found = 0
    for number in range(count):
        found += number * number
    return found
