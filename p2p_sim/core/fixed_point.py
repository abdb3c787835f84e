"""Fixed-point fields of messages: numbers as integer multiples of a declared resolution, equal bits everywhere."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core import kernels
from p2p_sim.core.errors import InputError, ProtocolError
from p2p_sim.core.lazy_attribute import lazy

Array = npt.NDArray[Any]

MOST_MULTIPLES = 2**50
"""Largest multiple.  Up to here, multiple times resolution, divided by the resolution, rounds to the same multiple."""

_WIDTHS = (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64)


@dataclass(frozen=True)
class FixedPoint:
    """A field of numbers from ``low`` to ``high``, each the nearest multiple of ``resolution`` to what was sent.

    A tie goes to the even multiple.  The multiple travels, an integer of the fewest bytes that hold the range; readers
    get multiple times resolution, as float64: exact if the resolution is a power of two, otherwise the nearest float.
    ``low`` and ``high`` are multiples of the resolution, at most 2^50 of it from 0.  Raises InputError otherwise.
    """

    resolution: float
    low: float
    high: float

    def __post_init__(self) -> None:
        for name in ("resolution", "low", "high"):
            object.__setattr__(self, name, _finite(name, getattr(self, name)))
        if self.resolution <= 0:
            raise InputError(
                f"resolution = {self.resolution!r}: must be above 0, such as 2**-16, the step between two numbers"
            )
        if self.low >= self.high:
            raise InputError(f"low = {self.low!r}, high = {self.high!r}: low must be below high")
        for name in ("low", "high"):
            self._check_end(name, getattr(self, name))

    def _check_end(self, name: str, value: float) -> None:
        multiple = value / self.resolution
        if not abs(multiple) <= MOST_MULTIPLES:
            raise InputError(
                f"{name} = {value!r} is more than 2^50 times the resolution {self.resolution!r} away from 0: give a "
                "coarser resolution or a narrower range"
            )
        nearest = round(multiple)
        if abs(multiple - nearest) > min(1e-12 * abs(multiple), 0.1):  # a division's rounding error
            raise InputError(
                f"{name} = {value!r}: must be a multiple of the resolution {self.resolution!r}; the nearest is "
                f"{nearest * self.resolution!r}"
            )

    @lazy
    def least(self) -> int:
        """``low`` as a multiple of the resolution."""
        return round(self.low / self.resolution)

    @lazy
    def most(self) -> int:
        """``high`` as a multiple of the resolution."""
        return round(self.high / self.resolution)

    @lazy
    def dtype(self) -> np.dtype[Any]:
        """The integer type of the multiples."""
        fitting = (t for t in _WIDTHS if np.iinfo(t).min <= self.least and self.most <= np.iinfo(t).max)
        return np.dtype(next(fitting))

    def encoded(self, values: Array, where: str) -> Array:
        """Return numbers as multiples; raises ProtocolError for others than numbers, and for numbers out of range.

        ``where``: the beginning of the message, such as the role, step and field.
        """
        if values.dtype.kind not in "buif" or values.dtype.itemsize > 8:
            raise ProtocolError(
                f"{where} has type {values.dtype}; declared is {self!r}: send floats, integers or bool"
            )
        found: Array | None = kernels.at_hand(values.size).multiples(
            values, self.resolution, self.least, self.most, self.dtype
        )
        if found is None:
            raise self._outside(values, where)
        return found

    def encoded_choice(self, mask: Array, one: Array, other: Array, where: str) -> Array:
        """Return ``encoded`` of the rows of ``one`` (n, width) where the mask (n,) is true, of ``other`` elsewhere."""
        found: Array | None = kernels.at_hand(len(one)).choose_multiples(
            mask, one, other, self.resolution, self.least, self.most, self.dtype
        )
        if found is None:
            raise self._outside(np.where(mask[:, None], one, other), where)
        return found

    def _outside(self, values: Array, where: str) -> ProtocolError:
        """Return the error for an array with a number out of range, or with nan."""
        if values.dtype.kind == "f" and np.isnan(values).any():
            return ProtocolError(
                f"{where} holds nan; allowed are {self.low!r} to {self.high!r}: send a number in its place, as "
                "np.nan_to_num(values) does, or nothing, with when="
            )
        with np.errstate(over="ignore"):  # to infinity, which is out of range too
            multiples = np.rint(np.divide(values, self.resolution, dtype=np.float64))
        outside = values[~((multiples >= self.least) & (multiples <= self.most))]
        return ProtocolError(
            f"{where} holds {outside[0].item()!r}; allowed are {self.low!r} to {self.high!r}: declare a wider "
            f"range, or send np.clip(values, {self.low!r}, {self.high!r})"
        )

    def decoded(self, multiples: Array) -> npt.NDArray[np.float64]:
        """Return the numbers of multiples, or of sums of multiples."""
        return np.asarray(np.multiply(multiples, self.resolution, dtype=np.float64))

    def check_sum(self, count: int) -> None:
        """Raise ProtocolError if the sum of ``count`` multiples could be 2^63 or more in size."""
        if max(-self.least, self.most) * count >= 1 << 63:
            raise ProtocolError(
                f"the sum of {count:,} numbers, each up to 2^{max(-self.least, self.most).bit_length() - 1} times the "
                f"resolution {self.resolution!r}, may not fit into 64 bits: declare a coarser resolution or a narrower "
                "range"
            )


def _finite(name: str, value: Any) -> float:
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not number or not math.isfinite(value):
        raise InputError(f"{name} = {value!r}: must be a finite number")
    return float(value)
