"""A column to labels, some values positive or each a class of its own; and a column to cluster numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError, near
from p2p_sim.core.label_kinds import BINARY, CLASSES, NUMERIC
from p2p_sim.core.number_texts import read_number
from p2p_sim.learning.data.cells import is_date
from p2p_sim.learning.data.tables import Array, Category, Column, listing, number_text

CLASS_LIMIT = 256
RARE = 0.1
"""A class is rare whose share is below this part of that of equally likely classes: below 5 % of two."""

_MANY = 20  # values that are named at most where one is not found

WHOLE_CLASSES = 20
"""So many whole numbers at most are taken for classes where nobody says what they are."""

Codes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Labels:
    """y (n,), bool, uint8, or uint32 of many numbers; the meaning of its values; what counts as positive; whether the
    labels said which classes there are.
    """

    y: npt.NDArray[np.bool_] | npt.NDArray[np.uint8] | npt.NDArray[np.uint32]
    classes: tuple[str, ...]
    positive: str
    inferred: bool


def kind_of(
    column: Column,
    name: str,
    where: str,
    positive: Sequence[str] | None = None,
    classes: Sequence[str] | None = None,
    range: tuple[float, float] | None = None,
) -> str:
    """Return the kind of the labels of a column: "binary", "k" or "numeric".

    InputError: what was said contradicts itself or the column, or numbers are many and nobody says their range.
    """
    options = [
        word for word, given in (("positive", positive), ("classes", classes), ("range", range)) if given
    ]
    if range is not None:
        if len(options) > 1:
            raise InputError(
                f"range says that label {name!r} is numbers, and {options[0]} that it is classes: give one of them"
            )
        if isinstance(column, Category):
            raise InputError(
                f"label {name!r} of {where} is text, {listing(present(column)[1], 6)}, and range goes with numbers: "
                "leave it out, or name a column of numbers"
            )
        return NUMERIC
    if positive is not None:
        return BINARY
    if classes is not None:
        return BINARY if len(classes) == 2 else CLASSES
    values = column.codes if isinstance(column, Category) else column
    distinct = len(np.unique(values))
    if distinct <= 2:
        return BINARY
    if isinstance(column, Category) or (
        distinct <= WHOLE_CLASSES and bool((column == np.rint(column)).all())
    ):
        return CLASSES
    raise InputError(
        f"label {name!r} of {where} holds {distinct:,} different numbers, and it is not said what they are: if they "
        "count or measure, give their range by public knowledge (--range LOW,HIGH; it is not taken from the labels, "
        "which are private; numbers outside it are clipped); otherwise name the values that count as 1 "
        f"(--positive){_as_they_are(name, distinct)}"
    )


def _as_they_are(name: str, distinct: int) -> str:
    """Say what else can be done with numbers: take each for a class, if they are few enough."""
    if distinct <= CLASS_LIMIT:
        return f", or say --categorical {name} if each is a class"
    return ", or take another column (--label), if they only number the rows"


def binary(
    column: Column,
    name: str,
    positive: Sequence[str] | None,
    where: str,
    declared: Sequence[str] | None = None,
) -> Labels:
    """Split a column into positive and other values.

    ``positive`` lists values as text; without it a column of exactly two values takes the larger in sorted
    order, of ``declared`` classes the second.  InputError: one value only, more than two and no ``positive``, a
    ``positive`` that is not there or is everything, a label that is not declared.
    """
    codes, values = _classes(column, name, where, declared)
    if positive is None:
        if len(values) > 2:
            raise InputError(
                f"label {name!r} of {where} has {len(values):,} classes, {listing(values, 12)}; a binary "
                "label needs positive (on the command line --positive), a list of the classes that count "
                f"as 1{_instead(column, values)}"
            )
        classes = (f"{name} = {values[0]}", f"{name} = {values[1]}")
        known = declared is not None or values == ("0", "1")
        larger = "" if known else " (of the two values, the larger in sorted order)"
        return Labels(codes == 1, classes, classes[1] + larger, not known)
    ones = positive_among(positive, values, isinstance(column, Category), name, where)
    classes = meanings(name, ones, [value for value in values if value not in ones])
    is_positive = np.isin(np.array(values), ones)
    return Labels(is_positive[codes], classes, classes[1], False)  # the rest is whatever is not positive


def positive_among(
    positive: Sequence[str], values: Sequence[str], text: bool, name: str, where: str
) -> list[str]:
    """Return the values that count as 1, in the order of ``values``; ``text``: these are no numbers.

    InputError: a positive one that is not among them, none, or all.
    """
    check_once(positive, text)
    chosen = [_position(value, values, text, name, where) for value in positive]
    if not chosen or len(set(chosen)) == len(values):
        raise InputError(
            f"positive {list(positive)} names {'none' if not chosen else 'every one'} of the classes of "
            f"label {name!r} in {where}, {listing(values)}; name some, and leave some"
        )
    return [values[place] for place in sorted(set(chosen))]


def multi(
    column: Column, name: str, where: str, declared: Sequence[str] | None = None, *, numbers: bool = False
) -> Labels:
    """Keep every value of a column as a class 0..k-1, in sorted (or declared) order.

    ``numbers``: the values are numbers that a protocol rounds to a few, so there may be more than 256, and y is uint32.
    InputError: k < 2, or k > 256 without ``numbers``, or a label that is not declared.
    """
    codes, values = _classes(column, name, where, declared)
    if numbers and len(values) > CLASS_LIMIT:
        return Labels(codes.astype(np.uint32), values, f"none: {len(values)} numbers", declared is None)
    if len(values) > CLASS_LIMIT:
        raise InputError(
            f"label {name!r} of {where} has {len(values):,} classes, {listing(values, 3)}; at most {CLASS_LIMIT} are "
            f"allowed; name those that count as 1 (--positive){_instead(column, values)}"
        )
    return Labels(codes.astype(np.uint8), values, f"none: {len(values)} classes", declared is None)


def _instead(column: Column, values: Sequence[str]) -> str:
    """Say what else can be done with a label of many values; begins with a semicolon, empty if nothing is known."""
    from p2p_sim.privacy.accepted_labels import protocols_for

    if not isinstance(column, Category) and len(values) > WHOLE_CLASSES:
        return (
            f"; or take a protocol for numbers, {protocols_for(NUMERIC)}, with the range that they have by public "
            "knowledge (--low, --high)"
        )
    if same := alike(values):
        shown = ", ".join(" and ".join(map(repr, each)) for each in same[:4])
        return (
            f"; {shown} differ in upper and lower case or blanks alone: name all that count as 1 (--positive "
            f"{','.join(same[-1])}), or write them alike in the file"
        )
    if all(map(is_date, values)):
        return "; these are dates: make classes of them first (the year, before or after a day), or numbers"
    return (
        f"; or let a protocol for several classes keep all (--labels {len(values)})"
        if len(values) <= CLASS_LIMIT
        else "; or take another column (--label)"
    )


def notes(column: Column, name: str, classes: Sequence[str] | None, dates: bool) -> list[str]:
    """Return what to know of a column of labels before anything is run, a line each."""
    from p2p_sim.privacy.accepted_labels import protocols_for

    codes, values = present(column)
    if len(values) < 2:
        held = f"{listing(values)} alone" if values else "nothing"
        return [f"warning: label {name!r} holds {held}: at least two different labels are needed (--label)"]
    start, numbers = f"note: label {name!r} holds", not isinstance(column, Category)
    if numbers and len(values) > WHOLE_CLASSES:
        return [
            f"{start} {len(values):,} different numbers: {protocols_for(NUMERIC)} takes them as they are, with --low "
            "and --high, a range that is public; for classes, name those that count as 1 (--positive)"
        ]
    found = []
    if dates:
        found.append(
            f"warning: label {name!r} holds dates: make classes of them, such as the year, or numbers, such as days"
        )
    if len(values) > CLASS_LIMIT:
        found.append(
            f"warning: label {name!r} holds {len(values):,} different texts, and a protocol takes {CLASS_LIMIT} "
            "classes at most: name those that count as 1 (--positive), or another column (--label)"
        )
    elif classes is None and values != ("0", "1"):
        found.append(
            f"{start} {listing(values, 12)}: which classes there are is taken as public, say --classes if one label "
            "alone could change it"
        )
    counts = np.bincount(codes)
    if counts.min() < RARE * len(codes) / len(counts) and len(values) <= CLASS_LIMIT:
        least = int(counts.argmin())
        found.append(
            f"note: only {counts[least]:,} of {len(codes):,} labels are {values[least]!r}: read balanced accuracy, AUC "
            "and average precision, for accuracy says little of it"
        )
    return found + [f"warning: {each}" for each in cautions(column, name)]


def cautions(column: Column, name: str, positive: Sequence[str] | None = None) -> tuple[str, ...]:
    """Return which classes of a column of labels differ in case or blanks alone, and may be meant to be one.

    ``positive``: those that count as 1; what is on one side of it is one class already.
    """
    if not isinstance(column, Category):
        return ()
    ones = {value.strip() for value in positive or ()}
    return tuple(
        f"label {name!r}: {' and '.join(map(repr, same))} differ in upper and lower case or blanks alone; if they are "
        "one class, write them alike"
        for same in alike(present(column)[1])
        if positive is None or 0 < len(ones & {*same}) < len(same)
    )


def alike(values: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the classes that differ in upper and lower case or in blanks alone, those that are alike together."""
    groups: dict[str, list[str]] = {}
    for value in values:
        groups.setdefault(" ".join(value.casefold().split()), []).append(value)
    return [tuple(same) for same in groups.values() if len(same) > 1]


