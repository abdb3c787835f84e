"""Generators of features as they are written: text such as "gaussian:2" or a small table, or a CSV file."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any

from p2p_sim.core import InputError
from p2p_sim.core.number_texts import read_number, read_whole
from p2p_sim.core.population import MAX_FEATURES
from protocols import _pinned_files
from protocols.gaussian_mixtures import GaussianMixtures
from protocols.generators import GaussianClasses, Generator, Prototypes

FORMS = '"gaussian:2", a table such as "3*0;1*1|1*0;3*1", or a .csv file with the columns label, weight and features'
"""How a generator is written."""

DEVIATION = "deviation"
"""The column of a file that says how much noise each row gets; followed by a feature's name, that feature of it."""


def pinned(name: str, spec: Any) -> Any:
    """Return what a parameter is kept as: of a file its name and 16 digits of its SHA-256, so that it stays the same.

    Raises InputError for what is neither text nor a ``Generator``.
    """
    if isinstance(spec, Generator):
        return spec
    if not isinstance(spec, str):
        raise InputError(f"{name} = {spec!r}: give a Generator, or text: {FORMS}")
    return _pinned_files.pinned(name, spec, FORMS)


def generator_of(name: str, spec: Any, labels: int) -> Generator:
    """Return the generator that a parameter gives; raises InputError for one of other labels than 0 to k - 1."""
    found = spec if isinstance(spec, Generator) else _read(name, spec, labels)
    if getattr(found, "labels", None) != labels:
        raise InputError(
            f"{name} = {spec!r}: has rows of {getattr(found, 'labels', None)} labels, but labels = {labels}; give a "
            f"generator that has each label from 0 to {labels - 1}"
        )
    width = getattr(found, "width", None)
    if isinstance(width, bool) or not isinstance(width, int) or not 1 <= width <= MAX_FEATURES:
        raise InputError(
            f"{name} = {spec!r}: width = {width!r}: must be an integer from 1 to {MAX_FEATURES:,}"
        )
    return found


@lru_cache(maxsize=16)
def _read(name: str, spec: str, labels: int) -> Generator:
    """Return the generator that a text describes."""
    kind, _, size = spec.partition(":")
    if kind == "gaussian":
        try:
            width = read_whole(size)
        except ValueError as error:
            raise InputError(f"{name} = {spec!r}: features {error}") from None
        if not 1 <= width <= MAX_FEATURES:
            raise InputError(f"{name} = {spec!r}: features must be from 1 to {MAX_FEATURES:,}")
        return GaussianClasses(labels, width)
    if _pinned_files.path_in(spec):
        return _of_file(name, spec, labels)
    parts = [
        [_entry(name, spec, text) for text in part.split(";") if text.strip()] for part in spec.split("|")
    ]
    return Prototypes(parts, f"{name} = {spec!r}")


def _entry(name: str, spec: str, text: str) -> tuple[Fraction, list[float]]:
    """Return the weight and the row of an entry such as 3*0,1."""
    weight, star, row = text.rpartition("*")
    try:
        return _weight(weight.strip() if star else "1"), [
            read_number(part.strip()) for part in row.split(",")
        ]
    except ValueError as error:
        raise InputError(f"{name} = {spec!r}: {text.strip()!r} {error}; give {FORMS}") from None


def _weight(text: str) -> Fraction:
    read_number(text)
    return Fraction(text)


def _of_file(name: str, spec: str, labels: int) -> Generator:
    """Return the table of a file; raises InputError if it is not what it was, or holds something else."""
    where, header, lines = _pinned_files.lines_of(name, spec, FORMS)
    features, noise = _columns(where, header)
    table: list[list[tuple[Fraction, list[float]]]] = [[] for _ in range(labels)]
    deviations: list[list[list[float]]] = [[] for _ in range(labels)]
    for at, line in lines:
        values = dict(zip(header, line, strict=True))
        label, weight, row, spread = _of_line(at, values, features, noise)
        if not 0 <= label < labels:
            raise InputError(f"{at}: label {label} is none of 0 to {labels - 1}")
        table[label].append((weight, row))
        deviations[label].append(spread)
    rows = Prototypes(table, where)
    if not any(noise):
        return rows
    return GaussianMixtures(rows, [spread for each in deviations for spread in each])


def _columns(where: str, header: list[str]) -> tuple[list[str], list[str]]:
    """Return the columns of features, and of each that of its deviation; an empty text where it has none."""
    one, several = DEVIATION in header, [word for word in header if word.startswith(f"{DEVIATION} ")]
    features = [word for word in header if word not in ("label", "weight", DEVIATION, *several)]
    if "label" not in header or len(set(header)) < len(header) or not features:
        raise InputError(
            f"{where}: its first line is {header}; it must name the columns: label, optionally weight and {DEVIATION}, "
            "and features"
        )
    noise = [DEVIATION if one else f"{DEVIATION} {feature}" for feature in features]
    strange = sorted({*several} - {*noise})
    if strange:
        raise InputError(
            f"{where}: column {strange[0]!r} beside {'one of all deviations' if one else f'features {features}'}; give "
            f"{DEVIATION}, of all features, or {DEVIATION} NAME, of the feature NAME"
        )
    return features, [word if word in header else "" for word in noise]


def _of_line(
    where: str, values: dict[str, str], features: list[str], noise: list[str]
) -> tuple[int, Fraction, list[float], list[float]]:
    """Return label, weight, features and their deviations."""
    try:
        return (
            read_whole(values["label"]),
            _weight(values.get("weight", "1")),
            [read_number(values[word]) for word in features],
            [read_number(values[word]) if word else 0.0 for word in noise],
        )
    except ValueError as error:
        raise InputError(f"{where}: a value {error}") from None
