"""Numbers in texts: the one way in which options, faults, graphs, traces and labels are read.

A number has ASCII digits, with an optional point and exponent: 5, 0.05, .5, 1e-6.  No underscores, no blanks, no
digits of other scripts, and nothing that a float would turn into 0 or infinity.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

DECIMAL = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)"
"""The pattern of a number without sign and exponent."""

WHOLE_LIMIT = 1 << 64
"""Whole numbers are below this, as seeds are."""

_LONGEST = 400
_FORM = re.compile(rf"[+-]?({DECIMAL})(?:[eE]([+-]?[0-9]+))?")
_SMALL = "must be 0, or at least 5e-324 in size: as it stands it would be taken for 0"
_LARGE = "must be below 1.8e308 in size: as it stands it would be taken for infinity"


def read_number(text: str, *, infinite: bool = False) -> float:
    """Return the number that a text writes; ``infinite``: the word "inf" is one too.

    Raises ValueError, whose text goes behind the name and the value: "must be a number ...".
    """
    if infinite and text == "inf":
        return float("inf")
    found = _FORM.fullmatch(text) if isinstance(text, str) and len(text) <= _LONGEST else None
    if found is None:
        raise ValueError("must be a number, in plain digits, such as 12, 0.05 or 1e-6")
    value = float(text)
    if value == 0 and found[1].strip("0."):
        raise ValueError(_SMALL)
    if value in (float("inf"), float("-inf")):
        raise ValueError(_LARGE)
    return value


def float_of(whole: int) -> float:
    """Return a whole number as a float; raises ValueError, as ``read_number`` does, for one beyond all floats."""
    try:
        return float(whole)
    except OverflowError:
        raise ValueError(_LARGE) from None


def read_whole(text: str) -> int:
    """Return the whole number that a text writes, also as 1e7, exactly; raises ValueError as ``read_number`` does."""
    try:
        size = read_number(text)
    except ValueError as error:
        overflow = str(error) == _LARGE
        form = "must be a whole number, in plain digits, such as 12 or 1e7"
        raise ValueError(_too_large() if overflow else form) from None
    if abs(size) > WHOLE_LIMIT:
        raise ValueError(_too_large())
    exact = Fraction(0 if size == 0 else text)  # of 0e999999999 a power would be computed
    if exact.denominator != 1:
        raise ValueError("must be a whole number")
    if abs(exact) >= WHOLE_LIMIT:
        raise ValueError(_too_large())
    return int(exact)


def read_digits(text: Any) -> int | None:
    """Return the number of a text of at most 18 digits and nothing else, as in user:17; None for any other."""
    plain = isinstance(text, str) and text.isascii() and text.isdigit() and len(text) <= 18
    return int(text) if plain else None


def _too_large() -> str:
    return "must be a whole number below 2^64"