def clusters(column: Column, name: str, where: str) -> Codes:
    """Read cluster numbers, whole, not negative, gaps allowed; of text, each value is a cluster, in sorted order.

    InputError: the first bad row (from 1).
    """
    must = "a cluster is a whole number, 0 or more, below 2^63 (gaps are fine), or text"
    if isinstance(column, Category):
        return present(column)[0]
    if column.dtype.kind not in "iufb":
        raise InputError(f"cluster column {name!r} of {where} is of type {column.dtype}; {must}; renumber")
    check_exact(column, "cluster", name, where)
    wrong = column < 0
    if column.dtype.kind == "f":
        wrong |= ~np.isfinite(column) | (column != np.floor(column))
    if column.dtype.kind == "u":
        wrong |= column > np.uint64(2**63 - 1)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            f"cluster column {name!r} of {where} has {column[row]} in row {row + 1}; {must}; correct it, or say "
            f"--categorical {name}"
        )
    return column.astype(np.int64)


def present(column: Column) -> tuple[Codes, tuple[str, ...]]:
    """Number the values that occur: codes (n,) into the values, as text, in order."""
    if isinstance(column, Category):
        used, codes = np.unique(column.codes, return_inverse=True)
        return codes.astype(np.int64), tuple(column.values[code] for code in used)
    numbers, codes = np.unique(column, return_inverse=True)
    return codes.astype(np.int64), tuple(number_text(number) for number in numbers.tolist())


