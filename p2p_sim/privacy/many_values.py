"""Figures at one value, or at each value of an array: arguments that are either, and what comes back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Number
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.privacy.law import Bracket

Array = npt.NDArray[np.float64]
Checked = TypeVar("Checked")


class ArrayLike(Protocol):
    """What numpy makes an array of, such as a pandas Series."""

    def __array__(self) -> Any:
        """Return the values as an array."""


Values = Sequence[float] | ArrayLike
"""Several values: a sequence, nested or not, an array, a Series."""


class Brackets(NamedTuple):
    """Values between certified ends, as of ``Bracket``: three arrays of the shape that was asked for."""

    lower: Array
    value: Array
    upper: Array


def several(values: Any) -> bool:
    """Whether an argument is an array or a sequence of values, not one value (or something else)."""
    if isinstance(values, (Number, np.generic, str, bytes, bytearray)):
        return False
    return isinstance(values, Sequence) or hasattr(values, "__array__")


def checked(
    name: str, values: Any, check: Callable[[str, Any], Checked]
) -> tuple[list[Checked], tuple[int, ...]]:
    """Return every value as ``check(name, value)`` returns it, in C order, and the shape.

    The name of a value says where it stands, ``epsilon[3]``.  Raises InputError as ``check`` does, and for values that
    are masked.
    """
    if np.ma.is_masked(values):
        raise InputError(
            f"{name}: some values are masked; give those that count, such as values.compressed()"
        )
    # A list as objects: numpy would turn True and 1 into one type, and hide what must be refused.
    array = np.asarray(values, dtype=object if isinstance(values, Sequence) else None)
    found = [
        check(f"{name}{list(index)}" if index else name, _plain(value))
        for index, value in np.ndenumerate(array)
    ]
    return found, array.shape


def floats(values: Sequence[float], shape: tuple[int, ...]) -> Array:
    """Return values in C order as an array of a shape."""
    return np.array(values, dtype=np.float64).reshape(shape)


def brackets(values: Sequence[Bracket], shape: tuple[int, ...]) -> Brackets:
    """Return brackets in C order as three arrays of a shape."""
    return Brackets(*(floats(ends, shape) for ends in (zip(*values, strict=True) if values else ((),) * 3)))


def _plain(value: Any) -> Any:
    """Return a numpy scalar as Python's, so that a message shows 0.5 and not np.float64(0.5)."""
    return value.item() if isinstance(value, np.generic) else value
