"""A column to labels, some values positive or each a class of its own; and a column to cluster numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.core.number_texts import read_number
from p2p_sim.learning.data.tabular import Category, Column, listing, number_text

CLASS_LIMIT = 256


@dataclass(frozen=True)
class Labels:
    """y (n,), bool or uint8; the meaning of its values; and what counts as positive."""

    y: npt.NDArray[np.bool_] | npt.NDArray[np.uint8]
    classes: tuple[str, ...]
    positive: str


def binary(column: Column, name: str, positive: Sequence[str] | None, where: str) -> Labels:
    """Split a column into positive and other values.

    ``positive`` lists values as text; without it a column of exactly two values takes the larger in sorted
    order. InputError: one value only, more than two and no ``positive``, a ``positive`` that is not there or
    is everything.
    """
    codes, values = present(column)
    _at_least_two(values, name, where)
    if positive is None:
        if len(values) > 2:
            raise InputError(
                f"label {name!r} of {where} has {len(values)} classes, {listing(values, 12)}; a binary "
                "label needs positive (on the command line --positive), a list of the classes that count "
                "as 1"
            )
        classes = (f"{name} = {values[0]}", f"{name} = {values[1]}")
        larger = "" if values == ("0", "1") else " (of the two values, the larger in sorted order)"
        return Labels(codes == 1, classes, classes[1] + larger)
    chosen = [_position(value, values, column, name, where) for value in positive]
    if not chosen or len(set(chosen)) == len(values):
        raise InputError(
            f"positive {list(positive)} names {'none' if not chosen else 'every one'} of the classes of "
            f"label {name!r} in {where}, {listing(values)}; name some, and leave some"
        )
    is_positive = np.zeros(len(values), bool)
    is_positive[chosen] = True
    classes = _meanings(name, values, is_positive)
    return Labels(is_positive[codes], classes, classes[1])


def multi(column: Column, name: str, where: str) -> Labels:
    """Keep every value of a column as a class 0..k-1, in sorted (or given) order; InputError: k < 2 or k >
    256.
    """
    codes, values = present(column)
    _at_least_two(values, name, where)
    if len(values) > CLASS_LIMIT:
        raise InputError(
            f"label {name!r} of {where} has {len(values)} classes; at most {CLASS_LIMIT} are allowed; "
            "choose another label, or name the positive classes"
        )
    return Labels(codes.astype(np.uint8), values, f"none: {len(values)} classes")


def clusters(column: Column, name: str, where: str) -> npt.NDArray[np.int64]:
    """Read cluster numbers, whole, not negative, gaps allowed; InputError: the first bad row (from 1)."""
    must = "a cluster is a whole number, 0 or more (gaps are fine)"
    if isinstance(column, Category):
        raise InputError(
            f"cluster column {name!r} of {where} holds text, first {column.values[0]!r}; {must}; renumber"
        )
    if column.dtype.kind not in "iufb":
        raise InputError(f"cluster column {name!r} of {where} is of type {column.dtype}; {must}; renumber")
    numbers = column.astype(np.float64)
    wrong = ~np.isfinite(numbers) | (numbers != np.floor(numbers)) | (numbers < 0) | (numbers >= 2.0**62)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            f"cluster column {name!r} of {where} has {column[row]} in row {row + 1}; {must}; correct it"
        )
    return column.astype(np.int64)


def present(column: Column) -> tuple[npt.NDArray[np.int64], tuple[str, ...]]:
    """Number the values that occur: codes (n,) into the values, as text, in order."""
    if isinstance(column, Category):
        used, codes = np.unique(column.codes, return_inverse=True)
        return codes.astype(np.int64), tuple(column.values[code] for code in used)
    numbers, codes = np.unique(column, return_inverse=True)
    return codes.astype(np.int64), tuple(number_text(number) for number in numbers.tolist())


def _at_least_two(values: Sequence[str], name: str, where: str) -> None:
    if len(values) < 2:
        raise InputError(
            f"label {name!r} of {where} has one class, {listing(values)}; at least two are needed; choose "
            "another label"
        )


def _position(value: str, values: Sequence[str], column: Column, name: str, where: str) -> int:
    wanted = value.strip()
    if not isinstance(column, Category):
        try:
            wanted = number_text(read_number({"true": "1", "false": "0"}.get(wanted.lower(), wanted)))
        except ValueError:
            wanted = value
    if wanted not in values:
        raise InputError(
            f"positive value {value!r} does not occur in label {name!r} of {where}; its values are "
            f"{listing(values)}; name some of these"
        )
    return list(values).index(wanted)


def _meanings(name: str, values: Sequence[str], is_positive: npt.NDArray[np.bool_]) -> tuple[str, str]:
    ones = [value for value, one in zip(values, is_positive, strict=True) if one]
    others = [value for value, one in zip(values, is_positive, strict=True) if not one]
    if len(values) == 2:
        return f"{name} = {others[0]}", f"{name} = {ones[0]}"
    shown = ", ".join(ones[:8]) + (f" and {len(ones) - 8} more" if len(ones) > 8 else "")
    if len(ones) == 1:
        return f"{name} is not {shown}", f"{name} = {shown}"
    return f"{name} not in {{{shown}}}", f"{name} in {{{shown}}}"