def _classes(
    column: Column, name: str, where: str, declared: Sequence[str] | None
) -> tuple[Codes, tuple[str, ...]]:
    """Number the classes, those that occur or those that were declared; at least two occur."""
    if not isinstance(column, Category):
        check_exact(column, "label", name, where)
    codes, values = present(column)
    check_several(values, name, where)
    if declared is None:
        return codes, values
    classes = declared_as(declared, isinstance(column, Category))
    return renumbered(codes, values, classes, name, where), classes


def check_several(values: Sequence[str], name: str, where: str) -> None:
    """Raise InputError unless at least two classes occur."""
    if len(values) < 2:
        raise InputError(
            f"label {name!r} of {where} has one class, {listing(values)}; at least two are needed; choose "
            "another label"
        )


def declared_as(declared: Sequence[str], text: bool) -> tuple[str, ...]:
    """Return declared classes as ``present`` writes values; InputError: fewer than two, or one twice."""
    classes = tuple(spelled(value, text) for value in declared)
    if len(set(classes)) < len(classes) or len(classes) < 2:
        raise InputError(f"classes {list(declared)}: list at least two, each once")
    return classes


def check_once(positive: Sequence[str], text: bool) -> None:
    """Raise InputError for a positive value that is named twice."""
    seen = set[str]()
    for value in positive:
        if spelled(value, text) in seen:
            raise InputError(f"positive {list(positive)} names {value!r} twice: name each value once")
        seen.add(spelled(value, text))


