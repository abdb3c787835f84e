"""Checks of numbers that users give, which name the parameter, its value and its range."""

from __future__ import annotations

from numbers import Rational
from typing import Any

import numpy as np

from p2p_sim.core.errors import InputError


def check_range(
    name: str, value: Any, low: float, high: float, *, open_low: bool = False, open_high: bool = False
) -> None:
    """Check a protocol parameter; raises InputError naming parameter, value and range."""
    left, right = "(" if open_low else "[", ")" if open_high else "]"
    number = isinstance(value, (int, float, Rational, np.floating, np.integer)) and not isinstance(
        value, bool
    )
    outside = not number or not (low <= value <= high)
    if outside or (open_low and value == low) or (open_high and value == high):
        raise InputError(f"{name} = {value!r}: must be a number in {left}{low}, {high:g}{right}")


def check_flip(name: str, value: Any) -> None:
    """Check, in a program, that a chance of noise can be drawn: it is 0, or at least one random word in 2^64.

    A smaller one would never add noise, and show more than the law of the chance says.  Raises InputError naming
    parameter and value.
    """
    if 0 < value < 2.0**-64:
        raise InputError(
            f"{name} = {value!r}: a chance below 2^-64 (5.5e-20) is never drawn; give 0, or a larger one"
        )


def check_whole(name: str, value: Any, least: int = 1, most: int = 2**31 - 1) -> None:
    """Check a whole number, such as one of users; raises InputError naming it, its value and the range."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or not least <= value <= most:
        raise InputError(f"{name} = {value!r}: must be an integer from {least} to {most:,}")


def check_flag(name: str, value: object) -> None:
    """Check that a value is True or False: a text such as "no" would count as True; raises InputError."""
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(f"{name} = {value!r}: must be True or False")


def check_labels(name: str, value: Any) -> None:
    """Check a number of label values, 2 to 256; raises InputError otherwise."""
    check_whole(name, value, 2, 256)