def renumbered(codes: Codes, values: Sequence[str], classes: Sequence[str], name: str, where: str) -> Codes:
    """Turn codes (n,) into values into codes into declared classes; InputError: a value that is none of them."""
    place = {value: index for index, value in enumerate(classes)}
    strange = [value for value in values if value not in place]
    if strange:
        raise InputError(
            f"label {name!r} of {where} holds {listing(strange, 12)}, not among the declared classes "
            f"{listing(classes, 12)}{near(strange[0], classes)}; add it to the classes, or leave these rows out"
        )
    return np.array([place[value] for value in values], np.int64)[codes]


def check_exact(column: Array, role: str, name: str, where: str) -> None:
    """Refuse floats so large that whole numbers were rounded on the way here: two of them might have become one."""
    if column.dtype.kind != "f":
        return
    bits = np.finfo(column.dtype).nmant + 1
    wrong = np.abs(column) >= 2.0**bits
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            f"{role} column {name!r} of {where} has {column[row]!r} in row {row + 1}, of type {column.dtype}, which "
            f"holds whole numbers up to 2^{bits} exactly: store the column as whole numbers or text"
        )


def spelled(value: str, text: bool) -> str:
    """Return a value as ``present`` writes the values of a column of text, or of numbers."""
    wanted = value.strip()
    if text:
        return wanted
    wanted = {"true": "1", "false": "0"}.get(wanted.lower(), wanted)
    try:
        return str(int(wanted)) if re.fullmatch("[+-]?[0-9]+", wanted) else number_text(read_number(wanted))
    except ValueError:
        return value


def _position(value: str, values: Sequence[str], text: bool, name: str, where: str) -> int:
    wanted = spelled(value, text)
    if wanted not in values:
        raise InputError(
            f"positive value {value!r} does not occur in label {name!r} of {where}{near(wanted, values)}; its values "
            f"are {_first_few(values, text)}; name some of these"
        )
    return list(values).index(wanted)


def _first_few(values: Sequence[str], text: bool) -> str:
    """Name values, of many the first: those of a table that is read in parts are not all known."""
    if len(values) <= _MANY:
        return listing(values)
    return f"{', '.join(map(repr, values[:5]))} and {len(values) - 5:,} more at least{'' if text else ', all numbers'}"


def meanings(name: str, ones: Sequence[str], others: Sequence[str] | None) -> tuple[str, str]:
    """Return what 0 and 1 mean, where some values count as 1; ``others``: the other ones, None: any."""
    if others is not None and len(ones) + len(others) == 2:
        return f"{name} = {others[0]}", f"{name} = {ones[0]}"
    shown = ", ".join(ones[:8]) + (f" and {len(ones) - 8} more" if len(ones) > 8 else "")
    if len(ones) == 1:
        return f"{name} is not {shown}", f"{name} = {shown}"
    return f"{name} not in {{{shown}}}", f"{name} in {{{shown}}}"
